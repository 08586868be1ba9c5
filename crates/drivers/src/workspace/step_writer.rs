//! The step writer: keeps the histories and the long outputs of a tree's agents in step with the journal. It needs
//! every event from the first on; correct files are left alone, so resuming a tree writes only what is missing.

use std::fmt;
use std::io::{self, ErrorKind};

use spinney_journal::JournalFault;
use spinney_kernel::context::offload;
use spinney_kernel::context::offload::Offloads;
use spinney_kernel::record::Event;
use spinney_kernel::words::{AgentId, BlobRef, Seq, Time};

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
}

impl<'j> StepWriter<'j> {
    /// Writes into the workspaces of a tree. Whoever puts outputs there takes clones of the same. `past` is the last
    /// event that others may have written files about; `blobs` gives what the events only refer to.
    #[must_use]
    pub fn new(
        workspaces: Workspaces,
        past: Seq,
        blobs: impl Fn(&BlobRef) -> Result<Option<Vec<u8>>, JournalFault> + Send + 'j,
    ) -> Self {
        Self { steps: Steps::new(workspaces.tree()), workspaces, blobs: Box::new(blobs), past }
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
        if seq == self.past { done.and(self.sweep()) } else { done }
    }

    fn act(&self, seq: Seq, change: &StepChange) -> Result<(), WorkspaceFault> {
        match change {
            StepChange::Born { agent } => {
                let workspace = self.workspaces.agent(agent)?;
                // Whoever is new has no history; of the past, what is right stays.
                if seq > self.past { workspace.sweep(0, &Offloads::default()) } else { Ok(()) }
            }
            // Before the step that names it.
            StepChange::Offloaded { agent, blob } => {
                let (workspace, name) = (self.workspaces.found(agent)?, offload::name(&blob.hash));
                workspace.keep(&name, || self.bytes(blob), self.sync())
            }
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

    /// Everything that was there before is known: what else lies in the folders of those who live does not belong.
    fn sweep(&self) -> Result<(), WorkspaceFault> {
        let swept = |(agent, steps, offloads): (&AgentId, u32, &Offloads)| {
            self.workspaces.found(agent)?.sweep(steps, offloads)
        };
        self.steps.living().map(swept).fold(Ok(()), Result::and)
    }

    /// Files survive what the tree's events survive.
    const fn sync(&self) -> Sync {
        Sync::of(self.steps.durability())
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
