//! A program that is an agent named the session that it can be continued by. It is recorded at once: after a crash nobody could
//! ask the program.

use serde::{Deserialize, Serialize};

use super::running;
use crate::primitives::{CallId, SessionId, limit};
use crate::record::Event;
use crate::rules::{Draft, Receipt};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    pub call: CallId,
    pub attempt: u32,
    pub session: SessionId,
}

impl Session {
    pub(super) fn decide(&self, draft: &mut Draft<'_>) -> Receipt {
        let running = running(draft, self.call, self.attempt).filter(|call| call.work.is_program());
        let Some(call) = running else { return Receipt::Stale };
        let has_named = call.past().map_or(0, |past| past.sessions);
        if has_named < limit::CALL_SESSIONS_MAX && call.session() != Some(&self.session) {
            draft.record(Event::SessionNamed { call: self.call, session: self.session.clone() });
        }
        Receipt::Applied
    }
}
