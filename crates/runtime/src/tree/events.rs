//! A tree's events as they become durable: read from the journal, so that none is missed and none comes twice.

use std::collections::VecDeque;
use std::sync::Arc;

use spinney_journal::{Entry, Journal, JournalFault};
use spinney_kernel::record::Event;
use spinney_kernel::words::{Seq, Time, TreeId};

use crate::bus::Hub;

/// Batches read at once.
const PAGE: usize = 256;

/// Where events are read from.
#[derive(Clone)]
pub(crate) struct Source(pub(crate) Arc<dyn Journal>);

/// One event, with its place and time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedEvent {
    /// Its place.
    pub seq: Seq,
    /// When its input arrived.
    pub at: Time,
    /// What happened.
    pub event: Event,
}

/// The events of a stored batch, each with its place and time.
pub fn recorded_events(entry: Entry) -> impl Iterator<Item = RecordedEvent> {
    let (at, first) = (entry.batch.input.now, entry.after.0 + 1);
    let numbered = entry.batch.events.into_iter().zip(first..);
    numbered.map(move |(event, seq)| RecordedEvent { seq: Seq(seq), at, event })
}

/// The events of a tree, one after the other.
pub struct Events {
    source: Source,
    tree: TreeId,
    /// The last one that was read from the journal.
    seen: Seq,
    read: VecDeque<RecordedEvent>,
    hub: Arc<Hub>,
}

impl Events {
    pub(super) fn new(source: Source, tree: TreeId, after: Seq, hub: Arc<Hub>) -> Self {
        Self { source, tree, seen: after, read: VecDeque::new(), hub }
    }

    /// The next event; none once the tree has ended or is no longer run, and everything durable was told.
    ///
    /// # Errors
    /// What the journal says.
    pub async fn next(&mut self) -> Option<Result<RecordedEvent, JournalFault>> {
        loop {
            if let Some(recorded) = self.read.pop_front() {
                return Some(Ok(recorded));
            }
            let seen = self.seen;
            let known = self.hub.past(seen).await;
            if known <= seen {
                return None;
            }
            if let Err(fault) = self.fetch(known).await {
                return Some(Err(fault));
            }
        }
    }

    async fn fetch(&mut self, known: Seq) -> Result<(), JournalFault> {
        let page = self.source.0.read(self.tree, self.seen, PAGE).await?;
        for recorded in page.into_iter().flat_map(recorded_events) {
            // What is not confirmed yet may be read already; it is told when it is.
            if recorded.seq > self.seen && recorded.seq <= known {
                self.seen = recorded.seq;
                self.read.push_back(recorded);
            }
        }
        Ok(())
    }
}
