//! Start a tree: validates the whole definition and spawns the root.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Verb, person};
use crate::budget::Terms;
use crate::context::Goal;
use crate::definition::{BudgetSpec, Definition, Refusal, Role};
use crate::primitives::{Actor, AgentId, SourceFile, SourceFiles, ThreadId, TokenCount, TraceParent};
use crate::record::{Alarm, Attachment, Due, Event, Spawned};
use crate::rules::turn::{Lead, Opening, with_reserve};
use crate::rules::{Draft, clock, graph, program, turn};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    pub definition: Arc<Definition>,
    /// The tokens that the root's goal adds to its first message, if counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal_tokens: Option<TokenCount>,
    /// The trace of the caller, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceParent>,
    /// What the tree is resumed from. Their bytes come with the request.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub sources: SourceFiles,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartReply {
    /// The root.
    pub agent: AgentId,
}

impl Verb for Start {
    type Reply = StartReply;

    fn count(&mut self, tokens: &dyn Fn(&str) -> TokenCount) {
        self.goal_tokens = Some(Goal::tokens(&self.definition.goal, tokens));
    }

    fn sources(&self) -> &[SourceFile] {
        &self.sources
    }
}

impl Start {
    /// Without a trace and sources, and before the goal is counted.
    #[must_use]
    pub fn new(definition: impl Into<Arc<Definition>>) -> Self {
        Self {
            definition: definition.into(),
            goal_tokens: None,
            trace: None,
            sources: SourceFiles::default(),
        }
    }

    pub(in crate::rules) fn decide(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<StartReply, Refusal> {
        person(by, "start a tree")?;
        if draft.has_started() {
            return Err(Refusal::TreeStartedBefore);
        }
        let definition = &self.definition;
        definition.check(draft.rules())?;
        if definition.graph.is_some() {
            return Ok(StartReply { agent: graph::start_root(draft, self, by) });
        }
        let (_, role) = definition.role(&definition.entry)?;
        let task = program::task(role, &definition.goal, &[])?;
        role.caps.check_model(&role.model)?;
        let budget = definition.root_budget();
        let due = due(draft, role, &budget);
        let mut caps = role.caps.clone();
        caps.depth_max = caps.depth_max.min(definition.limits.depth_max);
        caps.folders = definition.root_folders().cloned();
        let agent = AgentId::of_role(&definition.entry);
        if draft.rules() >= 3 && agent.is_reserved() {
            return Err(Refusal::ReservedId { agent });
        }
        let mut spawned = Spawned {
            agent: agent.clone(),
            parent: None,
            role: definition.entry.clone(),
            goal: definition.goal.clone(),
            model: role.model.clone(),
            thread: definition.thread.clone().unwrap_or_else(|| ThreadId::of_tree(draft.tree())),
            caps,
            terms: Terms::plain(budget.limit),
            on_low: budget.on_low.clone().unwrap_or_default(),
            wrap_up: budget.wrap_up.unwrap_or_default(),
            repeats: budget.repeats.unwrap_or_default(),
            due,
            attachment: Attachment::Root,
            talks: false,
            output_schema: None,
        };
        let goal = Goal { text: &definition.goal, tokens: self.goal_tokens, schema: None };
        let opening = Opening::of_root(definition, &spawned, role, goal);
        let rules = draft.rules();
        let packet = opening.packet_tokens(draft, None, &agent);
        let lead = Lead::new(definition, role, &spawned.caps, 0, &spawned.model, packet, draft.now());
        spawned.terms = with_reserve(spawned.terms, rules, &budget, lead.as_ref());
        let (definition, trace, sources) = (Arc::clone(definition), self.trace, self.sources.clone());
        draft.record(Event::TreeStarted { rules, definition, trace, sources });
        draft.record(Event::AgentSpawned(Box::new(spawned)));
        opening.record(draft, None, &agent, by);
        match task {
            Some(task) => program::begin(draft, &agent, &task, None),
            None => turn::begin(draft, &agent, goal),
        }
        Ok(StartReply { agent })
    }
}

/// The root's clocks. It has no active time unless its role sets one: its limit is the tree's timeout.
fn due(draft: &Draft<'_>, role: &Role, budget: &BudgetSpec) -> Due {
    if clock::are_kept(draft.rules()) {
        let active_ms = role.turns.as_ref().and_then(|turns| turns.active_ms);
        return clock::of_newborn(draft, draft.now(), role, budget, active_ms);
    }
    let alarm = budget.timeout_ms.map(|ms| Alarm { timer: draft.next_timer(), at: draft.now().after_ms(ms) });
    Due { deadline: alarm.map(|alarm| alarm.at), alarm, ..Due::default() }
}
