//! Who makes a request.

use crate::words::AgentId;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// A person, or a program on their behalf.
    Person,
    Agent(AgentId),
}
