//! What agents of a live tree spent of what they may.

use spinney_kernel::budget::{Amounts, Ceilings, Resource};
use spinney_kernel::primitives::AgentId;
use spinney_kernel::world::AgentIx;

use super::LiveTree;
use crate::spent::Spent;

/// The account of an agent, with everything below it.
#[derive(Clone, Copy, Debug, Default)]
pub struct LiveAccount {
    /// What is booked.
    pub spent: Spent,
    /// What open calls hold.
    pub held: Amounts,
    /// Its ceilings; an ended agent has none.
    pub limit: Option<Ceilings>,
    /// Ceilings that were given to it, and not derived from those above.
    pub own_limit: Option<Ceilings>,
    /// Whether the agent has ended.
    pub is_over: bool,
}

/// A tree in a list of several.
#[derive(Clone, Debug)]
pub struct TreeOverview {
    /// Agents that have not ended.
    pub living: usize,
    /// All agents.
    pub agents: usize,
    /// What the whole tree spent.
    pub spent: Spent,
    /// What open calls hold.
    pub cost_nanos_held: u64,
    /// Its ceiling.
    pub cost_nanos_max: Option<u64>,
    /// Its most important agent.
    pub first: Option<(AgentIx, AgentId)>,
}

impl LiveTree {
    /// The account of an agent.
    #[must_use]
    pub fn account(&self, ix: AgentIx) -> LiveAccount {
        let agents = self.world.agents();
        match (agents.living(ix), agents.ended(ix)) {
            (Some(agent), _) => {
                let account = self.world.ledger().account(agent.account);
                let limit = account.terms.limit;
                let own =
                    Resource::ALL.into_iter().filter(|resource| !account.terms.inherited.has(*resource));
                let own = own.fold(Ceilings::NONE, |own, resource| match limit.get(resource) {
                    Some(amount) => own.with(resource, amount),
                    None => own,
                });
                LiveAccount {
                    spent: Spent { all: account.spent, presumed: *account.presumed },
                    held: account.held,
                    limit: Some(limit),
                    own_limit: Some(own),
                    is_over: false,
                }
            }
            (None, Some(ended)) => {
                let spent = Spent { all: ended.spent, presumed: *ended.presumed };
                LiveAccount { spent, is_over: true, ..LiveAccount::default() }
            }
            (None, None) => LiveAccount { is_over: true, ..LiveAccount::default() },
        }
    }

    /// The account of the whole tree.
    #[must_use]
    pub fn root_account(&self) -> Option<LiveAccount> {
        self.world.agents().root().map(|root| self.account(root))
    }

    /// How many agents have not ended.
    #[must_use]
    pub fn living(&self) -> usize {
        let agents = self.world.agents();
        agents.all().filter(|ix| agents.living(*ix).is_some()).count()
    }

    /// What a list of trees shows of it.
    #[must_use]
    pub fn overview(&self) -> TreeOverview {
        let agents = self.world.agents();
        let root = agents.root().map(|root| self.world.view(root));
        let limit = root.as_ref().and_then(|root| root.limit);
        let (spent, held) = root.map(|root| (Spent::from_view(&root), root.held)).unwrap_or_default();
        let first = self
            .agents
            .keys()
            .copied()
            .min_by_key(|ix| (self.mark(*ix), u64::MAX - self.agents[ix].changed.0));
        TreeOverview {
            living: self.living(),
            agents: self.agents.len(),
            spent,
            cost_nanos_held: held.get(Resource::Cost),
            cost_nanos_max: limit.and_then(|limit| limit.get(Resource::Cost)),
            first: first.map(|ix| (ix, agents.id(ix).clone())),
        }
    }

    /// The agents below the root that did not complete, each with its reason, in spawn order.
    pub fn failures(&self) -> impl Iterator<Item = (&AgentId, &str)> {
        let agents = self.world.agents();
        let below = self.agents.iter().filter(move |(ix, _)| Some(**ix) != agents.root());
        below.filter_map(move |(ix, note)| Some((agents.id(*ix), note.failure.as_deref()?)))
    }
}
