//! Faults of a folder, with its path and what to do.

use std::io;

/// A workspace could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {place}: {source}")]
pub struct WorkspaceFault {
    /// What, as a path below the workspaces of the home.
    pub place: String,
    #[source]
    pub source: io::Error,
}

impl WorkspaceFault {
    /// Says what could not be written.
    pub(super) fn at(place: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let place = place.into();
        |source| Self { place, source }
    }
}
