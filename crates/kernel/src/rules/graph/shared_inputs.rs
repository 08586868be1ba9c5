//! Steps that are given shared values: they wait until every value is written, and what ends the wait otherwise. A step
//! that waits has begun, but its agent is not spawned yet.

use super::begin::begin_waiting_step;
use super::{Work, end_frame, holder, is_live, look, run, stopped_above};
use crate::definition::{GraphStep, InputSource, OnMissing, OnPartialSuccess, StepInput};
use crate::primitives::ValueName;
use crate::record::{Exit, FailureCode, FrameIx, NodeEnd, Skip};
use crate::rules::{Draft, StepOver, call};
use crate::world::{AgentIx, GraphRun};

/// The first rules under which a name can mean a shared value.
pub(super) const SINCE: u32 = 8;

/// The shared values that a step waits for, of the inputs that have no value.
///
/// # Errors
/// How the step ends if it does not wait.
pub(super) fn missing(
    run: &GraphRun,
    step: &GraphStep,
    missing: &[&StepInput],
) -> Result<Vec<ValueName>, NodeEnd> {
    let waits = |input: &StepInput| input.source == InputSource::Shared && step.on_missing == OnMissing::Wait;
    if let Some(input) = missing.iter().find(|input| !waits(input)) {
        return Err(without(run, input, Reason::NotWritten));
    }
    Ok(missing.iter().map(|input| input.name.clone()).collect())
}

/// Why a value is missing.
#[derive(Clone, Copy)]
enum Reason {
    NotWritten,
    NoWriterLeft,
}

/// The end of a step that lacks an input.
fn without(run: &GraphRun, input: &StepInput, reason: Reason) -> NodeEnd {
    if run.graph.on_partial_success != OnPartialSuccess::Fail {
        return NodeEnd::Skipped { why: Skip::Missing(input.to_string()) };
    }
    let message = match (input.source, reason) {
        (InputSource::Output, _) => format!(
            "its input `{input}` has no value, because the step that writes it did not succeed: write `{input}?` to go without it"
        ),
        (InputSource::Shared, Reason::NotWritten) => format!(
            "its input `{input}` is not written yet: let an earlier step write it, leave out `on_missing: fail` to wait for it, or write `{input}?` to go without it"
        ),
        (InputSource::Shared, Reason::NoWriterLeft) => format!(
            "its input `{input}` is not written, and no agent is left that could write it: let an agent write it with `write_context`, or write `{input}?` to go without it"
        ),
    };
    NodeEnd::failed(FailureCode::MissingInput, message)
}

/// Begins the steps whose values are all written now.
pub(crate) fn begin_waiting(draft: &mut Draft<'_>) {
    let waiting: Vec<(AgentIx, FrameIx)> = draft.graphs().waiting().collect();
    for (graph, ix) in waiting {
        // An earlier one may have ended its graph.
        if !waits(draft, graph, ix) || stopped_above(draft, graph, ix) {
            continue;
        }
        let frame = run(draft, graph).frame(ix);
        let is_ready =
            frame.is_some_and(|frame| frame.waits_for.iter().all(|name| draft.shared().find(name).is_some()));
        if is_ready {
            let mut work = Work::new();
            begin_waiting_step(draft, graph, ix, &mut work);
            look(draft, graph, &mut work);
        }
    }
}

fn waits(draft: &Draft<'_>, graph: AgentIx, ix: FrameIx) -> bool {
    is_live(draft, graph) && run(draft, graph).frame(ix).is_some_and(|frame| !frame.waits_for.is_empty())
}

/// Ends the wait of one step if no agent is left that could write its value: what follows may write those of others.
/// Returns whether it did.
pub(crate) fn end_idle_wait(draft: &mut Draft<'_>) -> bool {
    let mut waiting = draft.graphs().waiting();
    let Some((graph, ix)) = waiting.find(|(graph, _)| is_live(draft, *graph)) else { return false };
    drop(waiting);
    if !call::all_wait(draft) {
        return false;
    }
    let graph_run = run(draft, graph);
    let Some(frame) = graph_run.frame(ix) else { return false };
    let unwritten = |name: &&ValueName| draft.shared().find(name).is_none();
    let Some(name) = frame.waits_for.iter().find(unwritten) else { return false };
    let input = StepInput { name: name.clone(), optional: false, source: InputSource::Shared };
    let end = without(graph_run, &input, Reason::NoWriterLeft);
    let mut work = Work::new();
    end_frame(draft, graph, ix, end, &mut work);
    look(draft, graph, &mut work);
    true
}

/// Ends the waits of steps below an agent that is about to end.
pub(crate) fn cancel_waiting(draft: &mut Draft<'_>, agent: AgentIx) {
    let graphs = draft.graphs();
    let is_below = |(graph, ix): &(AgentIx, FrameIx)| {
        graphs.run(*graph).is_some_and(|run| {
            let within = run.frame(*ix).and_then(|frame| frame.within);
            holder(run, *graph, within) == agent
        })
    };
    let below: Vec<(AgentIx, FrameIx)> = graphs.waiting().filter(is_below).collect();
    below.into_iter().for_each(|(graph, frame)| cancel(draft, graph, frame));
}

/// Ends the wait of a step that is not needed any more.
pub(super) fn cancel(draft: &mut Draft<'_>, graph: AgentIx, frame: FrameIx) {
    let exit = Exit::Cancelled { reason: "the result of its group is certain without it".to_owned() };
    draft.step_is_over(StepOver { graph, frame, exit });
}
