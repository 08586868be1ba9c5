//! Random graphs, and the laws of graphs: a step runs only with its inputs, a group ends after its members, nothing
//! starts in a group that has its result, everything that began ends before its graph, and what succeeded is undone in
//! reverse order, once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use spinney_kernel::definition::{
    Definition, Graph, GraphSurroundings, NodeKind, SharedAccess, SharedSurroundings,
};
use spinney_kernel::primitives::{AgentId, RoleName, StepId, ValueName, limit};
use spinney_kernel::record::{
    Attachment, Event, Exit, FrameIx, NodeEnd, NodeStart, PlanChange, Spawned, StartOf,
};
use spinney_kernel::world::{GraphRun, World};

use super::dice::Dice;
use super::law::{Law, hold};

/// What random graphs have. What depends on timing cannot be compared with another run.
#[derive(Clone, Copy)]
pub(super) struct GraphParts<'a> {
    pub(super) roles: &'a [&'a str],
    pub(super) policies: &'a [&'a str],
    /// The most steps and groups at the top.
    pub(super) steps_max: u64,
    /// How deep groups are nested.
    pub(super) depth: u32,
    /// Whether there is an input `list`, for maps and choices.
    pub(super) list: bool,
    pub(super) races: bool,
    pub(super) timeouts: bool,
    pub(super) budgets: bool,
    /// Shared values that steps may be given.
    pub(super) shared: &'a [&'a str],
}

impl GraphParts<'_> {
    pub(super) const POLICIES: [&'static str; 3] = ["fail", "continue", "best_effort"];
}

/// Replaces the entry agent by a random graph.
pub(super) fn plant(dice: &mut Dice, definition: &mut Definition, parts: GraphParts<'_>) {
    let written = graph(dice, parts);
    // Some of the values can never be written, and then their steps end otherwise.
    let access = SharedAccess::default();
    let shared = SharedSurroundings { access: &access, writers: Vec::new(), has_value: &|_| true, help: "" };
    let around = GraphSurroundings {
        roles: &|role| definition.roles.contains_key(role),
        role_names: Vec::new(),
        given: vec!["list"],
        shared: Some(shared),
        nodes_max: limit::GRAPH_NODES_MODEL_MAX,
    };
    let graph = Graph::parse(&written, &around).unwrap_or_else(|problems| panic!("{problems:?}\n{written}"));
    definition.limits.agents_max = definition.limits.agents_max.max(graph.agents_min() as u32 + 1);
    let name: ValueName = crate::fixture::parse("list");
    definition.inputs.insert(name, json!(["ash", "oak", "elm"]));
    definition.entry = RoleName::of_graphs();
    definition.graph = Some(Arc::new(graph));
}

/// A random graph, as a model writes it.
pub(super) fn graph(dice: &mut Dice, parts: GraphParts<'_>) -> Value {
    let mut writer = Writer { parts, names: 0, visible: Vec::new() };
    let count = dice.between(1, parts.steps_max);
    let steps: Vec<Value> = (0..count).map(|_| writer.node(dice, parts.depth)).collect();
    json!({
        "steps": steps,
        "on_partial_success": dice.pick(parts.policies),
        "max_parallel": dice.between(1, 4),
    })
}

/// Writes nodes whose inputs exist.
struct Writer<'a> {
    parts: GraphParts<'a>,
    names: u32,
    /// Outputs that the next node may read.
    visible: Vec<String>,
}

impl Writer<'_> {
    fn node(&mut self, dice: &mut Dice, depth: u32) -> Value {
        let mut node = match if depth == 0 { 0 } else { dice.below(12) } {
            1 => json!({ "sequence": self.members(dice, depth) }),
            2 | 3 => json!({ "parallel": self.members(dice, depth), "max_parallel": dice.between(1, 3) }),
            4 if self.parts.list => {
                let inner = self.hidden(dice, depth);
                json!({ "map": inner, "over": "list", "output_to": self.output() })
            }
            5 | 6 if self.parts.races => {
                let inner = [self.hidden(dice, depth), self.hidden(dice, depth)];
                let inner = inner.map(|inner| json!({ "sequence": self.with_value(inner) }));
                json!({ "race": inner, "output_to": self.output() })
            }
            7 => {
                let inner = self.hidden(dice, 1);
                let inner = self.with_value(inner);
                let majority = dice.pick(&["half", "all", "most"]);
                json!({ "vote": { "sequence": inner }, "voters": 3, "majority": majority, "output_to": self.output() })
            }
            8 => {
                let members = self.members(dice, depth);
                let until = dice.pick(&["round >= 2", "true", "false"]);
                json!({ "loop": members, "until": until, "max_rounds": dice.between(1, 3), "on_max_rounds": dice.pick(&["fail", "continue"]) })
            }
            9 if self.parts.list => {
                let inner = self.hidden(dice, depth);
                let case = if dice.once_in(3) { "oak" } else { "ash" };
                json!({ "choose": { case: inner }, "on": "list[0]" })
            }
            10 => {
                let mut ask = json!({ "ask": "Well?", "output_to": self.output() });
                if self.parts.timeouts {
                    (ask["timeout"], ask["default"]) = (json!("2s"), json!("yes"));
                }
                ask
            }
            _ => return self.step(dice),
        };
        if dice.once_in(5) && node.get("ask").is_none() && self.parts.budgets {
            node["budget"] = json!({ "steps": dice.between(0, 6), "tokens": dice.between(0, 4_000) });
        }
        if dice.once_in(6) && node.get("ask").is_none() && self.parts.timeouts {
            node["timeout"] = json!(format!("{}ms", dice.between(1, 4_000)));
        }
        node["required"] = json!(!dice.once_in(4));
        node
    }

    /// Members that end with a value: a parallel group has none.
    fn with_value(&self, mut members: Vec<Value>) -> Vec<Value> {
        let has_value = |node: &Value| ["agent_id", "ask", "map"].iter().any(|key| node.get(key).is_some());
        if !members.last().is_some_and(has_value) {
            let role = self.parts.roles.first();
            members.push(json!({ "agent_id": role, "task_description": "Sum it up." }));
        }
        members
    }

    fn step(&mut self, dice: &mut Dice) -> Value {
        let mut step = json!({
            "agent_id": dice.pick(self.parts.roles),
            "task_description": "Do it.",
            "required": !dice.once_in(4),
            "retry": dice.below(2),
        });
        if let Some(input) = dice.pick(&self.visible).filter(|_| dice.once_in(2)) {
            let mark = if dice.once_in(3) { "?" } else { "" };
            step["input_from"] = json!([format!("{input}{mark}")]);
        }
        if let Some(key) = dice.pick(self.parts.shared).filter(|_| dice.once_in(4)) {
            let is_optional = dice.once_in(4);
            let input = format!("shared.{key}{}", if is_optional { "?" } else { "" });
            match step.get_mut("input_from").and_then(Value::as_array_mut) {
                Some(inputs) => inputs.push(json!(input)),
                None => step["input_from"] = json!([input]),
            }
            if !is_optional && dice.once_in(3) {
                step["on_missing"] = json!("fail");
            }
        }
        if dice.once_in(3) {
            step["undo"] = json!("Take it back.");
        }
        if dice.once_in(6) {
            let on_list = if self.parts.list { "list | length > 2" } else { "goal == 'x'" };
            step["when"] = json!(dice.pick(&["true", "false", on_list]));
        }
        if dice.once_in(2) {
            step["output_to"] = json!(self.output());
        }
        step
    }

    fn output(&mut self) -> String {
        self.names += 1;
        let name = format!("v{}", self.names);
        self.visible.push(name.clone());
        name
    }

    fn members(&mut self, dice: &mut Dice, depth: u32) -> Vec<Value> {
        (0..dice.between(1, 3)).map(|_| self.node(dice, depth - 1)).collect()
    }

    /// Members whose outputs cannot be seen outside.
    fn hidden(&mut self, dice: &mut Dice, depth: u32) -> Vec<Value> {
        let before = self.visible.len();
        let members = self.members(dice, depth);
        self.visible.truncate(before);
        members
    }
}

/// What is known of the graphs of a tree.
#[derive(Clone, Debug, Default)]
pub(super) struct GraphLaws {
    frames: BTreeMap<(AgentId, FrameIx), Running>,
    undo: BTreeMap<AgentId, Vec<(u32, String)>>,
    ended: BTreeSet<AgentId>,
    written: BTreeSet<ValueName>,
    /// Graphs that a person ended, and steps that one left out.
    stopped: BTreeSet<AgentId>,
    skipped: BTreeSet<(AgentId, StepId)>,
}

#[derive(Clone, Debug)]
struct Running {
    start: NodeStart,
    live: u32,
    won: bool,
}

impl GraphLaws {
    /// Judges an event by the world before it.
    pub(super) fn see(&mut self, before: &World, event: &Event) -> Law {
        match event {
            Event::NodeStarted(start) => self.started(before, start),
            Event::NodeEnded { graph, frame, end, .. } => self.node_ended(before, graph, *frame, end),
            Event::ValueWritten { name, .. } => {
                self.written.insert(name.clone());
                Ok(())
            }
            Event::AgentSpawned(spawned) => self.spawned(before, spawned),
            Event::GraphReplanned { agent, change, .. } => {
                match change {
                    PlanChange::End => drop(self.stopped.insert(agent.clone())),
                    PlanChange::Skip { steps } => {
                        self.skipped.extend(steps.iter().map(|step| (agent.clone(), step.clone())));
                    }
                    PlanChange::Instruct { .. } => {}
                }
                Ok(())
            }
            Event::AgentEnded { agent, exit, .. } => self.agent_ended(agent, exit),
            _ => Ok(()),
        }
    }

    fn started(&mut self, before: &World, start: &NodeStart) -> Law {
        let run = before.agents().find(&start.graph).and_then(|ix| before.graphs().run(ix));
        hold(run.is_some(), || format!("{} begins without its graph", start.name))?;
        if start.of == StartOf::Undo {
            let last = self.undo.entry(start.graph.clone()).or_default().pop();
            hold(last == Some((start.node, start.name.clone())), || {
                format!("{} is undone instead of {last:?}", start.name)
            })?;
            hold(self.ended.contains(&start.graph), || {
                format!("{} is undone before the graph failed", start.name)
            })?;
        }
        if let Some(within) = start.within {
            let key = (start.graph.clone(), within);
            let Some(group) = self.frames.get_mut(&key) else {
                return Err(format!("{} begins in a group that has ended", start.name));
            };
            hold(!group.won, || format!("{} begins in a race that was won", start.name))?;
            group.live += 1;
        }
        let running = Running { start: start.clone(), live: 0, won: false };
        let again = self.frames.insert((start.graph.clone(), start.frame), running);
        hold(again.is_none(), || format!("frame {} begins twice", start.frame))
    }

    /// The agent of a step is spawned only if its inputs have values, as far as the whole graph sees them.
    fn spawned(&self, before: &World, spawned: &Spawned) -> Law {
        let Attachment::Step { frame } = spawned.attachment else { return Ok(()) };
        let graphs = self.frames.iter().filter(|((_, ix), _)| *ix == frame);
        for ((graph, _), running) in graphs {
            let Some(run) = before.agents().find(graph).and_then(|ix| before.graphs().run(ix)) else {
                continue;
            };
            let Some(step) = run.graph().node(running.start.node).step() else { continue };
            if running.start.of == StartOf::Node && spawned.parent.as_ref() == Some(graph) {
                let unwanted = (graph.clone(), run.graph().node(running.start.node).id.clone());
                let is_stopped = self.stopped.contains(graph) || self.skipped.contains(&unwanted);
                hold(!is_stopped, || format!("{} runs, which a person did not want", spawned.agent))?;
            }
            if running.start.of == StartOf::Undo || self.is_hidden(run, graph, &running.start) {
                continue;
            }
            let missing =
                step.inputs.iter().find(|input| !input.optional && !self.written.contains(&input.name));
            hold(missing.is_none(), || format!("{} runs without its input {missing:?}", spawned.agent))?;
        }
        Ok(())
    }

    /// Whether it is in a map, race or vote, whose values are their own.
    fn is_hidden(&self, run: &GraphRun, graph: &AgentId, start: &NodeStart) -> bool {
        let mut next = start.within;
        while let Some(group) = next.and_then(|within| self.frames.get(&(graph.clone(), within))) {
            let kind = &run.graph().node(group.start.node).kind;
            if matches!(kind, NodeKind::Map { .. } | NodeKind::Race { .. } | NodeKind::Vote { .. }) {
                return true;
            }
            next = group.start.within;
        }
        false
    }

    fn node_ended(&mut self, before: &World, graph: &AgentId, frame: FrameIx, end: &NodeEnd) -> Law {
        let Some(Running { start, live, .. }) = self.frames.remove(&(graph.clone(), frame)) else {
            return Err(format!("frame {frame} ends twice or never began"));
        };
        hold(live == 0, || format!("{} ends with {live} members that run", start.name))?;
        let ix = before.agents().find(graph);
        let Some(run) = ix.and_then(|ix| before.graphs().run(ix)) else { return Err("no graph".to_owned()) };
        if let (NodeEnd::Succeeded { undo: Some(_), .. }, StartOf::Node) = (end, start.of) {
            self.undo.entry(graph.clone()).or_default().push((start.node, start.name.clone()));
        }
        match start.within {
            Some(within) => {
                let Some(group) = self.frames.get_mut(&(graph.clone(), within)) else {
                    return Err(format!("{} outlived its group", start.name));
                };
                group.live -= 1;
                let is_race = matches!(run.graph().node(group.start.node).kind, NodeKind::Race { .. });
                group.won |= is_race && end.is_success();
            }
            // It was stopped from outside.
            None if *end == NodeEnd::Cancelled => drop(self.ended.remove(graph)),
            None if start.of == StartOf::Node => drop(self.ended.insert(graph.clone())),
            None => {}
        }
        Ok(())
    }

    fn agent_ended(&mut self, agent: &AgentId, exit: &Exit) -> Law {
        // A graph that ended on its own has undone everything, unless it succeeded or was stopped.
        let left = self.undo.remove(agent).unwrap_or_default();
        let is_over = self.ended.remove(agent);
        let open = self.frames.iter().find(|((graph, _), _)| graph == agent);
        hold(open.is_none(), || format!("{agent} ended, and {open:?} did not"))?;
        let failed = matches!(exit, Exit::Failed { .. }) && is_over;
        let is_own = failed
            && !matches!(exit, Exit::Failed { error } if error.code == "timeout" || error.code == "made_up");
        hold(!is_own || left.is_empty(), || format!("{agent} failed and did not undo {left:?}"))
    }
}
