//! The hub's recent events: the trace up to the last one, and the latest traced events, so a watcher that starts
//! among them need not read the journal.

use std::collections::VecDeque;
use std::sync::Arc;

use spinney_kernel::context::Trace;
use spinney_kernel::primitives::{Seq, limit};
use spinney_kernel::record::{Event, Outcome, Work};

use super::RecordedEvent;
use super::TracedEvent;

/// Traced events to keep besides the newest ones. More than a typical page of the journal, so all waiting
/// watchers find its events.
const RECENT_MAX: usize = 1_024;
/// Their approximate total size.
const RECENT_BYTES_MAX: usize = limit::PAGE_BYTES_MAX;
/// Events that wait for earlier ones.
const HELD_MAX: usize = 1_024;

#[derive(Default)]
pub(super) struct RecentEvents {
    seen: Seq,
    trace: Trace,
    /// The latest ones, without a gap up to `seen`.
    recent: VecDeque<Arc<TracedEvent>>,
    recent_bytes: usize,
    /// Durable events after a gap. Without these, the reader would never catch up with a tree that is faster than the
    /// journal.
    held: VecDeque<RecordedEvent>,
}

impl RecentEvents {
    pub(super) const fn seen(&self) -> Seq {
        self.seen
    }

    /// The trace after that event.
    pub(super) const fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Adds the next event. One after a gap is held until the gap is filled.
    pub(super) fn take(&mut self, recorded: RecordedEvent) -> Option<Arc<TracedEvent>> {
        if recorded.seq != next(self.seen) {
            self.hold(recorded);
            return None;
        }
        self.seen = recorded.seq;
        let context = self.trace.take(recorded.at, &recorded.event);
        let traced = Arc::new(TracedEvent { recorded, context });
        self.recent_bytes += weight(&traced.recorded.event);
        self.recent.push_back(Arc::clone(&traced));
        Some(traced)
    }

    /// Drops old events. Runs before events are added and not after, so waiting watchers find all of them.
    pub(super) fn trim(&mut self) {
        while self.recent.len() > RECENT_MAX || self.recent_bytes > RECENT_BYTES_MAX {
            let Some(oldest) = self.recent.pop_front() else { return };
            self.recent_bytes -= weight(&oldest.recorded.event);
        }
    }

    /// The traced events after `place`; `None` if that is older than what is kept.
    pub(super) fn after(&self, place: Seq) -> Option<impl Iterator<Item = &Arc<TracedEvent>>> {
        let oldest = self.recent.front().map_or(next(self.seen), |traced| traced.recorded.seq);
        let known = self.recent.partition_point(|traced| traced.recorded.seq <= place);
        (next(place) >= oldest).then(|| self.recent.range(known..))
    }

    pub(super) fn held(&mut self) -> Option<RecordedEvent> {
        while self.held.pop_front_if(|recorded| recorded.seq <= self.seen).is_some() {}
        self.held.pop_front_if(|recorded| recorded.seq == next(self.seen))
    }

    fn hold(&mut self, recorded: RecordedEvent) {
        if self.held.back().is_some_and(|last| next(last.seq) != recorded.seq) {
            self.held.clear();
        }
        if self.held.len() == HELD_MAX {
            self.held.pop_front();
        }
        self.held.push_back(recorded);
    }
}

const fn next(seq: Seq) -> Seq {
    Seq(seq.0.saturating_add(1))
}

/// The approximate size of an event: its long texts.
fn weight(event: &Event) -> usize {
    if let Event::CallEnded { outcome: Outcome::Done { body, asks, .. }, .. } = event {
        body.text.len() + asks.iter().map(|ask| ask.args.len()).sum::<usize>()
    } else if let Event::CallAsked { work: Work::Tool(tool), .. } = event {
        tool.args.len()
    } else if let Event::ToolAnswered { body, .. }
    | Event::ValueWritten { value: body, .. }
    | Event::MessageSent { body, .. }
    | Event::MessagePublished { body, .. }
    | Event::AgentEnded { result: Some(body), .. } = event
    {
        body.text.len()
    } else {
        0
    }
}
