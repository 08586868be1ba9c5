//! The lines that say how far the pipelines of a tree are.

use spinney_kernel::primitives::AgentId;
use spinney_terminal::paint::{Ink, Row};
use spinney_view::live::{GraphSteps, LiveTree, StepProgress, StepState};
use spinney_view::wording::counted;

/// Names of steps in one line.
const NAMED_MAX: usize = 12;

/// How far the pipelines are: the tree's own, and a line for each of at most this many that agents run.
pub(super) fn steps(tree: &LiveTree, nested_max: usize) -> Vec<Row> {
    let root = tree.world().agents().root().map(|root| tree.world().agents().id(root));
    let (own, nested): (Vec<&GraphSteps>, Vec<&GraphSteps>) =
        tree.graphs.iter().partition(|steps| Some(&steps.graph) == root);
    let mut lines: Vec<Row> = own.into_iter().map(own_steps).collect();
    // Those that run, the newest last; without any, what was last is of use.
    let (open, over): (Vec<&GraphSteps>, Vec<&GraphSteps>) =
        nested.iter().partition(|steps| is_living(tree, &steps.graph));
    let shown = if tree.world().state().is_over() { [open, over].concat() } else { open };
    let left_out = shown.len().saturating_sub(nested_max);
    lines.extend(shown.iter().skip(left_out).map(|steps| nested_steps(tree, steps)));
    if left_out > 0 {
        lines.push(Row::inked(Ink::Dim, &format!("steps of {} more", counted(left_out as u64, "pipeline"))));
    }
    lines
}

fn is_living(tree: &LiveTree, agent: &AgentId) -> bool {
    let agents = tree.world().agents();
    agents.find(agent).is_some_and(|ix| agents.living(ix).is_some())
}

fn own_steps(steps: &GraphSteps) -> Row {
    let planned = Some(steps.planned).filter(|planned| *planned >= steps.succeeded);
    let of = planned.map(|planned| format!(" of {planned}")).unwrap_or_default();
    let mut row = Row::inked(Ink::Dim, "steps ").with(Ink::Plain, &format!("{}{of} done", steps.succeeded));
    for (count, word, ink) in [
        (steps.failed, "failed", Ink::Bad),
        (steps.skipped, "skipped", Ink::Dim),
        (steps.cancelled, "stopped", Ink::Dim),
    ] {
        if count > 0 {
            row.push(ink, &format!(", {count} {word}"));
        }
    }
    let running: Vec<&str> = steps.running().collect();
    if !running.is_empty() {
        row.push(Ink::Dim, " · now: ");
        row.push(Ink::Name, &running.join(", "));
    }
    row
}

/// The steps of a pipeline that an agent runs: each by its name and state, what runs first.
fn nested_steps(tree: &LiveTree, steps: &GraphSteps) -> Row {
    let agents = tree.world().agents();
    let of = agents.find(&steps.graph).and_then(|ix| agents.parent(ix)).map(|ix| agents.id(ix));
    let of = of.map(|of| format!(" of {of}")).unwrap_or_default();
    let mut row = Row::inked(Ink::Dim, &format!("steps{of} "));
    row.push(Ink::Plain, &format!("{} of {} done", steps.succeeded, steps.planned.max(steps.succeeded)));
    let mut named: Vec<&StepProgress> = steps.steps.iter().collect();
    named.sort_by_key(|step| (!step.state.is_open(), step.state != StepState::Failed));
    let left_out = named.len().saturating_sub(NAMED_MAX) + steps.left_out;
    for step in named.into_iter().take(NAMED_MAX) {
        let (sign, ink) = sign(step.state);
        row.push(Ink::Dim, " · ");
        row.push(ink, &format!("{sign} "));
        row.push(Ink::Name, &step.name);
    }
    if left_out > 0 {
        row.push(Ink::Dim, &format!(" · and {left_out} more"));
    }
    row
}

/// The same signs as for agents.
const fn sign(state: StepState) -> (char, Ink) {
    match state {
        StepState::Running => ('●', Ink::Good),
        StepState::Waiting => ('◌', Ink::Dim),
        StepState::Succeeded => ('✓', Ink::Good),
        StepState::Failed => ('✗', Ink::Bad),
        StepState::Skipped => ('»', Ink::Dim),
        StepState::Cancelled => ('–', Ink::Dim),
    }
}
