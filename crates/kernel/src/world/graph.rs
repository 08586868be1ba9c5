//! The graphs of a tree while they run: which nodes run, what they returned so far, and what has ended. A node that
//! runs is a frame; in a map or a loop, a node has several one after the other or at the same time.
//!
//! Everything here is moved by events and decides nothing. The cost of an event does not depend on the size of the
//! graph.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::definition::{Graph, GraphNode, NodeIx, NodeKind};
use crate::primitives::{CallId, Running, ValueName, limit};
use crate::record::{Failure, FrameIx, NamedValue, NodeEnd, NodeStart, PlanChange, StartOf};
use crate::world::AgentIx;

/// All graphs that run, by the agent that stands for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graphs {
    runs: BTreeMap<AgentIx, GraphRun>,
    /// The graph and frame of every living agent of a step or group.
    agents: BTreeMap<AgentIx, (AgentIx, FrameIx)>,
    questions: BTreeMap<CallId, (AgentIx, FrameIx)>,
    /// The steps that wait for shared values.
    waiting: BTreeSet<(AgentIx, FrameIx)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphRun {
    pub(crate) graph: Arc<Graph>,
    frames: BTreeMap<FrameIx, NodeFrame>,
    next: FrameIx,
    /// The outputs so far, except those inside maps, races and votes.
    pub(crate) values: BTreeMap<ValueName, Arc<NamedValue>>,
    /// Every step that ended, in that order.
    pub(crate) ended: Vec<EndedStep>,
    /// Tasks that would take back what succeeded, in the order of success.
    pub(crate) undo: Vec<UndoTask>,
    /// How the graph's first node ended; what is left then is to undo.
    pub(crate) end: Option<NodeEnd>,
    /// The value of the graph's first node.
    pub(crate) value: Option<Arc<NamedValue>>,
    pub(crate) successes: u32,
    pub(crate) failures: u32,
    pub(crate) skips: u32,
    /// The nodes that have begun.
    begun: BTreeSet<NodeIx>,
    /// What a person changed. Boxed because most graphs run as they were written.
    plan: Option<Box<ChangedPlan>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ChangedPlan {
    skipped: BTreeSet<NodeIx>,
    /// Each with the nodes that it is for; all if there are none.
    instructions: Vec<(BTreeSet<NodeIx>, String)>,
    /// Frames of steps that are stopped to begin again.
    again: BTreeSet<FrameIx>,
    /// Whether nothing more begins.
    is_over: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedStep {
    pub name: String,
    pub end: NodeEnd,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UndoTask {
    pub(crate) node: NodeIx,
    pub(crate) name: String,
    pub(crate) task: String,
}

/// A node that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFrame {
    pub(crate) node: NodeIx,
    pub(crate) name: String,
    pub(crate) within: Option<FrameIx>,
    pub(crate) place: u32,
    pub(crate) attempt: u32,
    pub(crate) of: StartOf,
    /// The agent of the step, or the one that stands for the group.
    pub(crate) agent: Option<AgentIx>,
    pub(crate) question: Option<CallId>,
    /// The shared values that it waits for, until its agent is spawned.
    pub(crate) waits_for: Vec<ValueName>,
    /// Members that run.
    pub(crate) live: BTreeSet<FrameIx>,
    /// How many members, items or voters have started, in this round.
    pub(crate) cursor: u32,
    /// The round of a loop, from 0.
    pub(crate) round: u32,
    /// The first failure of a member that counts.
    pub(crate) failure: Option<Failure>,
    /// The place of the member that won a race.
    pub(crate) winner: Option<u32>,
    pub(crate) value: Option<Arc<NamedValue>>,
    /// The values of items and voters.
    pub(crate) collected: Vec<Option<Arc<NamedValue>>>,
    pub(crate) collected_bytes: usize,
    pub(crate) items: Vec<Value>,
    /// Values that only the members see.
    pub(crate) locals: BTreeMap<ValueName, Arc<NamedValue>>,
    /// Members of a parallel group that wait for others.
    pub(crate) order: Option<Box<Order>>,
}

/// Which members of a parallel group may start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Order {
    waits: BTreeMap<NodeIx, usize>,
    followers: BTreeMap<NodeIx, Vec<NodeIx>>,
    pub(crate) ready: BTreeSet<NodeIx>,
}

impl Order {
    /// `None` if no member waits for another.
    fn new(graph: &Graph, node: &GraphNode) -> Option<Box<Self>> {
        let NodeKind::Parallel { members, .. } = &node.kind else { return None };
        if members.all().all(|member| graph.node(member).after.is_empty()) {
            return None;
        }
        let mut order = Self::default();
        for member in members.all() {
            let after = &graph.node(member).after;
            if after.is_empty() {
                order.ready.insert(member);
                continue;
            }
            order.waits.insert(member, after.len());
            after.iter().for_each(|other| order.followers.entry(*other).or_default().push(member));
        }
        Some(Box::new(order))
    }

    fn ended(&mut self, member: NodeIx) {
        for follower in self.followers.remove(&member).unwrap_or_default() {
            let left = self.waits.get_mut(&follower).map(|left| {
                *left -= 1;
                *left
            });
            if left == Some(0) {
                self.waits.remove(&follower);
                self.ready.insert(follower);
            }
        }
    }
}

impl Graphs {
    #[must_use]
    pub fn run(&self, agent: AgentIx) -> Option<&GraphRun> {
        self.runs.get(&agent)
    }

    /// The graph that an agent stands for or belongs to, and its frame. The agent of a graph has the first frame.
    pub(crate) fn frame_of(&self, agent: AgentIx) -> Option<(AgentIx, FrameIx)> {
        self.agents.get(&agent).copied().or_else(|| self.runs.contains_key(&agent).then_some((agent, 0)))
    }

    /// The frame of a step's or group's agent.
    pub(crate) fn member(&self, agent: AgentIx) -> Option<(AgentIx, FrameIx)> {
        self.agents.get(&agent).copied()
    }

    pub(crate) fn frame_of_question(&self, call: CallId) -> Option<(AgentIx, FrameIx)> {
        self.questions.get(&call).copied()
    }

    pub(crate) fn start(&mut self, agent: AgentIx, graph: Arc<Graph>) {
        let run = GraphRun {
            graph,
            frames: BTreeMap::new(),
            next: 0,
            values: BTreeMap::new(),
            ended: Vec::new(),
            undo: Vec::new(),
            end: None,
            value: None,
            successes: 0,
            failures: 0,
            skips: 0,
            begun: BTreeSet::new(),
            plan: None,
        };
        self.runs.insert(agent, run);
    }

    fn run_mut(&mut self, agent: AgentIx) -> &mut GraphRun {
        match self.runs.get_mut(&agent) {
            Some(run) => run,
            None => unreachable!("the graph runs"),
        }
    }

    /// The steps that wait for shared values, the oldest of a graph first.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (AgentIx, FrameIx)> {
        self.waiting.iter().copied()
    }

    pub(crate) fn replanned(&mut self, agent: AgentIx, change: &PlanChange, running: Running) {
        self.run_mut(agent).replanned(change, running);
    }

    pub(crate) fn node_started(&mut self, agent: AgentIx, start: &NodeStart) {
        if !start.waits_for.is_empty() {
            self.waiting.insert((agent, start.frame));
        }
        self.run_mut(agent).started(start);
    }

    pub(crate) fn node_ended(&mut self, agent: AgentIx, frame: FrameIx, end: &NodeEnd) {
        self.waiting.remove(&(agent, frame));
        self.run_mut(agent).ended(frame, end);
    }

    /// An agent does a step, or stands for a group.
    pub(crate) fn spawned(&mut self, agent: AgentIx, parent: AgentIx, frame: FrameIx) {
        let Some((run, _)) = self.frame_of(parent) else {
            unreachable!("a step's parent belongs to a graph")
        };
        self.agents.insert(agent, (run, frame));
        self.waiting.remove(&(run, frame));
        if let Some(frame) = self.run_mut(run).frames.get_mut(&frame) {
            frame.agent = Some(agent);
            frame.waits_for.clear();
        }
    }

    /// An agent ended. With the agent of a graph, the graph is gone.
    pub(crate) fn gone(&mut self, agent: AgentIx) {
        self.agents.remove(&agent);
        if self.runs.remove(&agent).is_some() {
            self.questions.retain(|_, (run, _)| *run != agent);
            self.waiting.retain(|(run, _)| *run != agent);
        }
    }

    /// A person was asked. If the agent stands for a graph or group and the newest frame is an `ask`, it is that one's
    /// question; agents of steps ask for themselves.
    pub(crate) fn asked(&mut self, agent: AgentIx, call: CallId) {
        let Some((run, own)) = self.frame_of(agent) else { return };
        let found = self.run_mut(run);
        let is_group = own == 0 || found.frames.get(&own).is_some_and(|frame| found.is_group(frame));
        let newest = found.next.wrapping_sub(1);
        let graph = Arc::clone(&found.graph);
        let is_asked = |frame: &&mut NodeFrame| {
            frame.question.is_none() && matches!(graph.node(frame.node).kind, NodeKind::Ask(_))
        };
        if let Some(frame) = found.frames.get_mut(&newest).filter(is_asked).filter(|_| is_group) {
            frame.question = Some(call);
            self.questions.insert(call, (run, newest));
        }
    }

    pub(crate) fn question_ended(&mut self, call: CallId, answer: Option<NamedValue>) {
        let Some((run, frame)) = self.questions.remove(&call) else { return };
        if let Some(frame) = self.runs.get_mut(&run).and_then(|run| run.frames.get_mut(&frame)) {
            frame.value = answer.map(Arc::new);
        }
    }

    /// A step's agent gave an answer, or the rest of one.
    pub(crate) fn answered(&mut self, agent: AgentIx, mut value: NamedValue, continues: bool) {
        let Some((run, frame)) = self.member(agent) else { return };
        let Some(frame) = self.runs.get_mut(&run).and_then(|run| run.frames.get_mut(&frame)) else { return };
        if let Some(before) = frame.value.take().filter(|before| continues && before.body.rest().is_none()) {
            value.body.text.insert_str(0, &before.body.text);
            value.body.tokens = None;
        }
        frame.value = Some(Arc::new(value));
    }
}

impl GraphRun {
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The steps that ended, in that order.
    #[must_use]
    pub fn ended_steps(&self) -> &[EndedStep] {
        &self.ended
    }

    pub(crate) fn frame(&self, frame: FrameIx) -> Option<&NodeFrame> {
        self.frames.get(&frame)
    }

    pub(crate) const fn next_frame(&self) -> FrameIx {
        self.next
    }

    fn replanned(&mut self, change: &PlanChange, running: Running) {
        let named: BTreeSet<NodeIx> =
            change.steps().iter().filter_map(|step| self.graph.find(step)).collect();
        // Questions stay open, and what waits for a value reads the instruction when it begins.
        let about = |frame: &NodeFrame| {
            let is_work = frame.of != StartOf::Undo && self.graph.node(frame.node).members().is_none();
            is_work
                && frame.agent.is_some()
                && (named.is_empty() || self.graph.up(frame.node).any(|node| named.contains(&node)))
        };
        let stopped: Vec<FrameIx> =
            self.frames.iter().filter(|(_, frame)| about(frame)).map(|(ix, _)| *ix).collect();
        let plan = self.plan.get_or_insert_default();
        match change {
            PlanChange::Skip { .. } => plan.skipped.extend(named),
            PlanChange::End => plan.is_over = true,
            PlanChange::Instruct { text, .. } => {
                plan.instructions.push((named, text.clone()));
                if running.stops() {
                    plan.again.extend(stopped);
                }
            }
        }
    }

    pub(crate) fn has_begun(&self, node: NodeIx) -> bool {
        self.begun.contains(&node)
    }

    /// Whether a person does not want a node.
    pub(crate) fn is_skipped(&self, node: NodeIx) -> bool {
        self.plan.as_ref().is_some_and(|plan| plan.skipped.contains(&node))
    }

    /// What a person wrote for a step, oldest first.
    pub(crate) fn instructions(&self, node: NodeIx) -> impl Iterator<Item = &str> {
        let all = self.plan.iter().flat_map(|plan| &plan.instructions);
        let is_for = move |nodes: &BTreeSet<NodeIx>| {
            nodes.is_empty() || self.graph.up(node).any(|node| nodes.contains(&node))
        };
        all.filter(move |(nodes, _)| is_for(nodes)).map(|(_, text)| text.as_str())
    }

    pub(crate) fn instruction_count(&self) -> usize {
        self.plan.as_ref().map_or(0, |plan| plan.instructions.len())
    }

    /// The frames of steps that a person stopped to begin again.
    pub(crate) fn stopped_to_begin_again(&self) -> impl Iterator<Item = FrameIx> {
        self.plan.iter().flat_map(|plan| plan.again.iter().copied())
    }

    pub(crate) fn begins_again(&self, frame: FrameIx) -> bool {
        self.plan.as_ref().is_some_and(|plan| plan.again.contains(&frame))
    }

    /// Whether a person ended it: nothing more begins.
    pub(crate) fn is_ended_by_person(&self) -> bool {
        self.plan.as_ref().is_some_and(|plan| plan.is_over)
    }

    /// The value that a frame has if it ends so.
    pub(crate) fn result(&self, frame: FrameIx, end: &NodeEnd) -> Option<Arc<NamedValue>> {
        let frame = self.frames.get(&frame)?;
        end.is_success().then(|| result_of(self.graph.node(frame.node), frame, end)).flatten()
    }

    /// Whether nothing of it runs.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.frames.is_empty()
    }

    /// Every frame that runs, for checks.
    pub fn frames(&self) -> impl Iterator<Item = (FrameIx, &NodeFrame)> {
        self.frames.iter().map(|(ix, frame)| (*ix, frame))
    }

    /// `frame` and the groups around it, the nearest first.
    pub(crate) fn up(&self, frame: FrameIx) -> impl Iterator<Item = (FrameIx, &NodeFrame)> {
        let first = self.frames.get(&frame).map(|found| (frame, found));
        std::iter::successors(first, |(_, frame)| {
            let within = frame.within?;
            self.frames.get(&within).map(|found| (within, found))
        })
    }

    fn started(&mut self, start: &NodeStart) {
        let graph = Arc::clone(&self.graph);
        let node = graph.node(start.node);
        self.next = self.next.max(start.frame.saturating_add(1));
        self.begun.insert(start.node);
        let mut frame = NodeFrame {
            node: start.node,
            name: start.name.clone(),
            within: start.within,
            place: start.place,
            attempt: start.attempt,
            of: start.of,
            agent: None,
            question: None,
            waits_for: start.waits_for.clone(),
            live: BTreeSet::new(),
            cursor: 0,
            round: 0,
            failure: None,
            winner: None,
            value: None,
            collected: Vec::new(),
            collected_bytes: 0,
            items: Vec::new(),
            locals: BTreeMap::new(),
            order: None,
        };
        match start.of {
            StartOf::Undo => drop(self.undo.pop()),
            StartOf::Node => {
                frame.order = Order::new(&graph, node);
                if let Some(items) = &start.items {
                    frame.items = serde_json::from_str(items).unwrap_or_default();
                    frame.collected = vec![None; frame.items.len()];
                }
                if let NodeKind::Vote { members, rule } = &node.kind {
                    frame.collected = vec![None; members.count.saturating_mul(rule.voters) as usize];
                }
            }
            StartOf::Item => {}
        }
        if let Some(group) = start.within.and_then(|within| self.frames.get_mut(&within)) {
            if let (StartOf::Item, NodeKind::Map { item, .. }) = (start.of, &node.kind) {
                let value = group.items.get(start.place as usize).map(NamedValue::new);
                frame.locals.extend(value.map(|value| (item.clone(), Arc::new(value))));
            }
            group.live.insert(start.frame);
            if start.attempt == 0 {
                group.advance(&graph, start);
            }
        }
        self.frames.insert(start.frame, frame);
    }

    fn ended(&mut self, ix: FrameIx, end: &NodeEnd) {
        let Some(frame) = self.frames.remove(&ix) else { unreachable!("a frame ends once") };
        if let Some(plan) = &mut self.plan {
            plan.again.remove(&ix);
        }
        let graph = Arc::clone(&self.graph);
        let node = graph.node(frame.node);
        let is_step = matches!(node.kind, NodeKind::Step(_) | NodeKind::Ask(_));
        let value = if end.is_success() { result_of(node, &frame, end) } else { None };
        if is_step && frame.of == StartOf::Node {
            self.step_ended(&frame, end);
        } else if frame.of == StartOf::Undo {
            let name = format!("undo of {}", frame.name);
            self.ended.push(EndedStep { name, end: end.clone() });
        }
        if let (StartOf::Node, Some(name), Some(value)) = (frame.of, &node.output_to, &value) {
            self.set(frame.within, name, value);
        }
        let Some(group) = frame.within.and_then(|within| self.frames.get_mut(&within)) else {
            if frame.of == StartOf::Node && !matches!(end, NodeEnd::Failed { retried: true, .. }) {
                (self.end, self.value) = (Some(end.clone()), value);
            }
            return;
        };
        group.live.remove(&ix);
        if let NodeEnd::Failed { retried: true, .. } = end {
            return;
        }
        group.member_ended(&graph, &frame, end, value);
    }

    fn step_ended(&mut self, frame: &NodeFrame, end: &NodeEnd) {
        if let NodeEnd::Failed { retried: true, .. } = end {
            return;
        }
        self.ended.push(EndedStep { name: frame.name.clone(), end: end.clone() });
        self.failures += u32::from(matches!(end, NodeEnd::Failed { .. }));
        self.skips += u32::from(matches!(end, NodeEnd::Skipped { .. }));
        if let NodeEnd::Succeeded { undo, .. } = end {
            self.successes += 1;
            if let Some(task) = undo {
                self.undo.push(UndoTask { node: frame.node, name: frame.name.clone(), task: task.clone() });
            }
        }
    }

    /// Gives a value its name where every agent that may read it can see it.
    fn set(&mut self, within: Option<FrameIx>, name: &ValueName, value: &Arc<NamedValue>) {
        match within.and_then(|within| self.scope_of(within)) {
            Some(scope) => {
                if let Some(frame) = self.frames.get_mut(&scope) {
                    frame.locals.insert(name.clone(), Arc::clone(value));
                }
            }
            None => drop(self.values.insert(name.clone(), Arc::clone(value))),
        }
    }

    /// The innermost frame, `frame` or around it, whose members' values are its own; none for the whole graph.
    pub(crate) fn scope_of(&self, frame: FrameIx) -> Option<FrameIx> {
        self.up(frame).find(|(_, frame)| self.is_scope(frame)).map(|(ix, _)| ix)
    }

    fn is_group(&self, frame: &NodeFrame) -> bool {
        frame.of != StartOf::Undo && self.graph.node(frame.node).members().is_some()
    }

    /// Whether values inside a frame are invisible outside: an item of a map, or a member of a race or vote.
    fn is_scope(&self, frame: &NodeFrame) -> bool {
        frame.of == StartOf::Item
            || frame.within.and_then(|within| self.frames.get(&within)).is_some_and(|group| {
                let kind = &self.graph.node(group.node).kind;
                group.of == StartOf::Node && matches!(kind, NodeKind::Race { .. } | NodeKind::Vote { .. })
            })
    }

    /// Whether what a node writes in `within` is visible to the whole graph.
    pub(crate) fn is_public(&self, within: Option<FrameIx>) -> bool {
        within.is_none_or(|within| self.scope_of(within).is_none())
    }
}

/// The value of a node that succeeded.
fn result_of(node: &GraphNode, frame: &NodeFrame, end: &NodeEnd) -> Option<Arc<NamedValue>> {
    match (&node.kind, frame.of, end) {
        (NodeKind::Map { .. }, StartOf::Node, _) => {
            let mut text = String::with_capacity(frame.collected_bytes + 2 * frame.collected.len() + 2);
            text.push('[');
            for (place, value) in frame.collected.iter().enumerate() {
                if place > 0 {
                    text.push(',');
                }
                match value {
                    Some(value) => text.push_str(&value.json_text()),
                    None => text.push_str("null"),
                }
            }
            text.push(']');
            Some(Arc::new(NamedValue::json(crate::primitives::Body::text(text))))
        }
        // Its members end in any order, so none of them is the last.
        (NodeKind::Parallel { .. }, StartOf::Node, _) => None,
        (NodeKind::Vote { .. }, StartOf::Node, NodeEnd::Succeeded { winner: Some(winner), .. }) => {
            frame.collected.get(*winner as usize).cloned().flatten()
        }
        _ => frame.value.clone(),
    }
}

impl NodeFrame {
    /// Whether the values of its members become a list.
    fn collects(&self, graph: &Graph) -> bool {
        let kind = &graph.node(self.node).kind;
        self.of == StartOf::Node && matches!(kind, NodeKind::Map { .. } | NodeKind::Vote { .. })
    }

    /// A member of this group began.
    fn advance(&mut self, graph: &Graph, start: &NodeStart) {
        let node = graph.node(self.node);
        let first = node.members().map_or(0, |members| members.first);
        match &node.kind {
            NodeKind::Map { .. } if self.of == StartOf::Node => self.cursor = start.place + 1,
            NodeKind::Vote { .. } => self.cursor = start.place + 1,
            NodeKind::Choose { .. } => self.cursor = 1,
            _ => {
                if let Some(order) = &mut self.order {
                    order.ready.remove(&start.node);
                }
                self.cursor = start.node.saturating_sub(first) + 1;
                if let NodeKind::Loop { .. } = &node.kind {
                    self.round = start.place;
                }
            }
        }
    }

    /// A member of this group ended for good.
    fn member_ended(&mut self, graph: &Graph, member: &Self, end: &NodeEnd, value: Option<Arc<NamedValue>>) {
        let (node, of_member) = (graph.node(self.node), graph.node(member.node));
        let is_race = matches!(node.kind, NodeKind::Race { .. });
        if self.collects(graph) {
            if let Some(place) = self.collected.get_mut(member.place as usize) {
                self.collected_bytes += value.as_ref().map_or(0, |value| value.bytes());
                *place = value;
            }
        } else if end.is_success() && (!is_race || self.winner.is_none()) {
            let keeps = !is_race && !matches!(of_member.kind, NodeKind::Parallel { .. });
            self.value = value.or_else(|| self.value.take().filter(|_| keeps));
            self.winner = Some(member.place).filter(|_| is_race);
        }
        let is_required = member.of == StartOf::Item || of_member.required;
        if let (NodeEnd::Failed { error, .. }, true) = (end, is_required || is_race) {
            self.failure.get_or_insert_with(|| error.clone());
        }
        if let Some(order) = &mut self.order {
            order.ended(member.node);
        }
    }

    /// Whether everything that its members returned is too much for one value.
    pub(crate) const fn is_too_large(&self) -> bool {
        self.collected_bytes > limit::VALUE_BYTES_MAX
    }
}
