//! A connection that a tool made or tried to make, as the journal has it.

use core::net::IpAddr;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Millis, Time, is_hostile, limit};

/// A connection that has ended, or was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    /// A name or an address as the tool named it; for text that is neither, its beginning.
    pub host: String,
    pub port: u16,
    /// The address that it was made to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    pub started: Time,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub duration_ms: u64,
    /// Bytes from the tool to the host.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sent_bytes: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub received_bytes: u64,
    pub end: ConnectionEnd,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionEnd {
    /// By one of its sides, as intended.
    Closed,
    /// It broke.
    Broken,
    /// With the call of the tool.
    Stopped,
    /// It took too long.
    TimedOut,
    /// The name has no address.
    Unresolved,
    /// The host did not accept it.
    Unreachable,
    /// It was not allowed, or no longer.
    Refused(ConnectionRefusal),
}

/// Why a connection was not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionRefusal {
    /// No rule of the agent has this host and port.
    NotGranted,
    /// The name leads to an address of this machine, of a private network or of a metadata service, and no rule names
    /// that address.
    AddressNotPublic,
    /// The host is neither a name nor an address in its usual form.
    InvalidHost,
    /// Inside the connection another host was named, by TLS or by HTTP.
    OtherHost,
    /// What was sent is not a protocol that can be checked.
    Protocol,
    /// The call has too many open connections.
    TooMany,
}

/// Connections of a call beyond those that its journal has one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectionTotals {
    pub count: u64,
    /// How many of them were refused.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sent_bytes: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub received_bytes: u64,
}

impl Connection {
    /// Within the journal's limits: a host of at most [`limit::HOST_BYTES_MAX`] bytes that can be shown.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        self.host.truncate(self.host.floor_char_boundary(limit::HOST_BYTES_MAX));
        let is_shown = |c: char| !is_hostile(c) && !c.is_whitespace();
        if !self.host.chars().all(is_shown) {
            self.host = self.host.chars().map(|c| if is_shown(c) { c } else { '?' }).collect();
            self.host.truncate(self.host.floor_char_boundary(limit::HOST_BYTES_MAX));
        }
        self
    }

    #[must_use]
    pub const fn refusal(&self) -> Option<ConnectionRefusal> {
        match self.end {
            ConnectionEnd::Refused(why) => Some(why),
            _ => None,
        }
    }
}

impl ConnectionTotals {
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.count == 0
    }

    pub const fn add(&mut self, connection: &Connection) {
        self.count = self.count.saturating_add(1);
        self.refused = self.refused.saturating_add(connection.refusal().is_some() as u64);
        self.sent_bytes = self.sent_bytes.saturating_add(connection.sent_bytes);
        self.received_bytes = self.received_bytes.saturating_add(connection.received_bytes);
    }
}

impl ConnectionRefusal {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotGranted => "not granted",
            Self::AddressNotPublic => "its address is not public",
            Self::InvalidHost => "not a valid host",
            Self::OtherHost => "it names another host",
            Self::Protocol => "its protocol cannot be checked",
            Self::TooMany => "too many open connections",
        }
    }
}

impl fmt::Display for ConnectionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("closed"),
            Self::Broken => f.write_str("broken"),
            Self::Stopped => f.write_str("stopped"),
            Self::TimedOut => f.write_str("timed out"),
            Self::Unresolved => f.write_str("no such host"),
            Self::Unreachable => f.write_str("unreachable"),
            Self::Refused(why) => write!(f, "refused: {}", why.as_str()),
        }
    }
}

impl fmt::Display for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, end, sent_bytes, received_bytes, duration_ms, .. } = self;
        write!(f, "{host}:{port} {end}")?;
        if self.refusal().is_none() {
            write!(f, " after {}, {sent_bytes} bytes sent, {received_bytes} received", Millis(*duration_ms))?;
        }
        Ok(())
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(host: &str) -> Connection {
        let end = ConnectionEnd::Refused(ConnectionRefusal::NotGranted);
        let (host, started) = (host.to_owned(), Time(1_000));
        let (sent_bytes, received_bytes) = (0, 0);
        Connection {
            host,
            port: 443,
            address: None,
            started,
            duration_ms: 0,
            sent_bytes,
            received_bytes,
            end,
        }
    }

    #[test]
    fn journals_have_connections_in_few_words() {
        let json = |connection: &Connection| {
            serde_json::to_string(connection).unwrap_or_else(|error| panic!("{error}"))
        };
        assert_eq!(
            json(&refused("a.org")),
            r#"{"host":"a.org","port":443,"started":1000,"end":{"refused":"not_granted"}}"#
        );
        let address = Some(IpAddr::from([192, 0, 2, 1]));
        let closed = Connection {
            address,
            duration_ms: 20,
            sent_bytes: 3,
            received_bytes: 4,
            end: ConnectionEnd::Closed,
            ..refused("a.org")
        };
        let text = r#"{"host":"a.org","port":443,"address":"192.0.2.1","started":1000,"duration_ms":20,"sent_bytes":3,"received_bytes":4,"end":"closed"}"#;
        assert_eq!(json(&closed), text);
        assert_eq!(
            serde_json::from_str::<Connection>(text).unwrap_or_else(|error| panic!("{error}")),
            closed
        );
        assert_eq!(closed.to_string(), "a.org:443 closed after 20 ms, 3 bytes sent, 4 received");
        assert_eq!(refused("a.org").to_string(), "a.org:443 refused: not granted");
    }

    #[test]
    fn a_host_that_a_tool_made_up_is_cut_and_shown() {
        assert_eq!(refused("a\u{1b}[2J b\u{202e}").bounded().host, "a?[2J?b?");
        let long = refused(&"\u{e9}".repeat(400)).bounded();
        assert_eq!(long.host.len(), limit::HOST_BYTES_MAX - 1);
        assert_eq!(refused(&"\u{202e}".repeat(400)).bounded().host.len(), 85);
    }
}
