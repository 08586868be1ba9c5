//! The outputs of an agent: the files that it made, counted recursively before another one is written.

use std::fmt;
use std::io::{self, ErrorKind};

use cap_fs_ext::{DirExt, MetadataExt};
use cap_std::fs::Dir;
use spinney_kernel::definition::OutputLimits;
use spinney_kernel::primitives::OutputPath;

use super::atomic::{self, Sync};
use super::folder;

pub(super) const OUTPUTS: &str = "outputs";
/// The name of a file that an agent writes and that is not whole yet. It is beside `outputs/`.
const UNFINISHED: &str = ".unfinished-file";
/// Deepest folder below `outputs/` that is counted.
const DEPTH_MAX: u32 = 32;

/// A limit that an output would pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// `max_output_files`.
    Files,
    /// `max_output_size_bytes`.
    Bytes,
    /// How deep folders may nest.
    Depth,
    /// Files that one call changed.
    CallFiles,
    /// Their bytes.
    CallBytes,
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Files => "max_output_files",
            Self::Bytes => "max_output_size_bytes",
            Self::Depth => "depth of folders",
            Self::CallFiles => "files changed in one call",
            Self::CallBytes => "bytes changed in one call",
        })
    }
}

/// Why an output was not written.
pub(crate) enum Stopped {
    /// It would pass a limit: the most there may be, what there is, and what was to come.
    Limit { over: Over, limit: u64, used: u64, asked: u64 },
    /// It could not be written.
    Io(io::Error),
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Makes the folder. Whatever has its name already is the agent's, and is found out about when something is written.
pub(super) fn make(agent: &Dir) -> io::Result<()> {
    folder::make(agent, OUTPUTS)
}

/// Writes an output under the name that the agent gave it, in place of what has that name.
pub(super) fn write(
    agent: &Dir,
    path: &OutputPath,
    bytes: &[u8],
    limits: OutputLimits,
    sync: Sync,
) -> Result<(), Stopped> {
    let mut used = Used::default();
    let outputs = folder::open(agent, OUTPUTS)?;
    atomic::keep_names(agent, sync)?;
    let before = bytes_at(&outputs, path)?;
    used.count(&outputs, limits, 0)?;
    let files = u64::from(before.is_none());
    used.bytes = used.bytes.saturating_sub(before.unwrap_or_default());
    used.check(limits, files, bytes.len() as u64)?;
    Ok(put(agent, outputs, path, bytes, sync)?)
}

/// Makes an output what the journal has. It survives the death of the process; after a loss of power it is filled again.
pub(super) fn fill(agent: &Dir, path: &OutputPath, bytes: &[u8]) -> io::Result<()> {
    let outputs = folder::open(agent, OUTPUTS)?;
    let (folders, file) = split(path);
    let is_same =
        match folders.iter().try_fold(outputs.try_clone()?, |above, name| above.open_dir_nofollow(name)) {
            Ok(folder) => atomic::is_there(&folder, file, bytes)?,
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
    if is_same { Ok(()) } else { put(agent, outputs, path, bytes, Sync::No) }
}

/// Why an output was not removed.
pub(crate) enum NotRemoved {
    /// Something else has its name: a link, a device, a pipe, or a file with a second name.
    NotPlain,
    Io(io::Error),
}

impl From<io::Error> for NotRemoved {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Removes a plain file, and the folders that are empty without it: filling a folder from the journal creates no empty
/// ones.
pub(super) fn remove(agent: &Dir, path: &OutputPath, sync: Sync) -> Result<(), NotRemoved> {
    let (folders, file) = split(path);
    let mut opened = vec![folder::open(agent, OUTPUTS)?];
    for name in &folders {
        let next = opened.last().map(|above| above.open_dir_nofollow(name)).transpose()?;
        opened.extend(next);
    }
    let Some(innermost) = opened.last() else { return Ok(()) };
    let found = innermost.symlink_metadata(file)?;
    if found.is_dir() {
        return Err(NotRemoved::Io(ErrorKind::IsADirectory.into()));
    }
    if !found.is_file() || found.nlink() != 1 {
        return Err(NotRemoved::NotPlain);
    }
    // The name itself goes, whatever it leads to by now.
    innermost.remove_file_or_symlink(file)?;
    atomic::keep_names(innermost, sync)?;
    for (above, name) in opened.iter().zip(&folders).rev() {
        // One that has something in it stays.
        if above.remove_dir(name).is_err() {
            break;
        }
        atomic::keep_names(above, sync)?;
    }
    Ok(())
}

/// Removes what the agent removed, in a folder that may be an older copy. Anything but a plain file stays: no tool put
/// it there.
pub(super) fn clear(agent: &Dir, path: &OutputPath) -> io::Result<()> {
    match remove(agent, path, Sync::No) {
        Ok(()) | Err(NotRemoved::NotPlain) => Ok(()),
        Err(NotRemoved::Io(error)) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::IsADirectory | ErrorKind::NotADirectory => Ok(()),
            _ => Err(error),
        },
    }
}

/// Whether something has the name of an output.
pub(super) fn has(agent: &Dir, path: &OutputPath) -> io::Result<bool> {
    Ok(bytes_at(&folder::open(agent, OUTPUTS)?, path)?.is_some())
}

/// Writes the file under another name, makes the folders of its path, and renames it.
fn put(agent: &Dir, outputs: Dir, path: &OutputPath, bytes: &[u8], sync: Sync) -> io::Result<()> {
    let (folders, file) = split(path);
    let folder = folders.iter().try_fold(outputs, |above, name| {
        let folder = folder::open(&above, name)?;
        atomic::keep_names(&above, sync)?;
        io::Result::Ok(folder)
    })?;
    atomic::create(agent, UNFINISHED, bytes, sync)?;
    let renamed = agent.rename(UNFINISHED, &folder, file);
    if renamed.is_err() {
        atomic::remove(agent, UNFINISHED)?;
    }
    renamed?;
    atomic::keep_names(&folder, sync)
}

/// The bytes of what has this name, if something has.
fn bytes_at(outputs: &Dir, path: &OutputPath) -> io::Result<Option<u64>> {
    let (folders, file) = split(path);
    let mut folder = outputs.try_clone()?;
    for name in folders {
        folder = match folder.open_dir_nofollow(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
    }
    match folder.symlink_metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Ok(found) if found.is_dir() => Err(ErrorKind::IsADirectory.into()),
        found => Ok(Some(found?.len())),
    }
}

/// The folders of a path, the uppermost first, and the file in the last of them.
fn split(path: &OutputPath) -> (Vec<&str>, &str) {
    let mut names: Vec<&str> = path.as_str().split('/').collect();
    let file = names.pop().unwrap_or_default();
    (names, file)
}

#[derive(Clone, Copy, Default)]
pub(super) struct Used {
    files: u64,
    bytes: u64,
}

impl Used {
    /// Counts a folder recursively. A link counts with its own size; its target does not count. Stops as soon as
    /// there is too much.
    pub(super) fn count(&mut self, folder: &Dir, limits: OutputLimits, depth: u32) -> Result<(), Stopped> {
        if depth > DEPTH_MAX {
            let (limit, used) = (u64::from(DEPTH_MAX), u64::from(depth));
            return Err(Stopped::Limit { over: Over::Depth, limit, used, asked: 0 });
        }
        for entry in folder.entries()? {
            let entry = entry?;
            let name = entry.file_name();
            let found = folder.symlink_metadata(&name)?;
            if found.is_dir() {
                self.count(&folder.open_dir_nofollow(&name)?, limits, depth + 1)?;
            } else {
                self.files += 1;
                self.bytes = self.bytes.saturating_add(found.len());
                self.check(limits, 0, 0)?;
            }
        }
        Ok(())
    }

    fn check(self, limits: OutputLimits, files: u64, bytes: u64) -> Result<(), Stopped> {
        let over = |over, limit, used, asked| Err(Stopped::Limit { over, limit, used, asked });
        if self.files.saturating_add(files) > limits.files_max {
            return over(Over::Files, limits.files_max, self.files, files);
        }
        if self.bytes.saturating_add(bytes) > limits.bytes_max {
            return over(Over::Bytes, limits.bytes_max, self.bytes, bytes);
        }
        Ok(())
    }
}
