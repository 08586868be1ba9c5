//! The connections of a tool that runs, until the tree has recorded them. They are reported in groups while the call
//! runs, and what is left before its end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spinney_kernel::port::{ConnectionLog, ConnectionSink};
use spinney_kernel::primitives::{Connection, ConnectionTotals, Time, limit};
use spinney_kernel::rules::report::{Connections, Report};
use tokio::sync::mpsc::Sender;

use super::effects::{EffectResult, Ticket};
use crate::clock::Clock;

pub(super) struct CallConnections {
    ticket: Ticket,
    clock: Arc<dyn Clock>,
    reports: Sender<EffectResult>,
    pending: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    ended: Vec<Connection>,
    reported: usize,
    omitted: ConnectionTotals,
    /// Whether the tree knows that there are some.
    is_announced: bool,
    /// Whether the call has ended.
    is_over: bool,
}

impl CallConnections {
    pub(super) fn new(ticket: Ticket, clock: Arc<dyn Clock>, reports: Sender<EffectResult>) -> Arc<Self> {
        Arc::new(Self { ticket, clock, reports, pending: Mutex::default() })
    }

    pub(super) fn log(self: &Arc<Self>) -> ConnectionLog {
        ConnectionLog::new(Arc::clone(self) as Arc<dyn ConnectionSink>)
    }

    /// Those that ended since the last report.
    pub(super) fn take(&self) -> Option<Report> {
        let mut pending = self.pending();
        pending.is_announced = false;
        let ended = std::mem::take(&mut pending.ended);
        pending.reported += ended.len();
        drop(pending);
        self.report(ended, ConnectionTotals::default())
    }

    /// The rest, at the end of the call. From here on none is recorded.
    pub(super) fn finish(&self) -> Option<Report> {
        let mut pending = self.pending();
        pending.is_over = true;
        let (ended, omitted) = (std::mem::take(&mut pending.ended), pending.omitted);
        drop(pending);
        self.report(ended, omitted)
    }

    fn report(&self, ended: Vec<Connection>, omitted: ConnectionTotals) -> Option<Report> {
        if ended.is_empty() && omitted.is_none() {
            return None;
        }
        let Ticket { call, attempt } = self.ticket;
        Some(Report::Connections(Connections { call, attempt, ended, omitted }))
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionSink for CallConnections {
    fn now(&self) -> Time {
        Time(self.clock.now_ms())
    }

    fn record(&self, connection: Connection) {
        let mut pending = self.pending();
        if pending.is_over {
            return;
        }
        if pending.reported + pending.ended.len() >= usize::from(limit::CALL_CONNECTIONS_MAX) {
            return pending.omitted.add(&connection);
        }
        pending.ended.push(connection);
        if !pending.is_announced {
            // If this is lost, they are reported with the next one, or at the end.
            pending.is_announced = self.reports.try_send(EffectResult::Connections(self.ticket.call)).is_ok();
        }
    }
}
