//! Files by handles: from an agent's folder down, one folder at a time, without following links. Checks use the
//! opened file and never its name, so what was checked is what is used.

use std::fmt;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};

use cap_fs_ext::{DirExt, FollowSymlinks, MetadataExt, OpenOptionsFollowExt};
use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::advice::Refused;
use super::place::{Place, Reach};
use crate::folders::HiddenIds;

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

/// Reads part of a plain file. One that has another name somewhere is not ours alone, and is not read.
pub(super) fn read(reach: &Reach<'_>, path: &Place, from: u64, bytes_max: u64) -> Result<Part, Refused> {
    let fault = |error: io::Error| Refused::io(path, &error);
    let (folder, name) = reach.file(path)?;
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
pub(super) fn list(folder: &Dir, listing: &Listing) -> io::Result<Vec<Entry>> {
    let mut found = Vec::new();
    walk(folder, "", listing, listing.depth_max, &mut found)?;
    Ok(found)
}

/// What a list has.
pub(super) struct Listing {
    /// The most entries; one more shows that there are more.
    pub(super) most: usize,
    pub(super) depth_max: u32,
    /// Folders that it does not have.
    pub(super) hidden: HiddenIds,
    /// Whether it names a folder without looking into it.
    pub(super) is_closed: fn(&str) -> bool,
}

fn walk(folder: &Dir, above: &str, listing: &Listing, depth: u32, found: &mut Vec<Entry>) -> io::Result<()> {
    let mut names: Vec<String> = Vec::new();
    for entry in folder.entries()? {
        // What has no name that could be asked for is not shown.
        names.extend(entry?.file_name().into_string());
    }
    names.sort_unstable();
    for name in names {
        if found.len() > listing.most {
            return Ok(());
        }
        let path = format!("{above}{name}");
        let about = match folder.symlink_metadata(&name) {
            // It was removed meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            about => about?,
        };
        if about.is_dir() {
            let below = folder.open_dir_nofollow(&name)?;
            if listing.hidden.has_folder(&below) {
                continue;
            }
            found.push(Entry { path: format!("{path}/"), bytes: None });
            if depth > 0 && !(listing.is_closed)(&name) {
                match walk(&below, &format!("{path}/"), listing, depth - 1, found) {
                    // It is named, and that is all that can be seen of it.
                    Err(error) if error.kind() == ErrorKind::PermissionDenied => {}
                    walked => walked?,
                }
            }
        } else if about.is_file() {
            found.push(Entry { path, bytes: Some(about.len()) });
        }
    }
    Ok(())
}

/// Reports a link as such, whatever error the operating system gives.
pub(super) fn linked(path: &dyn fmt::Display, error: &io::Error) -> Refused {
    match Errno::from_io_error(error) {
        Some(Errno::LOOP | Errno::NXIO) => Refused::not_plain(path),
        Some(_) | None => Refused::io(path, error),
    }
}
