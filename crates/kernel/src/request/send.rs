//! Send a message to an agent of the tree.

use serde::{Deserialize, Serialize};

use crate::body::{Body, check_said};
use crate::call::wake_waits;
use crate::decide::{Draft, Reply};
use crate::event::Event;
use crate::id::AgentId;
use crate::input::By;
use crate::limit;
use crate::refusal::Refusal;

/// Send a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Send {
    /// To whom.
    pub to: AgentId,
    /// What.
    pub body: Body,
}

impl Send {
    pub(super) fn decide(&self, draft: &mut Draft<'_>, by: &By) -> Result<Reply, Refusal> {
        if let By::Agent(from) = by {
            draft.living(from)?;
        }
        let ix = draft.living(&self.to)?;
        check_said("message", &self.body.text, limit::TEXT_BYTES_MAX)?;
        let waiting = draft.agent(ix).inbox.len();
        if waiting >= limit::INBOX_MAX {
            return Err(Refusal::InboxFull { agent: self.to.clone(), waiting });
        }
        draft.record(Event::MessageSent { from: by.clone(), to: self.to.clone(), body: self.body.clone() });
        wake_waits(draft, ix);
        Ok(Reply::Done)
    }
}
