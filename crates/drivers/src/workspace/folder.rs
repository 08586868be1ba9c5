//! A folder in a folder: created if it does not exist, and never opened through a link.

use std::io::{self, ErrorKind};

use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, DirBuilder, DirBuilderExt};

/// Opens a folder, and makes it if it is not there. A link or a file in its place is an error.
pub(super) fn open(above: &Dir, name: &str) -> io::Result<Dir> {
    match above.open_dir_nofollow(name) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            make(above, name)?;
            above.open_dir_nofollow(name)
        }
        opened => opened,
    }
}

/// Opens a folder with one of our names, and creates it if needed. Anything else in its place is replaced.
pub(super) fn ours(above: &Dir, name: &str) -> io::Result<Dir> {
    match above.symlink_metadata(name) {
        Ok(found) if found.is_dir() => return above.open_dir_nofollow(name),
        Ok(_) => above.remove_file_or_symlink(name)?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    open(above, name)
}

/// Makes a folder for its owner only, unless something has its name. Another process may make it at the same moment.
pub(super) fn make(above: &Dir, name: &str) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    match above.create_dir_with(name, builder.mode(0o700)) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}
