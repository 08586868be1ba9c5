//! Exit codes: the only place that defines how the process ends. `docs/cli.md` lists them for people.

use spinney_kernel::record;
use std::process::ExitCode;

use spinney::tree::Stopped;

use spinney_host::control::SteerError;
use spinney_host::home::ids::TreeNameError;
use spinney_host::redaction::RedactionError;
use spinney_host::trust::TrustError;
use spinney_journal::JournalFault;
use spinney_server::exec::RunExit;
use spinney_store::OpenHomeError;
use spinney_terminal::out::Unwritten;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The tree completed, or the command did what it was asked to.
    Completed,
    /// The tree or the store failed, or a replay diverged.
    Failed,
    /// Wrong usage, an invalid file, or a request that was refused.
    Usage,
    /// The tree is halted at its ceiling.
    Halted,
    /// The tree was cancelled.
    Cancelled,
    /// The tree waits for a person, and none is present.
    Waiting,
    /// Another process has the home open, and nothing was done.
    Busy,
    /// The process that was to do it disappeared, so it is unknown whether it was done.
    Unknown,
    /// The program that `exec` started ended with this code.
    Program(u8),
    /// The user interrupted us; the tree can be resumed.
    Interrupted,
    /// The reader of our output is gone.
    Closed,
}

impl Exit {
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
            Self::Program(code) => code,
            // 128 plus the signal's number, as in shells: SIGINT and SIGPIPE.
            Self::Interrupted => 130,
            Self::Closed => 141,
        }
    }

    pub(crate) const fn of_end(end: &record::Exit) -> Self {
        match end {
            record::Exit::Completed => Self::Completed,
            record::Exit::Failed { .. } | record::Exit::Exhausted { .. } => Self::Failed,
            record::Exit::Cancelled { .. } => Self::Cancelled,
        }
    }

    pub(crate) const fn of_kind(kind: record::ExitKind) -> Self {
        match kind {
            record::ExitKind::Completed => Self::Completed,
            record::ExitKind::Failed | record::ExitKind::Exhausted => Self::Failed,
            record::ExitKind::Cancelled => Self::Cancelled,
        }
    }

    /// For a run of a program.
    pub(crate) const fn of_run(exit: RunExit) -> Self {
        match exit {
            RunExit::Completed => Self::Completed,
            RunExit::Program(code) => Self::Program(code),
            RunExit::Tree(kind) => Self::of_kind(kind),
            RunExit::Failed => Self::Failed,
            RunExit::Halted => Self::Halted,
            RunExit::Interrupted => Self::Interrupted,
        }
    }

    /// For an error.
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
        match error.downcast_ref::<SteerError>() {
            Some(SteerError::Busy { .. } | SteerError::OlderOwner { .. }) => return Self::Busy,
            Some(SteerError::Unknown { .. }) => return Self::Unknown,
            Some(SteerError::Home(_) | SteerError::Journal(_) | SteerError::Unreachable { .. }) | None => {}
        }
        if let Some(unopened) = unopened_in(error) {
            return Self::of_unopened(unopened);
        }
        match fault_in(error) {
            Some(JournalFault::Unavailable { .. } | JournalFault::Owned { .. }) => Self::Busy,
            Some(
                JournalFault::UnknownTree { .. }
                | JournalFault::UnknownCursor
                | JournalFault::InUse { .. }
                | JournalFault::NotABoundary { .. }
                | JournalFault::ReadOnly,
            )
            | None => Self::Usage,
            Some(
                JournalFault::Stale { .. }
                | JournalFault::Damaged { .. }
                | JournalFault::DamagedBlob { .. }
                | JournalFault::DamagedRow { .. }
                | JournalFault::DamagedStore { .. }
                | JournalFault::KeyTaken { .. }
                | JournalFault::TooLarge { .. }
                | JournalFault::Full
                | JournalFault::Failed { .. }
                | JournalFault::Overloaded { .. }
                | JournalFault::Closed,
            ) => Self::Failed,
        }
    }

    const fn of_unopened(error: &OpenHomeError) -> Self {
        match error {
            OpenHomeError::Locked { .. } | OpenHomeError::Busy { .. } => Self::Busy,
            OpenHomeError::Newer { .. }
            | OpenHomeError::Older { .. }
            | OpenHomeError::NotAllowed { .. }
            | OpenHomeError::NotAHome { .. }
            | OpenHomeError::Refused { .. }
            | OpenHomeError::NoHome { .. } => Self::Usage,
            OpenHomeError::Damaged { .. }
            | OpenHomeError::Lost { .. }
            | OpenHomeError::UnknownLoss { .. }
            | OpenHomeError::Full
            | OpenHomeError::Failed { .. } => Self::Failed,
        }
    }
}

/// Why a home did not open, if an error is about that.
pub(crate) fn unopened_in(error: &anyhow::Error) -> Option<&OpenHomeError> {
    error.chain().find_map(|link| link.downcast_ref())
}

/// The fault of a journal that an error is about.
pub(crate) fn fault_in(error: &anyhow::Error) -> Option<&JournalFault> {
    error.chain().find_map(|link| match (link.downcast_ref(), link.downcast_ref(), link.downcast_ref()) {
        _ if let Some(RedactionError::Journal(fault)) = link.downcast_ref() => Some(fault),
        (Some(TrustError::Journal(fault)), ..)
        | (_, Some(TreeNameError::Journal(fault)), _)
        | (.., Some(SteerError::Journal(fault))) => Some(fault),
        _ => link.downcast_ref(),
    })
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Ends the process immediately. The journal survives that like any other crash.
#[expect(clippy::disallowed_methods, clippy::exit, reason = "this file is the home of ending the process")]
pub(crate) fn at_once() -> ! {
    spinney_terminal::mode::restore_at_once();
    std::process::exit(i32::from(Exit::Interrupted.code()))
}
