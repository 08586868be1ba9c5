//! Removes a folder with everything in it, however deep it nests and whatever modes its folders have: commands of agents
//! write there. No link is followed.

use std::ffi::CString;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

/// Removes it, or says why not.
pub(crate) fn remove_folder(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        // It may nest deeper than files can be open at the same time, or forbid to look into itself.
        Err(error) if error.kind() != ErrorKind::NotFound => {
            flatten(path)?;
            fs::remove_dir_all(path)
        }
        removed => removed,
    }
}

/// Empties a folder level by level: what is in each of its folders moves up to it, and the folder goes.
fn flatten(path: &Path) -> io::Result<()> {
    let root = opened(CWD, path)?;
    let mut moved = 0;
    loop {
        let level = folders(&root)?;
        if level.is_empty() {
            return Ok(());
        }
        for name in level {
            let folder = opened(&root, name.as_c_str())?;
            for inner in folders(&folder)? {
                moved = rename_after(moved, (&folder, &inner), &root)?;
            }
            unlinkat(&root, name.as_c_str(), AtFlags::REMOVEDIR)?;
        }
    }
}

/// Moves a folder to a name that no other one has, and returns the number in it.
fn rename_after(mut last: u64, (above, name): (&OwnedFd, &CString), to: &OwnedFd) -> io::Result<u64> {
    loop {
        last += 1;
        match renameat(above, name.as_c_str(), to, format!(".moved-{last}")) {
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
            renamed => return renamed.map(|()| last).map_err(Into::into),
        }
    }
}

fn opened(above: impl std::os::fd::AsFd, name: impl rustix::path::Arg + Copy) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if statat(&above, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode & 0o700 != 0o700 {
        chmodat(&above, name, Mode::RWXU, AtFlags::empty())?;
    }
    Ok(openat(&above, name, flags, Mode::empty())?)
}

/// The folders in a folder by their names. Every other file is removed.
fn folders(folder: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = FileType::from_raw_mode(statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode);
        match kind {
            FileType::Directory => found.push(name.to_owned()),
            _ => unlinkat(folder, name, AtFlags::empty())?,
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_nests_deep_and_forbids_to_look_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("scratch");
        fs::create_dir(&root).unwrap();
        fs::write(home.path().join("kept"), "kept").unwrap();
        std::os::unix::fs::symlink(home.path(), root.join("link")).unwrap();
        let mut at = opened(CWD, root.as_path()).unwrap();
        for depth in 0..3_000 {
            rustix::fs::mkdirat(&at, "d", Mode::RWXU).unwrap();
            at = opened(&at, "d").unwrap();
            if depth % 500 == 0 {
                fs::create_dir(format!("/proc/self/fd/{}/closed", std::os::fd::AsRawFd::as_raw_fd(&at)))
                    .unwrap();
                chmodat(&at, "closed", Mode::empty(), AtFlags::empty()).unwrap();
            }
        }
        remove_folder(&root).unwrap();
        assert!(!root.exists() && home.path().join("kept").exists());
        remove_folder(&root).unwrap_err();
    }
}
