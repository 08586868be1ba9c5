//! A person changes a graph that runs: an instruction for steps to come, steps that are not wanted, or its end. What is
//! done stays.

use super::{Work, end_frame, is_live, look, run, shared_inputs, stop_members};
use crate::definition::{GivenMessage, Refusal};
use crate::primitives::{Body, Category, Running, limit};
use crate::record::{Event, Exit, NodeEnd, PlanChange, Skip};
use crate::rules::{Draft, agent};
use crate::world::{AgentIx, GraphRun, NodeFrame};

/// What a step reads of an instruction.
pub(super) fn message(text: &str) -> GivenMessage {
    let text = format!(
        "A person has changed the task while the pipeline ran. This takes precedence over your task:\n{text}"
    );
    GivenMessage { category: Category::Dialog, body: Body::text(text) }
}

/// # Errors
/// If it names a step that does not exist, or one that has begun and is to be skipped.
pub(crate) fn replan(
    draft: &mut Draft<'_>,
    graph: AgentIx,
    change: &PlanChange,
    running: Running,
) -> Result<(), Refusal> {
    let agent = draft.agent_id(graph).clone();
    let Some(found) = draft.graphs().run(graph) else { return Err(Refusal::NoGraph { agent }) };
    if found.end.is_some() {
        return Err(Refusal::AgentEnded { agent, state: "ending".to_owned() });
    }
    check(found, change, running)?;
    draft.record(Event::GraphReplanned { agent, change: change.clone(), running });
    let waiting: Work =
        run(draft, graph).frames().filter(|(_, frame)| waits(frame)).map(|(ix, _)| ix).collect();
    let mut work = Work::new();
    match change {
        PlanChange::Instruct { .. } => stop_again(draft, graph),
        PlanChange::Skip { .. } => {
            for ix in waiting {
                let graph_run = run(draft, graph);
                if graph_run.frame(ix).is_some_and(|frame| graph_run.is_skipped(frame.node)) {
                    end_frame(draft, graph, ix, NodeEnd::Skipped { why: Skip::Person }, &mut work);
                }
            }
        }
        PlanChange::End => {
            match running {
                Running::Stops => stop_members(draft, graph, 0),
                // What waits for a shared value has done nothing yet.
                Running::Finishes => {
                    waiting.into_iter().for_each(|ix| shared_inputs::cancel(draft, graph, ix));
                }
            }
            work.extend(run(draft, graph).frames().map(|(ix, _)| ix));
        }
    }
    look(draft, graph, &mut work);
    Ok(())
}

/// Whether a step has begun and waits for shared values, so nothing of it runs.
fn waits(frame: &NodeFrame) -> bool {
    !frame.waits_for.is_empty() && frame.agent.is_none()
}

fn check(run: &GraphRun, change: &PlanChange, running: Running) -> Result<(), Refusal> {
    let too_many = |what: &str, count: usize, count_max: usize| Refusal::TooMany {
        what: what.to_owned(),
        count,
        count_max,
    };
    let steps = change.steps();
    if steps.len() > limit::NAMES_MAX {
        return Err(too_many("steps", steps.len(), limit::NAMES_MAX));
    }
    let count = run.instruction_count() + 1;
    if matches!(change, PlanChange::Instruct { .. }) && count > limit::GRAPH_INSTRUCTIONS_MAX {
        return Err(too_many("instructions", count, limit::GRAPH_INSTRUCTIONS_MAX));
    }
    let known = || {
        let nodes = run.graph().nodes().iter().skip(1).take(limit::NAMES_MAX);
        nodes.map(|node| node.id.to_string()).collect::<Vec<String>>()
    };
    if matches!(change, PlanChange::Skip { steps } if steps.is_empty()) {
        return Err(Refusal::UnknownStep { step: String::new(), known: known() });
    }
    for step in steps {
        let found = run.graph().find(step);
        let node = found.ok_or_else(|| Refusal::UnknownStep { step: step.to_string(), known: known() })?;
        let live = || run.frames().filter(move |(_, frame)| frame.node == node).map(|(_, frame)| frame);
        // It still reads an instruction, or is skipped, when it begins the next time.
        let is_to_come = !run.has_begun(node) || run.graph().repeats(node) || live().any(waits);
        let is_stopped = matches!(change, PlanChange::Instruct { .. })
            && (live().any(|frame| frame.agent.is_some() && running.stops())
                || run.graph().node(node).members().is_some());
        if !is_to_come && !is_stopped {
            return Err(Refusal::StepBegan { step: step.to_string() });
        }
    }
    Ok(())
}

/// Stops the steps that begin again with the instruction.
fn stop_again(draft: &mut Draft<'_>, graph: AgentIx) {
    let frames: Vec<_> = run(draft, graph).stopped_to_begin_again().collect();
    for frame in frames {
        if !is_live(draft, graph) {
            return;
        }
        let Some(frame) = run(draft, graph).frame(frame) else { continue };
        if let Some(step) = frame.agent {
            agent::end(draft, step, Exit::Cancelled { reason: "redirected".to_owned() }, None);
        }
    }
}
