//! Exit codes: the one place that says how the process ends. `docs/cli.md` lists them for people.

use spinney_kernel::record;
use std::process::ExitCode;

use spinney::tree::Stopped;

use spinney_journal::JournalFault;

use crate::control::NoAnswer;
use crate::out::Unwritten;

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The tree completed, or the command did what it was asked to.
    Completed,
    /// The tree failed, a replay diverged, or the store did.
    Failed,
    /// Wrong usage, an invalid file, or a request that was refused.
    Usage,
    /// The tree is halted at its ceiling.
    Halted,
    /// The tree was cancelled.
    Cancelled,
    /// The tree waits for a person, and none is here.
    Waiting,
    /// Another process has the home open, and nothing was done.
    Busy,
    /// Whoever was to do it went away, and nobody knows whether it was done.
    Unknown,
    /// Somebody interrupted us; the tree can be resumed.
    Interrupted,
    /// Whoever read our output went away.
    Closed,
}

impl Exit {
    /// The number that the shell sees.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Completed => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Halted => 3,
            Self::Cancelled => 4,
            Self::Waiting => 5,
            Self::Busy => 6,
            Self::Unknown => 7,
            // 128 and the signal's number, as shells have it: SIGINT and SIGPIPE.
            Self::Interrupted => 130,
            Self::Closed => 141,
        }
    }

    /// For a tree that has ended.
    pub(crate) const fn of_end(end: &record::Exit) -> Self {
        match end {
            record::Exit::Completed => Self::Completed,
            record::Exit::Failed { .. } | record::Exit::Exhausted { .. } => Self::Failed,
            record::Exit::Cancelled { .. } => Self::Cancelled,
        }
    }

    /// For something that could not be done at all.
    pub(crate) fn of_error(error: &anyhow::Error) -> Self {
        if let Some(unwritten) = error.downcast_ref::<Unwritten>() {
            return if unwritten.is_closed() { Self::Closed } else { Self::Failed };
        }
        if let Some(stopped) = error.downcast_ref::<Stopped>() {
            return match stopped {
                Stopped::Journal(_) | Stopped::Bug => Self::Failed,
                Stopped::Shutdown => Self::Interrupted,
            };
        }
        if let Some(no_answer) = error.downcast_ref::<NoAnswer>() {
            return match no_answer {
                NoAnswer::Busy(_) => Self::Busy,
                NoAnswer::Unknown(_) => Self::Unknown,
            };
        }
        match error.downcast_ref::<JournalFault>() {
            Some(JournalFault::Locked { .. } | JournalFault::Busy { .. }) => Self::Busy,
            Some(
                JournalFault::UnknownTree { .. }
                | JournalFault::Newer { .. }
                | JournalFault::Older { .. }
                | JournalFault::InUse { .. }
                | JournalFault::NotABoundary { .. }
                | JournalFault::NotAllowed { .. }
                | JournalFault::NotAHome { .. }
                | JournalFault::HomeRefused { .. }
                | JournalFault::NoHome { .. }
                | JournalFault::ReadOnly,
            )
            | None => Self::Usage,
            Some(
                JournalFault::Stale { .. }
                | JournalFault::Damaged { .. }
                | JournalFault::DamagedBlob { .. }
                | JournalFault::DamagedRow { .. }
                | JournalFault::DamagedFile { .. }
                | JournalFault::Lost { .. }
                | JournalFault::UnknownLoss { .. }
                | JournalFault::Gone { .. }
                | JournalFault::KeyTaken { .. }
                | JournalFault::TooLarge { .. }
                | JournalFault::DiskFull
                | JournalFault::Failed { .. }
                | JournalFault::Overloaded { .. }
                | JournalFault::Closed,
            ) => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Ends the process where it stands. The journal survives that like any other death.
#[expect(clippy::disallowed_methods, clippy::exit, reason = "this file is the home of ending the process")]
pub(crate) fn at_once() -> ! {
    std::process::exit(i32::from(Exit::Interrupted.code()))
}
