//! What the live view costs: the processor time of the thread that folds events and draws, while a tree of 1,000 agents
//! has about 1,000 events a second; and that of the whole process, with the view and without. The binary runs on a
//! terminal whose other end is read here.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use spinney_journal::{Blocking, Journal};
use spinney_store::{Access, SqliteJournal};

use crate::measure::{row, verdict};
use crate::{SPINNEY, tree};

const AGENTS: usize = 1_000;
/// Agents begin one group after the other, so events are spread over time.
const GROUPS: usize = 30;
/// A turn and a tool call take six events and so many milliseconds each.
const HALF_TURN_MS: usize = 3_000;
/// Until every agent has begun.
const WARM_UP: Duration = Duration::from_secs(8);
const MEASURED: Duration = Duration::from_secs(10);
const COLUMNS: u16 = 160;
const LINES: u16 = 50;
const PERCENT_MAX: f64 = 2.0;

/// Processor time and events of a second.
struct Second {
    events: f64,
    /// Percent of a core.
    first_thread: f64,
    process: f64,
    /// Bytes that came through the terminal.
    bytes: f64,
}

pub(crate) fn run() -> Result<(), String> {
    let live = measured(true)?;
    let plain = measured(false)?;
    let at = format!("at {:.0} events/s", live.events);
    let holds = verdict(live.first_thread <= PERCENT_MAX);
    row(
        "fold and draw 1,000 agents",
        &format!("{:.2} %", live.first_thread),
        &at,
        &format!("of one core (at most {PERCENT_MAX} %: {holds})"),
    );
    row(
        "the whole process, and with --plain",
        &format!("{:.2} %", live.process),
        &format!("{:.2} % (--plain)", plain.process),
        &format!("{:+.2} % of one core, at {:.0} events/s", live.process - plain.process, plain.events),
    );
    row("bytes written to the terminal in a second", &format!("{:.0}", live.bytes), "", "");
    Ok(())
}

fn measured(is_live: bool) -> Result<Second, String> {
    let folder = tree::folder();
    let home = folder.path().join("home");
    write_files(folder.path())?;
    let mut command = Command::new(SPINNEY);
    command.arg("--home").arg(&home).arg("run").arg(folder.path().join("tree.yaml"));
    command.env_remove("SPINNEY_LOG").env_remove("NO_COLOR").env("TERM", "xterm-256color");
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let terminal = if is_live {
        let (master, slave) = terminal()?;
        command.stdout(slave);
        Some(master)
    } else {
        command.arg("--plain").stdout(Stdio::null());
        None
    };
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    // It also has the other end of the terminal.
    drop(command);
    let reader = terminal.map(|terminal| thread::spawn(move || drained(terminal)));
    thread::sleep(WARM_UP);
    let second = second_of(&child, &home);
    child.kill().and_then(|()| child.wait()).map_err(|error| error.to_string())?;
    let bytes = reader.map(|reader| reader.join().map_err(|_| "the reader failed"));
    let bytes = bytes.transpose()?.unwrap_or(0) as f64;
    Ok(Second { bytes: bytes / (WARM_UP + MEASURED).as_secs_f64(), ..second? })
}

fn second_of(child: &Child, home: &Path) -> Result<Second, String> {
    let journal = SqliteJournal::open(home, Access::ReadOnly).map_err(|fault| fault.to_string())?;
    let now = || -> Result<(Instant, f64, f64, f64), String> {
        let (first, all) = processor_ns(child.id())?;
        let heads = journal.heads(&[]).wait().map_err(|fault| fault.to_string())?;
        let events: u64 = heads.iter().map(|head| head.seq.0).sum();
        Ok((Instant::now(), events as f64, first, all))
    };
    let (from, events, first, all) = now()?;
    thread::sleep(MEASURED);
    let (to, events_then, first_then, all_then) = now()?;
    let seconds = (to - from).as_secs_f64();
    let percent = |ns: f64| ns / (seconds * 1e9) * 100.0;
    Ok(Second {
        events: (events_then - events) / seconds,
        first_thread: percent(first_then - first),
        process: percent(all_then - all),
        bytes: 0.0,
    })
}

/// Processor time of a process's first thread, which has the view, and of all its threads.
fn processor_ns(pid: u32) -> Result<(f64, f64), String> {
    let tasks = format!("/proc/{pid}/task");
    let ns = |task: &str| -> Result<f64, String> {
        let path = format!("{tasks}/{task}/schedstat");
        let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let ns = text.split_whitespace().next().and_then(|ns| ns.parse().ok());
        ns.ok_or_else(|| format!("{path}: {text}"))
    };
    let entries = fs::read_dir(&tasks).map_err(|error| format!("{tasks}: {error}"))?;
    let names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    let all: f64 = names.iter().filter_map(|task| ns(task).ok()).sum();
    Ok((ns(&pid.to_string())?, all))
}

/// Both ends of a new terminal.
fn terminal() -> Result<(File, File), String> {
    let open = || -> std::io::Result<(File, File)> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        tcsetwinsize(&master, Winsize { ws_row: LINES, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 })?;
        let name = ptsname(&master, Vec::new())?;
        let slave = File::options().read(true).write(true).open(name.to_string_lossy().as_ref())?;
        Ok((File::from(master), slave))
    };
    open().map_err(|error| format!("no terminal: {error}"))
}

/// Reads a terminal until its other end is closed; the bytes that came.
fn drained(mut terminal: File) -> u64 {
    let (mut all, mut bytes) = (0, [0; 4_096]);
    while let Ok(count @ 1..) = terminal.read(&mut bytes) {
        all += count as u64;
    }
    all
}

/// A lead with 999 agents. Each calls its model and a tool in turns.
fn write_files(folder: &Path) -> Result<(), String> {
    let tree = "
name: busy
goal: Look at everything.
budget: { cost_usd: 1000, timeout: 10m, repeats: { notice: 0, end: 0 } }
limits: { children: 1000, agents: 1000, parallel: 1000 }
models:
  m:
    provider: scripted
    script: tree.script.yaml
    context: 1000000
    max_output: 200000
    price: { input_per_mtok_usd: 0.01, output_per_mtok_usd: 0.01 }
agents:
  lead: { model: m, tools: [spawn_agent, look], subagents: [worker], limits: { max_tokens_per_step: 200000 } }
  worker: { model: m, tools: [look], limits: { max_tokens_per_step: 1000 } }
entry: lead
";
    let spawn = |number: usize| {
        let goal = format!("Look at part {number} of group {:02}.", number % GROUPS);
        format!("      - {{ tool: spawn_agent, args: {{ agent: worker, goal: '{goal}' }} }}\n")
    };
    let spawns: String = (1..AGENTS).map(spawn).collect();
    let turn =
        "say: 'I look at it for the {{ turn }}. time.', call: [ { tool: look, args: { at: '{{ turn }}' } } ]";
    let first = |group: usize| {
        let think = group * 2 * HALF_TURN_MS / GROUPS;
        let when = format!("{{ agent: worker, turn: 1, goal_contains: 'group {group:02}' }}");
        format!("  - {{ when: {when}, think_ms: {think}, {turn} }}\n")
    };
    let firsts: String = (0..GROUPS).map(first).collect();
    let script = format!(
        "rules:
  - when: {{ agent: lead, turn: 1 }}
    call:
{spawns}{firsts}  - {{ when: {{ agent: worker }}, think_ms: {HALF_TURN_MS}, {turn} }}
  - say: done
tools:
  look: {{ think_ms: {HALF_TURN_MS}, say: Nothing new here. }}
"
    );
    let write =
        |name: &str, text: &str| fs::write(folder.join(name), text).map_err(|error| error.to_string());
    write("tree.yaml", tree)?;
    write("tree.script.yaml", &script)
}
