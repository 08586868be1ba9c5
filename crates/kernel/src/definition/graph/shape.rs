//! The journal's form of a graph, and whether its nodes fit together. A journal may hold anything, and a group whose
//! members are not where it says would lead outside the list.

use serde::Deserialize;

use super::{Graph, GraphNode, NodeKind, OnPartialSuccess};
use crate::primitives::limit;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenGraph {
    #[serde(default)]
    on_partial_success: OnPartialSuccess,
    #[serde(default)]
    max_parallel: Option<u32>,
    nodes: Vec<GraphNode>,
}

#[derive(Debug, thiserror::Error)]
#[error("the nodes of the graph do not fit together at {at}")]
pub(super) struct BadShape {
    at: usize,
}

impl TryFrom<WrittenGraph> for Graph {
    type Error = BadShape;

    fn try_from(written: WrittenGraph) -> Result<Self, BadShape> {
        let WrittenGraph { on_partial_success, max_parallel, nodes } = written;
        check(&nodes)?;
        Ok(Self { on_partial_success, max_parallel, nodes })
    }
}

/// Every node but the first is the member of exactly one group before it.
fn check(nodes: &[GraphNode]) -> Result<(), BadShape> {
    if nodes.is_empty() || nodes.len() > limit::GRAPH_NODES_MAX || nodes[0].parent.is_some() {
        return Err(BadShape { at: 0 });
    }
    // Members follow in the order of their groups, so the next group's members begin where the last one's end.
    let mut next = 1_u32;
    for (at, node) in nodes.iter().enumerate() {
        let bad = || BadShape { at };
        if let Some(members) = node.members() {
            let end = members.first.checked_add(members.count).ok_or_else(bad)?;
            if members.first != next || end as usize > nodes.len() || members.count == 0 {
                return Err(bad());
            }
            next = end;
            let is_of = |ix: u32| nodes[ix as usize].parent == u32::try_from(at).ok();
            if !members.all().all(is_of) || members.first as usize <= at {
                return Err(bad());
            }
            let siblings = |ix: &u32| (members.first..members.first + members.count).contains(ix);
            if !members.all().flat_map(|ix| &nodes[ix as usize].after).all(siblings) {
                return Err(bad());
            }
            if let NodeKind::Choose { cases, .. } = &node.kind
                && !(cases.len()..=cases.len() + 1).contains(&(members.count as usize))
            {
                return Err(bad());
            }
        }
    }
    if next as usize == nodes.len() { Ok(()) } else { Err(BadShape { at: next as usize }) }
}
