//! Where the nodes of a graph were written.

use super::{NodeIx, PathStep};

/// Where each node was written, so that a later check can say so.
#[derive(Clone, Debug)]
pub struct GraphPlaces(pub(super) Vec<Origin>);

/// The place of a node: below its group's, a key and perhaps a place in the list.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) group: Option<NodeIx>,
    pub(super) steps: Vec<PathStep>,
}

impl GraphPlaces {
    /// The path of a key of a node; of the node itself without a key.
    #[must_use]
    pub fn path(&self, node: NodeIx, key: &str) -> Vec<PathStep> {
        let mut path = self.of(node);
        if !key.is_empty() {
            path.push(PathStep::Key(key.to_owned()));
        }
        path
    }

    fn of(&self, node: NodeIx) -> Vec<PathStep> {
        let mut parts: Vec<&[PathStep]> = Vec::new();
        let mut next = Some(node);
        while let Some(origin) = next.and_then(|node| self.0.get(node as usize)) {
            parts.push(&origin.steps);
            next = origin.group;
        }
        parts.into_iter().rev().flatten().cloned().collect()
    }
}

pub(super) struct GraphPath<'a>(pub(super) &'a [PathStep]);

impl std::fmt::Display for GraphPath<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (place, step) in self.0.iter().enumerate() {
            match step {
                PathStep::Key(key) if place == 0 => write!(f, "`{key}")?,
                PathStep::Key(key) => write!(f, ".{key}")?,
                PathStep::Item(item) => write!(f, "[{item}]")?,
            }
        }
        f.write_str("`")
    }
}
