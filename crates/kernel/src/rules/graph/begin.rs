//! How graphs, groups and steps begin.

use std::sync::Arc;

use serde_json::Value;

use super::{Scope, Work, end_frame, holder, is_live, look, replan, run, shared_inputs, step_values};
use crate::budget::Terms;
use crate::context::Frame as AnswerFrame;
use crate::definition::{
    Allow, AskStep, AskTimeout, BudgetSpec, Builtin, Caps, Definition, Graph, GraphNode, GraphStep,
    GraphSurroundings, Network, NodeIx, NodeKind, Recursion, Refusal, Share, SharedSurroundings,
};
use crate::primitives::{Actor, AgentId, Body, ModelName, RoleName, ThreadId, ValueName, cut, limit};
use crate::record::{
    Alarm, Attachment, Event, FailureCode, FrameIx, NodeEnd, NodeStart, OnTimeout, Question, Skip, Spawned,
    StartOf,
};
use crate::rules::request::{
    AtSpentCeiling, Collect, Spawn, Start, check_agents, check_depth, check_room, room_for_call, terms,
};
use crate::rules::{Draft, clock, shared};
use crate::world::{AgentIx, GraphRun, NodeFrame};

/// A frame that is to begin.
#[derive(Clone, Copy)]
pub(super) struct Begin {
    pub(super) node: NodeIx,
    pub(super) within: Option<FrameIx>,
    pub(super) place: u32,
    pub(super) attempt: u32,
    pub(super) of: StartOf,
}

/// Starts a tree that runs a graph: its root stands for the graph.
pub(crate) fn start_root(draft: &mut Draft<'_>, start: &Start, by: &Actor) -> AgentId {
    let Start { definition, trace, sources, goal_tokens: _ } = start;
    let agent = AgentId::of_role(&RoleName::of_graphs());
    let budget = definition.root_budget();
    let caps = Caps {
        models: Allow::All,
        below: Allow::All,
        tools: Allow::All,
        spawn: Allow::All,
        network: stand_in_network(definition),
        host_requests: definition.host_requests(),
        folders: definition.folders.clone(),
        depth_max: definition.limits.depth_max,
    };
    let thread = definition.thread.clone().unwrap_or_else(|| ThreadId::of_tree(draft.tree()));
    let due = clock::of_group(draft, draft.now(), &budget);
    let goal = definition.goal.clone();
    let terms = Terms::plain(budget.limit);
    let spawned = Spawned {
        due,
        ..stand_in(agent.clone(), None, goal, thread, caps, terms, &budget, Attachment::Root)
    };
    let rules = draft.rules();
    let (trace, sources) = (*trace, sources.clone());
    draft.record(Event::TreeStarted { rules, definition: Arc::clone(definition), trace, sources });
    draft.record(Event::AgentSpawned(Box::new(spawned)));
    for (name, value) in &definition.inputs {
        let put = shared::put(draft, name, Body::text(value.to_string()), by.clone());
        assert!(put.is_ok(), "the definition was checked");
    }
    begin_graph(draft, &agent, None);
    agent
}

/// What the steps of a graph may connect to together. Graphs without hosts keep what journals have always had there: it
/// grants nothing, because every step has at most what its role names.
fn stand_in_network(definition: &Definition) -> Network {
    let hosts = definition.all_hosts();
    if hosts.is_denied() { Network::Any } else { hosts }
}

/// Starts a graph that an agent asked for, below it. The call that asked ends with its result.
///
/// # Errors
/// Every problem of the graph; then nothing has started.
pub(crate) fn run_pipeline(draft: &mut Draft<'_>, caller: AgentIx, written: &Value) -> Result<(), Refusal> {
    if draft.halted().is_some() {
        return Err(Refusal::TreeHalted);
    }
    clock::check_deadline(draft, caller)?;
    check_depth(draft, caller)?;
    check_room(draft, caller)?;
    room_for_call(draft, caller)?;
    let graph = checked(draft, caller, written)?;
    let own = graph.nodes().first().and_then(|node| node.budget.as_deref()).cloned().unwrap_or_default();
    let terms = terms(draft, caller, &own, AtSpentCeiling::Refuse)?;
    let agent_terms = &draft.agent(caller).terms;
    let (caps, thread) = (Caps::clone(&agent_terms.caps), agent_terms.thread.clone());
    let agent = free_id(draft, |step| {
        let first = (draft.draw() as u32).wrapping_add(draft.agents().len() as u32);
        AgentId::drawn(&RoleName::of_graphs(), first.wrapping_add(step))
    });
    let attachment = Attachment::Call { call: draft.calls().next_id(), ask: draft.ask() };
    let due = clock::of_group(draft, draft.now(), &own);
    let (goal, parent) =
        (format!("a graph of {} steps", graph.steps().count()), Some(draft.agent_id(caller).clone()));
    let spawned =
        Spawned { due, ..stand_in(agent.clone(), parent, goal, thread, caps, terms, &own, attachment) };
    draft.record(Event::AgentSpawned(Box::new(spawned)));
    begin_graph(draft, &agent, Some(Arc::new(graph)));
    Ok(())
}

/// A graph as a model wrote it, within the rights of the agent that asks for it.
fn checked(draft: &Draft<'_>, caller: AgentIx, written: &Value) -> Result<Graph, Refusal> {
    let caps = &draft.agent(caller).terms.caps;
    let definition = draft.definition();
    if definition.roles.contains_key(&RoleName::of_graphs()) {
        return Err(Refusal::ReservedId { agent: AgentId::of_role(&RoleName::of_graphs()) });
    }
    let writes = Builtin::WriteContext.as_str();
    let shared = SharedSurroundings {
        access: &definition.shared,
        writers: definition
            .roles
            .iter()
            .filter(|(_, role)| role.caps.tools.has(writes))
            .map(|(name, _)| name)
            .collect(),
        has_value: &|name| draft.shared().find(name).is_some(),
        help: "write it with `write_context` before",
    };
    let around = GraphSurroundings {
        roles: &|role| definition.roles.contains_key(role) && caps.spawn.has(role),
        role_names: definition
            .roles
            .keys()
            .filter(|role| caps.spawn.has(*role))
            .map(RoleName::as_str)
            .collect(),
        given: definition.inputs.keys().map(ValueName::as_str).collect(),
        shared: Some(shared).filter(|_| draft.rules() >= shared_inputs::SINCE),
        nodes_max: limit::GRAPH_NODES_MODEL_MAX,
    };
    let problems = |problems: Vec<crate::definition::GraphProblem>| Refusal::BadGraph {
        problems: problems.iter().map(ToString::to_string).collect(),
    };
    let graph = Graph::parse(written, &around).map_err(problems)?;
    definition.check_graph(&graph)?;
    for (_, _, step) in graph.steps() {
        let (_, role) = definition.role(&step.agent_id)?;
        if role.program.is_none() {
            caps.check_child_model(&role.caps, &role.model)?;
        }
        caps.narrowed(&role.caps)?;
        let mut path = std::iter::once(caller).chain(draft.agents().above(caller));
        let is_above = |ix: AgentIx| draft.agent(ix).terms.role == step.agent_id;
        if role.recursive == Recursion::Refused && path.any(is_above) {
            let path = draft.agents().path(caller).iter().map(ToString::to_string).collect();
            return Err(Refusal::RoleCycle { role: step.agent_id.clone(), path });
        }
    }
    Ok(graph)
}

/// The agent that stands for a graph or a group: it holds a budget and takes no turns.
#[expect(clippy::too_many_arguments, reason = "they are the fields that differ")]
fn stand_in(
    agent: AgentId,
    parent: Option<AgentId>,
    goal: String,
    thread: ThreadId,
    caps: Caps,
    terms: Terms,
    budget: &BudgetSpec,
    attachment: Attachment,
) -> Spawned {
    Spawned {
        agent,
        parent,
        role: RoleName::of_graphs(),
        goal,
        model: ModelName::of_none(),
        thread,
        caps,
        terms,
        on_low: budget.on_low.clone().unwrap_or_default(),
        wrap_up: budget.wrap_up.unwrap_or_default(),
        repeats: budget.repeats.unwrap_or_default(),
        due: crate::record::Due::default(),
        attachment,
        talks: false,
        output_schema: None,
    }
}

fn begin_graph(draft: &mut Draft<'_>, agent: &AgentId, graph: Option<Arc<Graph>>) {
    draft.record(Event::GraphStarted { agent: agent.clone(), graph });
    let Some(ix) = draft.agents().find(agent) else { unreachable!("it was just spawned") };
    let mut work = Work::new();
    begin(draft, ix, Begin { node: 0, within: None, place: 0, attempt: 0, of: StartOf::Node }, &mut work);
    look(draft, ix, &mut work);
}

/// Begins a frame. One that cannot begin has begun and ended, so its group continues after it.
pub(super) fn begin(draft: &mut Draft<'_>, graph: AgentIx, begin: Begin, work: &mut Work) {
    let found = Arc::clone(&run(draft, graph).graph);
    let node = found.node(begin.node);
    let frame = run(draft, graph).next_frame();
    let prepared = prepare(draft, graph, node, &begin);
    let (items, waits_for, prepared) = match prepared {
        Ok(Prepared::Items(items)) => (Some(items), Vec::new(), Ok(Prepared::Group)),
        Ok(Prepared::Wait(names)) => (None, names, Ok(Prepared::Wait(Vec::new()))),
        other => (None, Vec::new(), other),
    };
    let name = name(run(draft, graph), node, &begin);
    let start = NodeStart {
        graph: draft.agent_id(graph).clone(),
        frame,
        node: begin.node,
        name,
        within: begin.within,
        place: begin.place,
        attempt: begin.attempt,
        of: begin.of,
        items,
        waits_for,
    };
    draft.record(Event::NodeStarted(Box::new(start)));
    let begun = prepared.and_then(|prepared| match prepared {
        Prepared::Step(task) => spawn(draft, graph, frame, node, &begin, task),
        Prepared::Wait(_) => Ok(()),
        Prepared::Ask(question) => ask(draft, graph, &begin, node, question),
        Prepared::Group | Prepared::Items(_) => {
            work.push(frame);
            group(draft, graph, frame, node, &begin)
                .map_err(|refusal| NodeEnd::failed(FailureCode::from(&refusal), refusal.text(draft.rules())))
        }
    });
    if let Err(end) = begun {
        end_frame(draft, graph, frame, end, work);
    }
}

/// Begins a step whose values are all there now.
pub(super) fn begin_waiting_step(draft: &mut Draft<'_>, graph: AgentIx, frame: FrameIx, work: &mut Work) {
    let found = Arc::clone(&run(draft, graph).graph);
    let Some(waiting) = run(draft, graph).frame(frame) else { return };
    let NodeFrame { node, within, place, attempt, of, .. } = *waiting;
    let begin = Begin { node, within, place, attempt, of };
    let node = found.node(node);
    let Some(step) = node.step() else { return };
    let begun = match task(draft, run(draft, graph), step, &begin) {
        Ok(Prepared::Step(task)) => spawn(draft, graph, frame, node, &begin, task),
        Ok(_) => return,
        Err(end) => Err(end),
    };
    if let Err(end) = begun {
        end_frame(draft, graph, frame, end, work);
    }
}

/// What is evaluated before a frame begins.
enum Prepared {
    Step(Task),
    /// For these shared values.
    Wait(Vec<ValueName>),
    Ask(String),
    Group,
    /// The items of a map, as JSON.
    Items(String),
}

struct Task {
    role: RoleName,
    goal: String,
    messages: Vec<crate::definition::GivenMessage>,
}

fn prepare(draft: &Draft<'_>, graph: AgentIx, node: &GraphNode, begin: &Begin) -> Result<Prepared, NodeEnd> {
    let run = run(draft, graph);
    if run.is_skipped(begin.node) && begin.of == StartOf::Node {
        return Err(NodeEnd::Skipped { why: Skip::Person });
    }
    let scope = Scope::before(draft, run, begin);
    if begin.of == StartOf::Undo {
        let (Some(undo), Some(step)) = (run.undo.last(), node.step()) else { return Ok(Prepared::Group) };
        let role = step.undo.as_ref().map_or(&step.agent_id, |undo| &undo.agent_id).clone();
        return Ok(Prepared::Step(Task { role, goal: undo.task.clone(), messages: Vec::new() }));
    }
    if let (Some(when), StartOf::Node) = (&node.when, begin.of) {
        match when.holds(&scope) {
            Ok(true) => {}
            Ok(false) => return Err(NodeEnd::Skipped { why: Skip::When }),
            Err(fault) => return Err(NodeEnd::failed(FailureCode::BadCondition, format!("`when`: {fault}"))),
        }
    }
    match &node.kind {
        NodeKind::Step(step) => task(draft, run, step, begin),
        NodeKind::Ask(ask) => match ask.question.render(&scope) {
            Ok(question) if !question.trim().is_empty() => Ok(Prepared::Ask(question)),
            Ok(_) => Err(NodeEnd::failed(FailureCode::BadTemplate, "the question is empty")),
            Err(fault) => Err(NodeEnd::failed(FailureCode::BadTemplate, format!("`ask`: {fault}"))),
        },
        NodeKind::Map { over, .. } if begin.of == StartOf::Node => {
            let value = over.value(&scope);
            let value = value
                .map_err(|fault| NodeEnd::failed(FailureCode::BadCondition, format!("`over`: {fault}")))?;
            let Some(items) = value.as_array() else {
                let message = format!(
                    "`{}` is not a list: let the step that writes it answer with one, by its `output_schema`",
                    over.source()
                );
                return Err(NodeEnd::failed(FailureCode::NotAList, message));
            };
            if items.len() > limit::GRAPH_ITEMS_MAX {
                let message = format!(
                    "`{}` has {} items, more than {}",
                    over.source(),
                    items.len(),
                    limit::GRAPH_ITEMS_MAX
                );
                return Err(NodeEnd::failed(FailureCode::TooManyItems, message));
            }
            Ok(Prepared::Items(value.to_string()))
        }
        _ => Ok(Prepared::Group),
    }
}

fn task(draft: &Draft<'_>, run: &GraphRun, step: &GraphStep, begin: &Begin) -> Result<Prepared, NodeEnd> {
    let inputs = match step_values::inputs(draft, run, begin.within, step) {
        Ok(inputs) => inputs,
        Err(missing) => return shared_inputs::missing(run, step, &missing).map(Prepared::Wait),
    };
    let goal = step.task.render(&Scope::before(draft, run, begin));
    let goal = goal
        .map_err(|fault| NodeEnd::failed(FailureCode::BadTemplate, format!("`task_description`: {fault}")))?;
    let instructions = run.instructions(begin.node).map(replan::message);
    let messages = step_values::messages(&inputs).into_iter().chain(instructions).collect();
    Ok(Prepared::Step(Task { role: step.agent_id.clone(), goal, messages }))
}

fn spawn(
    draft: &mut Draft<'_>,
    graph: AgentIx,
    frame: FrameIx,
    node: &GraphNode,
    begin: &Begin,
    task: Task,
) -> Result<(), NodeEnd> {
    let parent = holder(run(draft, graph), graph, begin.within);
    let schema =
        node.step().and_then(|step| step.output_schema.clone()).filter(|_| begin.of == StartOf::Node);
    let Task { role, goal, messages } = task;
    let parent = draft.agent_id(parent).clone();
    let by = Actor::Agent(parent.clone());
    let spawn = Spawn {
        parent,
        role,
        goal,
        goal_tokens: None,
        id: Some(agent_id(draft, graph, frame, node, begin)),
        model: None,
        tools: None,
        budget: node.budget.as_deref().cloned().unwrap_or_default(),
        collect: Collect::Detached,
        share: Some(Share::Goal),
        messages,
        talks: false,
        frame: AnswerFrame { window: None, output_schema: schema },
    };
    let spawned = spawn.decide_step(draft, &by, frame);
    spawned
        .map(drop)
        .map_err(|refusal| NodeEnd::failed(FailureCode::from(&refusal), refusal.text(draft.rules())))
}

fn ask(
    draft: &mut Draft<'_>,
    graph: AgentIx,
    begin: &Begin,
    node: &GraphNode,
    text: String,
) -> Result<(), NodeEnd> {
    let NodeKind::Ask(ask) = &node.kind else { unreachable!("only an ask asks") };
    let AskStep { timeout_ms, on_timeout, form, .. } = ask.as_ref();
    let asker = holder(run(draft, graph), graph, begin.within);
    room_for_call(draft, asker)
        .map_err(|refusal| NodeEnd::failed(FailureCode::from(&refusal), refusal.text(draft.rules())))?;
    let on_timeout = match on_timeout {
        AskTimeout::Fail => OnTimeout::Fail,
        AskTimeout::Cancel => OnTimeout::Cancel,
        AskTimeout::Default(answer) => OnTimeout::answer(cut(answer, limit::TEXT_BYTES_MAX)),
    };
    let (call, agent) = (draft.calls().next_id(), draft.agent_id(asker).clone());
    let at = draft.now().after_ms(timeout_ms.unwrap_or(limit::QUESTION_TIMEOUT_MS));
    let alarm = Alarm { timer: draft.next_timer(), at };
    let question = Question::new(text, on_timeout).in_form(form.clone());
    draft.record(Event::QuestionAsked { call, agent, ask: None, question, alarm });
    Ok(())
}

/// Spawns the agent that stands for a group with its own budget. The first group is the graph's own agent.
fn group(
    draft: &mut Draft<'_>,
    graph: AgentIx,
    frame: FrameIx,
    node: &GraphNode,
    begin: &Begin,
) -> Result<(), Refusal> {
    let Some(budget) = node.budget.as_deref().filter(|_| begin.within.is_some() && begin.of == StartOf::Node)
    else {
        return Ok(());
    };
    let above = holder(run(draft, graph), graph, begin.within);
    if !is_live(draft, above) {
        return Err(Refusal::AgentEnded { agent: draft.agent_id(above).clone(), state: "ending".to_owned() });
    }
    clock::check_deadline(draft, above)?;
    check_agents(draft)?;
    let terms = terms(draft, above, budget, AtSpentCeiling::AcceptRoots)?;
    let agent_terms = &draft.agent(above).terms;
    let (caps, thread) = (Caps::clone(&agent_terms.caps), agent_terms.thread.clone());
    let (parent, goal) = (Some(draft.agent_id(above).clone()), format!("the group `{}`", node.id));
    let due = clock::of_group(draft, draft.now(), budget);
    let id = agent_id(draft, graph, frame, node, begin);
    let spawned = Spawned {
        due,
        ..stand_in(id, parent, goal, thread, caps, terms, budget, Attachment::Step { frame })
    };
    draft.record(Event::AgentSpawned(Box::new(spawned)));
    Ok(())
}

/// A step's id with the numbers of the items, rounds and voters that it runs for: `check[3]`, `draft#2`.
fn name(run: &GraphRun, node: &GraphNode, begin: &Begin) -> String {
    if let (StartOf::Undo, Some(undo)) = (begin.of, run.undo.last()) {
        return undo.name.clone();
    }
    let mut name = node.id.to_string();
    for (mark, number) in numbers(run, begin) {
        match mark {
            Mark::Item => name.push_str(&format!("[{number}]")),
            Mark::Round => name.push_str(&format!("#{}", number + 1)),
        }
    }
    name
}

enum Mark {
    Item,
    Round,
}

/// The items, voters and later rounds around a frame, the outermost first.
fn numbers(run: &GraphRun, begin: &Begin) -> Vec<(Mark, u32)> {
    let mut numbers = Vec::new();
    let mut below = (begin.of, begin.place);
    let frames = begin.within.into_iter().flat_map(|within| run.up(within));
    for (_, frame) in frames {
        let kind = &run.graph.node(frame.node).kind;
        match (kind, below) {
            (_, (StartOf::Item, place)) => numbers.push((Mark::Item, place)),
            (NodeKind::Vote { rule, .. }, (_, place)) if rule.voters > 1 => numbers.push((Mark::Item, place)),
            (NodeKind::Loop { .. }, (_, place)) if place > 0 => numbers.push((Mark::Round, place)),
            _ => {}
        }
        below = (frame.of, frame.place);
    }
    numbers.reverse();
    numbers
}

/// The id of the agent of a frame: its node's, with the same numbers and the attempt, as far as that is free.
fn agent_id(draft: &Draft<'_>, graph: AgentIx, frame: FrameIx, node: &GraphNode, begin: &Begin) -> AgentId {
    let mut suffix = if begin.of == StartOf::Undo { "-undo".to_owned() } else { String::new() };
    for (mark, number) in numbers(run(draft, graph), begin) {
        match mark {
            Mark::Item => suffix.push_str(&format!("-{number}")),
            Mark::Round => suffix.push_str(&format!("-r{}", number + 1)),
        }
    }
    if begin.attempt > 0 {
        suffix.push_str(&format!("-t{}", begin.attempt + 1));
    }
    suffix.truncate(32);
    free_id(draft, |step| match step {
        0 => AgentId::of_step(&node.id, &suffix),
        1 => AgentId::of_step(&node.id, &format!("{suffix}-{frame}")),
        step => AgentId::of_step(&node.id, &format!("-{frame}-{step}")),
    })
}

fn free_id(draft: &Draft<'_>, id: impl Fn(u32) -> AgentId) -> AgentId {
    let is_free = |id: &AgentId| !id.is_reserved() && draft.agents().find(id).is_none();
    match (0..=u32::MAX).map(id).find(is_free) {
        Some(id) => id,
        None => unreachable!("a tree has far fewer agents than ids"),
    }
}
