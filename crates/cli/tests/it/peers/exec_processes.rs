//! Claude Code and Codex under `spinney exec`, with a command that they have started. Both start commands in a session of
//! their own, so a signal to their process group would not reach these.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use super::exec::exec;
use super::outside::{Program, ended};
use crate::provider::Provider;
use crate::test_folder::{Playing, TestFolder};

/// How long a command may take to start, or to be gone.
const COMMAND_MAX: Duration = Duration::from_secs(60);

/// A command that runs until it is killed, seen through a pipe that it holds open: opening the other end waits for its
/// start, and writing to it fails once no process holds it any more.
struct HeldPipe {
    path: PathBuf,
}

impl HeldPipe {
    fn new(stage: &TestFolder) -> Self {
        let path = stage.folder().join("held");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        Self { path }
    }

    fn command(&self) -> String {
        format!("tail -f /dev/null < '{}'", self.path.display())
    }

    /// Says twice something: when the command has started, and when it is gone.
    fn watch(&self) -> Receiver<()> {
        let (says, said) = sync_channel(2);
        let path = self.path.clone();
        thread::spawn(move || {
            let mut pipe = OpenOptions::new().write(true).open(path).unwrap();
            says.send(()).unwrap();
            // There is no reader: once the pipe is full, this waits for the end of the last process that could.
            while pipe.write_all(&[0; 4096]).is_ok() {}
            says.send(()).unwrap();
        });
        said
    }
}

/// Starts a program whose model lets it run the command, and waits until that runs.
fn running(stage: &TestFolder, program: Program) -> (Playing, Receiver<()>) {
    let pipe = HeldPipe::new(stage);
    let (command, said) = (pipe.command(), pipe.watch());
    let provider = Provider::new(move |question| {
        let mut answer = program.answer(question);
        answer.calls.clear();
        program.runs(answer, &command)
    });
    let playing = exec(stage, program, &provider, &["--budget-usd", "20"]);
    said.recv_timeout(COMMAND_MAX).unwrap_or_else(|error| panic!("{program:?} starts no command: {error}"));
    (playing, said)
}

fn assert_gone(program: Program, said: &Receiver<()>) {
    said.recv_timeout(COMMAND_MAX)
        .unwrap_or_else(|error| panic!("a command of {program:?} is left over: {error}"));
}

#[test]
fn cancel_leaves_no_process_of_a_real_program() {
    for program in Program::ALL {
        let stage = TestFolder::new();
        let (playing, said) = running(&stage, program);
        let cancelled = stage.spinney(&["cancel", "last"]);
        assert_eq!(cancelled.code, Some(0), "{program:?} {cancelled:?}");
        let ended = ended(playing);
        assert_eq!(ended.code, Some(4), "{program:?} {ended:?}");
        assert_gone(program, &said);
    }
}

#[test]
fn killing_the_gateway_leaves_no_process_of_a_real_program() {
    for program in Program::ALL {
        let stage = TestFolder::new();
        let (playing, said) = running(&stage, program);
        playing.kill();
        assert_gone(program, &said);
    }
}
