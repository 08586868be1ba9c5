//! The files that the agents of a tree wrote, for people: found without following links, opened without leaving the
//! tree's workspaces.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use rustix::fs::OFlags;
use spinney_kernel::words::TreeId;

use super::private_files::checked;

/// Most files that are listed.
pub(crate) const FILES_MAX: usize = 1_000;

pub(crate) struct OutputFile {
    pub(crate) agent: String,
    /// `AGENT/outputs/NAME`, below the workspaces of the tree.
    pub(crate) name: PathBuf,
    /// From where the command runs, if the home was named from there.
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
}

/// The workspaces of a tree. There are none if no process wrote them yet.
fn workspaces(home: &Path, tree: TreeId) -> PathBuf {
    home.join("workspace").join(tree.to_string())
}

/// The output files of all agents, in the order of their names.
pub(crate) fn list(home: &Path, tree: TreeId) -> Vec<OutputFile> {
    let workspaces = workspaces(home, tree);
    let mut found = Vec::new();
    for agent in entries(&workspaces) {
        let mut folders = vec![agent.join("outputs")];
        while let Some(folder) = folders.pop() {
            for path in entries(&folder) {
                let (Ok(about), Ok(name)) = (path.symlink_metadata(), path.strip_prefix(&workspaces)) else {
                    continue;
                };
                if about.is_dir() {
                    folders.push(path);
                } else if about.is_file() && found.len() < FILES_MAX {
                    let agent = agent.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    found.push(OutputFile { agent, name: name.to_owned(), path, bytes: about.len() });
                }
            }
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

/// Opens a listed file. Whatever an agent puts in its place meanwhile, nothing outside of the tree's workspaces is
/// opened, and nothing that is not a regular file.
pub(crate) fn open(home: &Path, tree: TreeId, file: &OutputFile) -> io::Result<File> {
    let workspaces = Dir::open_ambient_dir(workspaces(home, tree), ambient_authority())?;
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    let opened = workspaces.open_with(&file.name, OpenOptions::new().read(true).custom_flags(flags))?;
    checked(opened.into_std())
}

/// A folder that is not there has nothing in it.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let is_folder = folder.symlink_metadata().is_ok_and(|about| about.is_dir());
    let entries = is_folder.then(|| fs::read_dir(folder)).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}
