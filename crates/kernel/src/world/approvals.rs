//! Approvals that are remembered: the tool calls of living agents that a person need not be asked about again.

use std::collections::{BTreeMap, BTreeSet};

use crate::definition::{ApprovalScope, SubjectPattern};
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
        let said = [Some(&self.tree), self.agents.get(&agent)].into_iter().flatten();
        said.filter_map(|by_tool| by_tool.get(tool)).flatten().any(|pattern| pattern.covers(subject))
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
