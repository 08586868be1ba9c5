//! What became of the connections of one call.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::refusal::ConnectRefusal;

/// Connections of one call that are remembered one by one; of more, only their number and bytes are.
pub(super) const RECORDS_MAX: usize = 256;

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxiedEnd {
    /// Both sides closed it, or one broke it, or the call ended.
    Closed,
    Refused(ConnectRefusal),
}

/// One connection of a call, made or refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxiedConnection {
    /// As it was asked for: empty if the request could not be read.
    pub host: String,
    pub port: u16,
    /// The address that it was made to.
    pub address: Option<IpAddr>,
    /// When it began, after the call did.
    pub began_after: Duration,
    pub took: Duration,
    /// Bytes to the host.
    pub sent_bytes: u64,
    /// Bytes from the host.
    pub received_bytes: u64,
    pub end: ProxiedEnd,
}

/// Collects the connections of one call. Clones share what they collect.
#[derive(Clone, Debug)]
pub struct ProxyLog(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    start: Instant,
    records: Mutex<Records>,
}

#[derive(Debug, Default)]
struct Records {
    kept: Vec<ProxiedConnection>,
    unkept: u64,
}

impl Default for ProxyLog {
    fn default() -> Self {
        Self(Arc::new(Shared { start: Instant::now(), records: Mutex::default() }))
    }
}

impl ProxyLog {
    /// The records until now, in the order in which connections ended, and how many more there were.
    #[must_use]
    pub fn records(&self) -> (Vec<ProxiedConnection>, u64) {
        let records = self.lock();
        (records.kept.clone(), records.unkept)
    }

    /// One that is being made. It is recorded when it is dropped.
    pub(crate) fn open(&self, host: String, port: u16) -> OpenConnection {
        OpenConnection {
            log: self.clone(),
            host,
            port,
            address: None,
            began: Instant::now(),
            bytes: Arc::default(),
            refusal: None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.0.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes of a connection so far.
#[derive(Debug, Default)]
pub(super) struct ByteCounts {
    pub(super) sent: AtomicU64,
    pub(super) received: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct OpenConnection {
    log: ProxyLog,
    host: String,
    port: u16,
    pub(crate) address: Option<IpAddr>,
    began: Instant,
    pub(super) bytes: Arc<ByteCounts>,
    pub(crate) refusal: Option<ConnectRefusal>,
}

impl OpenConnection {
    #[cfg(feature = "http")]
    pub(crate) fn received(&self, bytes: usize) {
        self.bytes.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let mut records = self.log.lock();
        if records.kept.len() >= RECORDS_MAX {
            records.unkept += 1;
            return;
        }
        records.kept.push(ProxiedConnection {
            host: std::mem::take(&mut self.host),
            port: self.port,
            address: self.address,
            began_after: self.began.saturating_duration_since(self.log.0.start),
            took: self.began.elapsed(),
            sent_bytes: self.bytes.sent.load(Ordering::Relaxed),
            received_bytes: self.bytes.received.load(Ordering::Relaxed),
            end: self.refusal.take().map_or(ProxiedEnd::Closed, ProxiedEnd::Refused),
        });
    }
}
