//! The step writer: keeps the histories and the long outputs of a tree's agents in step with the journal. It needs
//! every event from the first on; correct files are left alone, so resuming a tree writes only what is missing. Outputs of
//! agents that have ended are filled in again if they are gone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, ErrorKind};

use spinney_journal::JournalFault;
use spinney_kernel::context::offload;
use spinney_kernel::context::offload::Offloads;
use spinney_kernel::primitives::{AgentId, BlobRef, OutputPath, Seq, Time};
use spinney_kernel::record::Event;

use super::atomic::Sync;
use super::fault::WorkspaceFault;
use super::fold::{StepChange, Steps};
use super::place::Workspaces;

/// Gives the bytes of a blob, from wherever the tree's journal keeps them.
type Blobs<'j> = dyn Fn(&BlobRef) -> Result<Option<Vec<u8>>, JournalFault> + Send + 'j;

/// Writes the step files and the long outputs of one tree.
pub struct StepWriter<'j> {
    steps: Steps,
    workspaces: Workspaces,
    blobs: Box<Blobs<'j>>,
    /// The last event that was there before: up to it, files may be there that should not be.
    past: Seq,
    /// The files that agents wrote up to then, each in its newest version; `None` if it was removed.
    outputs: BTreeMap<AgentId, BTreeMap<OutputPath, Option<BlobRef>>>,
}

impl<'j> StepWriter<'j> {
    /// Writes into the workspaces of a tree. Writers of outputs there take clones of it. `past` is the last
    /// event that others may have written files about; `blobs` gives what the events only refer to.
    #[must_use]
    pub fn new(
        workspaces: Workspaces,
        past: Seq,
        blobs: impl Fn(&BlobRef) -> Result<Option<Vec<u8>>, JournalFault> + Send + 'j,
    ) -> Self {
        let (steps, blobs, outputs) = (Steps::new(workspaces.tree()), Box::new(blobs), BTreeMap::new());
        Self { steps, workspaces, blobs, past, outputs }
    }

    /// Applies the next event of the tree and writes what follows from it. It can continue after a fault; what is
    /// missing then is written when the tree is resumed.
    ///
    /// # Errors
    /// The first file that could not be written.
    pub fn take(&mut self, seq: Seq, at: Time, event: &Event) -> Result<(), WorkspaceFault> {
        let changes = self.steps.take(seq, at, event);
        // One that cannot be done keeps none of the others from being done.
        let done = changes.iter().map(|change| self.act(seq, change)).fold(Ok(()), Result::and);
        if seq != self.past {
            return done;
        }
        let living: BTreeSet<&AgentId> = self.steps.living().map(|(agent, ..)| agent).collect();
        let (_, ended): (Vec<_>, Vec<_>) = self.outputs.keys().partition(|agent| living.contains(agent));
        done.and(self.sweep()).and(self.fill(ended))
    }

    /// Fills in the missing outputs of all agents, also of those that live, in a tree that is not running. Those of a tree
    /// that is resumed are there before it continues.
    ///
    /// # Errors
    /// The first file that could not be written.
    pub fn fill_all(&self) -> Result<(), WorkspaceFault> {
        self.fill(self.outputs.keys().collect())
    }

    fn fill(&self, agents: Vec<&AgentId>) -> Result<(), WorkspaceFault> {
        let files = agents.into_iter().filter_map(|agent| Some((agent, self.outputs.get(agent)?)));
        let filled = |(agent, path, blob): (&AgentId, &OutputPath, &Option<BlobRef>)| {
            let workspace = self.workspaces.agent(agent)?;
            let Some(blob) = blob else { return workspace.clear(path) };
            if workspace.has_output(path)? {
                return Ok(());
            }
            let place = format!("{}/{agent}/outputs/{path}", self.workspaces.tree());
            workspace.fill(path, &self.bytes(blob).map_err(WorkspaceFault::at(place))?)
        };
        files
            .flat_map(|(agent, files)| files.iter().map(move |(path, blob)| (agent, path, blob)))
            .map(filled)
            .fold(Ok(()), Result::and)
    }

    fn act(&mut self, seq: Seq, change: &StepChange) -> Result<(), WorkspaceFault> {
        match change {
            StepChange::Born { agent } => {
                let workspace = self.workspaces.agent(agent)?;
                // New agents have no history; of the past, correct files stay.
                if seq > self.past { workspace.sweep(0, &Offloads::default()) } else { Ok(()) }
            }
            // Before the step that names it.
            StepChange::Offloaded { agent, blob } => {
                let (workspace, name) = (self.workspaces.found(agent)?, offload::name(&blob.hash));
                workspace.keep(&name, || self.bytes(blob), self.sync())
            }
            StepChange::Wrote { agent, files } if seq <= self.past => {
                let newest = self.outputs.entry(agent.clone()).or_default();
                newest.extend(files.iter().map(|file| (file.path.clone(), Some(file.blob.clone()))));
                Ok(())
            }
            StepChange::Removed { agent, files } if seq <= self.past => {
                let newest = self.outputs.entry(agent.clone()).or_default();
                newest.extend(files.iter().map(|path| (path.clone(), None)));
                Ok(())
            }
            StepChange::Wrote { .. } | StepChange::Removed { .. } => Ok(()),
            StepChange::Did { agent, number, step } => {
                self.workspaces.found(agent)?.write(*number, step, self.sync())
            }
            StepChange::Gone { agent, steps, offloads } if seq <= self.past => {
                self.workspaces.found(agent)?.sweep(*steps, offloads)
            }
            StepChange::Gone { .. } => Ok(()),
        }
    }

    fn bytes(&self, blob: &BlobRef) -> io::Result<Vec<u8>> {
        match (self.blobs)(blob) {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => Err(io::Error::new(
                ErrorKind::NotFound,
                format!("the journal has no blob {} of {} bytes", blob.hash, blob.bytes),
            )),
            Err(fault) => Err(io::Error::other(fault)),
        }
    }

    /// Everything that was there before is known: what else is in the folders of those who live does not belong.
    fn sweep(&self) -> Result<(), WorkspaceFault> {
        let swept = |(agent, steps, offloads): (&AgentId, u32, &Offloads)| {
            self.workspaces.found(agent)?.sweep(steps, offloads)
        };
        self.steps.living().map(swept).fold(Ok(()), Result::and)
    }

    /// Files survive what the tree's events survive.
    const fn sync(&self) -> Sync {
        Sync::new(self.steps.durability())
    }
}

impl fmt::Debug for StepWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { steps, workspaces, past, .. } = self;
        let mut step_writer = f.debug_struct("StepWriter");
        step_writer
            .field("steps", steps)
            .field("workspaces", workspaces)
            .field("past", past)
            .finish_non_exhaustive()
    }
}
