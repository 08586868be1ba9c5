//! What the steps of a tree's pipeline came to, and what its agents left: a fold of the journal, for the result.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::Result;
use serde::Serialize;
use serde_json::{Map, Value};
use spinney::tree::{shared_json, shared_values};
use spinney_journal::{Blocking, Journal, pages};
use spinney_kernel::definition::{Graph, NodeKind};
use spinney_kernel::record::{Event, FrameIx, NodeEnd, NodeStart, StartOf};
use spinney_kernel::words::{AgentId, RoleName, Seq, TreeId, ValueName};

use crate::home::ids::TreeInHome;
use crate::home::output_files;

/// For the result of a tree. A tree without a pipeline has no steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct StepResults {
    pub(crate) outputs: Map<String, Value>,
    pub(crate) succeeded: Vec<String>,
    pub(crate) failed: Vec<String>,
    pub(crate) skipped: Vec<String>,
    /// Steps that were stopped because their result was not needed any more, or with the whole tree.
    pub(crate) cancelled: Vec<String>,
    /// What agents wrote, as paths that a person can open.
    pub(crate) files: Vec<String>,
}

impl StepResults {
    /// Of a tree that is no longer run; `is_over` if it has ended.
    pub(crate) fn of(journal: &dyn Journal, place: TreeInHome<'_>, is_over: bool) -> Result<Self> {
        let mut fold = Fold::default();
        for page in pages(journal, place.tree, Seq(0)).blocking() {
            for event in page?.into_iter().flat_map(|entry| entry.batch.events) {
                fold.see(&event);
            }
        }
        let mut results = fold.results(is_over);
        results.outputs = outputs(journal, place.tree)?;
        let files = output_files::list(place.home, place.tree);
        results.files = files.into_iter().map(|file| file.path.display().to_string()).collect();
        Ok(results)
    }
}

/// The shared values as they were before the tree's end.
fn outputs(journal: &dyn Journal, tree: TreeId) -> Result<Map<String, Value>> {
    let values = shared_values(journal, tree).wait()?;
    let mut outputs = Map::new();
    for (name, value) in values.all().filter(|(name, _)| name.as_str() != ValueName::PROGRESS) {
        let json = shared_json(journal, value).wait()?;
        outputs.insert(name.to_string(), serde_json::from_str(&json).unwrap_or(Value::String(json)));
    }
    Ok(outputs)
}

#[derive(Default)]
struct Fold {
    graph: Option<(AgentId, Arc<Graph>)>,
    steps: BTreeMap<FrameIx, NodeStart>,
    started: BTreeSet<u32>,
    results: StepResults,
}

impl Fold {
    fn see(&mut self, event: &Event) {
        match event {
            Event::TreeStarted { definition, .. } => {
                let root = AgentId::of_role(&RoleName::of_graphs());
                self.graph = definition.graph.as_ref().map(|graph| (root, Arc::clone(graph)));
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

    fn results(self, is_over: bool) -> StepResults {
        let Self { graph, steps, started, mut results } = self;
        if let Some((_, graph)) = graph.filter(|_| is_over) {
            results.cancelled.extend(steps.into_values().map(|start| start.name));
            let never = graph.nodes().iter().enumerate().filter(|(ix, node)| {
                matches!(node.kind, NodeKind::Step(_) | NodeKind::Ask(_)) && !started.contains(&(*ix as u32))
            });
            results.skipped.extend(never.map(|(_, node)| node.id.to_string()));
        }
        results
    }
}
