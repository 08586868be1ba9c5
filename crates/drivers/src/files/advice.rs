//! Why a file tool refused, in words that a model can act on.

use std::fmt;
use std::io::{self, ErrorKind};

use crate::workspace::WorkspaceFault;

/// What the operating system says, and what that means to a model.
const KNOWN: [(ErrorKind, &str); 6] = [
    (ErrorKind::NotFound, "does not exist: `list_files` shows what does"),
    (ErrorKind::NotADirectory, "goes through something that is not a folder"),
    (ErrorKind::IsADirectory, "is a folder: name a file in it"),
    (ErrorKind::PermissionDenied, "may not be opened"),
    (ErrorKind::StorageFull, "was not written, because the disk is full: say so in your answer"),
    (ErrorKind::QuotaExceeded, "was not written, because the disk is full: say so in your answer"),
];

/// A file tool did not do what it was asked. The words say why and what to do instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(String);

impl Refused {
    pub(super) fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }

    /// What the operating system says about a path, without a path of the machine.
    pub(super) fn io(path: &dyn fmt::Display, error: &io::Error) -> Self {
        let kind = error.kind();
        let known = KNOWN.iter().find(|(known, _)| *known == kind);
        let words = known.map_or_else(|| format!("cannot be used: {kind}"), |(_, words)| (*words).to_owned());
        Self(format!("`{path}` {words}"))
    }

    /// It exists and is not a regular file of this agent.
    pub(super) fn not_plain(path: &dyn fmt::Display) -> Self {
        Self(format!("`{path}` is not a regular file: links, devices and pipes are not opened"))
    }
}

impl From<WorkspaceFault> for Refused {
    fn from(fault: WorkspaceFault) -> Self {
        Self(format!("your folder cannot be used: {}", fault.source.kind()))
    }
}
