//! Branches that were made of what agents changed in their working copies.

use schemars::JsonSchema;
use serde::Serialize;
use spinney_kernel::primitives::AgentId;

/// A branch of a repository with the changes of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AgentBranch {
    /// The agent.
    #[schemars(with = "String")]
    pub agent: AgentId,
    /// The folder of the repository.
    pub repository: String,
    /// Its name there.
    pub branch: String,
}
