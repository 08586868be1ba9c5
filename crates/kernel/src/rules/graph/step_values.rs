//! What steps are given and what they give: inputs as messages, and outputs as values with names.

use std::sync::Arc;

use crate::definition::{Builtin, GivenMessage, GraphStep, InputSource, Refusal, StepInput};
use crate::primitives::{Actor, Body, Category, ValueName, limit};
use crate::record::{FailureCode, FrameIx, NamedValue, NodeEnd, StartOf};
use crate::rules::{Draft, shared};
use crate::world::{AgentIx, GraphRun, World};

use super::scope::Scope;
use super::{node_of, run};

/// Most bytes of an input in one message: the tags around it need some.
const PART_BYTES: usize = limit::TEXT_BYTES_MAX - 512;

/// The values that a step reads; none for one that it can do without.
pub(super) type Inputs<'s> = Vec<(&'s StepInput, Option<Arc<NamedValue>>)>;

/// The values that a step reads, in its order.
///
/// # Errors
/// Those that it needs and that have no value.
pub(super) fn inputs<'s>(
    world: &World,
    run: &GraphRun,
    within: Option<FrameIx>,
    step: &'s GraphStep,
) -> Result<Inputs<'s>, Vec<&'s StepInput>> {
    let scope = Scope::at(world, run, within);
    let find = |input: &StepInput| match input.source {
        InputSource::Output => scope.find(input.name.as_str()),
        InputSource::Shared => world.shared().find(&input.name).and_then(|header| header.value.clone()),
    };
    let inputs: Inputs<'s> = step.inputs.iter().map(|input| (input, find(input))).collect();
    let missing = inputs.iter().filter(|(input, value)| value.is_none() && !input.optional);
    let missing: Vec<&StepInput> = missing.map(|(input, _)| *input).collect();
    if missing.is_empty() { Ok(inputs) } else { Err(missing) }
}

/// Each input as context messages, whole where the tree has all of it.
pub(super) fn messages(inputs: &Inputs<'_>) -> Vec<GivenMessage> {
    let mut messages = Vec::new();
    for (name, value) in inputs {
        match value {
            None => messages.push(format!("<input name=\"{name}\" missing=\"true\"/>")),
            Some(value) => {
                // No value can end its own tag: JSON may write a slash in a text either way.
                let json = value.json_text().replace("</", "<\\/");
                let cut = value.body.rest().map(|rest| format!(" cut=\"true\" bytes=\"{}\"", rest.bytes));
                let cut = cut.unwrap_or_default();
                let parts = split(&json);
                let count = parts.len();
                for (place, part) in parts.into_iter().enumerate() {
                    let number =
                        if count > 1 { format!(" part=\"{}/{count}\"", place + 1) } else { String::new() };
                    messages.push(format!("<input name=\"{name}\"{number}{cut}>{part}</input>"));
                }
            }
        }
    }
    let given = |text| GivenMessage { category: Category::Context, body: Body::text(text) };
    messages.into_iter().map(given).collect()
}

fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while rest.len() > PART_BYTES {
        let (part, after) = rest.split_at(rest.floor_char_boundary(PART_BYTES));
        parts.push(part);
        rest = after;
    }
    parts.push(rest);
    parts
}

/// How a step ends whose agent or person answered.
pub(super) fn completed(draft: &Draft<'_>, graph: AgentIx, ix: FrameIx) -> NodeEnd {
    let run = run(draft, graph);
    let Some(frame) = run.frame(ix) else { return NodeEnd::succeeded() };
    let node = node_of(run, frame);
    let Some(value) = &frame.value else {
        return NodeEnd::failed(FailureCode::NoAnswer, "its agent completed without an answer");
    };
    if !value.fits() {
        let message = format!("its answer has {} bytes, more than {}", value.bytes(), limit::VALUE_BYTES_MAX);
        return NodeEnd::failed(FailureCode::ValueTooLarge, message);
    }
    // A library can end an agent with any text, which nothing has compared with the schema.
    if value.body.rest().is_none() && value.value().is_none() {
        return NodeEnd::failed(
            FailureCode::OutputMismatch,
            "its answer is not JSON, and its `output_schema` asks for that",
        );
    }
    let undo = node.step().and_then(|step| step.undo.as_ref()).filter(|_| frame.of == StartOf::Node);
    let Some(undo) = undo else { return NodeEnd::succeeded() };
    let own = node.output_to.as_ref().map_or("", ValueName::as_str);
    match undo.task.render(&Scope::at(draft, run, frame.within).with(own, value)) {
        Ok(task) if !task.trim().is_empty() => NodeEnd::Succeeded { winner: None, undo: Some(task) },
        Ok(_) => NodeEnd::failed(FailureCode::BadUndo, "the task of its `undo` is empty"),
        Err(fault) => NodeEnd::failed(
            FailureCode::BadUndo,
            format!("the task of its `undo` cannot be written: {fault}"),
        ),
    }
}

/// The output of a node that succeeds, if the whole graph sees it.
fn output(
    draft: &Draft<'_>,
    graph: AgentIx,
    ix: FrameIx,
    end: &NodeEnd,
) -> Option<(ValueName, Arc<NamedValue>)> {
    let run = run(draft, graph);
    let frame = run.frame(ix).filter(|frame| frame.of == StartOf::Node && run.is_public(frame.within))?;
    let name = node_of(run, frame).output_to.as_ref()?;
    Some((name.clone(), run.result(ix, end)?))
}

/// Writes the output of a node that succeeds to the tree's shared store, if the whole graph sees it.
///
/// # Errors
/// If the store has no room for it.
pub(super) fn publish(
    draft: &mut Draft<'_>,
    graph: AgentIx,
    ix: FrameIx,
    end: &NodeEnd,
) -> Result<(), Refusal> {
    let Some((name, value)) = output(draft, graph, ix, end) else { return Ok(()) };
    let by = run(draft, graph).frame(ix).and_then(|frame| frame.agent).unwrap_or(graph);
    let by = Actor::Agent(draft.agent_id(by).clone());
    // A long answer is a blob already, which is its JSON only if a schema asked for that.
    match value.body.rest() {
        Some(_) => shared::put_as(draft, &name, value.body.clone(), value.form, by).map(drop),
        None => shared::put(draft, &name, Body::text(value.json_text()), by).map(drop),
    }
}

/// Tells agents how far the tree's graph is, if any of them could read it.
pub(super) fn progress(draft: &mut Draft<'_>, graph: AgentIx) {
    let reads = Builtin::ReadContext.as_str();
    let is_read = draft.definition().roles.values().any(|role| role.caps.tools.has(reads));
    let Some(name) = ValueName::PROGRESS.parse().ok().filter(|_| is_read) else { return };
    if draft.agents().root() != Some(graph) {
        return;
    }
    let run = run(draft, graph);
    let running = run.frames().filter(|(_, frame)| node_of(run, frame).members().is_none()).count();
    let progress = serde_json::json!({
        "succeeded": run.successes, "failed": run.failures, "skipped": run.skips, "running": running,
    });
    let by = Actor::Agent(draft.agent_id(graph).clone());
    // If the store is full, the graph continues without it.
    drop(shared::put(draft, &name, Body::text(progress.to_string()), by));
}
