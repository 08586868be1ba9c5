//! Follows a tree that this process does not run: reads its journal from the first event, a page at a time, also
//! while another process writes it.

use std::collections::VecDeque;
use std::ops::Deref;

use spinney_journal::{Journal, JournalFault};
use spinney_kernel::context::Trace;
use spinney_kernel::primitives::{Seq, TreeId, limit};

use super::TracedEvent;
use super::{RecordedEvent, recorded_events};

/// The events of a tree that another process runs, or none. They look like those of a [`Watcher`](super::Watcher). The
/// journal is borrowed or shared: a reference or an `Arc`.
pub struct Tail<J> {
    journal: J,
    tree: TreeId,
    /// The last event that was read.
    seen: Seq,
    trace: Trace,
    read: VecDeque<RecordedEvent>,
}

impl<J: Deref<Target: Journal>> Tail<J> {
    /// From the first event on.
    #[must_use]
    pub fn new(journal: J, tree: TreeId) -> Self {
        Self { journal, tree, seen: Seq(0), trace: Trace::default(), read: VecDeque::new() }
    }

    /// The next stored event; `None` if there is none yet.
    ///
    /// # Errors
    /// If the tree does not exist, or its journal cannot be read.
    pub async fn next(&mut self) -> Result<Option<TracedEvent>, JournalFault> {
        if self.read.is_empty() {
            let page = self.journal.read(self.tree, self.seen, limit::PAGE_BATCHES_MAX).await?;
            let seen = self.seen;
            // The rest of a partly read batch is read again.
            self.read = page.into_iter().flat_map(recorded_events).filter(|event| event.seq > seen).collect();
            self.seen = self.read.back().map_or(seen, |last| last.seq);
        }
        let Some(recorded) = self.read.pop_front() else { return Ok(None) };
        let context = self.trace.take(recorded.at, &recorded.event);
        Ok(Some(TracedEvent { recorded, context }))
    }

    /// Waits for the next event, whichever process runs the tree; `None` once the tree has ended.
    ///
    /// # Errors
    /// If the tree does not exist, or its journal cannot be read.
    pub async fn wait_for_next(&mut self) -> Result<Option<TracedEvent>, JournalFault> {
        loop {
            if let Some(traced) = self.next().await? {
                return Ok(Some(traced));
            }
            let head = self.journal.head(self.tree).await?;
            let head = head.ok_or(JournalFault::UnknownTree { tree: self.tree })?;
            if head.state.is_over() && head.seq == self.seen {
                return Ok(None);
            }
            self.journal.changed(self.tree, self.seen).await?;
        }
    }
}
