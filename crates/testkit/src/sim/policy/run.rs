//! One graph that runs: its frames, the values that each of them sees, and what is left to undo.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use spinney_kernel::definition::{
    Definition, Graph, GraphNode, GraphStep, InputSource, NodeKind, OnMissing, OnPartialSuccess, StepInput,
};
use spinney_kernel::primitives::{ValueName, limit};
use spinney_kernel::record::{Exit, FailureCode, FrameIx, NodeEnd, NodeStart, Skip, StartOf};

use super::super::law::{Law, hold};
use super::BoundedValue;
use super::frame::{Answer, Frame};
use super::group::Room;

/// Failures that another attempt cannot mend.
const FINAL: [&str; 4] = ["agents_limit", "cancelled", "deadline_passed", "missing_input"];

#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) graph: Arc<Graph>,
    definition: Arc<Definition>,
    pub(super) frames: BTreeMap<FrameIx, Frame>,
    /// Values that everything in the graph sees.
    values: BTreeMap<String, BoundedValue>,
    successes: u64,
    /// Steps that succeeded and can be undone, in that order.
    pub(super) undo: Vec<(u32, String)>,
    /// How its first node ended.
    end: Option<NodeEnd>,
    /// Whether its agent is being ended, on its own or from outside.
    pub(super) is_ending: bool,
    /// Whether something of it was cancelled that nothing in the graph stopped: its agent ends at once, from outside.
    pub(super) is_cut_short: bool,
}

impl Run {
    pub(super) fn new(graph: Arc<Graph>, definition: Arc<Definition>) -> Self {
        let (frames, values, undo) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        let (end, is_ending, is_cut_short) = (None, false, false);
        Self { graph, definition, frames, values, successes: 0, undo, end, is_ending, is_cut_short }
    }

    pub(super) fn started(&mut self, start: &NodeStart, written: &BTreeMap<String, BoundedValue>) -> Law {
        hold(!self.is_ending, || format!("{} begins in a graph that ends", start.name))?;
        hold(self.end.is_none(), || format!("{} begins in a graph that is over", start.name))?;
        let graph = Arc::clone(&self.graph);
        let node = graph.node(start.node);
        let mut frame = Frame::new(start, node);
        if let Some(within) = start.within {
            hold(!self.is_stopped(within), || format!("{} begins in a group that stops", start.name))?;
            let room = Room { graph: graph.max_parallel, tree: self.definition.limits.children_max };
            let scope = self.scope(Some(within));
            let Some(group) = self.frames.get_mut(&within) else { return Err("no group".to_owned()) };
            let of_group = graph.node(group.start.node);
            let Some(progress) = &mut group.progress else { return Err("no group".to_owned()) };
            progress.begin(&graph, of_group, start, room, &scope)?;
            if let (StartOf::Item, NodeKind::Map { item, .. }) = (start.of, &node.kind) {
                frame.locals.insert(item.to_string(), progress.item(start.place));
            }
        }
        if start.of == StartOf::Node {
            frame.given = self.given(start.within, node, written);
            frame.unrun = self.unrun(start.within, node, &frame.given);
            let waits_for: Vec<ValueName> = match &frame.unrun {
                None => missing(node, &frame.given).map(|(_, input)| input.name.clone()).collect(),
                Some(_) => Vec::new(),
            };
            hold(start.waits_for == waits_for, || {
                format!("{} waits for {:?}, and not for {waits_for:?}", start.name, start.waits_for)
            })?;
        }
        self.frames.insert(start.frame, frame);
        Ok(())
    }

    /// The agent of a step is spawned: if it waited, its values are written now.
    pub(super) fn waited(&mut self, ix: FrameIx, written: &BTreeMap<String, BoundedValue>) -> Law {
        let graph = Arc::clone(&self.graph);
        let Some(Frame { start, .. }) = self.frames.get(&ix).filter(|frame| frame.waits()) else {
            return Ok(());
        };
        let given = self.given(start.within, graph.node(start.node), written);
        let missing = start.waits_for.iter().find(|name| !written.contains_key(name.as_str()));
        hold(missing.is_none(), || format!("{} runs without {missing:?}", start.name))?;
        if let Some(frame) = self.frames.get_mut(&ix) {
            frame.given = given;
        }
        Ok(())
    }

    /// What succeeded last is undone first, once the graph has failed and nothing of it runs.
    pub(super) fn undo_started(&mut self, start: &NodeStart) -> Law {
        let next = self.undo.pop();
        hold(next == Some((start.node, start.name.clone())), || {
            format!("{} is undone, and {next:?} was next", start.name)
        })?;
        let may = matches!(self.exit(), Some(Exit::Failed { .. })) && self.frames.is_empty();
        hold(may && !self.is_ending, || format!("{} is undone before its graph failed", start.name))?;
        let frame = Frame::new(start, self.graph.node(start.node));
        self.frames.insert(start.frame, frame);
        Ok(())
    }

    /// Judges the end of a step or group, and keeps what follows from it. Returns whether it was a race that was won.
    pub(super) fn ended(
        &mut self,
        ix: FrameIx,
        end: &NodeEnd,
        answer: Option<&Answer>,
        written: &BTreeMap<String, BoundedValue>,
    ) -> Result<bool, String> {
        let graph = Arc::clone(&self.graph);
        let scope = self.scope(Some(ix));
        let Some(frame) = self.frames.remove(&ix) else { return Err(format!("frame {ix} ends twice")) };
        let (node, start) = (graph.node(frame.start.node), &frame.start);
        let is_stopped = start.within.is_some_and(|within| self.is_stopped(within));
        if self.is_ending || (*end == NodeEnd::Cancelled && !is_stopped) {
            self.is_cut_short |= !self.is_ending;
            self.is_ending = true;
            let is_cancelled = *end == NodeEnd::Cancelled;
            hold(is_cancelled, || format!("{} ended as {end:?} in a graph that ends", start.name))?;
            return Ok(false);
        }
        if frame.is_group() {
            frame.judge_group(node, end, is_stopped, graph.on_partial_success, &scope)?;
        } else {
            frame.judge_step(node, end, is_stopped, answer)?;
        }
        if start.of == StartOf::Undo {
            return Ok(false);
        }
        self.judge_retry(&frame, node, end, is_stopped)?;
        let value = if end.is_success() { self.value(&frame, node, end, answer)? } else { None };
        if let (StartOf::Node, Some(name), Some(value)) = (start.of, &node.output_to, &value) {
            self.set(start.within, name.as_str(), value, written)?;
        }
        self.step_ended(&frame, node, end)?;
        match start.within.and_then(|within| self.frames.get_mut(&within)) {
            Some(group) => {
                let of_group = graph.node(group.start.node);
                if let Some(progress) = &mut group.progress {
                    progress.member_ended((of_group, node), start, end, value);
                }
            }
            None if matches!(end, NodeEnd::Failed { retried: true, .. }) => {}
            None => self.end = Some(end.clone()),
        }
        Ok(matches!(node.kind, NodeKind::Race { .. }) && end.is_success())
    }

    /// How the graph must end, once its first node has.
    pub(super) fn exit(&self) -> Option<Exit> {
        let is_enough = self.graph.on_partial_success == OnPartialSuccess::BestEffort && self.successes > 0;
        Some(match self.end.as_ref()? {
            NodeEnd::Succeeded { .. } | NodeEnd::Skipped { .. } => Exit::Completed,
            NodeEnd::Failed { .. } if is_enough => Exit::Completed,
            NodeEnd::Failed { error, .. } => Exit::Failed { error: error.clone() },
            NodeEnd::Cancelled => Exit::failed(FailureCode::Cancelled, ""),
        })
    }

    fn judge_retry(&self, frame: &Frame, node: &GraphNode, end: &NodeEnd, is_stopped: bool) -> Law {
        let NodeEnd::Failed { error, retried } = end else { return Ok(()) };
        let may = frame.start.of == StartOf::Node
            && frame.start.attempt < node.retry
            && !is_stopped
            && !FINAL.contains(&error.code.as_str());
        hold(*retried == may, || {
            let Frame { start, .. } = frame;
            format!("{} of {} retries failed with {}: again {retried}", start.name, node.retry, error.code)
        })
    }

    fn step_ended(&mut self, frame: &Frame, node: &GraphNode, end: &NodeEnd) -> Law {
        if frame.is_group() || !end.is_success() {
            return Ok(());
        }
        self.successes += 1;
        let NodeEnd::Succeeded { undo, .. } = end else { return Ok(()) };
        let can = node.step().is_some_and(|step| step.undo.is_some());
        hold(undo.is_some() == can, || format!("{} can be undone: {can}, not {undo:?}", frame.start.name))?;
        if can {
            self.undo.push((frame.start.node, frame.start.name.clone()));
        }
        Ok(())
    }

    /// The value of what succeeded.
    fn value(
        &self,
        frame: &Frame,
        node: &GraphNode,
        end: &NodeEnd,
        answer: Option<&Answer>,
    ) -> Result<Option<BoundedValue>, String> {
        let short =
            |value: Value| Some(value).filter(|value| value.to_string().len() <= limit::TEXT_BYTES_MAX);
        if let Some(progress) = &frame.progress {
            return Ok(progress.value(node, end).map(|known| known.and_then(short)));
        }
        let Some(step) = node.step() else {
            return Ok(frame.answer.clone().map(|text| short(Value::String(text))));
        };
        let Some(Answer { text, whole: true, .. }) = answer else { return Ok(Some(None)) };
        let role = self.definition.roles.get(&step.agent_id).and_then(|role| role.turns.as_ref());
        let has_schema =
            step.output_schema.is_some() || role.is_some_and(|turns| turns.output_schema.is_some());
        if !has_schema {
            return Ok(Some(short(Value::String(text.clone()))));
        }
        match serde_json::from_str(text) {
            Ok(value) => Ok(Some(short(value))),
            Err(error) => Err(format!("{} succeeded with {text:?}, no JSON: {error}", frame.start.name)),
        }
    }

    /// Gives a value its name. What everything in the graph sees is also in the shared store.
    fn set(
        &mut self,
        within: Option<FrameIx>,
        name: &str,
        value: &BoundedValue,
        written: &BTreeMap<String, BoundedValue>,
    ) -> Law {
        if let Some(scope) = self.scope_of(within).and_then(|scope| self.frames.get_mut(&scope)) {
            scope.locals.insert(name.to_owned(), value.clone());
            return Ok(());
        }
        self.values.insert(name.to_owned(), value.clone());
        let Some(value) = value else { return Ok(()) };
        let stored = written.get(name).and_then(Option::as_ref);
        hold(stored == Some(value), || format!("{name} is {value}, and stored is {stored:?}"))
    }

    /// The nearest frame around whose members' values are its own: an item, or a member of a race or vote.
    fn scope_of(&self, within: Option<FrameIx>) -> Option<FrameIx> {
        self.up(within).find(|(_, frame)| self.is_scope(frame)).map(|(ix, _)| ix)
    }

    fn is_scope(&self, frame: &Frame) -> bool {
        let group = frame.start.within.and_then(|within| self.frames.get(&within));
        let is_hiding = group.is_some_and(|group| {
            let kind = &self.graph.node(group.start.node).kind;
            matches!(kind, NodeKind::Race { .. } | NodeKind::Vote { .. })
        });
        frame.start.of == StartOf::Item || is_hiding
    }

    fn up(&self, within: Option<FrameIx>) -> impl Iterator<Item = (FrameIx, &Frame)> {
        let find = |ix: FrameIx| self.frames.get(&ix).map(|frame| (ix, frame));
        std::iter::successors(within.and_then(find), move |(_, frame)| frame.start.within.and_then(find))
    }

    /// Whether a group starts nothing more: it or one around it has its result, or its agent ends.
    pub(super) fn is_stopped(&self, ix: FrameIx) -> bool {
        let policy = self.graph.on_partial_success;
        self.up(Some(ix)).any(|(_, frame)| {
            let node = self.graph.node(frame.start.node);
            let stops = frame.progress.as_ref().is_some_and(|progress| progress.stops(node, policy));
            stops || (frame.is_group() && frame.exit.is_some())
        })
    }

    /// The value of a name in a frame.
    fn find(&self, within: Option<FrameIx>, name: &str) -> Option<BoundedValue> {
        let local = self.up(within).find_map(|(_, frame)| frame.locals.get(name).cloned());
        let input = || self.definition.inputs.get(name).cloned().map(Some);
        local.or_else(|| self.values.get(name).cloned()).or_else(input)
    }

    /// Everything that expressions can read in a frame.
    fn scope(&self, within: Option<FrameIx>) -> Map<String, Value> {
        let mut scope = Map::new();
        let mut put = |name: &str, value: Value| {
            scope.entry(name).or_insert(value);
        };
        for (_, frame) in self.up(within) {
            for (name, value) in &frame.locals {
                value.iter().for_each(|value| put(name, value.clone()));
            }
            let is_loop = matches!(self.graph.node(frame.start.node).kind, NodeKind::Loop { .. });
            if let Some(progress) = frame.progress.as_ref().filter(|_| is_loop) {
                put("round", Value::from(progress.round + 1));
            }
            if frame.start.of == StartOf::Item {
                put("index", Value::from(frame.start.place));
            }
        }
        for (name, value) in &self.values {
            value.iter().for_each(|value| put(name, value.clone()));
        }
        for (name, value) in &self.definition.inputs {
            put(name.as_str(), value.clone());
        }
        put("goal", Value::from(self.definition.goal.as_str()));
        scope
    }

    fn given(
        &self,
        within: Option<FrameIx>,
        node: &GraphNode,
        written: &BTreeMap<String, BoundedValue>,
    ) -> BTreeMap<String, Option<BoundedValue>> {
        let inputs = node.step().map_or(&[][..], |step| &step.inputs);
        let find = |input: &StepInput| match input.source {
            InputSource::Output => self.find(within, input.name.as_str()),
            InputSource::Shared => written.get(input.name.as_str()).cloned(),
        };
        inputs.iter().map(|input| (input.to_string(), find(input))).collect()
    }

    /// How a node ends without running: its condition does not hold, or an input has no value.
    fn unrun(
        &self,
        within: Option<FrameIx>,
        node: &GraphNode,
        given: &BTreeMap<String, Option<BoundedValue>>,
    ) -> Option<NodeEnd> {
        let scope = self.scope(within);
        match node.when.as_ref().map(|when| when.holds(&scope)) {
            Some(Ok(false)) => return Some(NodeEnd::Skipped { why: Skip::When }),
            Some(Err(_)) => return Some(NodeEnd::failed(FailureCode::BadCondition, "")),
            Some(Ok(true)) | None => {}
        }
        match &node.kind {
            NodeKind::Step(step) => {
                let is_lacking = |(step, input): &(&GraphStep, &StepInput)| !may_wait(step, input);
                let lacking = missing(node, given).find(is_lacking);
                let waits = lacking.is_none() && missing(node, given).next().is_some();
                match (lacking, self.graph.on_partial_success) {
                    (Some(_), OnPartialSuccess::Fail) => Some(NodeEnd::failed(FailureCode::MissingInput, "")),
                    (Some((_, input)), _) => Some(NodeEnd::Skipped { why: Skip::Missing(input.to_string()) }),
                    (None, _) if waits => None,
                    (None, _) => {
                        step.task.render(&scope).err().map(|_| NodeEnd::failed(FailureCode::BadTemplate, ""))
                    }
                }
            }
            NodeKind::Map { over, .. } => match over.value(&scope) {
                Ok(Value::Array(_)) => None,
                Ok(_) => Some(NodeEnd::failed(FailureCode::NotAList, "")),
                Err(_) => Some(NodeEnd::failed(FailureCode::BadCondition, "")),
            },
            _ => None,
        }
    }
}

/// The inputs that a step needs and that have no value.
fn missing<'n>(
    node: &'n GraphNode,
    given: &BTreeMap<String, Option<BoundedValue>>,
) -> impl Iterator<Item = (&'n GraphStep, &'n StepInput)> {
    let needed = node
        .step()
        .into_iter()
        .flat_map(|step| step.inputs.iter().filter(|input| !input.optional).map(move |input| (step, input)));
    needed.filter(|(_, input)| given.get(&input.to_string()).is_some_and(Option::is_none))
}

fn may_wait(step: &GraphStep, input: &StepInput) -> bool {
    input.source == InputSource::Shared && step.on_missing == OnMissing::Wait
}
