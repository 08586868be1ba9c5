//! A program with a follow-up is about to begin, in the session of the agent that it continues or anew. It is recorded, because
//! what it knows depends on it.

use serde::{Deserialize, Serialize};

use super::running;
use crate::primitives::{AgentId, CallId};
use crate::record::{Event, FollowupStart};
use crate::rules::{Draft, Receipt};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FollowupStarted {
    pub call: CallId,
    pub attempt: u32,
    pub of: AgentId,
    pub start: FollowupStart,
}

impl FollowupStarted {
    pub(super) fn decide(&self, draft: &mut Draft<'_>) -> Receipt {
        let running = running(draft, self.call, self.attempt).filter(|call| call.work.is_program());
        let Some(call) = running else { return Receipt::Stale };
        if call.past().is_some_and(|past| past.has_followup_start) || draft.agents().find(&self.of).is_none()
        {
            return Receipt::Stale;
        }
        let (of, start) = (self.of.clone(), self.start.clone());
        draft.record(Event::FollowupStarted { call: self.call, of, start });
        Receipt::Applied
    }
}
