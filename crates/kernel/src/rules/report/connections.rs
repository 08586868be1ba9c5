//! Connections of a running tool ended, or were refused. Nothing is decided by them: they are facts for people.

use serde::{Deserialize, Serialize};

use super::running;
use crate::primitives::{CallId, Connection, ConnectionTotals, limit};
use crate::record::{Event, Work};
use crate::rules::{Draft, Receipt};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connections {
    pub call: CallId,
    pub attempt: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<Connection>,
    /// Those that the reporter only counted.
    #[serde(default, skip_serializing_if = "ConnectionTotals::is_none")]
    pub omitted: ConnectionTotals,
}

impl Connections {
    pub(super) fn decide(&self, draft: &mut Draft<'_>) -> Receipt {
        let call = self.call;
        let running = running(draft, call, self.attempt).filter(|call| matches!(call.work, Work::Tool(_)));
        let Some(running) = running else { return Receipt::Stale };
        let room = limit::CALL_CONNECTIONS_MAX.saturating_sub(running.connections);
        let (recorded, beyond) = self.ended.split_at(self.ended.len().min(usize::from(room)));
        for connection in recorded {
            draft.record(Event::ConnectionEnded { call, connection: connection.clone().bounded() });
        }
        let mut totals = self.omitted;
        beyond.iter().for_each(|connection| totals.add(connection));
        if !totals.is_none() {
            draft.record(Event::ConnectionsOmitted { call, totals });
        }
        Receipt::Applied
    }
}
