//! The files that the agents of a tree wrote, for people: found without following links, opened without leaving the
//! tree's workspaces.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use serde::{Serialize, Serializer};
use spinney::tree_file::nearest;
use spinney_kernel::primitives::TreeId;
use spinney_store::layout::WORKSPACES;
use spinney_view::wording::short_id;

use crate::system::files::UNBLOCKED_UNLINKED;
use crate::system::private_files::checked;

/// Most files that are listed.
pub const FILES_MAX: usize = 1_000;

/// A file that an agent wrote.
#[derive(Serialize)]
pub struct OutputFile {
    /// Its agent.
    pub agent: String,
    /// `AGENT/outputs/NAME`, below the workspaces of the tree.
    #[serde(serialize_with = "lossy")]
    pub name: PathBuf,
    /// From where the command runs, if the home was named from there.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
}

impl OutputFile {
    /// Its path on one line: a command may give a file any name.
    #[must_use]
    pub fn shown_path(&self) -> String {
        on_one_line(&self.path.to_string_lossy())
    }
}

fn on_one_line(path: &str) -> String {
    let mut line = String::with_capacity(path.len());
    for c in path.chars() {
        match c.is_control() {
            true => line.extend(c.escape_default()),
            false => line.push(c),
        }
    }
    line
}

/// A path that is not a text is shown as well as it can be.
fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// Why no file has a name.
#[derive(Debug, thiserror::Error)]
pub enum OutputNameError {
    /// There are no files.
    #[error("the agents of tree {} wrote no files", short_id(*tree))]
    NoFiles {
        /// The tree.
        tree: TreeId,
    },
    /// None has it.
    #[error("no file `{name}`: {help}")]
    Unknown {
        /// The name.
        name: String,
        /// Those that are near.
        help: String,
    },
    /// Several have it.
    #[error("`{name}` may be {}: name one of them", names.join(" or "))]
    Several {
        /// The name.
        name: String,
        /// The names that match.
        names: Vec<String>,
    },
}

/// The workspaces of a tree. There are none if no process wrote them yet.
fn workspaces(home: &Path, tree: TreeId) -> PathBuf {
    home.join(WORKSPACES).join(tree.to_string())
}

/// The output files of all agents, in the order of their names.
pub fn list(home: &Path, tree: TreeId) -> Vec<OutputFile> {
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

/// The listed file with this name, path, or end of its name.
pub fn named<'a>(
    files: &'a [OutputFile],
    wanted: &str,
    tree: TreeId,
) -> Result<&'a OutputFile, OutputNameError> {
    let is_exact = |file: &&OutputFile| file.name == Path::new(wanted) || file.path == Path::new(wanted);
    if let Some(file) = files.iter().find(is_exact) {
        return Ok(file);
    }
    let names = |files: &mut dyn Iterator<Item = &OutputFile>| {
        files.map(|file| on_one_line(&file.name.to_string_lossy())).collect::<Vec<_>>()
    };
    let matching: Vec<&OutputFile> = files.iter().filter(|file| file.name.ends_with(wanted)).collect();
    match matching.as_slice() {
        [file] => Ok(file),
        [] if files.is_empty() => Err(OutputNameError::NoFiles { tree }),
        [] => {
            let names = names(&mut files.iter());
            let help = nearest::help(wanted, names.iter().map(String::as_str), "files");
            Err(OutputNameError::Unknown { name: wanted.to_owned(), help })
        }
        several => {
            let names = names(&mut several.iter().copied());
            Err(OutputNameError::Several { name: wanted.to_owned(), names })
        }
    }
}

/// Opens a listed file. Whatever an agent puts in its place meanwhile, nothing outside of the tree's workspaces is
/// opened, and nothing that is not a regular file.
pub fn open(home: &Path, tree: TreeId, file: &OutputFile) -> io::Result<File> {
    let workspaces = Dir::open_ambient_dir(workspaces(home, tree), ambient_authority())?;
    let mut options = OpenOptions::new();
    let options = options.read(true).custom_flags(UNBLOCKED_UNLINKED);
    let opened = workspaces.open_with(&file.name, options)?;
    checked(opened.into_std())
}

/// A folder that is not there has nothing in it.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let is_folder = folder.symlink_metadata().is_ok_and(|about| about.is_dir());
    let entries = is_folder.then(|| fs::read_dir(folder)).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G16: a name cannot look like another row of a list.
    #[test]
    fn g16_the_path_of_an_output_is_one_line() {
        let path = PathBuf::from("runs/lead/outputs/a\n  lead  9  /etc/passwd\u{1b}[2J");
        let file = OutputFile { agent: "lead".to_owned(), name: path.clone(), path, bytes: 1 };
        assert_eq!(file.shown_path(), "runs/lead/outputs/a\\n  lead  9  /etc/passwd\\u{1b}[2J");
    }
}
