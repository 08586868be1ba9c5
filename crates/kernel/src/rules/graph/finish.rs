//! How a graph ends: what succeeded is taken back if it failed, and its result names every step.

use serde_json::{Map, Value, json};

use super::begin::{Begin, begin};
use super::{Work, run};
use crate::definition::OnPartialSuccess;
use crate::primitives::{Body, limit};
use crate::record::{Exit, Failure, FailureCode, FrameIx, NodeEnd, StartOf};
use crate::rules::{Draft, agent};
use crate::world::{AgentIx, GraphRun};

/// A failure with the name of the step that failed, so it can be found wherever it is shown; the code stays.
pub(super) fn named(end: NodeEnd, run: &GraphRun, ix: FrameIx, retried: bool) -> NodeEnd {
    let NodeEnd::Failed { error: Failure { code, message }, .. } = end else { return end };
    let frame = run.frame(ix);
    let is_step = frame.is_some_and(|frame| run.graph.node(frame.node).members().is_none());
    let is_told = message.starts_with("step `") || message.starts_with("group `");
    let message = match frame.filter(|_| !is_told) {
        Some(frame) if is_step => format!("step `{}`: {message}", frame.name),
        Some(frame) if frame.within.is_some() => format!("group `{}`: {message}", frame.name),
        Some(_) | None => message,
    };
    NodeEnd::Failed { error: Failure { code, message }, retried }
}

/// The graph's first node has ended, or something was undone: undoes the next, or ends the graph.
pub(super) fn finish(draft: &mut Draft<'_>, graph: AgentIx, work: &mut Work) {
    let run = run(draft, graph);
    let Some(end) = run.end.clone() else { return };
    let is_enough = run.graph.on_partial_success == OnPartialSuccess::BestEffort && run.successes > 0;
    let exit = match end {
        NodeEnd::Succeeded { .. } | NodeEnd::Skipped { .. } => Exit::Completed,
        NodeEnd::Cancelled if run.is_ended_by_person() => Exit::Completed,
        NodeEnd::Failed { .. } if is_enough => Exit::Completed,
        NodeEnd::Failed { error, .. } => Exit::Failed { error },
        NodeEnd::Cancelled => Exit::failed(FailureCode::Cancelled, "every step was cancelled"),
    };
    if let (Exit::Failed { .. }, Some(undo)) = (&exit, run.undo.last()) {
        let undo = Begin { node: undo.node, within: None, place: 0, attempt: 0, of: StartOf::Undo };
        return begin(draft, graph, undo, work);
    }
    let result = result(draft, graph);
    agent::end(draft, graph, exit, Some(result));
}

/// The root of a tree has the value of its last step as its result; a graph that an agent asked for tells that agent
/// everything.
fn result(draft: &Draft<'_>, graph: AgentIx) -> Body {
    let run = run(draft, graph);
    if draft.agents().parent(graph).is_some() {
        return report(run, &draft.tree().to_string());
    }
    match &run.value {
        Some(value) => value.body.clone(),
        None => Body::text(crate::primitives::cut(
            &outputs(run, limit::TEXT_BYTES_MAX).0.to_string(),
            limit::TEXT_BYTES_MAX,
        )),
    }
}

/// What of a graph that runs is done, for the agent that asked for it.
pub(crate) fn so_far(draft: &Draft<'_>, graph: AgentIx) -> Option<Body> {
    Some(report(draft.graphs().run(graph)?, &draft.tree().to_string()))
}

/// What the agent that asked for a graph reads, as JSON.
fn report(run: &GraphRun, trace_id: &str) -> Body {
    let named = |wanted: fn(&NodeEnd) -> bool| -> Vec<Value> {
        let steps = run.ended.iter().filter(|step| wanted(&step.end));
        steps.take(limit::NAMES_MAX).map(|step| Value::from(step.name.as_str())).collect()
    };
    let failures: Map<String, Value> = run
        .ended
        .iter()
        .filter_map(|step| match &step.end {
            NodeEnd::Failed { error, .. } => Some((step.name.clone(), Value::from(error.message.as_str()))),
            _ => None,
        })
        .take(limit::MISMATCHES_SHOWN_MAX)
        .collect();
    let mut report = json!({
        "succeeded": named(NodeEnd::is_success),
        "failed": named(|end| matches!(end, NodeEnd::Failed { .. })),
        "skipped": named(|end| matches!(end, NodeEnd::Skipped { .. })),
        "trace_id": trace_id,
    });
    if !failures.is_empty() {
        report["errors"] = Value::Object(failures);
    }
    let room = limit::TEXT_BYTES_MAX.saturating_sub(report.to_string().len() + 1_024);
    let (outputs, left_out) = outputs(run, room);
    report["outputs"] = outputs;
    if !left_out.is_empty() {
        report["outputs_left_out"] = Value::from(left_out);
    }
    Body::text(report.to_string())
}

/// The outputs that fit, and the names of the others.
fn outputs(run: &GraphRun, room: usize) -> (Value, Vec<String>) {
    let (mut shown, mut left_out, mut used) = (Map::new(), Vec::new(), 0);
    for (name, value) in &run.values {
        let found = value.value().map(|found| (found.to_string().len() + name.as_str().len() + 4, found));
        match found.filter(|(bytes, _)| used + bytes <= room) {
            Some((bytes, found)) => {
                used += bytes;
                shown.insert(name.to_string(), found);
            }
            None => left_out.push(name.to_string()),
        }
    }
    (Value::Object(shown), left_out)
}
