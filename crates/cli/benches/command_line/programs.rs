//! What it costs a program to be an agent of a tree: the time to the first token, against the same program under `exec`, and
//! the memory of ours for each of many at once. The program is this bench itself.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::SPINNEY;
use crate::format::Format;
use crate::measure::{at_most, median, paired, row, time};
use crate::mock::{Mock, SHORT};
use crate::raw_client::{Target, first_token};

/// Says that this process is the program: it measures calls, or makes one and stays.
pub(crate) const CALLS: &str = "calls";
pub(crate) const STAYS: &str = "stays";

const ROUNDS: usize = 7;
const CALLS_OF_ROUND: usize = 100;
const WARM_UP: usize = 20;
const REQUEST_BYTES: usize = 1_000;
/// Of the time under `exec`.
const FIRST_TOKEN_MAX: f64 = 1.0;
const AGENTS: usize = 50;
const MEMORY_MAX_KB: f64 = 10_240.0;

pub(crate) fn run() -> Result<(), String> {
    let mock = Mock::start();
    let stage = Stage::new(&mock)?;
    let (mut tree, mut exec) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        exec.push(stage.under_exec()?);
        tree.push(stage.in_tree()?);
    }
    let other = format!("{} (under exec)", time(median(exec.clone())));
    let relation = at_most(paired(&tree, &exec), FIRST_TOKEN_MAX);
    row("first token of a program in a tree", &time(median(tree)), &other, &relation);
    let (one, many) = (stage.memory(1)?, stage.memory(AGENTS)?);
    let each = (many - one) / (AGENTS - 1) as f64;
    let relation = at_most(each / MEMORY_MAX_KB, 1.0);
    row(
        &format!("memory of ours for each of {AGENTS} programs"),
        &format!("{:.1} MB", each / 1_024.0),
        &format!("{:.0} MB (bound)", MEMORY_MAX_KB / 1_024.0),
        &relation,
    );
    Ok(())
}

struct Stage {
    folder: TempDir,
    bench: PathBuf,
    address: String,
}

impl Stage {
    fn new(mock: &Mock) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let settings = folder.path().join("config/spinney");
        let prices = "[prices.m]\ninput_per_mtok_usd = 1\noutput_per_mtok_usd = 1\n";
        let made = fs::create_dir_all(&settings)
            .and_then(|()| fs::write(settings.join("config.toml"), prices))
            .and_then(|()| fs::write(folder.path().join("script.yaml"), "rules: [ { say: Done. } ]"));
        made.map_err(|error| error.to_string())?;
        let bench = env::current_exe().map_err(|error| error.to_string())?;
        Ok(Self { folder, bench, address: format!("http://{}{SHORT}", mock.address()) })
    }

    fn spinney(&self, words: &[&str]) -> Command {
        let mut command = Command::new(SPINNEY);
        command.args(words).current_dir(self.folder.path());
        for (variable, folder) in
            [("XDG_CONFIG_HOME", "config"), ("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache")]
        {
            command.env(variable, self.folder.path().join(folder));
        }
        command.env("ANTHROPIC_BASE_URL", &self.address).env("ANTHROPIC_API_KEY", "sk-bench");
        command
    }

    fn under_exec(&self) -> Result<f64, String> {
        let bench = self.bench.display().to_string();
        let ended = self.spinney(&["exec", "--budget-usd", "1000", "--", &bench, CALLS]).output();
        let ended = ended.map_err(|error| error.to_string())?;
        number(&String::from_utf8_lossy(&ended.stdout))
            .ok_or_else(|| String::from_utf8_lossy(&ended.stderr).into_owned())
    }

    fn in_tree(&self) -> Result<f64, String> {
        let ended = self.tree(CALLS, 1)?.output().map_err(|error| error.to_string())?;
        let out = String::from_utf8_lossy(&ended.stdout).into_owned();
        let result = out.lines().next_back().and_then(|line| serde_json::from_str::<Value>(line).ok());
        result
            .and_then(|result| number(result["outputs"]["measured"][0].as_str()?))
            .ok_or_else(|| format!("{out}{}", String::from_utf8_lossy(&ended.stderr)))
    }

    /// A tree of so many programs at once.
    fn tree(&self, word: &str, programs: usize) -> Result<Command, String> {
        let items: Vec<usize> = (0..programs).collect();
        let tree = json!({
            "name": "programs", "goal": "Measure.", "budget": { "cost_usd": 1_000 },
            "limits": { "children": 100, "parallel": 100 },
            "models": { "fast": { "provider": "scripted", "script": "script.yaml" } },
            "agents": { "program": { "program": [self.bench, word, "{{ goal }}"] } },
            "pipeline": { "steps": [{
                "map": [{ "agent_id": "program", "task_description": "Number {{ item }}." }],
                "over": format!("{items:?}"), "max_parallel": 100, "output_to": "measured",
            }] },
        });
        let file = self.folder.path().join("tree.json");
        fs::write(file, tree.to_string()).map_err(|error| error.to_string())?;
        let allowed = format!("program:{} {word} {{{{ goal }}}}", self.bench.display());
        Ok(self.spinney(&["run", "tree.json", "--json", "--allow-box", &allowed]))
    }

    /// Kilobytes of all of our processes while so many programs run, each after a call.
    fn memory(&self, programs: usize) -> Result<f64, String> {
        let running = self.tree(STAYS, programs)?.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut running = Ended(running.map_err(|error| error.to_string())?);
        let output = running.0.stdout.take().ok_or("it has no output")?;
        let ends = BufReader::new(output).lines().map_while(Result::ok);
        let answered = ends.filter(|line| line.contains(r#""type":"call_ended""#)).take(programs).count();
        if answered < programs {
            return Err(format!("only {answered} of {programs} programs made a call"));
        }
        Ok(ours().iter().filter_map(|process| proportional_kb(process)).sum())
    }
}

/// Ends with what it started.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _ended = self.0.wait();
        // Its guards end the programs.
        while !ours().is_empty() {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The processes of the binary under test.
fn ours() -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let is_ours =
        |process: &PathBuf| fs::read_link(process.join("exe")).is_ok_and(|exe| exe == Path::new(SPINNEY));
    processes.map(|process| process.path()).filter(is_ours).collect()
}

/// What a process has for itself, and its share of what it has with others.
fn proportional_kb(process: &Path) -> Option<f64> {
    let rollup = fs::read_to_string(process.join("smaps_rollup")).ok()?;
    rollup.lines().find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix(" kB")?.parse().ok())
}

fn number(text: &str) -> Option<f64> {
    text.lines().next()?.trim().parse().ok()
}

/// The program: prints the median of its calls, or makes one and stays.
pub(crate) async fn program(word: &str) {
    let read = |name: &str| env::var(name).unwrap_or_default();
    let (url, key) = (read("ANTHROPIC_BASE_URL"), read("ANTHROPIC_API_KEY"));
    let Some(Ok(address)) = url.strip_prefix("http://").map(str::parse) else {
        println!("no gateway: {url}");
        return;
    };
    let target = Target { address, way: "", key };
    let mut connection = target.connect().await;
    let mut times = Vec::new();
    let (format, calls) = (Format::Messages, if word == STAYS { 1 } else { WARM_UP + CALLS_OF_ROUND });
    for number in 0..calls {
        let request = target.request(format, &format.body(number, REQUEST_BYTES));
        times.push(first_token(&mut connection, &request, format).await);
    }
    if word == STAYS {
        thread::sleep(Duration::from_secs(600));
    }
    println!("{}", median(times.split_off(WARM_UP)));
}
