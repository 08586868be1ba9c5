//! By what the tree of a program is known: its definition has a root for the program, a role for the agents that its
//! requests name, and no model, because each call names one.

use std::collections::BTreeSet;

use spinney_kernel::definition::Definition;

/// The role of the program's main agent, and so the root's id.
pub const MAIN: &str = "main";
/// The role of agents that requests name.
pub const AGENT: &str = "agent";
/// Stands where a definition wants a model: each call names its own, and that is added when it is first called.
pub const NO_MODEL: &str = "none";

/// Whether a tree was started for a program.
#[must_use]
pub fn is_of_program(definition: &Definition) -> bool {
    let roles: BTreeSet<&str> = definition.roles.keys().map(|role| role.as_str()).collect();
    definition.models.keys().map(|model| model.as_str()).eq([NO_MODEL])
        && roles.into_iter().eq([AGENT, MAIN])
        && definition.graph.is_none()
}
