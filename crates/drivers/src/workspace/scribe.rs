//! The scribe: keeps the histories of a tree's agents as the journal says. It is handed every event from the first on;
//! files that are right are left as they are, so taking a tree up again writes only what is missing.

use spinney_kernel::Event;
use spinney_kernel::id::{AgentId, Seq};
use spinney_kernel::port::journal::Durability;
use spinney_kernel::time::Time;

use super::atomic::Sync;
use super::fault::WorkspaceFault;
use super::fold::{Deed, Steps};
use super::place::Workspaces;

/// Writes the step files of one tree.
#[derive(Debug)]
pub struct Scribe {
    steps: Steps,
    workspaces: Workspaces,
    /// The last event that was there before: up to it, files may be there that should not be.
    past: Seq,
}

impl Scribe {
    /// Writes into the workspaces of a tree. Whoever puts outputs there takes clones of the same. `past` is the last
    /// event that others may have written files about.
    #[must_use]
    pub fn new(workspaces: Workspaces, past: Seq) -> Self {
        Self { steps: Steps::new(workspaces.tree()), workspaces, past }
    }

    /// Takes in the next event of the tree and writes what follows from it. After a fault the next one can be taken in
    /// all the same; what is missing then is written when the tree is taken up again.
    ///
    /// # Errors
    /// The first file that could not be written.
    pub fn take(&mut self, seq: Seq, at: Time, event: &Event) -> Result<(), WorkspaceFault> {
        let deeds = self.steps.take(seq, at, event);
        // One that cannot be done keeps none of the others from being done.
        let done = deeds.iter().map(|deed| self.act(seq, deed)).fold(Ok(()), Result::and);
        if seq == self.past { done.and(self.sweep()) } else { done }
    }

    fn act(&self, seq: Seq, deed: &Deed) -> Result<(), WorkspaceFault> {
        match deed {
            Deed::Born { agent } => {
                let workspace = self.workspaces.agent(agent)?;
                // Whoever is new has no history; of the past, what is right stays.
                if seq > self.past { workspace.sweep(0) } else { Ok(()) }
            }
            Deed::Did { agent, number, step } => {
                self.workspaces.found(agent)?.write(*number, step, self.sync())
            }
            Deed::Gone { agent, steps } if seq <= self.past => self.swept(agent, *steps),
            Deed::Gone { .. } => Ok(()),
        }
    }

    /// Everything that was there before is known: what else lies in the histories of those who live does not belong.
    fn sweep(&self) -> Result<(), WorkspaceFault> {
        self.steps.living().map(|(agent, steps)| self.swept(agent, steps)).fold(Ok(()), Result::and)
    }

    fn swept(&self, agent: &AgentId, steps: u32) -> Result<(), WorkspaceFault> {
        self.workspaces.found(agent)?.sweep(steps)
    }

    /// Files survive what the tree's events survive.
    const fn sync(&self) -> Sync {
        match self.steps.durability() {
            Durability::Full => Sync::Yes,
            Durability::Normal | Durability::Off => Sync::No,
        }
    }
}
