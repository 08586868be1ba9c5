//! What an agent committed: the hashes in the references of its git directory, read as bounded files. Whatever else is in
//! that directory is not believed.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use cap_fs_ext::DirExt;
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use rustix::fs::OFlags;
use std::io::Read as _;

use super::commit_id::CommitId;

/// Bytes of one reference, and of the file of packed ones.
const REF_BYTES_MAX: u64 = 1_024;
const PACKED_BYTES_MAX: u64 = 1 << 20;
/// References that are read, how deep, and how many tips beside HEAD are taken.
const REFS_MAX: usize = 1_000;
const DEPTH_MAX: u32 = 16;
const TIPS_MAX: usize = 16;

/// The commits that an agent left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tips {
    /// What it worked on last.
    pub(super) head: Option<CommitId>,
    /// Of other branches, tags and stashes.
    pub(super) others: Vec<CommitId>,
}

/// Reads the tips of a copy. A git directory that is not one has none.
pub(super) fn read(copy: &Path, like: &CommitId) -> Tips {
    let git_dir =
        Dir::open_ambient_dir(copy, ambient_authority()).and_then(|copy| copy.open_dir_nofollow(".git"));
    let Ok(git_dir) = git_dir else { return Tips { head: None, others: Vec::new() } };
    let packed = read_file(&git_dir, "packed-refs", PACKED_BYTES_MAX).unwrap_or_default();
    let packed: Vec<(CommitId, &str)> = packed.lines().filter_map(packed_line).collect();
    let head = read_file(&git_dir, "HEAD", REF_BYTES_MAX).unwrap_or_default();
    let head = match head.trim_end().strip_prefix("ref: ") {
        Some(name) => loose(&git_dir, name)
            .or_else(|| packed.iter().find(|(_, packed)| *packed == name).map(|(id, _)| id.clone())),
        None => head.trim_end().parse().ok(),
    };
    let head = head.filter(|head: &CommitId| head.is_like(like));
    let mut all: BTreeSet<CommitId> = packed.into_iter().map(|(id, _)| id).collect();
    if let Ok(refs) = git_dir.open_dir_nofollow("refs") {
        // What cannot be read is not there.
        let _ = walk(&refs, DEPTH_MAX, &mut 0, &mut all);
    }
    let is_other = |tip: &CommitId| tip.is_like(like) && tip != like && Some(tip) != head.as_ref();
    Tips { others: all.iter().filter(|tip| is_other(tip)).take(TIPS_MAX).cloned().collect(), head }
}

/// The file of a copy that names what git ignores, which is not committed.
pub(super) fn exclude(copy: &Path, bytes_max: u64) -> io::Result<String> {
    let copy = Dir::open_ambient_dir(copy, ambient_authority())?;
    let info = copy.open_dir_nofollow(".git")?.open_dir_nofollow("info")?;
    read_file(&info, "exclude", bytes_max)
}

/// `HASH NAME`; lines of another form say something about one.
fn packed_line(line: &str) -> Option<(CommitId, &str)> {
    let (hash, name) = line.split_once(' ')?;
    Some((hash.parse().ok()?, name))
}

fn loose(git_dir: &Dir, name: &str) -> Option<CommitId> {
    let names: Vec<&str> = name.split('/').collect();
    let (file, folders) = names.split_last()?;
    let is_plain = |name: &&str| !matches!(*name, "" | "." | "..");
    if folders.first() != Some(&"refs") || !names.iter().all(is_plain) || names.len() > DEPTH_MAX as usize {
        return None;
    }
    let mut folder = git_dir.try_clone().ok()?;
    for name in folders {
        folder = folder.open_dir_nofollow(name).ok()?;
    }
    read_file(&folder, file, REF_BYTES_MAX).ok()?.trim_end().parse().ok()
}

fn walk(folder: &Dir, depth: u32, seen: &mut usize, all: &mut BTreeSet<CommitId>) -> io::Result<()> {
    for entry in folder.entries()? {
        *seen += 1;
        if *seen > REFS_MAX {
            return Ok(());
        }
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let kind = entry.file_type()?;
        if kind.is_dir() && depth > 0 {
            walk(&folder.open_dir_nofollow(&name)?, depth - 1, seen, all)?;
        } else if kind.is_file() {
            let read = read_file(folder, &name, REF_BYTES_MAX).unwrap_or_default();
            all.extend(read.trim_end().parse::<CommitId>().ok());
        }
    }
    Ok(())
}

fn read_file(folder: &Dir, name: &str, bytes_max: u64) -> io::Result<String> {
    let mut reading = OpenOptions::new();
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    reading.read(true).follow(FollowSymlinks::No).custom_flags(flags);
    let file = folder.open_with(name, &reading)?;
    let found = file.metadata()?;
    if !found.is_file() || found.len() > bytes_max {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text = String::new();
    file.take(bytes_max).read_to_string(&mut text)?;
    Ok(text)
}
