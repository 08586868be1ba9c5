//! Agents that a tree does not have yet and can still get, by their ids.

use spinney_kernel::definition::{Builtin, Definition, Graph, NodeIx, NodeKind, Role};
use spinney_kernel::primitives::AgentId;

/// Whether an agent with this id may still be spawned.
#[must_use]
pub fn can_come(definition: &Definition, id: &AgentId) -> bool {
    definition.graph.as_deref().is_some_and(|graph| is_of_step(graph, id.as_str()))
        || definition.roles.values().any(lets_choose_ids)
}

/// Whether agents can be spawned with ids of their choice for this role: its model by a tool, or the program that
/// drives its agents.
fn lets_choose_ids(role: &Role) -> bool {
    role.turns.is_none() || Builtin::STARTING.iter().any(|tool| role.caps.tools.has(tool.as_str()))
}

/// Whether an agent of a step can have this id: the step's own, and where steps repeat, with the numbers of items, rounds
/// and attempts behind it, as in `read-3` and `draft-r2`.
fn is_of_step(graph: &Graph, id: &str) -> bool {
    graph.steps().any(|(ix, node, _)| {
        let step = node.id.as_str();
        let rest = id.strip_prefix(step);
        rest == Some("") || repeats(graph, ix) && rest.is_some_and(is_numbered)
    })
}

/// Whether a step may have several agents.
fn repeats(graph: &Graph, step: NodeIx) -> bool {
    let has_undo = graph.node(step).step().is_some_and(|step| step.undo.is_some());
    has_undo
        || graph.up(step).map(|ix| graph.node(ix)).any(|node| {
            let is_again = match &node.kind {
                NodeKind::Map { .. } | NodeKind::Loop { .. } => true,
                NodeKind::Vote { rule, .. } => rule.voters > 1,
                _ => false,
            };
            is_again || node.retry > 0
        })
}

/// `-3`, `-r2`, `-t2`, `-undo`, or several of them.
fn is_numbered(suffix: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts = suffix.split('-');
    parts.next() == Some("")
        && parts.all(|part| part == "undo" || is_number(part.strip_prefix(['r', 't']).unwrap_or(part)))
}
