//! What a run of a program has booked, folded from its durable events. It is for reports that no live tree can give: of a
//! run whose journal fails, and of one that ended in an earlier process.

use std::ops::ControlFlow;

use spinney_journal::{Batch, Journal, JournalFault};
use spinney_kernel::budget::{Ceilings, Resource};
use spinney_kernel::primitives::{Time, TreeId};
use spinney_kernel::record::Event;
use spinney_kernel::world::{AgentView, World};

use crate::fold::{TreeFold, fold};

/// What a run has booked so far.
#[derive(Debug)]
pub struct RunLedger {
    world: World,
    budget: Ceilings,
    started: Option<Time>,
    last: Option<Time>,
}

impl TreeFold for RunLedger {
    fn take(&mut self, batch: &Batch) -> ControlFlow<()> {
        batch.events.iter().for_each(|event| self.apply(event, batch.input.now));
        ControlFlow::Continue(())
    }
}

impl RunLedger {
    /// Before the first event.
    #[must_use]
    pub fn new(tree: TreeId) -> Self {
        Self { world: World::new(tree), budget: Ceilings::NONE, started: None, last: None }
    }

    /// That of a stored run.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub async fn read(journal: &dyn Journal, tree: TreeId) -> Result<Self, JournalFault> {
        let mut ledger = Self::new(tree);
        fold(journal, tree, &mut ledger).await?;
        Ok(ledger)
    }

    /// Takes the next event, with the time of its input.
    pub fn apply(&mut self, event: &Event, at: Time) {
        self.world.apply(event);
        self.started.get_or_insert(at);
        self.last = Some(at);
        let root = self.world.agents().root();
        self.budget = root.and_then(|root| self.world.view(root).limit).unwrap_or(self.budget);
    }

    /// The last ceilings of the root, which has none once it has ended.
    #[must_use]
    pub const fn budget(&self) -> &Ceilings {
        &self.budget
    }

    /// The agents as they will be when the run is resumed: calls that were sent and have no recorded end are booked at their
    /// holds.
    #[must_use]
    pub fn agents_at_resume(&self) -> Vec<AgentView> {
        let presumed = |mut agent: AgentView| {
            agent.spent = agent.spent.plus(&agent.held);
            for resource in [Resource::Cost, Resource::Tokens] {
                let sum = agent.presumed.get(resource) + agent.held.get(resource);
                agent.presumed = agent.presumed.with(resource, sum);
            }
            agent
        };
        self.world.directory().map(presumed).collect()
    }

    /// From its first event to its last.
    #[must_use]
    pub fn elapsed_ms(&self) -> u64 {
        self.last.unwrap_or_default().0.saturating_sub(self.started.unwrap_or_default().0)
    }
}
