//! The outputs of an agent: files that it made, counted with everything below before one more is written.

use std::fmt;
use std::io::{self, ErrorKind};

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
use spinney_kernel::definition::OutputLimits;

use super::atomic::{self, Sync};
use super::fault::WorkspaceFault;
use super::name::OutputName;
use super::{folder, history};

const OUTPUTS: &str = "outputs";
/// The name of an output that is not whole yet. It stands in `history/`, where leftovers are ours to remove.
const UNFINISHED: &str = ".unfinished-output";
/// The name of a file that an agent writes and that is not whole yet. It stands beside `outputs/`.
const UNFINISHED_FILE: &str = ".unfinished-file";
/// Deepest folder below `outputs/` that is counted: what nests deeper nobody looks through.
const DEPTH_MAX: u32 = 32;

/// A limit that an output would pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
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
#[derive(Debug, thiserror::Error)]
pub enum PutError {
    /// It would pass a limit.
    #[error(
        "{over} of `{place}`: limit {limit}, there {used}, asked {asked}: write less, or remove what is not needed"
    )]
    Limit {
        over: Over,
        place: String,
        /// The most there may be.
        limit: u64,
        used: u64,
        /// What was to come.
        asked: u64,
    },
    /// It could not be written.
    #[error(transparent)]
    Fault(WorkspaceFault),
}

/// Why nothing was written, before anybody knows whose workspace it is.
pub(crate) enum Stopped {
    Limit { over: Over, limit: u64, used: u64, asked: u64 },
    Io(io::Error),
}

impl Stopped {
    pub(crate) fn at(self, place: &str) -> PutError {
        match self {
            Self::Limit { over, limit, used, asked } => {
                PutError::Limit { over, place: place.to_owned(), limit, used, asked }
            }
            Self::Io(error) => PutError::Fault(WorkspaceFault::at(format!("{place}/{OUTPUTS}"))(error)),
        }
    }
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

/// Writes one more output.
pub(super) fn put(
    agent: &Dir,
    name: &OutputName,
    bytes: &[u8],
    limits: OutputLimits,
) -> Result<String, Stopped> {
    make(agent)?;
    let (outputs, history) = (agent.open_dir_nofollow(OUTPUTS)?, history::open(agent)?);
    let mut used = Used::default();
    used.count(&outputs, limits, 0)?;
    used.check(limits, 1, bytes.len() as u64)?;
    let first = 1 + last(&outputs, name)?;
    atomic::create(&history, UNFINISHED, bytes, Sync::No)?;
    let linked = link(&history, &outputs, name, first);
    let removed = atomic::remove(&history, UNFINISHED);
    let file = linked?;
    removed?;
    Ok(format!("{OUTPUTS}/{file}"))
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
    atomic::create(agent, UNFINISHED_FILE, bytes, sync)?;
    let renamed = agent.rename(UNFINISHED_FILE, &folder, named.file);
    if renamed.is_err() {
        atomic::remove(agent, UNFINISHED_FILE)?;
    }
    renamed?;
    Ok(atomic::keep_names(&folder, sync)?)
}

/// Where an agent wants an output: plain names, checked by whoever read them.
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

/// Gives the file that is whole the next free name. A link to it, unlike a rename, replaces nothing.
fn link(history: &Dir, outputs: &Dir, name: &OutputName, first: u32) -> io::Result<String> {
    let mut number = first;
    loop {
        let file = name.file(number);
        match history.hard_link(UNFINISHED, outputs, &file) {
            // The agent's own tools were faster.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            linked => return linked.map(|()| file),
        }
    }
}

/// The highest number of a name so far.
fn last(outputs: &Dir, name: &OutputName) -> io::Result<u32> {
    let mut last = 0;
    for entry in outputs.entries()? {
        let number = entry?.file_name().to_str().and_then(|file| name.number(file));
        last = last.max(number.unwrap_or_default());
    }
    Ok(last)
}

#[derive(Clone, Copy, Default)]
struct Used {
    files: u64,
    bytes: u64,
}

impl Used {
    /// Counts a folder with everything below. A link is a file of its own size; what it leads to is not counted. Stops
    /// as soon as there is too much.
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
