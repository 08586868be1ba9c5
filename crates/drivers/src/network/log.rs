//! The connections of one call: the journal gets each one as it ends, and the call's answer says what was refused.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spinney_kernel::port::{self, ConnectionLog};
use spinney_kernel::primitives::{ConnectionEnd, ConnectionRefusal};

use super::refusal::ConnectRefusal;

/// Connections of one call that are remembered one by one; of more, only their number is.
pub(super) const RECORDS_MAX: usize = 256;

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxiedEnd {
    /// Both sides closed it, or one broke it.
    Closed,
    /// The call ended first.
    Stopped,
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
    /// Bytes to the host.
    pub sent_bytes: u64,
    /// Bytes from the host.
    pub received_bytes: u64,
    pub end: ProxiedEnd,
}

/// Collects the connections of one call. Clones share what they collect.
#[derive(Clone, Debug, Default)]
pub struct ProxyLog {
    journal: ConnectionLog,
    records: Arc<Mutex<Records>>,
}

#[derive(Debug, Default)]
struct Records {
    kept: Vec<ProxiedConnection>,
    unkept: u64,
}

impl ProxyLog {
    /// Reports each connection there as well.
    #[must_use]
    pub fn new(journal: ConnectionLog) -> Self {
        Self { journal, records: Arc::default() }
    }

    /// The records until now, in the order in which connections ended, and how many more there were.
    #[must_use]
    pub fn records(&self) -> (Vec<ProxiedConnection>, u64) {
        let records = self.lock();
        (records.kept.clone(), records.unkept)
    }

    /// One that is being made. It is recorded when it is dropped.
    pub(crate) fn open(&self, host: String, port: u16) -> OpenConnection {
        let journalled = self.journal.open(&host, port);
        let (address, bytes, end) = (None, Arc::default(), ProxiedEnd::Stopped);
        OpenConnection { log: self.clone(), journalled, host, port, address, bytes, end }
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
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
    journalled: port::OpenConnection,
    host: String,
    port: u16,
    pub(crate) address: Option<IpAddr>,
    pub(super) bytes: Arc<ByteCounts>,
    end: ProxiedEnd,
}

impl OpenConnection {
    #[cfg(feature = "http")]
    pub(crate) fn received(&self, bytes: usize) {
        self.bytes.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    #[cfg(feature = "http")]
    pub(crate) fn sent(&self, bytes: usize) {
        self.bytes.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// It ended, and not with the call.
    pub(crate) fn close(&mut self) {
        self.end = ProxiedEnd::Closed;
    }

    pub(crate) fn refuse(&mut self, refusal: ConnectRefusal) {
        self.end = ProxiedEnd::Refused(refusal);
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let sent_bytes = self.bytes.sent.load(Ordering::Relaxed);
        let received_bytes = self.bytes.received.load(Ordering::Relaxed);
        self.journalled.sent(sent_bytes);
        self.journalled.received(received_bytes);
        if let Some(address) = self.address {
            self.journalled.connected_to(address);
        }
        self.journalled.end(match &self.end {
            ProxiedEnd::Closed => ConnectionEnd::Closed,
            ProxiedEnd::Stopped => ConnectionEnd::Stopped,
            ProxiedEnd::Refused(refusal) => journalled(refusal),
        });
        let mut records = self.log.lock();
        if records.kept.len() >= RECORDS_MAX {
            records.unkept += 1;
            return;
        }
        records.kept.push(ProxiedConnection {
            host: std::mem::take(&mut self.host),
            port: self.port,
            address: self.address,
            sent_bytes,
            received_bytes,
            end: self.end.clone(),
        });
    }
}

/// What the journal has of a refusal.
const fn journalled(refusal: &ConnectRefusal) -> ConnectionEnd {
    ConnectionEnd::Refused(match refusal {
        ConnectRefusal::NotGranted { .. } => ConnectionRefusal::NotGranted,
        ConnectRefusal::Address { .. } | ConnectRefusal::OwnAddress { .. } => {
            ConnectionRefusal::AddressNotPublic
        }
        ConnectRefusal::Request { .. } => ConnectionRefusal::Protocol,
        ConnectRefusal::TlsName { .. } => ConnectionRefusal::OtherHost,
        ConnectRefusal::Unresolved { .. } => return ConnectionEnd::Unresolved,
        ConnectRefusal::Unreachable { .. } => return ConnectionEnd::Unreachable,
    })
}
