//! How a command that a tool ran has ended.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandExit {
    /// By itself, with this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It took longer than it was given.
    TimedOut,
    /// It, or what it left, passed a limit.
    PastLimit(CommandLimit),
    /// It could not be started.
    NotStarted,
    /// What guarded it was killed, and it ended with that.
    GuardLost,
}

/// A limit of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandLimit {
    Processes,
    Memory,
    /// Bytes by which its folders grew.
    Disk,
    /// What it left in `outputs/`: files, bytes, depth or names.
    Outputs,
    /// What may be looked at afterwards of the user's folders that it could write.
    Folders,
}

impl CommandExit {
    /// Whether the command did what it should, as far as it says.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Code(0))
    }
}

impl CommandLimit {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Processes => "processes",
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::Outputs => "outputs",
            Self::Folders => "folders",
        }
    }
}

impl fmt::Display for CommandExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "ended by signal {signal}"),
            Self::TimedOut => f.write_str("timed out"),
            Self::PastLimit(limit) => write!(f, "past its limit of {}", limit.as_str()),
            Self::NotStarted => f.write_str("not started"),
            Self::GuardLost => f.write_str("ended with its guard, which was killed"),
        }
    }
}
