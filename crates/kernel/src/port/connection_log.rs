//! What a tool connects to, as it reports that while it runs.

use core::net::IpAddr;
use core::sync::atomic::{AtomicU64, Ordering};
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::primitives::{Connection, ConnectionEnd, ConnectionRefusal, Time};

/// Receives the connections of a call, for the journal. Those that end after the call are dropped.
#[derive(Clone, Default)]
pub struct ConnectionLog(Option<Arc<dyn ConnectionSink>>);

/// Where a log leads, and its clock.
pub trait ConnectionSink: Send + Sync {
    fn now(&self) -> Time;

    /// Must not block.
    fn record(&self, connection: Connection);
}

/// A connection from its first moment, whether it will be allowed or not. It is recorded when this is dropped.
pub struct OpenConnection {
    sink: Option<Arc<dyn ConnectionSink>>,
    host: String,
    port: u16,
    address: OnceLock<IpAddr>,
    started: Time,
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
    end: OnceLock<ConnectionEnd>,
}

impl ConnectionLog {
    #[must_use]
    pub fn new(sink: Arc<dyn ConnectionSink>) -> Self {
        Self(Some(sink))
    }

    /// Begins a connection, with the host as the tool named it.
    #[must_use]
    pub fn open(&self, host: &str, port: u16) -> OpenConnection {
        OpenConnection {
            sink: self.0.clone(),
            host: host.to_owned(),
            port,
            address: OnceLock::new(),
            started: self.0.as_ref().map(|sink| sink.now()).unwrap_or_default(),
            sent_bytes: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            end: OnceLock::new(),
        }
    }

    /// Records a connection that was not allowed.
    pub fn refused(&self, host: &str, port: u16, why: ConnectionRefusal) {
        self.open(host, port).end(ConnectionEnd::Refused(why));
    }
}

impl OpenConnection {
    /// Sets the address that it is made to. The first one counts.
    pub fn connected_to(&self, address: IpAddr) {
        let _ = self.address.set(address);
    }

    /// Counts bytes from the tool to the host.
    pub fn sent(&self, bytes: u64) {
        self.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts bytes from the host to the tool.
    pub fn received(&self, bytes: u64) {
        self.received_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Sets how it ended. The first one counts; without one it was stopped.
    pub fn end(&self, end: ConnectionEnd) {
        let _ = self.end.set(end);
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let Some(sink) = self.sink.take() else { return };
        let connection = Connection {
            host: std::mem::take(&mut self.host),
            port: self.port,
            address: self.address.get().copied(),
            started: self.started,
            duration_ms: sink.now().0.saturating_sub(self.started.0),
            sent_bytes: *self.sent_bytes.get_mut(),
            received_bytes: *self.received_bytes.get_mut(),
            end: self.end.get().copied().unwrap_or(ConnectionEnd::Stopped),
        };
        sink.record(connection.bounded());
    }
}

impl fmt::Debug for OpenConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenConnection({}:{})", self.host, self.port)
    }
}

impl PartialEq for ConnectionLog {
    /// Always equal: what a tool does must not depend on it.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ConnectionLog {}

impl fmt::Debug for ConnectionLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConnectionLog")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use super::*;

    /// A second passes at each look at the clock.
    #[derive(Default)]
    struct Recorded(AtomicU64, Mutex<Vec<Connection>>);

    impl ConnectionSink for Recorded {
        fn now(&self) -> Time {
            Time(self.0.fetch_add(1_000, Ordering::Relaxed))
        }

        fn record(&self, connection: Connection) {
            self.1.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }

    #[test]
    fn every_connection_is_recorded_once_when_it_is_dropped() {
        let recorded = Arc::new(Recorded::default());
        let log = ConnectionLog::new(Arc::clone(&recorded) as Arc<dyn ConnectionSink>);
        let open = log.open("a.org", 443);
        open.connected_to(IpAddr::from([192, 0, 2, 1]));
        open.sent(2);
        open.received(3);
        open.received(4);
        open.end(ConnectionEnd::Closed);
        open.end(ConnectionEnd::Broken);
        drop(open);
        drop(log.open("b.org", 80));
        log.refused("c.org", 22, ConnectionRefusal::NotGranted);
        let recorded = recorded.1.lock().unwrap_or_else(PoisonError::into_inner);
        let shown: Vec<String> = recorded.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "a.org:443 closed after 1 second, 2 bytes sent, 7 received",
                "b.org:80 stopped after 1 second, 0 bytes sent, 0 received",
                "c.org:22 refused: not granted",
            ]
        );
    }
}
