//! Record the connections of a program that the tree did not start, as its box saw them. Nothing is decided by them: they are
//! facts for people.

use serde::{Deserialize, Serialize};

use super::{Accepted, Verb, person};
use crate::definition::Refusal;
use crate::primitives::{Actor, AgentId, Connection, ConnectionTotals, limit};
use crate::record::Event;
use crate::rules::Draft;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordConnections {
    /// The agent that stands for the program.
    pub agent: AgentId,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<Connection>,
    /// Those that are only counted.
    #[serde(default, skip_serializing_if = "ConnectionTotals::is_none")]
    pub omitted: ConnectionTotals,
}

impl Verb for RecordConnections {
    type Reply = Accepted;
}

impl RecordConnections {
    pub(in crate::rules) fn decide(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<Accepted, Refusal> {
        person(by, "record connections")?;
        draft.check_running()?;
        let agent = &self.agent;
        let found = draft.agents().find(agent).and_then(|ix| draft.agents().living(ix));
        found.ok_or_else(|| Refusal::UnknownAgent { agent: agent.clone() })?;
        let room = limit::CALL_CONNECTIONS_MAX.saturating_sub(draft.program_connections());
        let (recorded, beyond) = self.ended.split_at(self.ended.len().min(usize::from(room)));
        for connection in recorded {
            let (agent, connection) = (agent.clone(), connection.clone().bounded());
            draft.record(Event::ProgramConnected { agent, connection });
        }
        let mut totals = self.omitted;
        beyond.iter().for_each(|connection| totals.add(connection));
        if !totals.is_none() {
            draft.record(Event::ProgramConnectionsOmitted { agent: agent.clone(), totals });
        }
        Ok(Accepted {})
    }
}
