//! Files that decide what leaves this machine: they are read only if no other user can have written them, except for the
//! system's administrator.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::shell_word;
use crate::system::files;
use crate::system::private_files::{self, Links};
use crate::text_file::{self, UnreadText};

/// Who else may write a file.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Why such a file is not read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}", path.display())]
pub struct UntrustedFile {
    /// The file.
    pub path: PathBuf,
    #[source]
    why: Untrusted,
}

impl UntrustedFile {
    /// Whether this user may not even look for it: the folders are those of another one.
    #[must_use]
    pub fn is_out_of_reach(&self) -> bool {
        matches!(&self.why, Untrusted::Unread(UnreadText::Io(error)) if error.kind() == ErrorKind::PermissionDenied)
    }
}

#[derive(Debug, thiserror::Error)]
enum Untrusted {
    #[error(transparent)]
    Unread(#[from] UnreadText),
    #[error("it belongs to another user (uid {owner}): remove it, or change its owner with `chown`")]
    OtherUser { owner: u32 },
    #[error("other users can write to it (mode {mode:o}): check its content, then run `chmod 600 {path}`")]
    Writable { mode: u32, path: String },
}

/// The text of such a file. `None` if it does not exist.
pub fn read(path: &Path, bytes_max: u64) -> Result<Option<String>, UntrustedFile> {
    let read = match private_files::plain(path, Links::Follow) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => Err(Untrusted::Unread(error.into())),
        Ok(file) => text(file, path, bytes_max),
    };
    read.map(Some).map_err(|why| UntrustedFile { path: path.to_owned(), why })
}

fn text(file: File, path: &Path, bytes_max: u64) -> Result<String, Untrusted> {
    let about = file.metadata().map_err(UnreadText::Io)?;
    trust(files::owner(&about), files::current_user(), files::mode(&about), path)?;
    Ok(text_file::read_opened(file, bytes_max)?)
}

fn trust(owner: u32, user: u32, mode: u32, path: &Path) -> Result<(), Untrusted> {
    const ROOT: u32 = 0;
    if owner != user && owner != ROOT {
        return Err(Untrusted::OtherUser { owner });
    }
    if mode & WRITABLE_BY_OTHERS != 0 {
        return Err(Untrusted::Writable { mode: mode & 0o777, path: shell_word::of_path(path) });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_nobody_else_can_write_are_trusted() {
        let trusted =
            |owner, mode| trust(owner, 1000, mode, Path::new("/k.env")).map_err(|error| error.to_string());
        for (owner, mode) in [(1000, 0o100_600), (1000, 0o100_644), (0, 0o100_444)] {
            assert_eq!(trusted(owner, mode), Ok(()));
        }
        insta::assert_snapshot!(trusted(1001, 0o100_600).unwrap_err(), @"it belongs to another user (uid 1001): remove it, or change its owner with `chown`");
        for mode in [0o100_620, 0o100_602, 0o100_666] {
            assert!(trusted(1000, mode).is_err(), "{mode:o}");
        }
        insta::assert_snapshot!(trusted(0, 0o100_664).unwrap_err(), @"other users can write to it (mode 664): check its content, then run `chmod 600 '/k.env'`");
    }
}
