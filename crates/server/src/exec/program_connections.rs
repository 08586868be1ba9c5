//! The connections of a program in a box, on their way to the journal of its run: in groups while it runs, and what is left
//! at its end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spinney::Tree;
use spinney::clock::{Clock as _, SystemClock};
use spinney_kernel::port::{ConnectionLog, ConnectionSink};
use spinney_kernel::primitives::{Actor, AgentId, Connection, ConnectionTotals, Time, limit};
use spinney_kernel::rules::request::RecordConnections;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Records what a program connects to, until it is finished.
pub struct ProgramConnections {
    recorder: Arc<Recorder>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Recorder {
    pending: Mutex<Pending>,
    changed: Notify,
}

#[derive(Default)]
struct Pending {
    ended: Vec<Connection>,
    reported: usize,
    omitted: ConnectionTotals,
    is_over: bool,
}

impl ProgramConnections {
    /// Those of the program that this agent stands for.
    #[must_use]
    pub fn record(tree: Tree, agent: AgentId) -> Self {
        let recorder = Arc::new(Recorder::default());
        let task = tokio::spawn(report(Arc::clone(&recorder), tree, agent));
        Self { recorder, task }
    }

    /// Where a box reports its connections.
    #[must_use]
    pub fn log(&self) -> ConnectionLog {
        ConnectionLog::new(Arc::clone(&self.recorder) as Arc<dyn ConnectionSink>)
    }

    /// Records what is left. Later connections are not recorded.
    pub async fn finish(self) {
        self.recorder.pending().is_over = true;
        self.recorder.changed.notify_one();
        if let Err(error) = self.task.await {
            tracing::warn!("the last connections of the program are not in the journal: {error}");
        }
    }
}

async fn report(recorder: Arc<Recorder>, tree: Tree, agent: AgentId) {
    loop {
        recorder.changed.notified().await;
        let (ended, omitted, is_over) = recorder.take();
        if !ended.is_empty() || !omitted.is_none() {
            let connected = RecordConnections { agent: agent.clone(), ended, omitted };
            if let Err(error) = tree.request(Actor::RUNTIME, connected).await {
                // The tree has ended or is away: its journal takes nothing more.
                tracing::debug!("connections of the program are not in the journal: {error}");
            }
        }
        if is_over {
            return;
        }
    }
}

impl Recorder {
    /// Those that ended since, and at the end how many more there were.
    fn take(&self) -> (Vec<Connection>, ConnectionTotals, bool) {
        let mut pending = self.pending();
        let ended = std::mem::take(&mut pending.ended);
        pending.reported += ended.len();
        let omitted = if pending.is_over { pending.omitted } else { ConnectionTotals::default() };
        (ended, omitted, pending.is_over)
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionSink for Recorder {
    fn now(&self) -> Time {
        Time(SystemClock::new().now_ms())
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
        drop(pending);
        self.changed.notify_one();
    }
}
