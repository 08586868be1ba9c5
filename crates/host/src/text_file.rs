//! Texts in files: opened as plain files only, and never read past their bound.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::system::private_files::{self, Links};

/// Why the text of a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum UnreadText {
    /// The system says so.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Its size is beyond the bound.
    #[error("it has more than {bytes_max} bytes")]
    TooLarge {
        /// The bound.
        bytes_max: u64,
    },
    /// It is in another encoding, or not a text.
    #[error("it is not UTF-8 at byte {at}")]
    NotUtf8 {
        /// The first byte that is not.
        at: usize,
    },
}

/// Opens a plain file and reads it.
pub(crate) fn read(path: &Path, bytes_max: u64, links: Links) -> Result<String, UnreadText> {
    read_opened(private_files::plain(path, links)?, bytes_max)
}

/// Reads an open file.
pub fn read_opened(file: File, bytes_max: u64) -> Result<String, UnreadText> {
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(UnreadText::TooLarge { bytes_max });
    }
    String::from_utf8(bytes).map_err(|error| UnreadText::NotUtf8 { at: error.utf8_error().valid_up_to() })
}

/// What was tried with a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAction {
    /// Reading it.
    Read,
    /// Writing it.
    Write,
    /// Making it.
    Make,
    /// Opening it.
    Open,
    /// Locking it.
    Lock,
    /// Removing it.
    Remove,
}

impl FileAction {
    /// The verb.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Make => "make",
            Self::Open => "open",
            Self::Lock => "lock",
            Self::Remove => "remove",
        }
    }
}

/// A file or folder with which something could not be done.
#[derive(Debug, thiserror::Error)]
#[error("cannot {} {}", action.as_str(), path.display())]
pub struct FileFault {
    /// What was tried.
    pub action: FileAction,
    /// With which one.
    pub path: PathBuf,
    /// The cause.
    #[source]
    pub why: UnreadText,
}

impl FileFault {
    /// For `map_err`.
    pub fn when<E: Into<UnreadText>>(action: FileAction, path: &Path) -> impl FnOnce(E) -> Self {
        move |why| Self { action, path: path.to_owned(), why: why.into() }
    }
}
