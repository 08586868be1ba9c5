//! Graphs: which step runs next, and what follows from its end.
//!
//! A frame is looked at when it begins and whenever one of its members ended. Looking at it starts members, ends it, or
//! does nothing; frames that have to be looked at are in a list, so nothing recurses. What was evaluated is in the
//! events.

mod begin;
mod finish;
mod replan;
mod scope;
mod shared_inputs;
mod step_values;
mod vote;

use crate::definition::{GraphNode, NodeIx, NodeKind, OnMaxRounds, OnPartialSuccess};
use crate::primitives::{ALL_ALLOWED, Reworded, limit};
use crate::record::{Event, Exit, Failure, FailureCode, FrameIx, NodeEnd, Outcome, Skip, StartOf};
use crate::rules::{Draft, StepOver, agent, call};
use crate::world::{AgentIx, AgentState, GraphRun, NodeFrame, World};

pub(crate) use begin::{run_pipeline, start_root};
pub(crate) use finish::so_far;
pub(crate) use replan::replan;
pub(crate) use shared_inputs::{begin_waiting, cancel_waiting, end_idle_wait};

use begin::Begin;
use scope::Scope;

/// The frames that have to be looked at, the next one last.
type Work = Vec<FrameIx>;

/// The agent or question of a step ended, or the agent of a group.
pub(crate) fn step_over(draft: &mut Draft<'_>, over: &StepOver) {
    let graph = over.graph;
    // A graph that is being stopped decides nothing any more.
    if !is_live(draft, graph) {
        return;
    }
    let Some(frame) = run(draft, graph).frame(over.frame) else { return };
    let mut work = Work::new();
    let is_group = frame.of != StartOf::Undo && run(draft, graph).graph.node(frame.node).members().is_some();
    let is_stopped = stopped_above(draft, graph, over.frame) || run(draft, graph).is_ended_by_person();
    let end = match &over.exit {
        Exit::Cancelled { .. } if is_stopped => NodeEnd::Cancelled,
        Exit::Completed if is_group => NodeEnd::succeeded(),
        Exit::Completed => step_values::completed(draft, graph, over.frame),
        exit => NodeEnd::from_exit(exit),
    };
    end_frame(draft, graph, over.frame, end, &mut work);
    look(draft, graph, &mut work);
}

/// Ends what still runs in a graph whose agent is about to end, the inner frames first: nothing of it is of use any more.
/// Before rules 6 those frames had no end.
pub(crate) fn stopped(draft: &mut Draft<'_>, graph: AgentIx) {
    let Some(run) = draft.graphs().run(graph).filter(|_| draft.rules() >= 6) else { return };
    let open: Vec<(FrameIx, String)> = run.frames().map(|(ix, frame)| (ix, frame.name.clone())).collect();
    let id = draft.agent_id(graph).clone();
    // A member begins after its group.
    for (frame, name) in open.into_iter().rev() {
        draft.record(Event::NodeEnded { graph: id.clone(), frame, name, end: NodeEnd::Cancelled });
    }
}

/// Looks at frames until nothing is left to do.
fn look(draft: &mut Draft<'_>, graph: AgentIx, work: &mut Work) {
    while let Some(frame) = work.pop() {
        if !is_live(draft, graph) {
            return;
        }
        match next(draft, graph, frame) {
            Next::Wait => {}
            Next::Begin(_) if run(draft, graph).is_ended_by_person() => {
                let is_idle = run(draft, graph).frame(frame).is_some_and(|frame| frame.live.is_empty());
                if is_idle {
                    end_frame(draft, graph, frame, NodeEnd::Cancelled, work);
                }
            }
            Next::Begin(begin) => {
                // There may be room for another member.
                work.push(frame);
                begin::begin(draft, graph, begin, work);
            }
            Next::End(end) => end_frame(draft, graph, frame, end, work),
        }
    }
}

enum Next {
    Wait,
    Begin(Begin),
    End(NodeEnd),
}

fn next(draft: &Draft<'_>, graph: AgentIx, ix: FrameIx) -> Next {
    let run = run(draft, graph);
    let Some(frame) = run.frame(ix) else { return Next::Wait };
    let node = run.graph.node(frame.node);
    if node.members().is_none() || frame.of == StartOf::Undo {
        return Next::Wait;
    }
    if is_stopped(draft, run, ix) {
        return if frame.live.is_empty() { stopped_end(draft, run, frame) } else { Next::Wait };
    }
    let begin = |node: NodeIx, place: u32| {
        Next::Begin(Begin { node, within: Some(ix), place, attempt: 0, of: StartOf::Node })
    };
    let is_idle = frame.live.is_empty();
    let members = match node.members() {
        Some(members) => members,
        None => return Next::Wait,
    };
    let place = if matches!(node.kind, NodeKind::Loop { .. }) { frame.round } else { 0 };
    match &node.kind {
        NodeKind::Step(_) | NodeKind::Ask(_) => Next::Wait,
        NodeKind::Map { max_parallel, .. } if frame.of == StartOf::Node => {
            let count = frame.items.len() as u32;
            if frame.is_too_large() {
                let message = format!(
                    "its results have more than {} bytes together: let each step answer less, or give it no `output_to` and let it write files",
                    limit::VALUE_BYTES_MAX
                );
                return Next::End(NodeEnd::failed(FailureCode::ValueTooLarge, message));
            }
            if frame.cursor < count && has_room(draft, run, frame, *max_parallel) {
                let (node, place) = (frame.node, frame.cursor);
                return Next::Begin(Begin { node, within: Some(ix), place, attempt: 0, of: StartOf::Item });
            }
            if is_idle && frame.cursor >= count { done(frame) } else { Next::Wait }
        }
        NodeKind::Sequence { .. } | NodeKind::Map { .. } | NodeKind::Loop { .. } if !is_idle => Next::Wait,
        NodeKind::Loop { until, max_rounds, on_max_rounds, .. } => match members.at(frame.cursor) {
            Some(member) => begin(member, place),
            None if frame.failure.is_some() => done(frame),
            None => match until.holds(&Scope::inside(draft, graph, ix)) {
                Ok(true) => done(frame),
                Ok(false) if frame.round + 1 < *max_rounds => begin(members.first, frame.round + 1),
                Ok(false) if *on_max_rounds == OnMaxRounds::Continue => done(frame),
                Ok(false) => Next::End(too_many_rounds(draft.rules(), *max_rounds, until.source())),
                Err(fault) => {
                    Next::End(NodeEnd::failed(FailureCode::BadCondition, format!("`until`: {fault}")))
                }
            },
        },
        NodeKind::Sequence { .. } | NodeKind::Map { .. } => {
            members.at(frame.cursor).map_or_else(|| done(frame), |member| begin(member, place))
        }
        NodeKind::Parallel { max_parallel, .. } => {
            let member = match &frame.order {
                Some(order) => order.ready.first().copied(),
                None => members.at(frame.cursor),
            };
            match member {
                Some(member) if has_room(draft, run, frame, *max_parallel) => {
                    begin(member, member - members.first)
                }
                None if is_idle => done(frame),
                Some(_) | None => Next::Wait,
            }
        }
        NodeKind::Race { .. } => match members.at(frame.cursor) {
            Some(member) => begin(member, frame.cursor),
            None if is_idle => Next::End(nobody_won(draft.rules(), frame)),
            None => Next::Wait,
        },
        NodeKind::Vote { rule, .. } => {
            let voters = members.count.saturating_mul(rule.voters);
            if frame.cursor < voters {
                return begin(members.first + frame.cursor % members.count, frame.cursor);
            }
            if is_idle { Next::End(vote::count(draft.rules(), rule, &frame.collected)) } else { Next::Wait }
        }
        NodeKind::Choose { on, cases, .. } => match (frame.cursor, is_idle) {
            (0, _) => match on.value(&Scope::inside(draft, graph, ix)) {
                Ok(value) => match scope::case(&value, cases)
                    .or_else(|| (members.count as usize > cases.len()).then_some(cases.len()))
                {
                    Some(case) => begin(members.first + case as u32, case as u32),
                    None => Next::End(NodeEnd::Skipped { why: Skip::NoCase }),
                },
                Err(fault) => Next::End(NodeEnd::failed(FailureCode::BadCondition, format!("`on`: {fault}"))),
            },
            (_, true) => done(frame),
            (_, false) => Next::Wait,
        },
    }
}

/// Whether one more member of a group may run.
fn has_room(world: &World, run: &GraphRun, frame: &NodeFrame, own: Option<u32>) -> bool {
    let most = own.or(run.graph.max_parallel).unwrap_or(world.limits().children_max).max(1);
    frame.live.len() < most as usize
}

/// The end of a group with nothing left to start.
fn done(frame: &NodeFrame) -> Next {
    Next::End(match &frame.failure {
        Some(error) => NodeEnd::Failed { error: error.clone(), retried: false },
        None => NodeEnd::succeeded(),
    })
}

const STILL_FALSE: Reworded = Reworded::new("is still false", "does not hold");
const NOBODY_WON: Reworded = Reworded::new("no member won the race", "nobody won the race");

fn too_many_rounds(rules: u32, max_rounds: u32, until: &str) -> NodeEnd {
    let (holds, most) = (STILL_FALSE.under(rules), ALL_ALLOWED.under(rules));
    let message = format!(
        "`{until}` {holds} after {max_rounds} rounds, {most}: raise `max_rounds`, or write `on_max_rounds: continue`"
    );
    NodeEnd::failed(FailureCode::MaxRounds, message)
}

fn nobody_won(rules: u32, frame: &NodeFrame) -> NodeEnd {
    let nobody = NOBODY_WON.under(rules);
    match &frame.failure {
        Some(Failure { code, message }) => NodeEnd::failed(code.clone(), format!("{nobody}: {message}")),
        None => NodeEnd::failed(FailureCode::NobodyWon, format!("{nobody}: every member was skipped")),
    }
}

/// The end of a group that starts nothing more, once its members have ended.
fn stopped_end(draft: &Draft<'_>, run: &GraphRun, frame: &NodeFrame) -> Next {
    let node = run.graph.node(frame.node);
    if let (NodeKind::Race { .. }, Some(winner)) = (&node.kind, frame.winner) {
        return Next::End(NodeEnd::Succeeded { winner: Some(winner), undo: None });
    }
    // Its own agent is being stopped or has ended, and its end says why.
    if frame.agent.is_some_and(|ix| !is_live(draft, ix)) {
        return Next::Wait;
    }
    match &frame.failure {
        Some(error) => Next::End(NodeEnd::Failed { error: error.clone(), retried: false }),
        None => Next::End(NodeEnd::Cancelled),
    }
}

/// Whether a group starts nothing more because of its own members.
fn stops_itself(run: &GraphRun, frame: &NodeFrame) -> bool {
    match &run.graph.node(frame.node).kind {
        NodeKind::Race { .. } => frame.winner.is_some(),
        NodeKind::Vote { .. } => false,
        _ => frame.failure.is_some() && run.graph.on_partial_success == OnPartialSuccess::Fail,
    }
}

/// Whether a frame starts nothing more: it or a group around it has its result, or its agent is being stopped.
fn is_stopped(draft: &Draft<'_>, run: &GraphRun, ix: FrameIx) -> bool {
    run.up(ix).any(|(_, frame)| {
        stops_itself(run, frame)
            || (run.graph.node(frame.node).members().is_some()
                && frame.agent.is_some_and(|ix| !is_live(draft, ix)))
    })
}

/// Whether the groups around a frame start nothing more.
fn stopped_above(draft: &Draft<'_>, graph: AgentIx, ix: FrameIx) -> bool {
    let run = run(draft, graph);
    let within = run.frame(ix).and_then(|frame| frame.within);
    within.is_some_and(|within| is_stopped(draft, run, within))
}

/// Records the end of a frame and what follows: another attempt, the end of members that are no longer needed, a look
/// at the group around it, or the end of the graph.
fn end_frame(draft: &mut Draft<'_>, graph: AgentIx, ix: FrameIx, end: NodeEnd, work: &mut Work) {
    let Some(frame) = run(draft, graph).frame(ix) else { return };
    let (within, of, agent) = (frame.within, frame.of, frame.agent);
    let again = Begin { node: frame.node, within, place: frame.place, attempt: frame.attempt + 1, of };
    let (name, is_stopped) = (frame.name.clone(), stopped_above(draft, graph, ix));
    let is_step = node_of(run(draft, graph), frame).members().is_none();
    // Members of a group that ended early are not needed any more.
    if !frame.live.is_empty() {
        stop_members(draft, graph, ix);
    }
    let end = match step_values::publish(draft, graph, ix, &end) {
        Ok(()) => end,
        Err(refusal) => NodeEnd::failed(FailureCode::from(&refusal), refusal.text(draft.rules())),
    };
    let graph_run = run(draft, graph);
    let is_again = (may_retry(graph_run, ix, &end) || begins_again(graph_run, ix, &end))
        && !is_stopped
        && !graph_run.is_ended_by_person();
    let end = finish::named(end, run(draft, graph), ix, is_again);
    let before = within.is_some_and(|within| stops(draft, graph, within));
    let id = draft.agent_id(graph).clone();
    draft.record(Event::NodeEnded { graph: id, frame: ix, name, end: end.clone() });
    if is_step {
        step_values::progress(draft, graph);
    }
    // A step's agent has ended on its own; a group's stands for nothing any more.
    if let Some(ix) = agent.filter(|ix| is_live(draft, *ix)) {
        let exit = match &end {
            NodeEnd::Succeeded { .. } | NodeEnd::Skipped { .. } => Exit::Completed,
            NodeEnd::Failed { error, .. } => Exit::Failed { error: error.clone() },
            NodeEnd::Cancelled => Exit::Cancelled { reason: "its group has its result".to_owned() },
        };
        agent::end(draft, ix, exit, None);
    }
    if is_again {
        return begin::begin(draft, graph, again, work);
    }
    match within {
        Some(within) => {
            if !before && stops(draft, graph, within) {
                stop_members(draft, graph, within);
            }
            work.push(within);
        }
        None => finish::finish(draft, graph, work),
    }
}

fn stops(draft: &Draft<'_>, graph: AgentIx, ix: FrameIx) -> bool {
    let run = run(draft, graph);
    run.frame(ix).is_some_and(|frame| stops_itself(run, frame))
}

fn may_retry(run: &GraphRun, ix: FrameIx, end: &NodeEnd) -> bool {
    let Some(frame) = run.frame(ix).filter(|frame| frame.of == StartOf::Node) else { return false };
    // A person who cancels a step does not want it again, and nothing else of this changes on its own.
    let is_worth_it = |error: &Failure| {
        !matches!(
            error.code,
            FailureCode::Cancelled
                | FailureCode::MissingInput
                | FailureCode::Refused("deadline_passed" | "agents_limit")
        )
    };
    let node = run.graph.node(frame.node);
    matches!(end, NodeEnd::Failed { error, .. } if is_worth_it(error)) && frame.attempt < node.retry
}

/// Whether a person stopped a step so that it begins again.
fn begins_again(run: &GraphRun, ix: FrameIx, end: &NodeEnd) -> bool {
    matches!(end, NodeEnd::Failed { .. }) && run.begins_again(ix)
}

/// Stops every member of a group that runs. They end when nothing of them runs any more.
fn stop_members(draft: &mut Draft<'_>, graph: AgentIx, ix: FrameIx) {
    let mut below: Work = run(draft, graph)
        .frame(ix)
        .map(|frame| frame.live.iter().rev().copied().collect())
        .unwrap_or_default();
    while let Some(ix) = below.pop() {
        let Some(frame) = run(draft, graph).frame(ix) else { continue };
        match (frame.agent, frame.question) {
            (Some(agent), _) => {
                let reason = "the result of its group is certain without it".to_owned();
                agent::end(draft, agent, Exit::Cancelled { reason }, None);
            }
            (None, Some(question)) if draft.call(question).is_some() => {
                call::end(draft, question, Outcome::Cancelled);
            }
            (None, None) if !frame.waits_for.is_empty() => shared_inputs::cancel(draft, graph, ix),
            (None, _) => below.extend(frame.live.iter().rev().copied()),
        }
    }
}

fn run<'d>(draft: &'d Draft<'_>, graph: AgentIx) -> &'d GraphRun {
    match draft.graphs().run(graph) {
        Some(run) => run,
        None => unreachable!("the graph runs"),
    }
}

fn is_live(draft: &Draft<'_>, ix: AgentIx) -> bool {
    draft.agents().living(ix).is_some_and(|agent| matches!(agent.state, AgentState::Live))
}

/// The nearest agent around a frame: a group's, or the graph's. What runs in the frame is below it.
fn holder(run: &GraphRun, graph: AgentIx, within: Option<FrameIx>) -> AgentIx {
    within.and_then(|within| run.up(within).find_map(|(_, frame)| frame.agent)).unwrap_or(graph)
}

fn node_of<'r>(run: &'r GraphRun, frame: &NodeFrame) -> &'r GraphNode {
    run.graph.node(frame.node)
}
