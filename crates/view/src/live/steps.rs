//! How far the graphs of a tree are: the steps of each, by name and state.

use std::collections::BTreeSet;

use serde::Serialize;
use spinney_kernel::definition::{Graph, NodeKind};
use spinney_kernel::primitives::AgentId;
use spinney_kernel::record::{FrameIx, NodeEnd, NodeStart, StartOf};

use crate::wording::one_line;

/// Steps of one graph that are kept by name.
const STEPS_MAX: usize = 64;
const NAME_CHARS_MAX: usize = 40;

/// How far one graph is.
#[derive(Clone, Debug, Serialize)]
pub struct GraphSteps {
    /// The agent that stands for the graph.
    #[serde(skip)]
    pub graph: AgentId,
    /// Steps and questions in it; one in a map or loop runs more than once.
    pub planned: usize,
    /// How many succeeded.
    pub succeeded: usize,
    /// How many failed for good.
    pub failed: usize,
    /// How many were skipped.
    pub skipped: usize,
    /// How many were cancelled.
    pub cancelled: usize,
    /// Its steps in the order in which they began. Of a large graph, those that succeeded first are left out.
    pub steps: Vec<StepProgress>,
    /// How many steps are not in the list although they began.
    pub left_out: usize,
    /// Those of them that run.
    #[serde(skip)]
    unlisted: BTreeSet<FrameIx>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepProgress {
    /// Its id, with the numbers of the item and round that it runs for.
    pub name: String,
    /// How far it is.
    pub state: StepState,
    #[serde(skip)]
    frame: FrameIx,
}

/// How far a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// It waits for a shared value.
    Waiting,
    /// It runs.
    Running,
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
    /// It was not needed, or lacked an input.
    Skipped,
    /// Its group or graph did not need it any more.
    Cancelled,
}

impl StepState {
    /// Whether it has not ended.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Waiting | Self::Running)
    }
}

impl GraphSteps {
    pub(super) fn new(agent: &AgentId, graph: &Graph) -> Self {
        let nodes = graph.nodes().iter();
        let planned = nodes.filter(|node| is_step(&node.kind)).count();
        let (succeeded, failed, skipped, cancelled, left_out) = (0, 0, 0, 0, 0);
        let (steps, unlisted) = (Vec::new(), BTreeSet::new());
        Self {
            graph: agent.clone(),
            planned,
            succeeded,
            failed,
            skipped,
            cancelled,
            steps,
            left_out,
            unlisted,
        }
    }

    /// The names of the steps that run.
    pub fn running(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter(|step| step.state.is_open()).map(|step| step.name.as_str())
    }

    pub(super) fn started(&mut self, start: &NodeStart, kind: &NodeKind) {
        // Groups are not work of their own; what undoes a step is.
        if start.of != StartOf::Undo && !is_step(kind) {
            return;
        }
        let state = if start.waits_for.is_empty() { StepState::Running } else { StepState::Waiting };
        let name = one_line(&start.name, NAME_CHARS_MAX);
        if self.steps.len() == STEPS_MAX {
            self.leave_one_out();
        }
        if self.steps.len() < STEPS_MAX {
            self.steps.push(StepProgress { name, state, frame: start.frame });
        } else {
            self.unlisted.insert(start.frame);
            self.left_out += 1;
        }
    }

    /// Makes room for another step: what succeeded or was skipped says least.
    fn leave_one_out(&mut self) {
        let says_little = |step: &StepProgress| !step.state.is_open() && step.state != StepState::Failed;
        let place = self.steps.iter().position(says_little);
        if let Some(place) = place.or_else(|| self.steps.iter().position(|step| !step.state.is_open())) {
            self.steps.remove(place);
            self.left_out += 1;
        }
    }

    fn open(&mut self, frame: FrameIx) -> Option<usize> {
        self.steps.iter().rposition(|step| step.frame == frame && step.state.is_open())
    }

    /// A step's agent was spawned: it waits for nothing any more. Returns the step's name.
    pub(super) fn spawned(&mut self, frame: FrameIx) -> Option<String> {
        let place = self.open(frame)?;
        self.steps[place].state = StepState::Running;
        Some(self.steps[place].name.clone())
    }

    pub(super) fn ended(&mut self, frame: FrameIx, end: &NodeEnd) {
        let found = self.open(frame);
        if found.is_none() && !self.unlisted.remove(&frame) {
            return;
        }
        let (state, count) = match end {
            NodeEnd::Failed { retried: true, .. } => {
                // Its next attempt is another step with the same name.
                found.into_iter().for_each(|place| drop(self.steps.remove(place)));
                return;
            }
            NodeEnd::Succeeded { .. } => (StepState::Succeeded, &mut self.succeeded),
            NodeEnd::Failed { .. } => (StepState::Failed, &mut self.failed),
            NodeEnd::Skipped { .. } => (StepState::Skipped, &mut self.skipped),
            NodeEnd::Cancelled => (StepState::Cancelled, &mut self.cancelled),
        };
        *count += 1;
        found.into_iter().for_each(|place| self.steps[place].state = state);
    }
}

const fn is_step(kind: &NodeKind) -> bool {
    matches!(kind, NodeKind::Step(_) | NodeKind::Ask(_))
}

#[cfg(test)]
mod tests {
    use spinney_kernel::definition::{GraphSurroundings, SharedSurroundings};
    use spinney_kernel::primitives::limit;

    use super::*;

    /// A large graph: names are bounded, counts are exact, and what runs or failed stays in the list.
    #[test]
    fn the_names_of_a_large_graph_are_bounded() {
        let step = |at: usize| serde_json::json!({ "id": format!("s{at}"), "agent_id": "w", "task_description": "x" });
        let steps: Vec<_> = (0..300).map(step).collect();
        let around = GraphSurroundings {
            roles: &|_| true,
            role_names: Vec::new(),
            given: Vec::new(),
            shared: None::<SharedSurroundings<'_>>,
            nodes_max: limit::GRAPH_NODES_MAX,
        };
        let graph =
            Graph::parse(&serde_json::json!({ "mode": "parallel", "steps": steps }), &around).unwrap();
        let agent: AgentId = "pipeline".parse().unwrap();
        let mut progress = GraphSteps::new(&agent, &graph);
        assert_eq!(progress.planned, 300);
        let kind = &graph.node(1).kind;
        let start = |frame: FrameIx| NodeStart {
            graph: agent.clone(),
            frame,
            node: 1,
            name: format!("s{frame}"),
            within: Some(0),
            place: 0,
            attempt: 0,
            of: StartOf::Node,
            items: None,
            waits_for: Vec::new(),
        };
        let failed = NodeEnd::failed(spinney_kernel::record::FailureCode::Timeout, "late");
        progress.started(&start(1), kind);
        progress.ended(1, &failed);
        for frame in 2..=200 {
            progress.started(&start(frame), kind);
            progress.ended(frame, &NodeEnd::succeeded());
        }
        (201..=290).for_each(|frame| progress.started(&start(frame), kind));
        assert_eq!((progress.steps.len(), progress.left_out), (STEPS_MAX, 290 - STEPS_MAX));
        (201..=290).for_each(|frame| progress.ended(frame, &NodeEnd::Cancelled));
        assert_eq!((progress.succeeded, progress.failed, progress.cancelled), (199, 1, 90));
        assert_eq!(progress.running().count(), 0);
    }
}
