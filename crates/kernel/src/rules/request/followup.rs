//! Give a completed child one more task. A new agent continues with what the child knew: an end is final, and what
//! the child used stays booked to it.

use serde::{Deserialize, Serialize};

use super::{Collect, Spawn, SpawnReply, Verb, acting};
use crate::context::{Frame, Goal};
use crate::definition::{Allow, BudgetSpec, GivenMessage, Refusal, Share};
use crate::primitives::{Actor, AgentId, Body, Category, Reworded, TokenCount};
use crate::record::Span;
use crate::rules::Draft;
use crate::world::AgentIx;

/// The last message of the copied context.
const NOTE: Reworded = Reworded::new(
    "You have a new task: see your first message. You still have the context of your earlier work.",
    "You have a new task, which stands in your first message. You still know what you did before.",
);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Followup {
    pub parent: AgentId,
    pub agent: AgentId,
    pub task: String,
    /// The tokens that the task adds to its first message, if counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_tokens: Option<TokenCount>,
    /// Absent ceilings come from the role, then from the parent.
    #[serde(default)]
    pub budget: BudgetSpec,
    #[serde(default)]
    pub collect: Collect,
}

impl Verb for Followup {
    type Reply = SpawnReply;

    fn count(&mut self, tokens: &dyn Fn(&str) -> TokenCount) {
        self.task_tokens = Some(Goal::tokens(&self.task, tokens));
    }
}

impl Followup {
    pub(in crate::rules) fn decide(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<SpawnReply, Refusal> {
        let parent = acting(draft, by, &self.parent)?;
        let agent = self.agent.clone();
        let found = draft.agents().find(&agent);
        let child = found.ok_or_else(|| Refusal::UnknownAgent { agent: agent.clone() })?;
        if draft.agents().parent(child) != Some(parent) {
            return Err(Refusal::NotAChild { parent: self.parent.clone(), agent });
        }
        let Some(ended) = draft.agents().ended(child) else { return Err(Refusal::StillAtWork { agent }) };
        let Some(finished) = draft.agents().finished(parent, child) else {
            return Err(Refusal::NotKept { agent, state: ended.exit.as_str().to_owned() });
        };
        let agent_terms = &finished.terms;
        let is_program =
            draft.definition().roles.get(&agent_terms.role).is_some_and(|role| role.program.is_some());
        let note = GivenMessage { category: Category::Dialog, body: Body::text(NOTE.under(draft.rules())) };
        let spawn = Spawn {
            parent: self.parent.clone(),
            role: agent_terms.role.clone(),
            goal: self.task.clone(),
            goal_tokens: self.task_tokens,
            id: self.next_id(draft),
            model: Some(agent_terms.model.clone()),
            tools: match &agent_terms.caps.tools {
                Allow::All => None,
                Allow::Only(tools) => Some(tools.iter().cloned().collect()),
            },
            budget: self.budget.clone(),
            collect: self.collect,
            share: Some(Share::Goal),
            // A program reads its task alone.
            messages: if is_program { Vec::new() } else { vec![note] },
            talks: false,
            frame: Frame::default(),
        };
        spawn.decide_after(draft, by, Some(child))
    }

    /// The child's name with the next number; `None` if that is too long.
    fn next_id(&self, draft: &Draft<'_>) -> Option<AgentId> {
        let is_free = |id: &AgentId| draft.agents().find(id).is_none();
        let first = 2..=draft.agents().len().saturating_add(2);
        first.map_while(|number| format!("{}-{number}", self.agent).parse().ok()).find(is_free)
    }
}

/// Everything that a child knew except its first message, which describes the earlier task.
pub(crate) fn known_before(draft: &Draft<'_>, parent: AgentIx, child: AgentIx) -> Option<(AgentId, Span)> {
    let known = draft.agents().finished(parent, child)?.window.headers().len();
    let to = u32::try_from(known).unwrap_or(u32::MAX);
    (to > 1).then(|| (draft.agents().id(child).clone(), Span { from: 1, to }))
}
