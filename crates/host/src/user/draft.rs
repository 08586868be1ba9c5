//! Changing the user's file: its text is changed in place and read again before it replaces the old one, whole or not at all.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::configuration::{self, Configuration, ConfigurationError};
use super::settings::SettingError;
use super::toml_text::TomlText;
use super::{folders, trusted_file};
use crate::system::private_files;
use crate::text_file::{FileAction, FileFault};

/// What came of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// The file.
    pub path: PathBuf,
    /// Whether the file is another one now.
    pub is_changed: bool,
}

/// A configuration that is being changed: its text, and what that must say when it is read again.
pub(super) struct Draft {
    pub(super) text: TomlText,
    pub(super) configuration: Configuration,
}

impl Draft {
    /// Changes the user's file, or leaves it as it is.
    pub(super) fn change(
        change: impl FnOnce(&mut Self) -> Result<(), SettingError>,
    ) -> Result<Saved, SettingError> {
        let path = configuration::path().ok_or(SettingError::NoFolder)?;
        let folder = path.parent().unwrap_or(Path::new("/"));
        folders::make(folder).map_err(FileFault::when(FileAction::Make, folder))?;
        // One after the other, or one change would undo another. The lock ends with the handle.
        let lock = File::open(folder).map_err(FileFault::when(FileAction::Open, folder))?;
        lock.lock().map_err(FileFault::when(FileAction::Lock, folder))?;
        let text = trusted_file::read(&path, configuration::BYTES_MAX)
            .map_err(ConfigurationError::from)?
            .unwrap_or_default();
        let (mark, plain) =
            text.strip_prefix('\u{feff}').map_or(("", text.as_str()), |plain| ("\u{feff}", plain));
        let configuration = Configuration::parse(&path, plain).map_err(ConfigurationError::from)?;
        let mut draft = Self { text: TomlText::new(plain.to_owned()), configuration };
        change(&mut draft)?;
        let Self { text: new, configuration: expected } = draft;
        if new.as_str() == plain {
            return Ok(Saved { path, is_changed: false });
        }
        let read = Configuration::parse(&path, new.as_str()).map_err(SettingError::Invalid)?;
        if read != expected {
            return Err(SettingError::NotInPlace { path });
        }
        let new = format!("{mark}{}", new.as_str());
        if new.len() as u64 > configuration::BYTES_MAX {
            return Err(SettingError::TooLarge { path });
        }
        // A link, such as into a folder of dotfiles, stays one.
        let target = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        private_files::replace(&target, new.as_bytes()).map_err(FileFault::when(FileAction::Write, &path))?;
        Ok(Saved { path, is_changed: true })
    }
}
