//! Files by handles: from an agent's folder down, one folder at a time, without following links. Checks use the
//! opened file and never its name, so what was checked is what is used.

use std::io::{self, ErrorKind, Read, Seek, SeekFrom};

use cap_fs_ext::{DirExt, FollowSymlinks, MetadataExt, OpenOptionsFollowExt};
use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::advice::Refused;
use super::path::{FilePath, GIT_DIRECTORY};

/// One entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Below the folder that was listed.
    pub(super) path: String,
    /// Its bytes; none for a folder.
    pub(super) bytes: Option<u64>,
}

/// Part of a file.
pub(super) struct Part {
    pub(super) bytes: Vec<u8>,
    /// How many bytes the whole has.
    pub(super) whole: u64,
}

/// Opens a folder of an agent's.
pub(super) fn folder(agent: &Dir, top: &str, names: &[String]) -> io::Result<Dir> {
    let top = agent.open_dir_nofollow(top)?;
    names.iter().try_fold(top, |folder, name| folder.open_dir_nofollow(name))
}

/// Reads part of a plain file. One that has another name somewhere is not ours alone, and is not read.
pub(super) fn read(agent: &Dir, path: &FilePath, from: u64, bytes_max: u64) -> Result<Part, Refused> {
    let fault = |error: io::Error| Refused::io(path, &error);
    let Some((folders, name)) = path.split() else {
        return Err(Refused::new(format!("`{path}` is a folder: name a file in it")));
    };
    let folder = folder(agent, path.top().as_str(), folders).map_err(|error| linked(path, &error))?;
    let mut reading = OpenOptions::new();
    reading.read(true).follow(FollowSymlinks::No).custom_flags(nonblock());
    let mut file: File = folder.open_with(name, &reading).map_err(|error| linked(path, &error))?;
    let found = file.metadata().map_err(fault)?;
    if found.is_dir() {
        return Err(Refused::new(format!("`{path}` is a folder: name a file in it")));
    }
    if !found.is_file() || found.nlink() != 1 {
        return Err(Refused::not_plain(path));
    }
    file.seek(SeekFrom::Start(from)).map_err(fault)?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes).map_err(fault)?;
    Ok(Part { bytes, whole: found.len() })
}

/// Opening a pipe must not block on its other end.
const fn nonblock() -> i32 {
    OFlags::NONBLOCK.bits().cast_signed()
}

/// Everything below a folder, in name order, as far as there is room.
pub(super) fn list(folder: &Dir, most: usize, depth_max: u32) -> io::Result<Vec<Entry>> {
    let mut found = Vec::new();
    walk(folder, "", most, depth_max, &mut found)?;
    Ok(found)
}

fn walk(folder: &Dir, above: &str, most: usize, depth: u32, found: &mut Vec<Entry>) -> io::Result<()> {
    let mut names: Vec<String> = Vec::new();
    for entry in folder.entries()? {
        // What has no name that could be asked for is not shown.
        names.extend(entry?.file_name().into_string().ok().filter(|name| name != GIT_DIRECTORY));
    }
    names.sort_unstable();
    for name in names {
        if found.len() > most {
            return Ok(());
        }
        let path = format!("{above}{name}");
        let about = match folder.symlink_metadata(&name) {
            // It was removed meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            about => about?,
        };
        if about.is_dir() {
            found.push(Entry { path: format!("{path}/"), bytes: None });
            if depth > 0 {
                walk(&folder.open_dir_nofollow(&name)?, &format!("{path}/"), most, depth - 1, found)?;
            }
        } else if about.is_file() {
            found.push(Entry { path, bytes: Some(about.len()) });
        }
    }
    Ok(())
}

/// Reports a link as such, whatever error the operating system gives.
pub(super) fn linked(path: &FilePath, error: &io::Error) -> Refused {
    match Errno::from_io_error(error) {
        Some(Errno::LOOP | Errno::NXIO) => Refused::not_plain(path),
        Some(_) | None => Refused::io(path, error),
    }
}
