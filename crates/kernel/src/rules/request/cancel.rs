//! Cancel an agent and everything below it: calls are stopped, nothing new starts, and it ends when all is still.

use serde::{Deserialize, Serialize};

use crate::definition::{Refusal, check_text};
use crate::record::Exit;
use crate::rules::{Draft, Reply, agent, signal};
use crate::words::{AgentId, By, limit};

/// Cancel an agent and everything below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    pub agent: AgentId,
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
