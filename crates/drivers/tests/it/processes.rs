//! Programs under guards, as real processes. A guard is this test binary, started again for one test; so is the process
//! that is killed with two programs under it.
//!
//! Everything that a program starts inherits its standard output, a pipe. So the end of the pipe is the end of all of it.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead as _, BufReader, PipeReader, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use spinney_drivers::processes::{
    GuardCommand, GuardedProgram, ProgramEnd, ProgramOrder, ProgramSession, StandardStreams, guard,
};

/// Set in the process that runs two programs until it is killed.
const RUNS_TWO: &str = "SPINNEY_TEST_RUNS_TWO";

/// A program with a child, a grandchild, a daemon that has forked twice and one in its own session. Nothing of it ends by
/// itself, and it prints the numbers of all when they run.
const FAMILY: &str = r"
pids=$(mktemp)
note() { echo $BASHPID >> $pids; }
trap '' TERM
( note; exec sleep 86400 ) &
( ( note; exec sleep 86400 ) & note; wait ) &
( ( note; exec sleep 86400 ) & )
setsid bash -c 'echo $$ >> '$pids'; exec sleep 86400' &
( setsid bash -c 'echo $$ >> '$pids'; trap : INT HUP TERM; while :; do sleep 86400; done' & )
while [ $(wc -l < $pids) -lt 6 ]; do :; done
echo $$ $(cat $pids)
rm $pids
wait
sleep 86400
";

/// Not a test on its own: the guard of the programs below.
#[tokio::test]
async fn what_the_guard_does() {
    let mut args = std::env::args_os().skip_while(|arg| arg != "--");
    if args.next().is_some() {
        let program: Vec<OsString> = args.collect();
        guard(&program).await.unwrap();
    }
}

fn guard_command() -> GuardCommand {
    let args = ["--exact", "processes::what_the_guard_does"].map(OsString::from).to_vec();
    GuardCommand { program: std::env::current_exe().unwrap().into(), args }
}

/// A program that runs, and the pipe to which it writes.
struct Started {
    program: GuardedProgram,
    output: BufReader<PipeReader>,
}

impl Started {
    fn new(program: &str, args: &[&str], session: ProgramSession) -> Self {
        let (output, stdout) = io::pipe().unwrap();
        let order = order(program, args, session, stdout.into());
        let program = GuardedProgram::start(&guard_command(), order).unwrap();
        Self { program, output: BufReader::new(output) }
    }

    fn script(script: &str) -> Self {
        Self::new("bash", &["-c", script], ProgramSession::OwnGroup)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// What it writes until nothing has its output open.
    fn rest(mut self) -> String {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        rest
    }
}

fn order(program: &str, args: &[&str], session: ProgramSession, stdout: OwnedFd) -> ProgramOrder {
    ProgramOrder {
        program: program.into(),
        args: args.iter().map(OsString::from).collect(),
        environment: vec![
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
            ("GIVEN".into(), "yes".into()),
        ],
        folder: None,
        streams: StandardStreams {
            stdin: fs::File::open("/dev/null").unwrap().into(),
            stdout,
            stderr: io::stderr().as_fd().try_clone_to_owned().unwrap(),
        },
        session,
        open_files: None,
    }
}

fn exited(raw: i32) -> ProgramEnd {
    ProgramEnd::Exited(ExitStatus::from_raw(raw))
}

fn pids(line: &str) -> Vec<i32> {
    line.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

fn is_alive(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Two programs at once: what ends one of them does not touch the other, nor what else this process started.
#[tokio::test]
async fn ending_a_run_ends_its_daemons_and_no_other_run() {
    let mut stranger = Command::new("sleep").arg("86400").stdout(Stdio::null()).spawn().unwrap();
    let mut runs = [ProgramSession::OwnGroup, ProgramSession::OwnSession, ProgramSession::Shared]
        .map(|session| Started::new("bash", &["-c", FAMILY], session));
    let families = runs.each_mut().map(|run| pids(&run.line()));
    assert!(families.iter().all(|family| family.len() == 7), "{families:?}");
    let [mut first, mut second, mut third] = runs;
    // It ignores SIGTERM, so this one takes its grace.
    assert_eq!(first.program.end().await.unwrap(), exited(9));
    assert_eq!(first.rest(), "");
    assert!(!families[0].iter().any(|pid| is_alive(*pid)));
    assert!(families[1..].iter().flatten().all(|pid| is_alive(*pid)));
    assert_eq!(second.program.kill().await.unwrap(), exited(9));
    // It stays ended.
    assert_eq!(second.program.wait().await.unwrap(), exited(9));
    assert_eq!(second.rest(), "");
    assert!(families[2].iter().all(|pid| is_alive(*pid)));
    // Dropping is enough.
    drop(third.program);
    let mut rest = String::new();
    third.output.read_to_string(&mut rest).unwrap();
    assert!(stranger.try_wait().unwrap().is_none());
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

/// Not a test on its own: the process that is killed in the next one.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a process that starts itself again has to tell itself so")]
async fn what_the_killed_parent_does() {
    if std::env::var_os(RUNS_TWO).is_none() {
        return;
    }
    let stdout = || io::stdout().as_fd().try_clone_to_owned().unwrap();
    let sessions = [ProgramSession::OwnGroup, ProgramSession::OwnSession];
    let mut runs = sessions.map(|session| {
        GuardedProgram::start(&guard_command(), order("bash", &["-c", FAMILY], session, stdout())).unwrap()
    });
    let [first, second] = &mut runs;
    let ended = tokio::join!(first.wait(), second.wait());
    panic!("they ended: {ended:?}");
}

#[test]
fn kill_9_of_the_parent_leaves_nothing_of_any_run() {
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::what_the_killed_parent_does", "--nocapture"])
        .env(RUNS_TWO, "")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(parent.stdout.take().unwrap());
    let mut families = Vec::new();
    while families.len() < 2 {
        let mut line = String::new();
        assert_ne!(output.read_line(&mut line).unwrap(), 0, "it ended by itself");
        if line.starts_with(|first: char| first.is_ascii_digit()) {
            families.push(pids(&line));
        }
    }
    assert!(families.iter().flatten().all(|pid| is_alive(*pid)));
    parent.kill().unwrap();
    parent.wait().unwrap();
    // Nothing has it open any more.
    output.read_to_end(&mut Vec::new()).unwrap();
    // A process closes its files before its number is free.
    while families.iter().flatten().any(|pid| is_alive(*pid)) {
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn the_end_of_a_program_is_reported_as_it_was() {
    for (script, end) in [
        ("exit 0", exited(0)),
        ("exit 7", exited(7 << 8)),
        ("kill -INT $$", exited(2)),
        ("kill -9 $$", exited(9)),
    ] {
        assert_eq!(Started::script(script).program.wait().await.unwrap(), end, "{script}");
    }
    let (not_found, not_executable) = (2, 13);
    let mut missing = Started::new("no-such-program-here", &[], ProgramSession::OwnGroup);
    assert_eq!(missing.program.wait().await.unwrap(), ProgramEnd::NotStarted { errno: not_found });
    let mut folder = Started::new("/", &[], ProgramSession::OwnSession);
    assert_eq!(folder.program.wait().await.unwrap(), ProgramEnd::NotStarted { errno: not_executable });
}

/// What a program leaves behind ends with it.
#[tokio::test]
async fn a_program_that_ends_leaves_nothing() {
    let mut run = Started::script("( setsid sleep 86400 & )\nsetsid sleep 86400 &\necho said\nexit 3");
    assert_eq!(run.line(), "said");
    assert_eq!(run.program.wait().await.unwrap(), exited(3 << 8));
    assert_eq!(run.rest(), "");
}

/// A program has what its order says: the guard's own socket is not among it.
#[tokio::test]
async fn a_program_gets_its_environment_and_nothing_of_its_guard() {
    let script = "echo $GIVEN; env | grep -c SPINNEY; readlink /proc/self/fd/* | grep -c socket";
    let mut run = Started::script(script);
    run.program.wait().await.unwrap();
    assert_eq!(run.rest(), "yes\n0\n0\n");
}

#[tokio::test]
async fn an_interrupt_reaches_every_process_of_its_run_alone() {
    // Not in the background: there a shell ignores interrupts.
    let script = "trap 'echo own; exec sleep 86400' INT\n\
        setsid --fork bash -c 'trap \"echo session; exec sleep 86400\" INT; echo ready; sleep 86400 & wait'\n\
        sleep 86400 & wait";
    let (mut first, mut second) = (Started::script(script), Started::script(script));
    assert_eq!([first.line(), second.line()], ["ready", "ready"]);
    first.program.interrupt();
    let mut said = [first.line(), first.line()];
    said.sort();
    assert_eq!(said, ["own", "session"]);
    for mut run in [first, second] {
        assert_eq!(run.program.kill().await.unwrap(), exited(9));
        assert_eq!(run.rest(), "");
    }
}

/// A process that ends without a waiting parent does not stay as a zombie while its program runs.
#[tokio::test]
async fn orphans_that_end_are_reaped_while_the_program_runs() {
    let script = "( ( echo $BASHPID >&3; exec sleep 0 ) & ) 3>&1 | { read pid\n\
        while [ -e /proc/$pid ]; do :; done; echo gone; }";
    let mut run = Started::script(script);
    assert_eq!(run.line(), "gone");
    assert_eq!(run.program.wait().await.unwrap(), exited(0));
}

/// A guard that is stopped can be woken to end its run; one that is killed is reported, and its group ends.
#[tokio::test]
async fn a_guard_that_is_stopped_or_killed_does_not_keep_its_run_alive() {
    let mut stopped = Started::script("echo $PPID; sleep 86400");
    kill_process(Pid::from_raw(pids(&stopped.line())[0]).unwrap(), Signal::STOP).unwrap();
    assert_eq!(stopped.program.kill().await.unwrap(), exited(9));
    let mut killed = Started::script("echo $PPID; sleep 86400");
    kill_process(Pid::from_raw(pids(&killed.line())[0]).unwrap(), Signal::KILL).unwrap();
    assert_eq!(killed.program.wait().await.unwrap(), ProgramEnd::GuardLost(ExitStatus::from_raw(9)));
    assert_eq!(killed.rest(), "");
}
