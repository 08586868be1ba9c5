//! A second computation of the outcome of a graph, from its events alone and without the world: which steps begin, which
//! are skipped, how each step, group and graph ends under its policy, which values exist and what is undone. It takes
//! the ends of agents and the answers of models and people as given, and compares everything else with the journal.

mod frame;
mod group;
mod run;
mod votes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use spinney_kernel::definition::{Definition, Graph, NodeKind, OnPartialSuccess};
use spinney_kernel::primitives::{AgentId, CallId};
use spinney_kernel::record::{
    Attachment, Event, Exit, FrameIx, NodeEnd, NodeStart, Outcome, Spawned, StartOf, StopReason, Work,
};

use super::law::{Law, hold};
use frame::{Answer, Frame};
use run::Run;

/// A value with a name; `None` if it is longer than what events hold.
type BoundedValue = Option<Value>;

/// Codes of failures that come from outside a graph: a library that ends an agent, and time.
const FROM_OUTSIDE: [&str; 2] = ["oops", "timeout"];

/// What the graphs of a tree have come to so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Policies {
    definition: Option<Arc<Definition>>,
    runs: BTreeMap<AgentId, Run>,
    /// Graphs that a person changed: what they come to is the person's from then on.
    replanned: BTreeSet<AgentId>,
    /// The graph and frame of each agent of a step or group.
    agents: BTreeMap<AgentId, (AgentId, FrameIx)>,
    questions: BTreeMap<CallId, (AgentId, FrameIx)>,
    /// Steps that have asked their question.
    asked: BTreeSet<(AgentId, FrameIx)>,
    calls: BTreeMap<CallId, Turn>,
    /// The last answer of each agent of a step.
    answers: BTreeMap<AgentId, Answer>,
    /// The shared values, as they were written last.
    written: BTreeMap<String, BoundedValue>,
    tally: PolicyTally,
}

/// An open model call.
#[derive(Clone, Debug)]
struct Turn {
    agent: AgentId,
    /// Whether it is the agent's last call.
    is_last: bool,
}

/// What was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PolicyTally {
    /// Ends of graphs, by their policy: fail, continue, best effort.
    pub graphs: [u64; 3],
    /// Ends of steps and groups.
    pub nodes: u64,
    /// Inputs of steps.
    pub inputs: u64,
    /// Steps that were undone.
    pub undone: u64,
    /// Races that were won.
    pub races: u64,
    /// Steps that ran once the shared values were written for which they had waited.
    pub waited: u64,
}

impl PolicyTally {
    /// Adds another tally to this one.
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in self.graphs.iter_mut().zip(other.graphs) {
            *sum += more;
        }
        self.nodes += other.nodes;
        self.inputs += other.inputs;
        self.undone += other.undone;
        self.races += other.races;
        self.waited += other.waited;
    }
}

impl Policies {
    pub(super) const fn tally(&self) -> PolicyTally {
        self.tally
    }

    /// Reads the next event.
    pub(super) fn see(&mut self, event: &Event) -> Law {
        match event {
            Event::TreeStarted { definition, .. } => self.definition = Some(Arc::clone(definition)),
            Event::GraphStarted { agent, graph } => self.graph_started(agent, graph.as_ref()),
            Event::GraphReplanned { agent, .. } => self.replanned(agent),
            Event::NodeStarted(start) => return self.started(start),
            Event::NodeEnded { graph, frame, end, .. } => return self.ended(graph, *frame, end),
            Event::AgentSpawned(spawned) => return self.spawned(spawned),
            Event::MessageSent { to, body, .. } => return self.given(to, &body.text),
            Event::CallAsked { call, agent, work } if work.is_turn() => {
                if let Work::Model(model) = work {
                    let is_last = model.wrap_up.is_some();
                    self.calls.insert(*call, Turn { agent: agent.clone(), is_last });
                }
            }
            Event::QuestionAsked { call, agent, .. } => self.asked(*call, agent),
            Event::CallEnded { call, outcome, .. } => self.call_ended(*call, outcome),
            Event::ValueWritten { name, value, .. } => {
                let json = serde_json::from_str(&value.text).ok().filter(|_| value.rest().is_none());
                self.written.insert(name.to_string(), json);
            }
            Event::AgentEnding { agent, exit, .. } => self.agent_ends(agent, exit),
            // What a model says in a call that was open does not count any more.
            Event::ContextRestored(restored) => {
                self.calls.retain(|_, turn| turn.agent != restored.agent);
            }
            Event::AgentEnded { agent, exit, result, .. } => {
                self.agent_ends(agent, exit);
                if let Some(result) = result.as_ref().filter(|_| self.agents.contains_key(agent)) {
                    let (text, whole) = (result.text.clone(), result.rest().is_none());
                    self.answers.insert(agent.clone(), Answer { text, fits: true, whole });
                }
                return self.graph_ended(agent, exit);
            }
            _ => {}
        }
        Ok(())
    }

    fn graph_started(&mut self, agent: &AgentId, graph: Option<&Arc<Graph>>) {
        let of_tree = || self.definition.as_ref().and_then(|definition| definition.graph.as_ref());
        if let (Some(graph), Some(definition)) = (graph.or_else(of_tree), &self.definition) {
            self.runs.insert(agent.clone(), Run::new(Arc::clone(graph), Arc::clone(definition)));
        }
    }

    fn replanned(&mut self, graph: &AgentId) {
        self.runs.remove(graph);
        self.replanned.insert(graph.clone());
    }

    fn started(&mut self, start: &NodeStart) -> Law {
        if self.replanned.contains(&start.graph) {
            return Ok(());
        }
        let Some(run) = self.runs.get_mut(&start.graph) else { return Err("no graph".to_owned()) };
        if start.of == StartOf::Undo {
            self.tally.undone += 1;
            return run.undo_started(start);
        }
        run.started(start, &self.written)
    }

    fn frame(&self, agent: &AgentId) -> Option<&Frame> {
        let (graph, ix) = self.agents.get(agent)?;
        self.runs.get(graph)?.frames.get(ix)
    }

    fn frame_mut(&mut self, (graph, ix): &(AgentId, FrameIx)) -> Option<&mut Frame> {
        self.runs.get_mut(graph)?.frames.get_mut(ix)
    }

    fn spawned(&mut self, spawned: &Spawned) -> Law {
        let Attachment::Step { frame: ix } = spawned.attachment else { return Ok(()) };
        let Some(parent) = &spawned.parent else { return Err("a step without a parent".to_owned()) };
        let graph = self.agents.get(parent).map_or(parent, |(graph, _)| graph).clone();
        let place = (graph, ix);
        if self.replanned.contains(&place.0) {
            // What runs below it belongs to the same graph.
            self.agents.insert(spawned.agent.clone(), place);
            return Ok(());
        }
        if let Some(run) = self.runs.get_mut(&place.0) {
            run.waited(ix, &self.written)?;
        }
        let Some(frame) = self.frame_mut(&place) else {
            return Err(format!("{} has no step", spawned.agent));
        };
        let unrun = &frame.unrun;
        hold(unrun.is_none(), || format!("{} runs, and must end as {unrun:?} without it", spawned.agent))?;
        frame.agent = Some(spawned.agent.clone());
        let waited = u64::from(frame.waits());
        self.tally.waited += waited;
        self.agents.insert(spawned.agent.clone(), place);
        Ok(())
    }

    /// The agent of a step reads its inputs with the values that they have.
    fn given(&mut self, to: &AgentId, text: &str) -> Law {
        let Some(input) = text.strip_prefix("<input name=\"") else { return Ok(()) };
        let Some((name, rest)) = input.split_once('"') else { return Ok(()) };
        let Some(frame) = self.frame(to).filter(|frame| frame.start.of == StartOf::Node) else {
            return Ok(());
        };
        let Some(known) = frame.given.get(name) else {
            return Err(format!("{to} reads {name}, which it did not ask for"));
        };
        if rest == " missing=\"true\"/>" {
            return hold(known.is_none(), || format!("{to} lacks {name}, which has a value"));
        }
        let Some(Some(value)) = known else { return Ok(()) };
        let json = rest.strip_prefix('>').and_then(|rest| rest.strip_suffix("</input>"));
        // A long value is in several messages.
        let Some(read) = json.and_then(|json| serde_json::from_str::<Value>(json).ok()) else {
            return Ok(());
        };
        hold(read == *value, || format!("{to} reads {read} as {name}, which is {value}"))?;
        self.tally.inputs += 1;
        Ok(())
    }

    /// A question of a group's agent belongs to the newest step, if that asks; agents of steps ask for themselves.
    fn asked(&mut self, call: CallId, agent: &AgentId) {
        let is_step = self.frame(agent).is_some_and(|frame| !frame.is_group());
        let graph = self.agents.get(agent).map_or(agent, |(graph, _)| graph).clone();
        let Some(run) = self.runs.get(&graph).filter(|_| !is_step) else { return };
        if let Some((ix, frame)) = run.frames.iter().next_back()
            && matches!(run.graph.node(frame.start.node).kind, NodeKind::Ask(_))
        {
            let place = (graph, *ix);
            // A library can let the same agent ask more.
            if !self.asked.contains(&place) {
                self.asked.insert(place.clone());
                self.questions.insert(call, place);
            }
        }
    }

    fn call_ended(&mut self, call: CallId, outcome: &Outcome) {
        if let (Some(place), Outcome::Answered { answer, .. }) = (self.questions.remove(&call), outcome)
            && let Some(frame) = self.frame_mut(&place)
        {
            frame.answer = Some(answer.text.clone());
        }
        let Some(Turn { agent, is_last }) = self.calls.remove(&call) else { return };
        let Outcome::Done { body, mismatch, stop, asks, .. } = outcome else { return };
        // A last call without a word, or one that its provider stopped, says nothing.
        let is_silent =
            body.text.trim().is_empty() && (is_last || (*stop == StopReason::OutputCap && asks.is_empty()));
        let is_step = self.frame(&agent).is_some_and(|frame| !frame.is_group());
        if !is_step || is_silent {
            return;
        }
        // The answer of a turn that continues another one contains both texts.
        let (text, whole) = (body.text.clone(), body.rest().is_none());
        let answer = Answer { text, fits: mismatch.is_none(), whole };
        self.answers.insert(agent, answer);
    }

    /// From now on nothing begins below it.
    fn agent_ends(&mut self, agent: &AgentId, exit: &Exit) {
        if let Some(run) = self.runs.get_mut(agent) {
            run.is_ending = true;
        }
        if let Some(place) = self.agents.get(agent).cloned()
            && let Some(frame) = self.frame_mut(&place)
        {
            frame.exit = Some(exit.clone());
        }
    }

    fn ended(&mut self, graph: &AgentId, ix: FrameIx, end: &NodeEnd) -> Law {
        if self.replanned.contains(graph) {
            return Ok(());
        }
        let Some(run) = self.runs.get_mut(graph) else { return Err("no graph".to_owned()) };
        let agent = run.frames.get(&ix).and_then(|frame| frame.agent.as_ref());
        let answer = agent.and_then(|agent| self.answers.get(agent));
        let won = run.ended(ix, end, answer, &self.written)?;
        self.tally.nodes += 1;
        self.tally.races += u64::from(won);
        Ok(())
    }

    /// Compares the end of a graph with what its policy makes of its first node's.
    fn graph_ended(&mut self, agent: &AgentId, exit: &Exit) -> Law {
        let Some(run) = self.runs.remove(agent) else { return Ok(()) };
        let is_outside = match exit {
            Exit::Cancelled { .. } | Exit::Exhausted { .. } => true,
            Exit::Failed { error } => FROM_OUTSIDE.contains(&error.code.as_str()),
            Exit::Completed => false,
        };
        let Some(expected) = run.exit().filter(|_| !run.is_cut_short) else {
            return hold(is_outside, || format!("{agent} ended as {exit:?} before its steps"));
        };
        if is_outside {
            return Ok(());
        }
        let policy = match run.graph.on_partial_success {
            OnPartialSuccess::Fail => 0,
            OnPartialSuccess::Continue => 1,
            OnPartialSuccess::BestEffort => 2,
        };
        self.tally.graphs[policy] += 1;
        let code = |exit: &Exit| match exit {
            Exit::Failed { error } => error.code.to_string(),
            other => other.as_str().to_owned(),
        };
        hold(code(exit) == code(&expected), || {
            format!("{agent} ended as {exit:?}, and its policy says {expected:?}")
        })?;
        let left = &run.undo;
        hold(!matches!(expected, Exit::Failed { .. }) || left.is_empty(), || {
            format!("{agent} failed, and {left:?} were not undone")
        })
    }
}
