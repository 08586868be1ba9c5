//! Opens the journal of a home, for writing or reading.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use spinney_journal::Journal;
use spinney_store::layout::IGNORED;
use spinney_store::{Access, OpenHomeError, SqliteJournal};

use super::{pending_folders, side_journals};
use crate::error_text::with_causes;
use crate::inside::{self, ChangeDenied};
use crate::system::private_files;

/// What a home is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HomeUse {
    /// To look at its trees.
    Read,
    /// To start a tree or change one.
    Write,
    /// To change a tree if no other process has it open, which is asked otherwise.
    Change,
}

/// Why a home cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// There is nothing at its path.
    #[error("no home at {}", home.display())]
    NotThere {
        /// The path.
        home: PathBuf,
    },
    /// Its journal does not open.
    #[error("cannot {} {}", if matches!(.to, HomeUse::Read) { "read" } else { "open" }, home.display())]
    Unopened {
        /// The home.
        home: PathBuf,
        /// What for.
        to: HomeUse,
        /// The cause.
        #[source]
        error: OpenHomeError,
    },
    /// This process must not change its trees.
    #[error(transparent)]
    Denied(#[from] ChangeDenied),
}

impl HomeError {
    /// Whether it says that a home has no journal yet.
    #[must_use]
    pub const fn is_missing(&self) -> bool {
        matches!(self, Self::Unopened { error: OpenHomeError::NoHome { .. }, .. })
    }

    fn unopened(home: &Path, to: HomeUse) -> impl FnOnce(OpenHomeError) -> Self {
        move |error| Self::Unopened { home: home.to_owned(), to, error }
    }
}

/// Opens a home for reading, beside any number of readers and one writer. The journal of an older release is brought up to
/// date first, which changes nothing that it says.
pub fn open_read_only(home: &Path) -> Result<SqliteJournal, HomeError> {
    look_with(home, |error| match error {
        OpenHomeError::Older { .. } => {
            drop(SqliteJournal::open(home, Access::Write)?);
            SqliteJournal::open(home, Access::ReadOnly)
        }
        error => Err(error),
    })
}

/// The same without changing anything: the journal of an older release cannot be opened.
pub fn open_unchanged(home: &Path) -> Result<SqliteJournal, HomeError> {
    look_with(home, Err)
}

fn look_with(
    home: &Path,
    otherwise: impl FnOnce(OpenHomeError) -> Result<SqliteJournal, OpenHomeError>,
) -> Result<SqliteJournal, HomeError> {
    if !home.exists() {
        return Err(HomeError::NotThere { home: home.to_owned() });
    }
    let opened = SqliteJournal::open(home, Access::ReadOnly).or_else(otherwise);
    opened.map_err(HomeError::unopened(home, HomeUse::Read))
}

/// Opens a home to change a tree in it. Like every change, not from inside a run of `exec` in that home.
pub async fn open_writable(home: &Path) -> Result<SqliteJournal, HomeError> {
    inside::check_self(home)?;
    open_writable_to_start(home).await
}

/// Opens a home to start a tree, and creates it if needed.
pub async fn open_writable_to_start(home: &Path) -> Result<SqliteJournal, HomeError> {
    let journal = opened(home, SqliteJournal::open(home, Access::Write)).await?;
    keep_out_of_git(home);
    Ok(journal)
}

/// Checks that a folder is a home or may become one. Creates it if it does not exist.
pub fn check(home: &Path) -> Result<(), HomeError> {
    SqliteJournal::prepare_folder(home).map_err(HomeError::unopened(home, HomeUse::Write))
}

/// A home is often below a folder under version control, and journals do not belong in there.
fn keep_out_of_git(home: &Path) {
    match private_files::write(&home.join(IGNORED), b"*\n") {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            tracing::warn!("could not write {}: {error}", home.join(IGNORED).display());
        }
        Ok(()) | Err(_) => {}
    }
}

/// Opens a home to remove a tree, also on a full disk.
pub async fn open_writable_to_remove(home: &Path) -> Result<SqliteJournal, HomeError> {
    inside::check_self(home)?;
    opened(home, SqliteJournal::open_writable_to_remove(home)).await
}

async fn opened(
    home: &Path,
    opened: Result<SqliteJournal, OpenHomeError>,
) -> Result<SqliteJournal, HomeError> {
    let journal = opened.map_err(HomeError::unopened(home, HomeUse::Write))?;
    settle(home, &journal).await;
    Ok(journal)
}

/// Finishes what processes left half done. A failure is reported and tried again the next time.
pub async fn settle(home: &Path, journal: &dyn Journal) {
    if let Err(error) = side_journals::settle_branches(home, journal).await {
        tracing::warn!("could not clean up after a branch of an earlier process: {error}");
    }
    if let Err(error) = pending_folders::settle(home, journal).await {
        let why = with_causes(&error);
        tracing::warn!("could not clean up after an earlier process in this home: {why}");
    }
}

/// Opens a home to change a tree in it, unless another process has it open.
pub async fn open_writable_if_free(home: &Path) -> Result<Option<SqliteJournal>, HomeError> {
    inside::check_self(home)?;
    match SqliteJournal::open(home, Access::Write) {
        Ok(journal) => {
            settle(home, &journal).await;
            Ok(Some(journal))
        }
        Err(OpenHomeError::Locked { .. }) => Ok(None),
        Err(error) => Err(HomeError::unopened(home, HomeUse::Change)(error)),
    }
}
