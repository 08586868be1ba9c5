//! Views of a world: the directory of its agents and the state of the tree. Their cost does not depend on the number
//! of past calls.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::World;
use crate::budget::{Amounts, Ceilings};
use crate::primitives::{AgentId, RoleName, SealKind, ThreadId};
use crate::record::{ExitKind, WaitReason, Work};
use crate::world::{AgentIx, AgentState, AgentStatus, CallStage};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentView {
    pub agent: AgentId,
    pub parent: Option<AgentId>,
    pub role: RoleName,
    pub depth: u32,
    pub status: AgentStatus,
    /// What it and everything below it used.
    pub spent: Amounts,
    /// The part of `spent` that no provider reported: lost, cut and cancelled calls, at their full holds.
    #[serde(default, skip_serializing_if = "Amounts::is_zero")]
    pub presumed: Amounts,
    /// What is held for it and everything below it.
    pub held: Amounts,
    /// What is lent to agents below it.
    pub lent: Amounts,
    /// Used beyond what was held or free.
    pub overrun: Amounts,
    /// While it lives.
    pub limit: Option<Ceilings>,
    /// What it can use now, while it lives.
    pub remaining: Option<Ceilings>,
    /// While it lives.
    pub thread: Option<ThreadId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TreeState {
    New,
    /// Something can happen without a person.
    Running,
    /// It waits for a person's answer.
    Waiting,
    /// Nothing runs, and a person must unpause something.
    Paused,
    /// No process runs it, or the process is stopping; it continues when it is resumed.
    #[serde(rename = "stopped")]
    Suspended,
    Halted,
    /// It was exported, and continues where it is imported.
    Moved,
    /// It is a copy of a tree that continues elsewhere.
    #[serde(rename = "copy")]
    Copied,
    Ended(ExitKind),
}

impl TreeState {
    /// Those of trees that can be resumed.
    pub const LIVING: [Self; 6] =
        [Self::New, Self::Running, Self::Waiting, Self::Paused, Self::Suspended, Self::Halted];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Paused => "paused",
            // Heads and results have used this word since the first version.
            Self::Suspended => "stopped",
            Self::Halted => "halted",
            Self::Moved => "moved",
            Self::Copied => "copy",
            Self::Ended(exit) => exit.as_str(),
        }
    }

    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        let all = Self::LIVING.into_iter().chain([Self::Moved, Self::Copied]);
        all.chain(ExitKind::ALL.map(Self::Ended)).find(|state| state.as_str() == word)
    }

    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Ended(_))
    }

    /// Whether it can only be read and branched here.
    #[must_use]
    pub const fn is_sealed(self) -> bool {
        matches!(self, Self::Moved | Self::Copied)
    }
}

impl fmt::Display for TreeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl World {
    /// Constant time, whatever the agent has done.
    #[must_use]
    pub fn view(&self, ix: AgentIx) -> AgentView {
        let id = self.agent_id(ix).clone();
        let parent = self.agents.parent(ix).map(|ix| self.agent_id(ix).clone());
        if let Some(ended) = self.agents.ended(ix) {
            return AgentView {
                agent: id,
                parent,
                role: ended.role.clone(),
                depth: ended.depth,
                status: AgentStatus::Ended(ended.exit),
                spent: ended.spent,
                presumed: *ended.presumed,
                held: Amounts::ZERO,
                lent: Amounts::ZERO,
                overrun: Amounts::ZERO,
                limit: None,
                remaining: None,
                thread: None,
            };
        }
        let (agent, account) = (self.agent(ix), self.account_of(ix));
        AgentView {
            agent: id,
            parent,
            role: agent.terms.role.clone(),
            depth: agent.terms.depth,
            status: self.status(ix),
            spent: account.spent,
            presumed: *account.presumed,
            held: account.held,
            lent: *account.lent,
            overrun: *account.overrun,
            limit: Some(account.terms.limit),
            remaining: Some(self.ledger.remaining(agent.account)),
            thread: Some(agent.terms.thread.clone()),
        }
    }

    /// In spawn order.
    pub fn directory(&self) -> impl Iterator<Item = AgentView> {
        self.agents.all().map(|ix| self.view(ix))
    }

    #[must_use]
    pub fn state(&self) -> TreeState {
        let Some(root) = self.agents.root() else { return TreeState::New };
        if let Some(ended) = self.agents.ended(root) {
            return TreeState::Ended(ended.exit);
        }
        match &self.sealed {
            Some((SealKind::Moved { .. }, _)) => return TreeState::Moved,
            Some((SealKind::Copy, _)) => return TreeState::Copied,
            None => {}
        }
        // A person's pause takes precedence over a suspension.
        if self.suspended && !self.agent(root).paused {
            return TreeState::Suspended;
        }
        if self.calls.running() > 0 {
            return TreeState::Running;
        }
        if self.halted.is_some() {
            return TreeState::Halted;
        }
        let asks = self.calls.all().any(|(_, call)| matches!(call.work, Work::Question(_)));
        let paused = self.calls.all().any(|(_, call)| call.stage == CallStage::Waiting(WaitReason::Paused));
        let moves = self.calls.all().any(|(_, call)| match call.stage {
            CallStage::Waiting(why) => matches!(
                why,
                WaitReason::Backoff | WaitReason::Rate | WaitReason::Breaker | WaitReason::Cache
            ),
            CallStage::Asked | CallStage::Running { .. } => true,
        });
        match (moves, paused, asks) {
            (true, ..) | (false, false, false) => TreeState::Running,
            (false, true, _) => TreeState::Paused,
            (false, false, true) => TreeState::Waiting,
        }
    }

    fn status(&self, ix: AgentIx) -> AgentStatus {
        let agent = self.agent(ix);
        if !matches!(agent.state, AgentState::Live) {
            return AgentStatus::Ending;
        }
        if agent.running > 0 {
            return AgentStatus::Running;
        }
        if self.halted.is_some() {
            return AgentStatus::Halted;
        }
        if self.is_paused(ix) {
            return AgentStatus::Paused;
        }
        let why = agent.open.iter().find_map(|id| match self.call(*id).map(|call| call.stage) {
            Some(CallStage::Waiting(why)) => Some(why),
            Some(CallStage::Asked | CallStage::Running { .. }) | None => None,
        });
        why.map_or(AgentStatus::Idle, AgentStatus::Waiting)
    }
}
