//! Approvals that are remembered: the tool calls of living agents that a person need not be asked about again.

use std::collections::{BTreeMap, BTreeSet};

use crate::definition::{ApprovalScope, Network, SubjectPattern};
use crate::primitives::ToolName;
use crate::world::AgentIx;

/// What persons said for more than one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Approvals {
    /// For every agent.
    tree: ByTool,
    agents: BTreeMap<AgentIx, ByTool>,
}

type ByTool = BTreeMap<ToolName, BTreeSet<SubjectPattern>>;

impl Approvals {
    /// Whether a person has allowed this before.
    pub(crate) fn covers(&self, agent: AgentIx, tool: &ToolName, subject: &str) -> bool {
        self.of(agent, tool).any(|pattern| pattern.covers(subject))
    }

    /// The hosts that a person has allowed to calls of a tool before.
    pub(crate) fn hosts(&self, agent: AgentIx, tool: &ToolName) -> Network {
        Network::hosts(self.of(agent, tool).flat_map(SubjectPattern::hosts).cloned())
    }

    fn of(&self, agent: AgentIx, tool: &ToolName) -> impl Iterator<Item = &SubjectPattern> {
        let said = [Some(&self.tree), self.agents.get(&agent)].into_iter().flatten();
        said.filter_map(move |by_tool| by_tool.get(tool)).flatten()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        let all = self.agents.values().chain([&self.tree]);
        all.flat_map(BTreeMap::values).map(BTreeSet::len).sum()
    }

    pub(super) fn remember(
        &mut self,
        agent: AgentIx,
        tool: &ToolName,
        scope: ApprovalScope,
        pattern: &SubjectPattern,
    ) {
        let by_tool = match scope {
            ApprovalScope::Agent => self.agents.entry(agent).or_default(),
            ApprovalScope::Tree => &mut self.tree,
        };
        by_tool.entry(tool.clone()).or_default().insert(pattern.clone());
    }

    pub(super) fn gone(&mut self, agent: AgentIx) {
        self.agents.remove(&agent);
    }
}
