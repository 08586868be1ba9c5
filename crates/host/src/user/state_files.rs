//! Files in the user's state folder: private, small, and replaced as a whole.

use std::fs;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use spinney::rng::secret;

use super::folders::{self, StateFolderError};
use crate::system::private_files::{self, Links};
use crate::text_file::{FileAction, FileFault};

/// Far more than any of them has.
const BYTES_MAX: u64 = 1024 * 1024;

/// Why something cannot be recorded, or what is recorded cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StateFileError {
    /// There is no folder for it.
    #[error(transparent)]
    NoFolder(#[from] StateFolderError),
    /// A file of it failed.
    #[error(transparent)]
    File(#[from] FileFault),
    /// It is not what we wrote.
    #[error("{} is damaged: remove it, and you will be asked again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Why it cannot be read.
        #[source]
        why: serde_json::Error,
    },
}

/// A folder in the state folder, which is made if it does not exist.
pub fn make_folder(name: &str) -> Result<PathBuf, StateFileError> {
    let state = folders::state()?;
    let folder = state.join(name);
    let make = || -> io::Result<()> {
        if let Some(above) = state.parent() {
            fs::create_dir_all(above)?;
        }
        private_files::folder(&state)?;
        private_files::folder(&folder)
    };
    make().map_err(FileFault::when(FileAction::Write, &folder))?;
    Ok(folder)
}

/// None if there is no such file, or none that we may read. One that is damaged is an error: it is no reason to trust anything.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, StateFileError> {
    let bytes = read_bytes(path).map_err(FileFault::when(FileAction::Read, path))?;
    // A loss of power may leave an empty one.
    let bytes = bytes.filter(|bytes| !bytes.is_empty());
    let read = bytes.map(|bytes| serde_json::from_slice(&bytes)).transpose();
    read.map_err(|why| StateFileError::Damaged { path: path.to_owned(), why })
}

/// Replaces such a file, or makes it.
pub fn write<T: Serialize>(path: &Path, value: &T) -> Result<(), StateFileError> {
    let written = serde_json::to_vec(value).map_err(io::Error::from).and_then(|bytes| replace(path, &bytes));
    Ok(written.map_err(FileFault::when(FileAction::Write, path))?)
}

const NOT_THERE: [ErrorKind; 3] =
    [ErrorKind::NotFound, ErrorKind::NotADirectory, ErrorKind::PermissionDenied];

/// None if there is no such file, or none that we may read: then nothing is recorded.
pub fn read_bytes(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match private_files::plain(path, Links::Refuse) {
        Err(error) if NOT_THERE.contains(&error.kind()) => return Ok(None),
        opened => opened?,
    };
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Replaces a file as a whole, or makes it.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".new-{}", draw_id()?));
    let new = path.with_file_name(name);
    let written = private_files::write(&new, bytes).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

/// An unguessable name.
pub fn draw_id() -> io::Result<String> {
    Ok(secret()?[..ID_BYTES].iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Whether a text has the form of such a name.
pub fn is_id(text: &str) -> bool {
    text.len() == 2 * ID_BYTES && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

const ID_BYTES: usize = 16;
