//! Servers that are packages: installed once, by scripts in the place of npm and uv, and started from the cache.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::json;

use crate::mcp::{around, command};
use crate::test_folder::{Ended, TestFolder};

/// Does what npm does with a package that it finds, and writes what it was asked for.
const NPM: &str = r#"#!/bin/sh
case "$1" in
view) echo 1.2.3; exit 0 ;;
install) echo '{"packages":{"":{},"node_modules/fake-server":{"integrity":"sha512-AAAA"}}}' > package-lock.json ;;
ci) grep -q sha512-AAAA package-lock.json || { echo 'checksum failed' >&2; exit 1; } ;;
rebuild) echo "$*" > node_modules/fake-server/scripts; exit 0 ;;
esac
test -z "$USER_SECRET" || exit 9
mkdir -p node_modules/fake-server .npm
echo '{"version":"1.2.3","bin":"run.sh"}' > node_modules/fake-server/package.json
echo "$*" > node_modules/fake-server/asked
cat > node_modules/fake-server/run.sh <<'END'
SERVER
END
"#;

/// The same with a package of Python.
const UV: &str = r#"#!/bin/sh
case "$2" in
compile) printf 'fake-server==1.2.3 \\\n    --hash=sha256:aaaa\n' > requirements.lock ;;
install) grep -q sha256:aaaa requirements.lock || exit 1
  mkdir -p lib/bin; echo "$*" > lib/asked
  printf 'import os\nos.execvp("sh", ["sh", os.path.dirname(__file__) + "/../run.sh"])\n' > lib/bin/fake-server
  cat > lib/run.sh <<'END'
SERVER
END
  ;;
esac
"#;

struct Stage {
    stage: TestFolder,
    file: String,
    words: String,
}

impl Stage {
    /// A tree with a server that is started so.
    fn new(words: &[&str]) -> Self {
        let stage = TestFolder::new();
        fs::create_dir(stage.folder().join("bin")).unwrap();
        let server = format!("exec {}", command("plain").join(" "));
        for (name, script) in [
            ("npm", NPM.replace("SERVER", &server)),
            ("node", "#!/bin/sh\nexec sh \"$@\"\n".to_owned()),
            ("uv", UV.replace("SERVER", &server)),
            // Where the system has no Python.
            ("python3", "#!/bin/sh\nexec sh \"$(dirname \"$1\")/../run.sh\"\n".to_owned()),
        ] {
            let path = PathBuf::from(stage.file(&format!("bin/{name}"), &script));
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        stage.file("script.yaml", "rules:\n  - { when: { turn: 1 }, call: [{ tool: test__echo, args: { text: so } }] }\n  - { say: '{{ last }}' }\n");
        let price = json!({ "input_per_mtok_usd": 1, "output_per_mtok_usd": 1 });
        let tree = json!({
            "name": "test", "goal": "Try it.", "budget": { "cost_usd": 1 }, "read": [around()],
            "models": { "fast": { "provider": "scripted", "script": "script.yaml", "context": 8000, "price": price } },
            "mcp": { "test": { "command": words[0], "args": words[1..], "read": [around()] } },
            "agents": { "lead": { "model": "fast", "tools": ["test__echo"] } },
        });
        let file = stage.file("tree.json", &tree.to_string());
        Self { stage, file, words: words.join(" ") }
    }

    fn path(&self) -> PathBuf {
        self.stage.folder().join("bin")
    }

    fn spinney(&self, args: &[&str]) -> Ended {
        let path = format!("{}:/usr/bin:/bin", self.path().display());
        self.stage.play_in(args, &[("PATH", &path), ("USER_SECRET", "hunter2-hunter2")]).end()
    }

    fn run(&self) -> Ended {
        let allowed = format!("mcp:{}", self.words);
        self.spinney(&["run", &self.file, "--json", "--read", &around(), "--allow-box", &allowed])
    }

    fn installed(&self, file: &str) -> Option<String> {
        let packages = self.stage.folder().join("user/cache/spinney/packages");
        fs::read_to_string(packages.join(file)).ok()
    }
}

/// P17, G26: a server of npm is installed when a person says so, by name and version, with a lock; its tree starts it from
/// the cache. Before that, its tree says what to run.
#[test]
fn p17_a_server_of_npm_is_installed_and_started_from_the_cache() {
    let stage = Stage::new(&["npx", "-y", "fake-server@1.2.3"]);
    let install = format!("spinney mcp install {}", stage.file);
    let refused = stage.run();
    assert_eq!(refused.code, Some(2), "{}{}", refused.out, refused.err);
    let why = format!(
        "server `test`: npm package `fake-server@1.2.3` is not installed; install it first: {install}"
    );
    assert!(refused.err.contains(&why) || refused.out.contains(&why), "{}{}", refused.out, refused.err);
    let checked = stage.spinney(&["check", &stage.file]);
    assert!(checked.out.contains(&format!("install it with `{install}`")), "{}", checked.out);

    let asked = stage.spinney(&["mcp", "install", &stage.file]);
    assert_eq!(asked.code, Some(2), "{}{}", asked.out, asked.err);
    for text in [
        "npm package `fake-server@1.2.3`, for server `test`",
        "none of their scripts is run",
        "--allow-package 'fake-server@1.2.3'",
    ] {
        assert!(asked.err.contains(text), "{}", asked.err);
    }
    assert_eq!(stage.installed("npm/fake-server@1.2.3/program.json"), None);

    let installed = stage.spinney(&["mcp", "install", &stage.file, "--allow-package", "fake-server@1.2.3"]);
    assert_eq!(installed.code, Some(0), "{}{}", installed.out, installed.err);
    let of_npm = stage.installed("npm/fake-server@1.2.3/node_modules/fake-server/asked").unwrap();
    assert!(of_npm.starts_with("install --ignore-scripts"), "{of_npm}");
    assert!(fs::read_to_string(stage.stage.folder().join("tree.lock")).unwrap().contains("sha512-AAAA"));

    let ran = stage.run();
    assert_eq!((ran.code, &ran.result()["output"]), (Some(0), &json!("so")), "{}{}", ran.out, ran.err);
    // Nothing was started but the cache's own.
    let again = stage.spinney(&["mcp", "install", &stage.file]);
    assert!(
        again.out.contains("test: npm package `fake-server@1.2.3` is installed"),
        "{}{}",
        again.out,
        again.err
    );
}

/// The same for Python.
#[test]
fn p17_a_server_of_python_is_installed_and_started_from_the_cache() {
    let stage = Stage::new(&["uvx", "fake_server@1.2.3"]);
    let allow = ["mcp", "install", &stage.file, "--allow-package", "fake-server@1.2.3"];
    let installed = stage.spinney(&allow);
    assert_eq!(installed.code, Some(0), "{}{}", installed.out, installed.err);
    let of_uv = stage.installed("pypi/fake-server@1.2.3/lib/asked").unwrap();
    assert!(of_uv.contains("--require-hashes") && of_uv.contains("--only-binary :all:"), "{of_uv}");
    let ran = stage.run();
    assert_eq!((ran.code, &ran.result()["output"]), (Some(0), &json!("so")), "{}{}", ran.out, ran.err);
}

/// G24: what is installed is what the lock has, and scripts run only for packages that a person names.
#[test]
fn g24_a_lock_and_scripts_are_the_users_decision() {
    let stage = Stage::new(&["npx", "-y", "fake-server@1.2.3"]);
    let lock = json!({ "version": 1, "packages": { "npm:fake-server@1.2.3": "{\"packages\":{}}" } });
    stage.stage.file("tree.lock", &lock.to_string());
    let allow = ["mcp", "install", stage.file.as_str(), "--allow-package", "fake-server@1.2.3"];
    let refused = stage.spinney(&allow);
    assert!(
        refused.code != Some(0) && refused.err.contains("checksum failed"),
        "{}{}",
        refused.out,
        refused.err
    );
    assert_eq!(stage.installed("npm/fake-server@1.2.3/program.json"), None);

    fs::remove_file(stage.stage.folder().join("tree.lock")).unwrap();
    let with_scripts = [allow.as_slice(), &["--allow-scripts", "fake-server"]].concat();
    let installed = stage.spinney(&with_scripts);
    assert_eq!(installed.code, Some(0), "{}{}", installed.out, installed.err);
    let scripts = stage.installed("npm/fake-server@1.2.3/node_modules/fake-server/scripts").unwrap();
    assert_eq!(scripts.trim(), "rebuild --ignore-scripts=false fake-server");
}

/// A server without a version could be another one tomorrow.
#[test]
fn a_package_without_a_version_is_not_installed() {
    let stage = Stage::new(&["npx", "fake-server"]);
    let refused = stage.spinney(&["mcp", "install", &stage.file]);
    assert!(
        refused.code != Some(0) && refused.err.contains("write `fake-server@1.2.3`, which is the newest"),
        "{}{}",
        refused.out,
        refused.err
    );
    let ran = stage.run();
    let why = "npm package `fake-server` is named without a version";
    assert!(
        ran.code == Some(2) && (ran.err.contains(why) || ran.out.contains(why)),
        "{}{}",
        ran.out,
        ran.err
    );
}
