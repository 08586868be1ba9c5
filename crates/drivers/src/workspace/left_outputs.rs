//! What a command left in `outputs/`: the files that are new or were changed, read whole, within the agent's limits.

use std::collections::BTreeMap;
use std::io::{self, Read as _};

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, Metadata, MetadataExt, OpenOptions, OpenOptionsExt};
use rustix::fs::OFlags;
use spinney_kernel::definition::OutputLimits;
use spinney_kernel::primitives::{OutputPath, WrittenFile, limit};

use super::outputs::{OUTPUTS, Over, Stopped, Used};
use super::{Workspace, folder};

/// How each file was at one moment. The kernel sets the time of a change, and no program can set it back.
#[derive(Debug, Default)]
pub(crate) struct OutputMarks(BTreeMap<String, FileMark>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileMark {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl FileMark {
    fn from_metadata(found: &Metadata) -> Self {
        Self { inode: found.ino(), bytes: found.len(), changed: (found.ctime(), found.ctime_nsec()) }
    }
}

/// What is new.
#[derive(Debug, Default)]
pub(crate) struct LeftOutputs {
    pub(crate) files: Vec<WrittenFile>,
    /// What is not a plain file, or has a name that no output may have. The journal does not have it.
    pub(crate) unkept: Vec<String>,
}

impl Workspace {
    /// How its outputs are now, to find what a command leaves there.
    pub(crate) fn output_marks(&self, limits: OutputLimits) -> Result<OutputMarks, Stopped> {
        marks(self.folder(), limits)
    }

    /// The outputs that are not as they were, unless there is too much in the folder.
    pub(crate) fn left_outputs(
        &self,
        before: &OutputMarks,
        limits: OutputLimits,
    ) -> Result<LeftOutputs, Stopped> {
        left(self.folder(), before, limits)
    }
}

/// How the files are now. Those of an agent that is past its limits count as changed.
fn marks(agent: &Dir, limits: OutputLimits) -> Result<OutputMarks, Stopped> {
    let outputs = folder::open(agent, OUTPUTS)?;
    let mut marks = OutputMarks::default();
    match Used::default().count(&outputs, limits, 0) {
        Err(Stopped::Limit { .. }) => return Ok(marks),
        counted => counted?,
    }
    walk(&outputs, "", &mut |path, _, _, found| {
        marks.0.insert(path, FileMark::from_metadata(found));
        Ok(())
    })?;
    Ok(marks)
}

/// The files that are not as they were.
fn left(agent: &Dir, before: &OutputMarks, limits: OutputLimits) -> Result<LeftOutputs, Stopped> {
    let outputs = folder::open(agent, OUTPUTS)?;
    Used::default().count(&outputs, limits, 0)?;
    let (mut left, mut bytes) = (LeftOutputs::default(), 0);
    walk(&outputs, "", &mut |path, above, name, found| {
        if before.0.get(&path) == Some(&FileMark::from_metadata(found)) {
            return Ok(());
        }
        let output: Option<OutputPath> = path.parse().ok();
        let Some((output, read)) = output.zip(plain(above, name)?) else {
            left.unkept.push(path);
            return Ok(());
        };
        bytes += read.len() as u64;
        left.files.push(WrittenFile { path: output, bytes: read });
        let (files, files_max) = (left.files.len() as u64, limit::CALL_FILES_MAX as u64);
        if files > files_max {
            return Err(Stopped::Limit { over: Over::CallFiles, limit: files_max, used: files, asked: 0 });
        }
        let bytes_max = limit::BLOB_BYTES_MAX as u64;
        if bytes > bytes_max {
            return Err(Stopped::Limit { over: Over::CallBytes, limit: bytes_max, used: bytes, asked: 0 });
        }
        Ok(())
    })?;
    Ok(left)
}

/// Takes a path, the folder that it is in, its name there, and what is known of it.
type Visit<'v> = dyn FnMut(String, &Dir, &str, &Metadata) -> Result<(), Stopped> + 'v;

/// Everything in a folder that is not a folder, in name order. It was counted before, so that it is bounded.
fn walk(folder: &Dir, above: &str, visit: &mut Visit<'_>) -> Result<(), Stopped> {
    let mut names: Vec<String> = Vec::new();
    for entry in folder.entries()? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    for name in names {
        let path = format!("{above}{name}");
        match folder.symlink_metadata(&name) {
            // Its name is not text, or it was removed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
            Ok(found) if found.is_dir() => {
                walk(&folder.open_dir_nofollow(&name)?, &format!("{path}/"), visit)?;
            }
            Ok(found) => visit(path, folder, &name, &found)?,
        }
    }
    Ok(())
}

/// The bytes of a plain file with one name; nothing for links, pipes and devices.
fn plain(folder: &Dir, name: &str) -> io::Result<Option<Vec<u8>>> {
    let found = folder.symlink_metadata(name)?;
    if !found.is_file() || found.nlink() != 1 {
        return Ok(None);
    }
    let mut reading = OpenOptions::new();
    reading.read(true).follow(FollowSymlinks::No).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let file = match folder.open_with(name, &reading) {
        // It took the right to read away from itself.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
        file => file?,
    };
    let found = file.metadata()?;
    if !found.is_file() || found.nlink() != 1 {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(limit::BLOB_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}
