//! Why the files of a home do not open. Nothing was changed.

use spinney_journal::JournalFault;
use spinney_kernel::primitives::TreeId;

use super::HomeRefusal;

/// Why a home cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenHomeError {
    /// The home was written by a newer version.
    #[error("this home has schema {found} but this version knows only {known}: use a newer Spinney")]
    Newer {
        found: u32,
        /// The newest known version.
        known: u32,
    },
    /// The home was written by an older version, and this process must not change it.
    #[error(
        "this home has schema {found} but this version reads {known}: open it once for writing, which brings it up to date"
    )]
    Older {
        found: u32,
        /// The version that can be read.
        known: u32,
    },
    #[error("process {pid} has this home open: stop it, use another home, or only read this one")]
    Locked {
        /// 0 if unknown.
        pid: u32,
    },
    /// The file system denied access.
    #[error("not allowed to use {path} ({reason}): change its permissions, or choose another home")]
    NotAllowed { path: String, reason: String },
    /// Something else is at the home's path.
    #[error("{path} is not a folder: choose another home")]
    NotAHome { path: String },
    /// Refused as a home, or as a file of one.
    #[error("{path} {why}")]
    Refused { path: String, why: HomeRefusal },
    #[error("{path} has no trees yet: run one first, or choose another home")]
    NoHome { path: String },
    /// The file as a whole cannot be read.
    #[error(
        "{path} is damaged ({reason}): restore it from a copy, or move it away and start over; {salvage} saves what is left"
    )]
    Damaged {
        path: String,
        reason: String,
        /// The command that saves what is left.
        salvage: String,
    },
    /// Confirmed commits are missing.
    #[error(
        "commits {} to {confirmed} of this home were confirmed but are missing ({place}); {}. Nothing was run. Restore the home from a copy, or give them up, which is the way to continue after a power loss with durability `normal`",
        found + 1, losers(trees)
    )]
    Lost {
        /// Existing commits.
        found: u64,
        /// Confirmed commits.
        confirmed: u64,
        place: String,
        /// Unfinished trees in what is left: only they can have lost events.
        trees: Vec<TreeId>,
    },
    /// The number of confirmed commits is unknown, so missing ones cannot be detected.
    #[error(
        "{path} says which commits were confirmed, and {reason}: it is unknown whether any are missing. Nothing was run. Restore it, or accept the loss and continue with what is there"
    )]
    UnknownLoss {
        /// The file that counts them.
        path: String,
        reason: String,
    },
    /// Another program keeps the file locked.
    #[error("another program holds {path}: end its transaction and try again")]
    Busy { path: String },
    /// The disk is full.
    #[error(
        "no room left for the journal: free some space or remove old trees, then resume; nothing that was confirmed is lost"
    )]
    Full,
    /// Any other failure of SQLite or the file system.
    #[error("the store failed: {reason}")]
    Failed { reason: String },
}

impl OpenHomeError {
    /// Whether it says that confirmed commits are or may be missing.
    #[must_use]
    pub const fn is_loss(&self) -> bool {
        matches!(self, Self::Lost { .. } | Self::UnknownLoss { .. })
    }
}

/// For a journal that is open: its files are opened again for more readers, and read and written all the time.
impl From<OpenHomeError> for JournalFault {
    fn from(error: OpenHomeError) -> Self {
        match error {
            OpenHomeError::Busy { .. } => Self::Unavailable { reason: error.to_string() },
            OpenHomeError::Full => Self::Full,
            OpenHomeError::Damaged { .. } => Self::DamagedStore { reason: error.to_string() },
            OpenHomeError::Newer { .. }
            | OpenHomeError::Older { .. }
            | OpenHomeError::Locked { .. }
            | OpenHomeError::NotAllowed { .. }
            | OpenHomeError::NotAHome { .. }
            | OpenHomeError::Refused { .. }
            | OpenHomeError::NoHome { .. }
            | OpenHomeError::Lost { .. }
            | OpenHomeError::UnknownLoss { .. }
            | OpenHomeError::Failed { .. } => Self::Failed { reason: error.to_string() },
        }
    }
}

fn losers(trees: &[TreeId]) -> String {
    match trees {
        [] => "trees that started since then are gone".to_owned(),
        trees => {
            let trees: Vec<String> = trees.iter().map(ToString::to_string).collect();
            let trees = trees.join(", ");
            format!("trees that may have lost events: {trees}; trees that started since then are gone")
        }
    }
}
