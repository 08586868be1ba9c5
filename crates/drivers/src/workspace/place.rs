//! The folders of one tree: created and opened by handles, never through a link. Only ids become names here, and an
//! id contains no path.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use spinney_kernel::context::offload::{FOLDER, Offloads};
use spinney_kernel::definition::OutputLimits;
use spinney_kernel::primitives::{AgentId, Durability, OutputPath, TreeId};

use super::atomic::{self, Sync};
use super::fault::WorkspaceFault;
use super::outputs::{self, NotRemoved, Stopped};
use super::step::Step;
use super::{folder, history, offload};

/// The folder of a home that holds the workspaces of all trees.
const WORKSPACE: &str = "workspace";

/// The workspaces of one tree.
#[derive(Clone, Debug)]
pub struct Workspaces {
    tree: TreeId,
    folder: Arc<Dir>,
}

/// The workspace of one agent.
#[derive(Debug)]
pub struct Workspace {
    /// As a path below the home's workspaces, for faults.
    place: String,
    folder: Dir,
}

impl Workspaces {
    /// The folder of a home that holds the workspaces of all its trees.
    #[must_use]
    pub fn root(home: &Path) -> PathBuf {
        home.join(WORKSPACE)
    }

    /// Opens the workspaces of a tree in a home, and creates the folder if needed. The home itself may be a link,
    /// because its owner may put it anywhere; nothing in it may.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn open(home: &Path, tree: TreeId) -> Result<Self, WorkspaceFault> {
        Self::below(&Self::root(home), tree)
    }

    /// The same, by the folder that holds the workspaces of all trees. It is created if needed, but not the folder that
    /// it is in: a deleted home is not created again.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn below(root: &Path, tree: TreeId) -> Result<Self, WorkspaceFault> {
        let name = tree.to_string();
        let all = root.file_name().and_then(OsStr::to_str).ok_or(ErrorKind::InvalidFilename.into());
        let opened = all
            .and_then(|all| folder::open(&Dir::open_ambient_dir(around(root), ambient_authority())?, all))
            .and_then(|all| folder::open(&all, &name));
        let folder = Arc::new(opened.map_err(WorkspaceFault::at(name))?);
        Ok(Self { tree, folder })
    }

    /// Makes an agent's folder survive the loss of power if its tree's effects have to: its name, and the names of the
    /// folders above it, from the one that holds all trees.
    pub(crate) fn keep_names(&self, root: &Path, durability: Durability) -> Result<(), WorkspaceFault> {
        let sync = Sync::new(durability);
        let above = |folder: &Path| Dir::open_ambient_dir(folder, ambient_authority());
        let kept = atomic::keep_names(&self.folder, sync)
            .and_then(|()| atomic::keep_names(&above(root)?, sync))
            .and_then(|()| atomic::keep_names(&above(around(root))?, sync));
        kept.map_err(WorkspaceFault::at(self.tree.to_string()))
    }

    #[must_use]
    pub const fn tree(&self) -> TreeId {
        self.tree
    }

    /// The handle of the folder with the workspaces of its agents.
    #[cfg(all(feature = "processes", target_os = "linux"))]
    pub(super) fn folder(&self) -> &Dir {
        &self.folder
    }

    /// A folder for a server of tools, which no agent has: the id of an agent has no dot.
    ///
    /// # Errors
    /// The operating system's error; also if a link or a file is in the folder's place.
    #[cfg(all(feature = "mcp", target_os = "linux"))]
    pub(crate) fn server_folder(&self, root: &Path, server: &str) -> Result<PathBuf, WorkspaceFault> {
        let name = format!("server.{server}");
        let made = folder::open(&self.folder, &name)
            .and_then(|_| root.join(self.tree.to_string()).join(&name).canonicalize());
        made.map_err(WorkspaceFault::at(format!("{}/{name}", self.tree)))
    }

    /// Opens the workspace of an agent, and creates its folders if needed.
    ///
    /// # Errors
    /// The operating system's error; also if a link or a file is in the folder's place.
    pub fn agent(&self, agent: &AgentId) -> Result<Workspace, WorkspaceFault> {
        let workspace = self.found(agent)?;
        let made = history::open(&workspace.folder).and_then(|_| outputs::make(&workspace.folder));
        made.map_err(WorkspaceFault::at(workspace.place.as_str()))?;
        Ok(workspace)
    }

    /// The workspace of an agent whose folders were made.
    pub(super) fn found(&self, agent: &AgentId) -> Result<Workspace, WorkspaceFault> {
        let place = format!("{}/{agent}", self.tree);
        match folder::open(&self.folder, agent.as_str()) {
            Ok(folder) => Ok(Workspace { place, folder }),
            Err(source) => Err(WorkspaceFault { place, source }),
        }
    }
}

impl Workspace {
    /// Writes an output under the name that the agent gave it, in place of what has that name, or refuses before
    /// anything is written. The file is there whole or as it was. Limits hold if there is one caller at a time.
    pub(crate) fn write_output(
        &self,
        path: &OutputPath,
        bytes: &[u8],
        limits: OutputLimits,
        durability: Durability,
    ) -> Result<(), Stopped> {
        outputs::write(&self.folder, path, bytes, limits, Sync::new(durability))
    }

    /// Makes an output what the journal has, unless it is that already.
    pub(crate) fn fill(&self, path: &OutputPath, bytes: &[u8]) -> Result<(), WorkspaceFault> {
        let filled = outputs::fill(&self.folder, path, bytes);
        filled.map_err(WorkspaceFault::at(format!("{}/outputs/{path}", self.place)))
    }

    /// Removes an output that the agent removed, if it is there.
    pub(crate) fn clear(&self, path: &OutputPath) -> Result<(), WorkspaceFault> {
        let cleared = outputs::clear(&self.folder, path);
        cleared.map_err(WorkspaceFault::at(format!("{}/outputs/{path}", self.place)))
    }

    /// Removes an output. A link, a folder or a file with a second name is not removed.
    pub(crate) fn remove_output(&self, path: &OutputPath, durability: Durability) -> Result<(), NotRemoved> {
        outputs::remove(&self.folder, path, Sync::new(durability))
    }

    /// Whether something has the name of an output.
    pub(super) fn has_output(&self, path: &OutputPath) -> Result<bool, WorkspaceFault> {
        let found = outputs::has(&self.folder, path);
        found.map_err(WorkspaceFault::at(format!("{}/outputs/{path}", self.place)))
    }

    /// The handle of its folder.
    pub(crate) const fn folder(&self) -> &Dir {
        &self.folder
    }

    pub(super) fn write(&self, number: u32, step: &Step, sync: Sync) -> Result<(), WorkspaceFault> {
        let written =
            history::open(&self.folder).and_then(|history| history::write(&history, number, step, sync));
        written.map_err(WorkspaceFault::at(format!("{}/history/{}.json", self.place, step.id)))
    }

    /// Writes a long output as a file of this name. `bytes` is asked for them.
    pub(super) fn keep(
        &self,
        name: &str,
        bytes: impl FnOnce() -> io::Result<Vec<u8>>,
        sync: Sync,
    ) -> Result<(), WorkspaceFault> {
        let kept = bytes().and_then(|bytes| offload::write(&self.folder, name, &bytes, sync));
        kept.map_err(WorkspaceFault::at(format!("{}/{FOLDER}/{name}", self.place)))
    }

    /// Removes files that do not belong to an agent with this many steps and these long outputs.
    pub(super) fn sweep(&self, steps: u32, offloads: &Offloads) -> Result<(), WorkspaceFault> {
        let swept = history::open(&self.folder).and_then(|history| history::sweep(&history, steps));
        let swept = swept.map_err(WorkspaceFault::at(format!("{}/history", self.place)));
        let other = offload::sweep(&self.folder, offloads);
        swept.and(other.map_err(WorkspaceFault::at(format!("{}/{FOLDER}", self.place))))
    }
}

/// The folder that a folder is in.
fn around(folder: &Path) -> &Path {
    folder.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
