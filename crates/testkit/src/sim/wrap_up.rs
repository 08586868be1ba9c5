//! The laws of the last call: an agent has at most one before an ordinary turn, calls no tool after it and ends with
//! it; and no agent that could have had one runs out of budget without it.

use std::collections::{BTreeMap, BTreeSet};

use spinney_kernel::budget::{Amounts, Fit, Resource};
use spinney_kernel::definition::WrapUp;
use spinney_kernel::primitives::{AgentId, CallId, ModelName, Time};
use spinney_kernel::record::{Exit, Outcome, Work, WrapUpReason};
use spinney_kernel::window::Bounds;
use spinney_kernel::window::trim;
use spinney_kernel::world::{AgentIx, AgentState};

use spinney_kernel::primitives::limit;
use spinney_kernel::record::Event;
use spinney_kernel::world::World;

use super::law::{Law, hold};

/// What the events say about last calls.
#[derive(Clone, Debug, Default)]
pub(super) struct LastCalls {
    /// Agents that were asked for one and took no ordinary turn since.
    had: BTreeSet<AgentId>,
    /// Those of them whose last call started, and did not end without an answer: then it may be asked for again with
    /// less.
    started: BTreeMap<AgentId, CallId>,
    /// Agents with an open turn, and its model.
    turns: BTreeMap<CallId, (AgentId, ModelName, bool)>,
    /// Agents whose last turn was refused while something else of theirs was open.
    busy: BTreeSet<AgentId>,
    /// Agents that got more time since they were asked for one.
    extended: BTreeSet<AgentId>,
    /// The model of each agent's latest turn.
    models: BTreeMap<AgentId, ModelName>,
    /// Whether the simulator calls no models for agents that take turns: such a call has no last call after it.
    orderly: bool,
}

impl LastCalls {
    pub(super) fn new(orderly: bool) -> Self {
        Self { orderly, ..Self::default() }
    }

    /// Reads one event; `before` is the world without it.
    pub(super) fn see(&mut self, before: &World, event: &Event) -> Law {
        match event {
            Event::CallAsked { call, agent, work } => self.asked(*call, agent, work),
            Event::CallSwitched { call, model, .. } => {
                if let Some((agent, asked, _)) = self.turns.get_mut(call) {
                    self.models.insert(agent.clone(), model.clone());
                    *asked = model.clone();
                }
                Ok(())
            }
            Event::CallStarted { call, .. } => match self.turns.get(call) {
                Some((agent, _, false)) => {
                    self.had.remove(agent);
                    self.started.remove(agent);
                    Ok(())
                }
                Some((agent, _, true)) => {
                    let first = *self.started.entry(agent.clone()).or_insert(*call);
                    hold(first == *call, || format!("{agent} had two last calls"))
                }
                None => Ok(()),
            },
            Event::CallEnded { call, outcome, .. } => {
                let Some((agent, _, is_last)) = self.turns.remove(call) else { return Ok(()) };
                if is_last && !is_done(outcome) {
                    self.started.remove(&agent);
                }
                let open = before.call(*call).map_or(0, |call| before.agents().agent(call.agent).open.len());
                if open > 1 {
                    self.busy.insert(agent);
                } else {
                    self.busy.remove(&agent);
                }
                Ok(())
            }
            Event::LimitRaised { agent, add_ms: 1.., .. } => {
                self.extended.insert(agent.clone());
                Ok(())
            }
            Event::TreeAdjusted(adjusted) if adjusted.timeout_ms.is_some() => {
                self.extended.insert(adjusted.agent.clone());
                Ok(())
            }
            Event::ContextRestored(restored) => {
                self.had.remove(&restored.agent);
                self.started.remove(&restored.agent);
                Ok(())
            }
            Event::TreeHalted { agent, .. } => {
                let root = before.agents().root();
                match before.agents().find(agent).filter(|ix| Some(*ix) == root) {
                    Some(ix) => self.no_room(before, ix, "halted"),
                    None => Ok(()),
                }
            }
            Event::AgentEnding { agent, exit: Exit::Exhausted { .. }, .. }
            | Event::AgentEnded { agent, exit: Exit::Exhausted { .. }, .. } => {
                let ix = before.agents().find(agent);
                let live = ix.filter(|ix| {
                    before.agents().living(*ix).is_some_and(|agent| matches!(agent.state, AgentState::Live))
                });
                live.map_or(Ok(()), |ix| self.no_room(before, ix, "ended"))
            }
            _ => Ok(()),
        }
    }

    fn asked(&mut self, call: CallId, agent: &AgentId, work: &Work) -> Law {
        match work {
            Work::Model(model) if model.summary.is_none() && model.outside.is_none() => {
                let is_last = model.wrap_up.is_some();
                self.turns.insert(call, (agent.clone(), model.model.clone(), is_last));
                self.models.insert(agent.clone(), model.model.clone());
                if is_last {
                    self.had.insert(agent.clone());
                    self.extended.remove(agent);
                }
                Ok(())
            }
            Work::Tool(tool) if tool.ask.is_some() => {
                hold(!self.had.contains(agent), || format!("{agent} called a tool after its last call"))
            }
            Work::Model(_) | Work::Tool(_) | Work::Child(_) | Work::Wait(_) | Work::Question(_) => Ok(()),
        }
    }

    /// An agent that ends for want of room had its last call, or there was no room for the smallest one.
    fn no_room(&self, world: &World, ix: AgentIx, how: &str) -> Law {
        let (id, agent) = (world.agents().id(ix), world.agents().agent(ix));
        let role = world.definition().roles.get(&agent.terms.role);
        let Some(turns) = role.and_then(|role| role.turns.as_ref()) else { return Ok(()) };
        let model = self.models.get(id).unwrap_or(&agent.terms.model);
        let Some(spec) = world.definition().models.get(model) else { return Ok(()) };
        if !self.orderly || agent.terms.wrap_up == WrapUp::Off || self.had.contains(id) {
            return Ok(());
        }
        // An agent with an open call that the simulator made does not end with its own turn alone.
        if agent.open.len() > 1 || self.busy.contains(id) {
            return Ok(());
        }
        let cap = turns.output_cap_with(spec);
        let output = cap.min(limit::WRAP_UP_OUTPUT_TOKENS_MIN);
        let input = smallest_packet(world, ix);
        if agent.progress.window.room().is_some_and(|size| size < input) {
            return Ok(());
        }
        // Prices of the simulator have no dates.
        let cost = spec.price.as_ref().map_or(0, |price| price.worst_case(input, output, Time(0)));
        let ask = Amounts::cost(cost).with(Resource::Tokens, input + output).with(Resource::Steps, 1);
        let never = matches!(world.ledger().fit(agent.account, &ask), Fit::Never(..) | Fit::Shut(_));
        hold(never, || format!("{id} {how} without a last call, for which there was room: {ask:?}"))
    }

    /// After its last call an agent takes no ordinary turn, except the root, whose ceiling may be raised, and an agent whose
    /// time was nearly up and that got more.
    pub(super) fn check(&self, world: &World) -> Law {
        let root = world.agents().root();
        for (id, call) in world.calls().all().filter(|(_, call)| Some(call.agent) != root && !call.is_void())
        {
            let (agent, name) = (world.agents().agent(call.agent), world.agents().id(call.agent));
            let is_ordinary = call.work.is_turn() && call.work.wrap_up().is_none();
            let is_over = match agent.progress.wrapped_up() {
                Some(WrapUpReason::Deadline) => !self.extended.contains(name),
                Some(WrapUpReason::MaxSteps | WrapUpReason::Ceiling { .. }) => true,
                None => false,
            };
            hold(!is_ordinary || !is_over, || format!("{id} is a turn of {name} after its last call"))?;
        }
        Ok(())
    }
}

const fn is_done(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Done { .. })
}

/// The most tokens of the smallest packet of a last call: the first message, the newest message, the digest of what was
/// left out, and the notice that it is the last.
fn smallest_packet(world: &World, ix: AgentIx) -> u64 {
    let agent = world.agents().agent(ix);
    let role = world.definition().roles.get(&agent.terms.role);
    let spec = role.and_then(|role| role.turns.as_ref()?.window.clone()).unwrap_or_default();
    let mut window = agent.progress.window.by_bounds();
    window.read();
    let bounds =
        Bounds { size: 0, preset: spec.preset, images_max: spec.images, compact: spec.compact, thread: None };
    let least = match trim(&window, &bounds) {
        Ok(_) => window.tokens(),
        Err(too_small) => too_small.tokens,
    };
    // Without a limit everything ever read counts, including what came from outside and is in no window.
    let beside = match window.size() {
        Some(_) => 0,
        None => agent.progress.tokens.saturating_sub(window.tokens()),
    };
    // The digest of left-out messages takes a tenth of the packet.
    least + least / 8 + beside + limit::WRAP_UP_TOKENS.bound()
}
