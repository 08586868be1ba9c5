//! Cancel an agent and everything below it: calls are stopped, nothing new starts, and it ends when all is still.

use serde::{Deserialize, Serialize};

use crate::agent::{self, Exit};
use crate::decide::Reply;
use crate::draft::Draft;
use crate::id::AgentId;
use crate::input::By;
use crate::limit;
use crate::refusal::Refusal;
use crate::refusal::check_text;
use crate::signal;

/// Cancel an agent and everything below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// Who.
    pub agent: AgentId,
    /// Why.
    #[serde(default)]
    pub reason: String,
}

impl Cancel {
    pub(super) fn decide(&self, draft: &mut Draft<'_>, by: &By) -> Result<Reply, Refusal> {
        let ix = signal::target(draft, by, &self.agent)?;
        check_text("reason", &self.reason, limit::NOTE_BYTES_MAX)?;
        agent::end(draft, ix, Exit::Cancelled { reason: self.reason.clone() }, None);
        Ok(Reply::Done)
    }
}
