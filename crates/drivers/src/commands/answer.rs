//! How a command ended and what it printed, as its model reads it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io;

use spinney_kernel::definition::{BoxSpec, HostRequests, OutputLimits};
use spinney_kernel::port::tool::ToolAnswer;
use spinney_kernel::primitives::{CommandExit, CommandLimit, Durability, limit};

use super::confinement::limits;
use crate::network::{ConnectRefusal, ProxiedEnd, ProxyLog};
use crate::sandbox::{BoxLimit, BoxLimits, BoxStep, BoxTier, BoxedEnd, BoxedExit, KeptOutput};
use crate::workspace::{LeftOutputs, OutputKind, Stopped, Workspace};

/// Most reasons of one answer why connections were refused.
const REFUSALS_SHOWN_MAX: usize = 8;
/// Most paths of one answer that were not kept.
const UNKEPT_SHOWN_MAX: usize = 5;

/// The last line of a command that printed nothing.
pub(super) const PRINTED_NOTHING: &str = "it printed nothing";

/// The answer of a command that has ended, with the files that it left.
pub(super) fn answer(end: &BoxedEnd, spec: &BoxSpec, left: Result<LeftOutputs, Stopped>) -> ToolAnswer {
    let (mut exit, mut text) = first_line(end, limits(spec));
    if end.tier == BoxTier::Unboxed {
        text += " (without a box)";
    }
    let mut files = Vec::new();
    match left {
        Ok(left) => {
            files = left.files;
            if !files.is_empty() {
                let names: Vec<String> = files.iter().map(|file| format!("outputs/{}", file.path)).collect();
                let _ = write!(text, "\nkept: {}", names.join(", "));
            }
            if !left.unkept.is_empty() {
                let shown: Vec<String> =
                    left.unkept.iter().take(UNKEPT_SHOWN_MAX).map(|path| shown(path)).collect();
                let more = left.unkept.len() - shown.len();
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let _ = write!(
                    text,
                    "\nnot kept, because only plain files with plain names are: {}{more}",
                    shown.join(", ")
                );
            }
        }
        Err(stopped) => {
            let why = match stopped {
                Stopped::Limit { over, limit, used, .. } => {
                    format!("{over} is passed: limit {limit}, there {used}")
                }
                Stopped::Io(error) => format!("it cannot be read: {}", error.kind()),
            };
            let _ = write!(text, "\nnothing in outputs/ was kept: {why}: remove what is not needed");
            exit = CommandExit::PastLimit(CommandLimit::Outputs);
        }
    }
    for (name, stream) in [("stdout", &end.stdout), ("stderr", &end.stderr)] {
        if stream.total_bytes() > 0 {
            let _ = write!(text, "\n[{name}]\n{}", printed(stream).trim_end_matches('\n'));
        }
    }
    if end.stdout.total_bytes() + end.stderr.total_bytes() == 0 {
        let _ = write!(text, "\n{PRINTED_NOTHING}");
    }
    ToolAnswer::text(text).with_files(files).with_exit(exit)
}

/// Saves what a command printed that succeeded, as a file of the agent. Returns why it was not saved.
pub(super) fn save(
    end: &BoxedEnd,
    workspace: &Workspace,
    kind: &OutputKind,
    limits: OutputLimits,
    durability: Durability,
) -> Option<String> {
    let stream = &end.stdout;
    if end.exit != BoxedExit::Exited(0) || stream.total_bytes() == 0 {
        return None;
    }
    if stream.omitted_bytes() > 0 {
        let (all, kept) = (stream.total_bytes(), stream.total_bytes() - stream.omitted_bytes());
        return Some(format!("\nnot saved in outputs/: it printed {all} bytes, and only {kept} are kept"));
    }
    let bytes = [stream.head(), stream.tail().as_slice()].concat();
    let why = match workspace.save_output(kind, &bytes, limits, durability) {
        Ok(()) => return None,
        Err(Stopped::Limit { over, limit, used, asked }) => {
            format!("{over}: limit {limit}, there {used}, asked {asked}")
        }
        Err(Stopped::Io(error)) => format!("it cannot be written: {}", error.kind()),
    };
    Some(format!("\nnot saved in outputs/: {why}"))
}

/// What its connections were refused for, each reason once. Programs rarely show what a proxy says.
pub(super) fn refused_connections(log: &ProxyLog, requests: HostRequests) -> String {
    let mut reasons: Vec<String> = Vec::new();
    let mut askable = BTreeSet::new();
    let mut more = 0;
    for record in log.records().0 {
        let ProxiedEnd::Refused(refusal) = record.end else { continue };
        if let ConnectRefusal::NotGranted { host, port, .. } = &refusal
            && requests == HostRequests::Ask
            && askable.len() < limit::HOSTS_ASKED_MAX
        {
            askable.insert(format!("\"{host}:{port}\""));
        }
        let reason = refusal.to_string();
        if reasons.contains(&reason) {
        } else if reasons.len() < REFUSALS_SHOWN_MAX {
            reasons.push(reason);
        } else {
            more += 1;
        }
    }
    let mut text = String::new();
    for reason in reasons {
        let _ = write!(text, "\n{reason}");
    }
    if more > 0 {
        let _ = write!(text, "\n{more} more connections were refused");
    }
    if !askable.is_empty() {
        let hosts: Vec<String> = askable.into_iter().collect();
        let _ = write!(text, "\na person can allow them: call again with \"hosts\": [{}]", hosts.join(", "));
    }
    text
}

/// A command that never ran.
pub(super) fn not_started(why: &str) -> ToolAnswer {
    ToolAnswer::failed(format!("not started: {why}")).with_exit(CommandExit::NotStarted)
}

fn first_line(end: &BoxedEnd, limits: BoxLimits) -> (CommandExit, String) {
    let exit = match end.exit {
        BoxedExit::Exited(code) => CommandExit::Code(code),
        BoxedExit::Signalled(signal) => CommandExit::Signal(signal),
        BoxedExit::TimedOut => {
            let text = "timed out, and everything that it started was ended: give it a longer `timeout`, or do less at once";
            return (CommandExit::TimedOut, text.to_owned());
        }
        BoxedExit::PastLimit(limit) => {
            let (limit, most) = match limit {
                BoxLimit::Processes => (CommandLimit::Processes, limits.processes.to_string()),
                BoxLimit::Memory => (CommandLimit::Memory, format!("{} bytes", limits.memory_bytes)),
                BoxLimit::Disk => (CommandLimit::Disk, format!("{} bytes", limits.disk_bytes)),
            };
            let text = format!("ended past its limit of {}, {most}: use less", limit.as_str());
            return (CommandExit::PastLimit(limit), text);
        }
        BoxedExit::NotStarted { step, errno } => {
            return (CommandExit::NotStarted, format!("not started: {}", unstarted(step, errno)));
        }
        // It is ended only by dropping it, and a command is always given.
        BoxedExit::GuardLost | BoxedExit::Cancelled | BoxedExit::Ready => CommandExit::GuardLost,
    };
    (exit, exit.to_string())
}

fn unstarted(step: BoxStep, errno: i32) -> String {
    let why = io::Error::from_raw_os_error(errno);
    match step {
        BoxStep::Exec if why.kind() == io::ErrorKind::NotFound => {
            "there is no such program: `ls /usr/bin` shows which there are".to_owned()
        }
        BoxStep::Exec => format!("the program cannot be run ({why})"),
        BoxStep::Folder => format!("`cwd` cannot be used ({why}): leave it out to begin in your own folder"),
        BoxStep::Grant { .. } => format!("a folder that was granted cannot be opened ({why})"),
        step => format!("its box could not be made ({step:?}, {why})"),
    }
}

/// A whole output, or its beginning and its end.
fn printed(stream: &KeptOutput) -> String {
    let (head, tail) = (String::from_utf8_lossy(stream.head()), stream.tail());
    let tail = String::from_utf8_lossy(&tail);
    match stream.omitted_bytes() {
        0 => [head, tail].concat(),
        omitted => format!("{head}\n[{omitted} bytes are left out here]\n{tail}"),
    }
}

fn shown(path: &str) -> String {
    path.chars().take(80).map(|c| if c.is_control() { '?' } else { c }).collect()
}
