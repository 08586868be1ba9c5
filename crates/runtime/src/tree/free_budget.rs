//! What an agent can use now. This is only a hint for preparing a request: the request itself holds the budget.

use spinney_kernel::budget::Ceilings;
use spinney_kernel::definition::OnLow;
use spinney_kernel::primitives::AgentId;
use spinney_kernel::world::World;

/// What an agent can use now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FreeBudget {
    /// What is free at its account and all accounts above, after everything that waits.
    pub free: Ceilings,
    /// The number of calls of the tree that wait for budget.
    pub waiting: usize,
    /// Whether the output caps of its calls are fitted to the free budget.
    pub shrinks: bool,
}

impl FreeBudget {
    pub(super) fn at(world: &World, agent: &AgentId) -> Option<Self> {
        let ix = world.agents().find(agent)?;
        let agent = world.agents().living(ix)?;
        let (ledger, shrinks) = (world.ledger(), agent.terms.on_low == OnLow::Shrink);
        Some(Self { free: ledger.free(agent.account), waiting: ledger.line_len(), shrinks })
    }
}
