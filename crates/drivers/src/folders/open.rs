//! Opens a folder by its absolute path, one name at a time and through no link: others may write around it.

use std::io::{self, ErrorKind};
use std::path::{Component, Path};

use cap_fs_ext::DirExt as _;
use cap_std::ambient_authority;
use cap_std::fs::Dir;

/// The handle of a folder. A link anywhere in its path is an error.
pub(crate) fn open_folder(path: &Path) -> io::Result<Dir> {
    let mut names = path.components();
    if names.next() != Some(Component::RootDir) {
        return Err(ErrorKind::InvalidInput.into());
    }
    let root = Dir::open_ambient_dir("/", ambient_authority())?;
    names.try_fold(root, |folder, name| match name {
        Component::Normal(name) => folder.open_dir_nofollow(name),
        _ => Err(ErrorKind::InvalidInput.into()),
    })
}
