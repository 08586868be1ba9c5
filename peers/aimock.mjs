// Serves aimock on a free port of the loopback until standard input ends: node aimock.mjs FOLDER FIXTURES
import { pathToFileURL } from "node:url";

const [folder, fixtures] = process.argv.slice(2);
const entry = `${folder}/packages/node_modules/@copilotkit/aimock/dist/index.js`;
const { LLMock } = await import(pathToFileURL(entry));

const mock = new LLMock({ host: "127.0.0.1", port: 0 });
mock.loadFixtureFile(fixtures);
await mock.start();
console.log(`peer: ${mock.url}`);

// Whoever started this holds the other end. It closes when they end, however they end.
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
