//! A small process between `spinney exec` and its program. It ends everything that the program started if ours is killed,
//! which nothing in a killed process can do itself.

use std::io;

use anyhow::{Result, bail};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, getpid, getppid, getrlimit, set_child_subreaper,
    set_parent_process_death_signal, setrlimit, setsid,
};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::ExecGuard;
use crate::exec::program::{base_name, exit_code, hide_from_programs, kill_all, listen_unless_ignored};
use crate::exit::Exit;
use crate::terminal::out;

/// Runs a program until it ends, or until the process that asked for it is gone.
pub(crate) async fn guard(asked: ExecGuard) -> Result<Exit> {
    let Some((program, args)) = asked.program.split_first() else { bail!("name a program") };
    hide_from_programs()?;
    if asked.no_terminal {
        // A session without a terminal, so that the program finds none.
        setsid()?;
    }
    if let Some(open_files) = asked.open_files {
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(open_files), ..limit })?;
    }
    let parent = Pid::from_raw(asked.parent);
    set_parent_process_death_signal(Some(Signal::TERM))?;
    // What the program leaves behind becomes our child.
    set_child_subreaper(Some(getpid()))?;
    let mut terminated = signal(SignalKind::terminate())?;
    // What comes from the terminal is for the program: with a handler it does not end us.
    let _interrupts = signal(SignalKind::interrupt())?;
    let _others = [listen_unless_ignored(SignalKind::hangup())?, listen_unless_ignored(SignalKind::quit())?];
    // It may have died before the signal was set.
    if getppid() != parent {
        bail!("the process that asked for this is gone");
    }
    let mut child = match Command::new(program).args(args).kill_on_drop(true).spawn() {
        Ok(child) => child,
        Err(error) => {
            let (why, code) = match error.kind() {
                io::ErrorKind::NotFound => {
                    ("there is no such program: check its name and PATH".to_owned(), 127)
                }
                io::ErrorKind::PermissionDenied => {
                    ("it is not executable: make it so, or name the program that runs it".to_owned(), 126)
                }
                _ => (error.to_string(), 126),
            };
            out::complain(&format!("cannot start {}: {why}", base_name(program)));
            // As shells say it.
            return Ok(Exit::Program(code));
        }
    };
    loop {
        tokio::select! {
            status = child.wait() => {
                // What it leaves behind ends with it.
                kill_all().await;
                return Ok(Exit::Program(exit_code(status?)));
            }
            _ = terminated.recv() => {
                if getppid() != parent {
                    kill_all().await;
                    return Err(io::Error::other("the process that asked for this is gone").into());
                }
            }
        }
    }
}
