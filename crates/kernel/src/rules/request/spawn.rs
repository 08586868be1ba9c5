//! Spawn a child. The checks run in the order that the design defines, and the first failure is the refusal.

use std::cell::LazyCell;

use serde::{Deserialize, Serialize};

use super::followup::known_before;
use super::{Verb, acting, person, room_for_call};
use crate::budget::{Amounts, Ceilings, Fit, Resource, ResourceSet, Shortfall, Terms};
use crate::context::{Frame, Goal};
use crate::definition::{
    Allow, BudgetSpec, Caps, Definition, GivenMessage, Lend, OnLow, OutputSchema, Refusal, Repeats, Role,
    Share, check_said,
};
use crate::primitives::{
    Actor, AgentId, Body, CallId, ModelName, RoleName, Time, TokenCount, ToolName, digest, limit,
};
use crate::record::{Alarm, Attachment, Due, Event, FrameIx, Spawned};
use crate::rules::call::check_model;
use crate::rules::turn::{Lead, Opening, Wish, check_first_call, with_reserve};
use crate::rules::{Draft, clock, program, turn};
use crate::world::AgentIx;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spawn {
    pub parent: AgentId,
    pub role: RoleName,
    pub goal: String,
    /// The tokens that the goal adds to the child's first message, if counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal_tokens: Option<TokenCount>,
    /// Generated if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<AgentId>,
    /// Overrides its role's model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// Overrides its role's tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ToolName>>,
    /// Absent ceilings come from the role, then from the parent.
    #[serde(default)]
    pub budget: BudgetSpec,
    #[serde(default)]
    pub collect: Collect,
    /// What it knows at its start; the role decides if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// Messages that it is given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<GivenMessage>,
    /// Whether it talks to a person until it hands back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub talks: bool,
    /// Its window size and answer schema.
    #[serde(flatten)]
    pub frame: Frame,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Collect {
    /// As the end of the call that spawned it.
    #[default]
    Call,
    /// As a message, or through a wait.
    Detached,
    /// The same, for an agent of a program outside the tree, which exists already: a halted tree or a spent ceiling
    /// does not refuse it, because its first call waits for that. Only for people.
    Outside,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnReply {
    pub agent: AgentId,
    /// The call that ends with its result, if the parent waits for it.
    pub call: Option<CallId>,
}

impl Verb for Spawn {
    type Reply = SpawnReply;

    fn count(&mut self, tokens: &dyn Fn(&str) -> TokenCount) {
        self.goal_tokens = Some(Goal::tokens(&self.goal, tokens));
        self.messages.iter_mut().for_each(|given| given.body.count(tokens));
        self.frame.output_schema.iter_mut().for_each(|schema| schema.count(tokens));
    }

    fn bodies_with_parts(&mut self) -> Vec<&mut Body> {
        self.messages.iter_mut().map(|given| &mut given.body).collect()
    }
}

impl Spawn {
    pub(in crate::rules) fn decide(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<SpawnReply, Refusal> {
        self.decide_for(draft, by, For::Parent)
    }

    /// Decides the spawn of a child that continues with what a completed child knew.
    pub(super) fn decide_after(
        &self,
        draft: &mut Draft<'_>,
        by: &Actor,
        before: Option<AgentIx>,
    ) -> Result<SpawnReply, Refusal> {
        self.decide_for(draft, by, before.map_or(For::Parent, For::After))
    }

    /// Decides the spawn of the agent of a graph's step. The graph itself bounds how many live at the same time and
    /// how deep it is, and a halted tree or a spent ceiling of the root lets the agent's first call wait.
    pub(in crate::rules) fn decide_step(
        &self,
        draft: &mut Draft<'_>,
        by: &Actor,
        frame: FrameIx,
    ) -> Result<SpawnReply, Refusal> {
        self.decide_for(draft, by, For::Step(frame))
    }

    fn decide_for(&self, draft: &mut Draft<'_>, by: &Actor, reader: For) -> Result<SpawnReply, Refusal> {
        let is_step = matches!(reader, For::Step(_));
        let parent = acting(draft, by, &self.parent)?;
        let is_outside = self.collect == Collect::Outside;
        if is_outside {
            person(by, "spawn an agent of a program outside")?;
        }
        if draft.halted().is_some() && !is_step && !is_outside {
            return Err(Refusal::TreeHalted);
        }
        clock::check_deadline(draft, parent)?;
        let agent = self.free_id(draft)?;
        check_said("goal", &self.goal, limit::TEXT_BYTES_MAX)?;
        self.frame.output_schema.as_deref().map_or(Ok(()), OutputSchema::check)?;
        if is_step {
            self.check_cycle(draft, parent)?;
            check_agents(draft)?;
        } else {
            self.check_place(draft, parent)?;
            check_room(draft, parent)?;
        }
        let (name, role) = self.role(draft, parent)?;
        draft.agent(parent).terms.caps.check_role(&self.role)?;
        let model = self.model.clone().unwrap_or_else(|| role.model.clone());
        if role.program.is_none() {
            self.check_models(draft, parent, role, &model)?;
        }
        if is_outside && role.program.is_some() {
            check_agents_of_program(draft)?;
        }
        let continues = reader.before().map(|before| draft.agents().id(before).clone());
        let task = match continues {
            Some(_) => program::next_task(role, &self.goal)?,
            None => program::task(role, &self.goal, &self.messages)?,
        };
        let task = task.filter(|_| !is_outside);
        let caps = self.rights(draft, parent, role)?;
        self.budget.check()?;
        let budget = match is_outside && role.program.is_some() {
            // Its ceilings are those of the program above it.
            true => self.budget.or(&role.budget.without_ceilings()),
            false => self.budget.or(&role.budget),
        };
        let spent = match (is_step, is_outside) {
            (_, true) => AtSpentCeiling::Accept,
            (true, false) => AtSpentCeiling::AcceptRoots,
            (false, false) => AtSpentCeiling::Refuse,
        };
        let terms = terms(draft, parent, &budget, spent)?;
        let attachment = match (reader, self.collect) {
            (For::Step(frame), _) => Attachment::Step { frame },
            (For::Parent | For::After(_), Collect::Detached | Collect::Outside) => Attachment::Detached,
            (For::Parent | For::After(_), Collect::Call) => {
                room_for_call(draft, parent)?;
                Attachment::Call { call: draft.calls().next_id(), ask: draft.ask() }
            }
        };
        let due = due(draft, parent, role, &budget);
        let mut spawned = Spawned {
            agent: agent.clone(),
            parent: Some(draft.agent_id(parent).clone()),
            role: name.clone(),
            goal: self.goal.clone(),
            model,
            thread: draft.agent(parent).terms.thread.clone(),
            caps,
            terms,
            on_low: budget.on_low.clone().unwrap_or_default(),
            wrap_up: budget.wrap_up.unwrap_or_default(),
            repeats: repeats(draft.definition(), role, self.budget.repeats, by),
            due,
            attachment,
            talks: self.talks,
            output_schema: self.frame.output_schema.clone(),
        };
        let goal =
            Goal { text: &self.goal, tokens: self.goal_tokens, schema: self.frame.output_schema.as_deref() };
        let before = reader.before().and_then(|before| known_before(draft, parent, before));
        let (messages, window) = (self.messages.as_slice(), self.frame.window);
        let wish = Wish { goal, share: self.share, messages, window, before };
        let opening = Opening::new(draft, Some(parent), &spawned, role, &wish)?;
        let packet = opening.packet_tokens(draft, Some(parent), &agent);
        match check_first_call(draft, parent, &spawned, role, packet) {
            Err(Refusal::FirstCallTooLarge { account, short })
                if is_step && halts_tree(draft, &account, &short) => {}
            checked => checked?,
        }
        let depth = draft.agent(parent).terms.depth + 1;
        let lead =
            Lead::new(draft.definition(), role, &spawned.caps, depth, &spawned.model, packet, draft.now());
        spawned.terms = with_reserve(spawned.terms, draft.rules(), &budget, lead.as_ref());
        draft.record(Event::AgentSpawned(Box::new(spawned)));
        opening.record(draft, Some(parent), &agent, by);
        let call = if let Attachment::Call { call, .. } = attachment { Some(call) } else { None };
        match task {
            Some(task) => program::begin(draft, &agent, &task, continues.as_ref()),
            None => turn::begin(draft, &agent, goal),
        }
        Ok(SpawnReply { agent, call })
    }

    /// The requested id, or a generated one that is free.
    fn free_id(&self, draft: &Draft<'_>) -> Result<AgentId, Refusal> {
        let taken = |id: &AgentId| draft.agents().find(id).is_some();
        if let Some(id) = &self.id {
            if draft.rules() >= 3 && id.is_reserved() {
                return Err(Refusal::ReservedId { agent: id.clone() });
            }
            return if taken(id) { Err(Refusal::DuplicateId { agent: id.clone() }) } else { Ok(id.clone()) };
        }
        // One input may spawn several: each starts after the one before it.
        let first = (draft.draw() as u32).wrapping_add(draft.agents().len() as u32);
        let mut drawn = (0..=u32::MAX).map(|step| AgentId::drawn(&self.role, first.wrapping_add(step)));
        match drawn.find(|id| !taken(id)) {
            Some(id) => Ok(id),
            None => unreachable!("a tree has far fewer agents than ids"),
        }
    }

    /// The requested role. A refusal lists the roles that this agent may spawn.
    fn role<'d>(&self, draft: &'d Draft<'_>, parent: AgentIx) -> Result<(&'d RoleName, &'d Role), Refusal> {
        let found = draft.definition().role(&self.role);
        let spawn = &draft.agent(parent).terms.caps.spawn;
        found.map_err(|refusal| match refusal {
            Refusal::UnknownRole { role, known } if draft.rules() >= 3 => {
                let known = known.into_iter().filter(|role| spawn.has(role)).collect();
                Refusal::UnknownRole { role, known }
            }
            refusal => refusal,
        })
    }

    fn check_place(&self, draft: &Draft<'_>, parent: AgentIx) -> Result<(), Refusal> {
        check_depth(draft, parent)?;
        self.check_cycle(draft, parent)
    }

    /// Checks that no role repeats on a path unless it may recurse with another goal.
    fn check_cycle(&self, draft: &Draft<'_>, parent: AgentIx) -> Result<(), Refusal> {
        let goal = LazyCell::new(|| digest(&self.goal));
        let mut path = std::iter::once(parent).chain(draft.agents().above(parent));
        let repeats = |ix: AgentIx| {
            let agent_terms = &draft.agent(ix).terms;
            agent_terms.role == self.role && agent_terms.goal.as_ref().is_none_or(|before| **before == *goal)
        };
        if path.any(repeats) {
            let mut path: Vec<String> = draft.agents().path(parent).iter().map(ToString::to_string).collect();
            path.push(self.role.to_string());
            return Err(Refusal::RoleCycle { role: self.role.clone(), path });
        }
        Ok(())
    }

    /// Refuses models that the child could not call: its own, and the one to downgrade to when its budget is low.
    fn check_models(
        &self,
        draft: &Draft<'_>,
        parent: AgentIx,
        role: &Role,
        model: &ModelName,
    ) -> Result<(), Refusal> {
        let own = &draft.agent(parent).terms.caps;
        let low = if let Some(OnLow::Downgrade(low)) = &self.budget.on_low { Some(low) } else { None };
        std::iter::once(model).chain(low).try_for_each(|model| {
            own.check_child_model(&role.caps, model)?;
            check_model(draft, parent, model).map(|_| ())
        })
    }

    /// The child's rights: its role's, narrowed by the request and by its parent's.
    fn rights(&self, draft: &Draft<'_>, parent: AgentIx, role: &Role) -> Result<Caps, Refusal> {
        let own = &draft.agent(parent).terms.caps;
        let mut wanted = role.caps.clone();
        if let Some(tools) = &self.tools {
            if tools.len() > limit::NAMES_MAX {
                let (what, count) = ("tools".to_owned(), tools.len());
                return Err(Refusal::TooMany { what, count, count_max: limit::NAMES_MAX });
            }
            // Requesting a tool that the role lacks also counts as more.
            tools.iter().try_for_each(|tool| role.caps.check_tool(tool))?;
            wanted.tools = Allow::only(tools.iter().cloned());
        }
        own.narrowed(&wanted)
    }
}

/// For whom a child is spawned.
#[derive(Clone, Copy)]
enum For {
    Parent,
    /// Its parent, with what this completed child knew.
    After(AgentIx),
    /// A frame of a graph.
    Step(FrameIx),
}

impl For {
    const fn before(self) -> Option<AgentIx> {
        match self {
            Self::After(before) => Some(before),
            Self::Parent | Self::Step(_) => None,
        }
    }
}

pub(in crate::rules) fn check_depth(draft: &Draft<'_>, parent: AgentIx) -> Result<(), Refusal> {
    let agent_terms = &draft.agent(parent).terms;
    if agent_terms.depth >= agent_terms.caps.depth_max {
        return Err(Refusal::DepthLimit { depth: agent_terms.depth, depth_max: agent_terms.caps.depth_max });
    }
    Ok(())
}

/// Whether a shortfall is the root's, so a person can raise its ceiling.
fn halts_tree(draft: &Draft<'_>, account: &AgentId, short: &Shortfall) -> bool {
    let is_root =
        draft.agents().find(account).is_some() && draft.agents().find(account) == draft.agents().root();
    is_root && short.reserve == 0 && short.asked <= short.limit
}

/// Checks the limits on live children and on all agents.
pub(in crate::rules) fn check_room(draft: &Draft<'_>, parent: AgentIx) -> Result<(), Refusal> {
    let limits = draft.limits();
    let live = draft.agent(parent).family.children_live;
    let live_max = draft
        .turns_of(parent)
        .and_then(|turns| turns.children_max)
        .unwrap_or(u32::MAX)
        .min(limits.children_max);
    if live >= live_max {
        return Err(Refusal::ChildrenLimit { live, live_max });
    }
    check_agents(draft)
}

pub(in crate::rules) fn check_agents(draft: &Draft<'_>) -> Result<(), Refusal> {
    let limits = draft.limits();
    let agents = u32::try_from(draft.agents().len()).unwrap_or(u32::MAX);
    if agents >= limits.agents_max {
        return Err(Refusal::AgentsLimit { agents, agents_max: limits.agents_max });
    }
    Ok(())
}

/// A program names as many agents as it likes, so those of all programs together leave the other half to the tree.
fn check_agents_of_program(draft: &Draft<'_>) -> Result<(), Refusal> {
    let agents_max = draft.limits().agents_max / 2;
    let agents = u32::try_from(draft.agents().len()).unwrap_or(u32::MAX);
    if agents >= agents_max { Err(Refusal::AgentsLimit { agents, agents_max }) } else { Ok(()) }
}

/// Whether a child is spawned although a ceiling above it is spent.
#[derive(Clone, Copy)]
pub(in crate::rules) enum AtSpentCeiling {
    Refuse,
    /// If it is the root's, which halts the tree: for the steps of a graph.
    AcceptRoots,
    /// For any actor: for agents of an outside program.
    Accept,
}

/// The terms of the child's account: its ceilings, and which of them are lent.
pub(in crate::rules) fn terms(
    draft: &Draft<'_>,
    parent: AgentIx,
    budget: &BudgetSpec,
    spent: AtSpentCeiling,
) -> Result<Terms, Refusal> {
    budget.check()?;
    let above = draft.agent(parent).account;
    let left = draft.ledger().left_below(above);
    let gone = |resource| left.get(resource) == Some(0);
    if [Resource::Cost, Resource::Tokens, Resource::Steps].into_iter().any(gone)
        && let Some((by, short)) = draft.ledger().exhausted_below(above)
        && match spent {
            AtSpentCeiling::Refuse => true,
            AtSpentCeiling::AcceptRoots => draft.agents().find(&draft.owner(by)) != draft.agents().root(),
            AtSpentCeiling::Accept => false,
        }
    {
        return Err(Refusal::Ceiling { account: draft.owner(by), short });
    }
    let terms = draft.ledger().terms_below(above, budget.limit);
    let lends = match budget.lend.unwrap_or_default() {
        Lend::No => ResourceSet::EMPTY,
        Lend::Yes => lent(draft, parent, &budget.limit)?,
    };
    Ok(Terms { lends, ..terms })
}

/// The ceilings to lend; they must fit at every ancestor now.
fn lent(draft: &Draft<'_>, parent: AgentIx, given: &Ceilings) -> Result<ResourceSet, Refusal> {
    let lends = given.bounded();
    if lends.is_empty() {
        return Err(Refusal::LendWithoutCeiling);
    }
    let ask = lends.iter().fold(Amounts::ZERO, |ask, r| ask.with(r, given.get(r).unwrap_or_default()));
    match draft.ledger().fit_below(draft.agent(parent).account, &ask) {
        Fit::Yes => Ok(lends),
        Fit::Wait(by, short) | Fit::Never(by, short) => {
            Err(Refusal::Ceiling { account: draft.owner(by), short })
        }
        Fit::Shut(by) => {
            let agent = draft.agent_id(parent).clone();
            Err(Refusal::AgentStopped { agent, stopped: draft.owner(by) })
        }
    }
}

/// How often the child may repeat a tool call. What an agent asks for can only be stricter.
fn repeats(definition: &Definition, role: &Role, given: Option<Repeats>, by: &Actor) -> Repeats {
    let own = role.budget.repeats.or(definition.budget.repeats).unwrap_or_default();
    match (given, by) {
        (None, _) => own,
        (Some(given), Actor::Outside(_)) => given,
        (Some(given), Actor::Agent(_)) => own.stricter(given),
    }
}

/// The child's clocks: its timeout runs from its spawn, its active time from its first attempt.
fn due(draft: &Draft<'_>, parent: AgentIx, role: &Role, budget: &BudgetSpec) -> Due {
    let own = budget.timeout_ms.map(|ms| draft.now().after_ms(ms));
    let alarm = |at| Alarm { timer: draft.next_timer(), at };
    if clock::are_kept(draft.rules()) {
        let active_ms = role.turns.as_ref().map(|turns| turns.active_ms.unwrap_or(limit::ACTIVE_MS));
        return clock::of_newborn(draft, draft.now(), role, budget, active_ms);
    }
    let deadline = earlier(own, draft.agent(parent).terms.deadline);
    Due { deadline, alarm: own.filter(|own| deadline == Some(*own)).map(alarm), ..Due::default() }
}

fn earlier(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}
