//! Git directories that we make: without a configuration of others, with objects that are read from elsewhere, and with
//! attributes that switch off everything that would change bytes or run a program.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Files are as they are stored, byte by byte. These come before what a repository says.
pub(super) const ATTRIBUTES: &str = "* -text -filter -ident -working-tree-encoding\n";

/// Makes a git directory with an empty store that reads the objects of others.
pub(super) fn make(folder: &Path, objects: &[PathBuf], is_sha256: bool) -> io::Result<()> {
    for below in ["objects/info", "objects/pack", "refs/heads", "info"] {
        fs::create_dir_all(folder.join(below))?;
    }
    fs::write(folder.join("HEAD"), "ref: refs/heads/none\n")?;
    let config = match is_sha256 {
        true => "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n",
        false => "[core]\n\trepositoryformatversion = 0\n",
    };
    fs::write(folder.join("config"), config)?;
    borrow(folder, objects)?;
    fs::write(folder.join("info/attributes"), ATTRIBUTES)
}

/// Lets a git directory read the objects of others.
pub(super) fn borrow(git_dir: &Path, objects: &[PathBuf]) -> io::Result<()> {
    let info = git_dir.join("objects/info");
    fs::create_dir_all(&info)?;
    let mut lines = String::new();
    for folder in objects {
        let text = folder.to_str().filter(|text| !text.contains(char::is_control) && !text.starts_with('"'));
        lines += text.ok_or(io::ErrorKind::InvalidFilename)?;
        lines.push('\n');
    }
    fs::write(info.join("alternates"), lines)
}

/// Removes a folder of ours with everything in it, if it is there.
pub(super) fn remove(folder: &Path) -> io::Result<()> {
    match fs::symlink_metadata(folder) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(folder),
        Ok(_) => fs::remove_file(folder),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
