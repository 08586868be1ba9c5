//! Connections of tools as text.

use spinney_kernel::primitives::{AgentId, CallId, Connection, ConnectionTotals, Millis};

use super::names::EventNames;
use super::text::{EventText, detail, main_line, name, short};
use crate::wording::counted;

/// What connected: a call of a tool, or the program that an agent stands for.
pub(super) enum Connecting<'e> {
    Call(CallId),
    Program(&'e AgentId),
}

/// Only a refused one is a main line.
pub(super) fn connection_ended(
    names: &EventNames,
    by: &Connecting<'_>,
    connection: &Connection,
) -> EventText {
    let Connection { host, port, .. } = connection;
    let (host, name) = (short(host), by.name(names));
    match connection.refusal() {
        Some(why) => main_line(format!("{name} may not connect to {host}:{port}: {}", why.as_str())),
        None => {
            let Connection { end, sent_bytes, received_bytes, duration_ms, .. } = connection;
            detail(format!(
                "{name} was connected to {host}:{port} for {}: {end}, {} sent, {} received",
                Millis(*duration_ms),
                counted(*sent_bytes, "byte"),
                counted(*received_bytes, "byte")
            ))
        }
    }
}

pub(super) fn connections_omitted(
    names: &EventNames,
    by: &Connecting<'_>,
    totals: &ConnectionTotals,
) -> EventText {
    let ConnectionTotals { count, refused, sent_bytes, received_bytes } = *totals;
    detail(format!(
        "{} made {}, {refused} of them refused: {} sent, {} received",
        by.name(names),
        counted(count, "more connection"),
        counted(sent_bytes, "byte"),
        counted(received_bytes, "byte")
    ))
}

impl Connecting<'_> {
    fn name(&self, names: &EventNames) -> String {
        match self {
            Self::Call(call) => name(names, *call),
            Self::Program(agent) => format!("the program of {agent}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use spinney_kernel::primitives::{ConnectionEnd, ConnectionRefusal, Time};
    use spinney_kernel::record::Event;

    use crate::events::{EventNames, describe};

    use super::*;

    fn connection(end: ConnectionEnd) -> Event {
        let connection = Connection {
            host: "api.example.org".to_owned(),
            port: 443,
            address: Some([93, 184, 216, 34].into()),
            started: Time(1_700_000_000_000),
            duration_ms: 1_250,
            sent_bytes: 1,
            received_bytes: 48_213,
            end,
        };
        Event::ConnectionEnded { call: CallId(7), connection }
    }

    fn shown(event: &Event) -> String {
        let json = serde_json::to_string(event).unwrap_or_else(|error| panic!("{error}"));
        let EventText { text, weight } = describe(&EventNames::default(), event);
        format!("{weight:?}: {text}\n{json}")
    }

    /// G26 (journal): what people and programs read of a connection.
    #[test]
    fn g26_a_connection_is_shown_with_its_host_bytes_and_end() {
        insta::assert_snapshot!(shown(&connection(ConnectionEnd::Closed)), @r#"
        Detail: call 7 was connected to api.example.org:443 for 1 second: closed, 1 byte sent, 48,213 bytes received
        {"type":"connection_ended","call":7,"connection":{"host":"api.example.org","port":443,"address":"93.184.216.34","started":1700000000000,"duration_ms":1250,"sent_bytes":1,"received_bytes":48213,"end":"closed"}}
        "#);
        insta::assert_snapshot!(shown(&connection(ConnectionEnd::Refused(ConnectionRefusal::NotGranted))), @r#"
        Main: call 7 may not connect to api.example.org:443: not granted
        {"type":"connection_ended","call":7,"connection":{"host":"api.example.org","port":443,"address":"93.184.216.34","started":1700000000000,"duration_ms":1250,"sent_bytes":1,"received_bytes":48213,"end":{"refused":"not_granted"}}}
        "#);
        let totals = ConnectionTotals { count: 12, refused: 3, sent_bytes: 1_024, received_bytes: 0 };
        insta::assert_snapshot!(shown(&Event::ConnectionsOmitted { call: CallId(7), totals }), @r#"
        Detail: call 7 made 12 more connections, 3 of them refused: 1,024 bytes sent, 0 bytes received
        {"type":"connections_omitted","call":7,"totals":{"count":12,"refused":3,"sent_bytes":1024}}
        "#);
    }
}
