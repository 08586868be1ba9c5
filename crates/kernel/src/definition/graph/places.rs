//! Where the nodes of a graph were written.

use super::{NodeIx, PathStep};

/// Where each node was written, so a later check can say so.
#[derive(Clone, Debug)]
pub struct GraphPlaces(pub(super) Vec<Origin>);

/// The place of a node: below its group's, a key of that, and perhaps a case or a place in a list.
#[derive(Clone, Debug, Default)]
pub(super) struct Origin {
    pub(super) group: Option<NodeIx>,
    /// Empty for the steps of a case, whose list has no key of its own.
    pub(super) key: &'static str,
    pub(super) case: Option<String>,
    pub(super) item: Option<usize>,
}

impl Origin {
    fn steps(&self) -> impl Iterator<Item = PathStep> {
        let key = Some(self.key).filter(|key| !key.is_empty()).map(|key| PathStep::Key(key.to_owned()));
        let case = self.case.clone().map(PathStep::Key);
        key.into_iter().chain(case).chain(self.item.map(PathStep::Item))
    }
}

impl GraphPlaces {
    /// The path of a key of a node; of the node itself without a key.
    #[must_use]
    pub fn path(&self, node: NodeIx, key: &str) -> Vec<PathStep> {
        let mut path = self.node_path(node);
        if !key.is_empty() {
            path.push(PathStep::Key(key.to_owned()));
        }
        path
    }

    fn node_path(&self, node: NodeIx) -> Vec<PathStep> {
        let mut parts: Vec<&Origin> = Vec::new();
        let mut next = Some(node);
        while let Some(origin) = next.and_then(|node| self.0.get(node as usize)) {
            parts.push(origin);
            next = origin.group;
        }
        parts.into_iter().rev().flat_map(Origin::steps).collect()
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
