//! The outputs of an agent: the files that it made, counted recursively before another one is written.

use std::fmt;
use std::io::{self, ErrorKind};

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
use spinney_kernel::definition::OutputLimits;

use super::atomic::{self, Sync};
use super::folder;

const OUTPUTS: &str = "outputs";
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
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Files => "max_output_files",
            Self::Bytes => "max_output_size_bytes",
            Self::Depth => "depth of folders",
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
    named: Named<'_>,
    bytes: &[u8],
    limits: OutputLimits,
    sync: Sync,
) -> Result<(), Stopped> {
    let mut used = Used::default();
    let outputs = folder::open(agent, OUTPUTS)?;
    atomic::keep_names(agent, sync)?;
    let before = named.before(&outputs)?;
    used.count(&outputs, limits, 0)?;
    let files = u64::from(before.is_none());
    used.bytes = used.bytes.saturating_sub(before.unwrap_or_default());
    used.check(limits, files, bytes.len() as u64)?;
    let folder = named.folders.iter().try_fold(outputs, |above, name| {
        let folder = folder::open(&above, name)?;
        atomic::keep_names(&above, sync)?;
        io::Result::Ok(folder)
    })?;
    atomic::create(agent, UNFINISHED, bytes, sync)?;
    let renamed = agent.rename(UNFINISHED, &folder, named.file);
    if renamed.is_err() {
        atomic::remove(agent, UNFINISHED)?;
    }
    renamed?;
    Ok(atomic::keep_names(&folder, sync)?)
}

/// The path of an output: plain names, already checked.
#[derive(Clone, Copy)]
pub(crate) struct Named<'a> {
    /// Folders below `outputs/`, the uppermost first.
    pub(crate) folders: &'a [String],
    /// The file in the last of them.
    pub(crate) file: &'a str,
}

impl Named<'_> {
    /// The bytes of what has this name, if something has.
    fn before(&self, outputs: &Dir) -> io::Result<Option<u64>> {
        let mut folder = outputs.try_clone()?;
        for name in self.folders {
            folder = match folder.open_dir_nofollow(name) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                opened => opened?,
            };
        }
        match folder.symlink_metadata(self.file) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Ok(found) if found.is_dir() => Err(ErrorKind::IsADirectory.into()),
            found => Ok(Some(found?.len())),
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Used {
    files: u64,
    bytes: u64,
}

impl Used {
    /// Counts a folder recursively. A link counts with its own size; its target does not count. Stops as soon as
    /// there is too much.
    fn count(&mut self, folder: &Dir, limits: OutputLimits, depth: u32) -> Result<(), Stopped> {
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
