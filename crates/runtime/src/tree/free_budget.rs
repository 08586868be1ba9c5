//! What an agent can use now. This is only a hint for preparing a request: the request itself holds the budget.

use spinney_kernel::budget::{Ceilings, Resource};
use spinney_kernel::definition::OnLow;
use spinney_kernel::primitives::AgentId;
use spinney_kernel::world::{AgentIx, World};

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
    /// Of the ceilings of its account and all accounts above, the one of which the smallest part is left. None without one.
    pub scarcest: Option<ScarcestCeiling>,
}

/// A ceiling, and what was not spent of it yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScarcestCeiling {
    /// What it limits.
    pub resource: Resource,
    /// The ceiling.
    pub limit: u64,
    /// The part that is not spent.
    pub left: u64,
}

impl ScarcestCeiling {
    /// A ceiling with what is left of it.
    #[must_use]
    pub const fn new(resource: Resource, limit: u64, left: u64) -> Self {
        Self { resource, limit, left }
    }

    /// What is left, in thousandths of the ceiling.
    #[must_use]
    pub fn left_permille(&self) -> u64 {
        let permille = u128::from(self.left) * 1_000 / u128::from(self.limit.max(1));
        u64::try_from(permille).unwrap_or(1_000)
    }
}

impl FreeBudget {
    pub(super) fn at(world: &World, agent: &AgentId) -> Option<Self> {
        let ix = world.agents().find(agent)?;
        let agent = world.agents().living(ix)?;
        let (ledger, shrinks) = (world.ledger(), agent.terms.on_low == OnLow::Shrink);
        let free = ledger.free(agent.account);
        Some(Self { free, waiting: ledger.line_len(), shrinks, scarcest: scarcest(world, ix) })
    }
}

/// The ceiling of an agent or of one above it of which the smallest part is left.
fn scarcest(world: &World, agent: AgentIx) -> Option<ScarcestCeiling> {
    let (mut scarcest, mut next) = (None::<ScarcestCeiling>, Some(agent));
    while let Some(ix) = next {
        let view = world.view(ix);
        for resource in [Resource::Cost, Resource::Tokens, Resource::Steps] {
            let Some(limit) = view.limit.and_then(|limit| limit.get(resource)) else { continue };
            let left = limit.saturating_sub(view.spent.get(resource));
            let here = ScarcestCeiling { resource, limit, left };
            if scarcest.is_none_or(|other| here.left_permille() < other.left_permille()) {
                scarcest = Some(here);
            }
        }
        next = view.parent.and_then(|parent| world.agents().find(&parent));
    }
    scarcest
}
