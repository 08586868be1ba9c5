//! What a check of a tree file finds: errors that stop a run, and what is only worth knowing.

use super::error::FileError;

/// How serious a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The file cannot be run.
    Error,
    /// Something can never happen as it is written. The file can be run.
    Warning,
    /// Something about this machine, such as a key that is not set.
    Note,
}

impl Severity {
    /// Its word for people and programs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// A problem of a tree file or of a script that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProblem {
    /// How serious it is.
    pub severity: Severity,
    /// Its place, what is wrong and what to write instead.
    pub what: FileError,
}

impl FileProblem {
    /// A problem that stops a run.
    #[must_use]
    pub const fn error(what: FileError) -> Self {
        Self { severity: Severity::Error, what }
    }

    /// A problem that does not stop a run.
    #[must_use]
    pub const fn warning(what: FileError) -> Self {
        Self { severity: Severity::Warning, what }
    }

    /// A fact about this machine.
    #[must_use]
    pub const fn note(what: FileError) -> Self {
        Self { severity: Severity::Note, what }
    }
}
