//! What the steps of a tree's pipeline came to, what its agents shared and how often they called built-in tools.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use serde_json::{Map, Value};
use spinney::tree::{shared_json, shared_values};
use spinney_journal::{Batch, Journal, JournalFault};
use spinney_kernel::budget::Resource;
use spinney_kernel::definition::{Builtin, Graph, NodeKind};
use spinney_kernel::primitives::{AgentId, RoleName, TreeId, ValueName, grouped};
use spinney_kernel::record::{Event, FrameIx, NodeEnd, NodeStart, Outcome, StartOf, ToolAsk};

use crate::fold::{TreeFold, fold};
use crate::spent::Spent;
use crate::wording::counted;

/// Whether a tree has ended, or was only stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// It has its result.
    Ended,
    /// It may continue.
    Stopped,
}

/// What the steps of a tree came to. A tree without a pipeline has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepResults {
    /// The shared values as they were before the tree's end, by name.
    pub outputs: Map<String, Value>,
    /// Steps that succeeded, in the order of their ends.
    pub succeeded: Vec<String>,
    /// Steps that failed.
    pub failed: Vec<String>,
    /// Steps that were not needed, or that nothing started.
    pub skipped: Vec<String>,
    /// Steps that were stopped because their result was not needed any more, or with the whole tree.
    pub cancelled: Vec<String>,
    /// Calls of built-in tools. They cost nothing, so no budget counts them.
    pub builtin_calls: u64,
}

impl StepResults {
    /// Of a tree that is no longer run: one that has ended left steps that nothing will start, one that was stopped did not.
    ///
    /// # Errors
    /// If the tree cannot be read.
    pub async fn read(journal: &dyn Journal, tree: TreeId, run: RunState) -> Result<Self, JournalFault> {
        let mut steps = StepFold::default();
        fold(journal, tree, &mut steps).await?;
        let mut results = steps.results(run);
        results.outputs = outputs(journal, tree).await?;
        Ok(results)
    }

    /// What the whole tree spent, a text for each resource. Calls of built-in tools are beside those that budgets count.
    #[must_use]
    pub fn spent_words(&self, spent: &Spent) -> [String; Resource::ALL.len()] {
        Resource::ALL.map(|resource| match (resource, spent.get(resource), self.builtin_calls) {
            (Resource::ToolCalls, calls, 0) => counted(calls, "tool call"),
            (Resource::ToolCalls, 0, builtin) => counted(builtin, "built-in tool call"),
            (Resource::ToolCalls, calls, builtin) => {
                format!("{} and {} built-in", counted(calls, "tool call"), grouped(builtin))
            }
            (Resource::Cost | Resource::Tokens | Resource::Steps | Resource::Retries, ..) => {
                spent.amount(resource)
            }
        })
    }
}

async fn outputs(journal: &dyn Journal, tree: TreeId) -> Result<Map<String, Value>, JournalFault> {
    let values = shared_values(journal, tree).await?;
    let mut outputs = Map::new();
    for (name, value) in values.all().filter(|(name, _)| name.as_str() != ValueName::PROGRESS) {
        let json = shared_json(journal, value).await?;
        outputs.insert(name.to_string(), serde_json::from_str(&json).unwrap_or(Value::String(json)));
    }
    Ok(outputs)
}

#[derive(Default)]
struct StepFold {
    graph: Option<(AgentId, Arc<Graph>)>,
    steps: BTreeMap<FrameIx, NodeStart>,
    started: BTreeSet<u32>,
    results: StepResults,
}

impl TreeFold for StepFold {
    fn take(&mut self, batch: &Batch) -> ControlFlow<()> {
        batch.events.iter().for_each(|event| self.see(event));
        ControlFlow::Continue(())
    }
}

impl StepFold {
    fn see(&mut self, event: &Event) {
        match event {
            Event::TreeStarted { definition, .. } => {
                let root = AgentId::of_role(&RoleName::of_graphs());
                self.graph = definition.graph.as_ref().map(|graph| (root, Arc::clone(graph)));
            }
            Event::CallEnded { outcome: Outcome::Done { asks, .. }, .. } => {
                let is_builtin =
                    |ask: &&ToolAsk| ask.tool.parse().is_ok_and(|tool| Builtin::named(&tool).is_some());
                self.results.builtin_calls += asks.iter().filter(is_builtin).count() as u64;
            }
            Event::NodeStarted(start) => self.started(start),
            Event::NodeEnded { graph, frame, end, .. } => self.ended(graph, *frame, end),
            _ => {}
        }
    }
    fn started(&mut self, start: &NodeStart) {
        let Some((_, graph)) = self.graph.as_ref().filter(|(root, _)| *root == start.graph) else { return };
        if matches!(graph.node(start.node).kind, NodeKind::Step(_) | NodeKind::Ask(_)) {
            self.started.insert(start.node);
            self.steps.insert(start.frame, start.clone());
        }
    }

    fn ended(&mut self, of: &AgentId, frame: FrameIx, end: &NodeEnd) {
        if self.graph.as_ref().is_none_or(|(root, _)| root != of) {
            return;
        }
        let Some(start) = self.steps.remove(&frame) else { return };
        let results = &mut self.results;
        match (start.of, end) {
            (StartOf::Undo, NodeEnd::Failed { .. }) => results.failed.push(format!("undo of {}", start.name)),
            (StartOf::Undo, _) | (_, NodeEnd::Failed { retried: true, .. }) => {}
            (_, NodeEnd::Succeeded { .. }) => results.succeeded.push(start.name),
            (_, NodeEnd::Failed { .. }) => results.failed.push(start.name),
            (_, NodeEnd::Skipped { .. }) => results.skipped.push(start.name),
            (_, NodeEnd::Cancelled) => results.cancelled.push(start.name),
        }
    }

    fn results(self, run: RunState) -> StepResults {
        let Self { graph, steps, started, mut results } = self;
        if let Some((_, graph)) = graph.filter(|_| run == RunState::Ended) {
            results.cancelled.extend(steps.into_values().map(|start| start.name));
            let never = graph.nodes().iter().enumerate().filter(|(ix, node)| {
                matches!(node.kind, NodeKind::Step(_) | NodeKind::Ask(_)) && !started.contains(&(*ix as u32))
            });
            results.skipped.extend(never.map(|(_, node)| node.id.to_string()));
        }
        results
    }
}
