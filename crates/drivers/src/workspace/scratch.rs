//! The folders of an agent as its commands have them: the one in which they begin, which is the agent's and is neither read
//! nor kept here, its outputs, and what it may only read.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use cap_std::fs::Dir;
use spinney_kernel::context::offload::FOLDER;

use super::history::HISTORY;
use super::outputs::OUTPUTS;
use super::{COPY, Workspace, folder};

pub(super) const SCRATCH: &str = "scratch";
/// Links in it, so that paths are the same for commands as for file tools.
const LINKS: [(&str, &str); 3] = [(OUTPUTS, "../outputs"), (FOLDER, "../offload"), (HISTORY, "../history")];

/// Absolute paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandFolders {
    /// Where commands begin.
    pub(crate) scratch: PathBuf,
    pub(crate) outputs: PathBuf,
    /// Only to be read.
    pub(crate) ours: Vec<PathBuf>,
}

impl Workspace {
    /// Makes the folders, which are at this path.
    pub(crate) fn command_folders(&self, agent: &Path) -> io::Result<CommandFolders> {
        make(self.folder())?;
        let agent = agent.canonicalize()?;
        let ours = [FOLDER, HISTORY].map(|name| agent.join(name));
        let is_folder = |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| found.is_dir());
        Ok(CommandFolders {
            scratch: agent.join(SCRATCH),
            outputs: agent.join(OUTPUTS),
            ours: ours.into_iter().filter(is_folder).collect(),
        })
    }

    /// Makes the working copy reachable from where commands have their own files.
    pub(crate) fn link_copy(&self) -> io::Result<()> {
        link(&folder::open(self.folder(), SCRATCH)?, COPY, "../copy")
    }
}

fn make(agent: &Dir) -> io::Result<()> {
    let scratch = folder::open(agent, SCRATCH)?;
    LINKS.into_iter().try_for_each(|(name, to)| link(&scratch, name, to))
}

fn link(scratch: &Dir, name: &str, to: &str) -> io::Result<()> {
    match scratch.symlink(to, name) {
        // The agent may have put something else there.
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
