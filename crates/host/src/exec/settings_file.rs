//! A private file with settings of a program, in the home of its run.

use std::path::{Path, PathBuf};
use std::{fs, io, path};

use crate::system::private_files;

/// A private file with the settings of a run. Gone with it, because the run's key may be among them.
pub struct SettingsFile(PathBuf);

impl SettingsFile {
    /// Writes a file of this name into a folder.
    pub(super) fn write(folder: &Path, name: &str, text: &str) -> io::Result<Self> {
        let path = path::absolute(folder.join(name))?;
        // That of a run that crashed.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        private_files::write(&path, text.as_bytes())?;
        Ok(Self(path))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SettingsFile {
    fn drop(&mut self) {
        // What is left of it after a crash is the key of a gateway that is gone.
        let _ = fs::remove_file(&self.0);
    }
}
