//! The transfer campaign: a tree moves between two machines and back while the processes that run, export and import it are
//! killed at any moment. It must never be able to continue in two places, and end as if nothing had happened.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use spinney::clock::{Clock as _, SystemClock};
use spinney::rng::Rng;

/// Moves of a tree.
const MOVES: usize = 4;
/// Longer than most commands take.
const KILLED_MS_MAX: u64 = 250;
/// A command that is always killed is left alone at last.
const KILLS_MAX: u64 = 5;

const TREE: &str = "\
name: mover
goal: Try it.
budget: { cost_usd: 1 }
models:
  fast: { provider: scripted, script: mover.script.yaml, price: { input_per_mtok_usd: 0.25, output_per_mtok_usd: 1.25 } }
agents:
  lead: { model: fast, tools: [look, write_file] }
";

/// Twelve turns with a tool, of which some write a file.
fn script() -> String {
    let turn = |turn: u32| {
        let call = match turn % 3 {
            0 => {
                format!("{{ tool: write_file, args: {{ path: outputs/{turn}.md, text: 'Turn {turn}.' }} }}")
            }
            _ => "{ tool: look }".to_owned(),
        };
        format!("  - when: {{ turn: {turn} }}\n    think_ms: 15\n    call: [ {call} ]\n")
    };
    let turns: String = (1..=12).map(turn).collect();
    format!("rules:\n{turns}  - say: done\ntools: {{ look: {{ think_ms: 3, say: seen }} }}\n")
}

/// What a campaign did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferTally {
    /// Trees that were moved until they ended.
    pub trees: u64,
    /// Moves from one home to another.
    pub moves: u64,
    /// Processes that were killed.
    pub kills: u64,
}

impl TransferTally {
    /// Adds another campaign.
    pub const fn add(&mut self, other: &Self) {
        self.trees += other.trees;
        self.moves += other.moves;
        self.kills += other.kills;
    }
}

/// Runs one tree undisturbed, and again while it moves between two homes and processes are killed, and compares the two.
/// `program` is the built command line, `folder` an empty folder, and `draws` say when to kill.
///
/// # Errors
/// The first law that was broken, or why it could not be tried.
pub fn transfer_one_tree(program: &Path, folder: &Path, draws: &mut Rng) -> Result<TransferTally, String> {
    fs::write(folder.join("mover.yaml"), TREE).map_err(|error| error.to_string())?;
    fs::write(folder.join("mover.script.yaml"), script()).map_err(|error| error.to_string())?;
    let mut machines = Machines { program, folder, draws, tally: TransferTally::default() };
    let tree = folder.join("mover.yaml").display().to_string();
    let undisturbed = machines.must("whole", &["run", &tree, "--json"])?;
    let undisturbed = Ended::read(&machines, "whole", &undisturbed)?;
    if undisturbed.files.len() != 4 {
        return Err(format!("the undisturbed tree wrote {} files", undisturbed.files.len()));
    }
    let mut home = "a";
    // The tree has begun when its id is known.
    while machines.states(home)?.is_empty() {
        machines.tried(home, &["run", &tree])?;
    }
    for step in 0..MOVES {
        let there = if home == "a" { "b" } else { "a" };
        let file = folder.join(format!("step-{step}.trees")).display().to_string();
        // One more process may have run it meanwhile, and may have ended it.
        machines.until_done(home, &["export", "-o", &file], |_| Path::new(&file).exists())?;
        machines.until_done(there, &["import", &file], |code| code == Some(0))?;
        machines.tally.moves += 1;
        home = there;
        // Files of earlier moves bring nothing back.
        for earlier in 0..=step {
            let file = folder.join(format!("step-{earlier}.trees")).display().to_string();
            for name in ["a", "b"] {
                machines.tried(name, &["import", &file])?;
                machines.alone()?;
            }
        }
        machines.tried(home, &["resume"])?;
        machines.alone()?;
    }
    let ended = machines.must(home, &["resume", "--json"])?;
    let ended = Ended::read(&machines, home, &ended)?;
    if ended != undisturbed {
        return Err(format!("it ended as {ended:?}, undisturbed {undisturbed:?}"));
    }
    machines.must(home, &["replay", "--verify"])?;
    machines.tally.trees = 1;
    Ok(machines.tally)
}

/// What must be the same however often a tree moved.
#[derive(Debug, PartialEq)]
struct Ended {
    answer: Value,
    state: Value,
    tool_results: usize,
    files: Vec<(String, Vec<u8>)>,
}

impl Ended {
    fn read(machines: &Machines<'_>, home: &str, out: &str) -> Result<Self, String> {
        let last = out.lines().last().ok_or("no result")?;
        let result: Value = serde_json::from_str(last).map_err(|error| error.to_string())?;
        let shown = machines.must(home, &["show", "last", "lead", "--json"])?;
        let lines = shown.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let tool_results = lines.filter(|line| line["role"] == "tool").count();
        let mut files = Vec::new();
        for path in result["files"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let path = machines.folder.join(path);
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            files.push((name, fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?));
        }
        Ok(Self { answer: result["answer"].clone(), state: result["state"].clone(), tool_results, files })
    }
}

struct Machines<'a> {
    program: &'a Path,
    folder: &'a Path,
    draws: &'a mut Rng,
    tally: TransferTally,
}

/// How a process ended.
struct Process {
    code: Option<i32>,
    out: String,
    err: String,
    is_killed: bool,
}

impl Machines<'_> {
    fn home(&self, name: &str) -> PathBuf {
        self.folder.join(name).join(".spinney")
    }

    /// A machine has its own user folders as well.
    fn process(&self, name: &str, args: &[&str], kill_after_ms: Option<u64>) -> Result<Process, String> {
        let user = self.folder.join(name).join("user");
        let printed = |name: &str| {
            let path = self.folder.join(name);
            Ok::<_, String>((File::create(&path).map_err(|error| error.to_string())?, path))
        };
        let ((out, out_path), (err, err_path)) = (printed("out.txt")?, printed("err.txt")?);
        let mut child = Command::new(self.program)
            .current_dir(self.folder)
            .args(["--home".as_ref(), self.home(name).as_os_str()])
            .args(args)
            .env("XDG_CONFIG_HOME", user.join("config"))
            .env("XDG_STATE_HOME", user.join("state"))
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .map_err(|error| error.to_string())?;
        let is_killed = match kill_after_ms {
            Some(after) => kill_after(&mut child, after).map_err(|error| error.to_string())?,
            None => false,
        };
        let code = child.wait().map_err(|error| error.to_string())?.code();
        let read = |path: &Path| fs::read_to_string(path).map_err(|error| error.to_string());
        Ok(Process { code, out: read(&out_path)?, err: read(&err_path)?, is_killed })
    }

    /// Runs a command that must succeed.
    fn must(&self, home: &str, args: &[&str]) -> Result<String, String> {
        let Process { code, out, err, .. } = self.process(home, args, None)?;
        if code == Some(0) { Ok(out) } else { Err(format!("{args:?} in {home}: {code:?} {err}")) }
    }

    /// Runs a command and kills it at some moment, unless it ends before.
    fn tried(&mut self, home: &str, args: &[&str]) -> Result<Process, String> {
        let after_ms = self.draws.next() % KILLED_MS_MAX;
        let process = self.process(home, args, Some(after_ms))?;
        self.tally.kills += u64::from(process.is_killed);
        Ok(process)
    }

    /// Kills a command several times, and lets it run at last. In between the tree can continue in one place at most.
    fn until_done(
        &mut self,
        home: &str,
        args: &[&str],
        is_done: impl Fn(Option<i32>) -> bool,
    ) -> Result<(), String> {
        for _ in 0..KILLS_MAX {
            let Process { code, is_killed, .. } = self.tried(home, args)?;
            self.alone()?;
            if is_done(code.filter(|_| !is_killed)) {
                return Ok(());
            }
        }
        let Process { code, err, .. } = self.process(home, args, None)?;
        self.alone()?;
        if is_done(code) { Ok(()) } else { Err(format!("{args:?} in {home}: {code:?} {err}")) }
    }

    /// The states of the trees of a home.
    fn states(&self, home: &str) -> Result<Vec<String>, String> {
        if !self.home(home).exists() {
            return Ok(Vec::new());
        }
        let Process { code, out, err, .. } = self.process(home, &["ps", "--json"], None)?;
        if code != Some(0) {
            // A process was killed before it had made a journal.
            return if err.contains("no home") || err.contains("no trees yet") {
                Ok(Vec::new())
            } else {
                Err(format!("ps in {home}: {err}"))
            };
        }
        let states = out.lines().map(|line| {
            let line: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
            Ok(line["state"].as_str().unwrap_or_default().to_owned())
        });
        states.collect()
    }

    /// Fails if the tree can continue in two homes, one home has it twice, or none has it.
    fn alone(&self) -> Result<(), String> {
        let (a, b) = (self.states("a")?, self.states("b")?);
        let can_continue = |state: &&String| {
            !matches!(state.as_str(), "moved" | "copy" | "completed" | "failed" | "cancelled")
        };
        let living = a.iter().chain(&b).filter(can_continue).count();
        if a.is_empty() && b.is_empty() {
            return Err("it is in no home".to_owned());
        }
        if living > 1 || a.len() > 1 || b.len() > 1 {
            return Err(format!("it is {a:?} in one home and {b:?} in the other"));
        }
        Ok(())
    }
}

/// Kills a process after some time, unless it ends before. Returns whether it was killed.
fn kill_after(child: &mut Child, after_ms: u64) -> io::Result<bool> {
    let clock = SystemClock::new();
    let until = clock.now_ms() + after_ms;
    while clock.now_ms() < until {
        if child.try_wait()?.is_some() {
            return Ok(false);
        }
        std::hint::spin_loop();
    }
    child.kill()?;
    Ok(true)
}
