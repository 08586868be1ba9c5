//! What the names in expressions stand for, at one place of a graph that runs.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use crate::definition::Values;
use crate::definition::{NodeKind, flow};
use crate::record::{FrameIx, NamedValue, StartOf};
use crate::world::{AgentIx, GraphRun, World};

use super::begin::Begin;

pub(super) struct Scope<'a> {
    world: &'a World,
    run: &'a GraphRun,
    within: Option<FrameIx>,
    /// A value that has no name yet: a step's own output, for what takes it back.
    own: Option<(&'a str, &'a NamedValue)>,
    /// The round of a loop that its next member begins.
    round: Option<u32>,
}

impl<'a> Scope<'a> {
    /// What the members of a frame see.
    pub(super) fn inside(world: &'a World, graph: AgentIx, frame: FrameIx) -> Self {
        Self::at(world, super_run(world, graph), Some(frame))
    }

    pub(super) const fn at(world: &'a World, run: &'a GraphRun, within: Option<FrameIx>) -> Self {
        Self { world, run, within, own: None, round: None }
    }

    pub(super) const fn with(self, name: &'a str, value: &'a NamedValue) -> Self {
        Self { own: Some((name, value)), ..self }
    }

    /// What a frame sees that is about to begin.
    pub(super) fn before(world: &'a World, run: &'a GraphRun, begin: &Begin) -> Self {
        let group = begin.within.and_then(|within| run.frame(within));
        let is_loop =
            group.is_some_and(|group| matches!(run.graph.node(group.node).kind, NodeKind::Loop { .. }));
        Self { round: is_loop.then_some(begin.place), ..Self::at(world, run, begin.within) }
    }

    /// The value of a name that a step may read.
    pub(super) fn find(&self, name: &str) -> Option<Arc<NamedValue>> {
        let mut frames = self.within.into_iter().flat_map(|within| self.run.up(within));
        let local = frames.find_map(|(_, frame)| frame.locals.get(name).cloned());
        let public = || self.run.values.get(name).cloned();
        let given = || self.world.definition().inputs.get(name).map(NamedValue::new).map(Arc::new);
        local.or_else(public).or_else(given)
    }

    fn number(
        &self,
        of: impl Fn(&NodeKind, StartOf) -> bool,
        number: impl Fn(&crate::world::NodeFrame) -> u32,
    ) -> Option<Value> {
        let mut frames = self.within.into_iter().flat_map(|within| self.run.up(within));
        let found = frames.find(|(_, frame)| of(&self.run.graph.node(frame.node).kind, frame.of));
        found.map(|(_, frame)| Value::from(number(frame)))
    }
}

impl Values for Scope<'_> {
    fn value(&self, name: &str) -> Option<Cow<'_, Value>> {
        if let Some((_, value)) = self.own.filter(|(own, _)| *own == name) {
            return value.value().map(Cow::Owned);
        }
        if let Some(found) = self.find(name) {
            return found.value().map(Cow::Owned);
        }
        let found = match name {
            flow::GOAL => Some(Value::String(self.world.definition().goal.clone())),
            flow::ROUND => self.round.map(|round| Value::from(round + 1)).or_else(|| {
                self.number(|kind, _| matches!(kind, NodeKind::Loop { .. }), |frame| frame.round + 1)
            }),
            flow::INDEX => self.number(|_, of| of == StartOf::Item, |frame| frame.place),
            _ => None,
        };
        found.map(Cow::Owned)
    }
}

fn super_run(world: &World, graph: AgentIx) -> &GraphRun {
    match world.graphs().run(graph) {
        Some(run) => run,
        None => unreachable!("the graph runs"),
    }
}

/// The case that a value selects: a text on its own, everything else by its JSON.
pub(super) fn case(value: &Value, cases: &[String]) -> Option<usize> {
    let text = match value {
        Value::String(text) => Cow::Borrowed(text.trim()),
        other => Cow::Owned(other.to_string()),
    };
    cases.iter().position(|case| case.trim() == text)
}
