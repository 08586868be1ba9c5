//! The steps in which a box is made, in their order.

/// Where making a box failed. Then nothing ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BoxStep {
    /// Reading what was asked for, and first of all measuring the folders.
    Order,
    /// A folder that was granted cannot be opened.
    Grant {
        index: u32,
    },
    Namespaces,
    UserMap,
    Mounts,
    /// A private `/proc`.
    Processes,
    Loopback,
    /// The socket through which it may connect to granted hosts.
    Proxy,
    /// The terminal of a program.
    Terminal,
    /// A path that should be hidden or read-only.
    HiddenPath,
    Rules,
    Session,
    Limits,
    Capabilities,
    Privileges,
    Landlock,
    SystemCalls,
    /// The folder in which the command begins.
    Folder,
    /// The command itself cannot be run.
    Exec,
}

impl BoxStep {
    const PLAIN: [Self; 18] = [
        Self::Order,
        Self::Namespaces,
        Self::UserMap,
        Self::Mounts,
        Self::Processes,
        Self::Loopback,
        Self::HiddenPath,
        Self::Rules,
        Self::Session,
        Self::Limits,
        Self::Capabilities,
        Self::Privileges,
        Self::Landlock,
        Self::SystemCalls,
        Self::Folder,
        Self::Exec,
        Self::Proxy,
        Self::Terminal,
    ];
    /// Above every plain step.
    const GRANTS: u32 = 64;

    pub(super) fn number(self) -> u32 {
        match self {
            Self::Grant { index } => Self::GRANTS.saturating_add(index),
            plain => Self::PLAIN.iter().zip(0..).find(|(step, _)| **step == plain).map_or(0, |(_, at)| at),
        }
    }

    pub(super) fn from_number(number: u32) -> Self {
        match number.checked_sub(Self::GRANTS) {
            Some(index) => Self::Grant { index },
            None => Self::PLAIN
                .into_iter()
                .zip(0..)
                .find(|(_, at)| *at == number)
                .map_or(Self::Order, |(step, _)| step),
        }
    }
}
