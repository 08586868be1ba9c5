//! What the journal of a tree says about its past: who was in it, who spent what, and what an agent knew.

pub(crate) mod agents;
pub(crate) mod costs;
pub(crate) mod recall;
