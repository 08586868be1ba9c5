//! The recent events of a tree as its hub knows them: who is who as of the last one, and the traced events that came
//! last, so that whoever begins among them need not read the journal.

use std::collections::VecDeque;
use std::sync::Arc;

use spinney_kernel::context::Trace;
use spinney_kernel::record::{Event, Outcome, Work};
use spinney_kernel::words::{Seq, limit};

use super::TracedEvent;
use crate::tree::RecordedEvent;

/// Traced events that are kept, besides those that came last. More than a page of the journal has as a rule, so that all who
/// wait for one find it.
const RECENT_MAX: usize = 1_024;
/// About how many bytes they may have.
const RECENT_BYTES_MAX: usize = limit::PAGE_BYTES_MAX;
/// Events that wait for those before them.
const HELD_MAX: usize = 1_024;

/// What came so far, and the last of it in full.
#[derive(Default)]
pub(super) struct RecentEvents {
    seen: Seq,
    trace: Trace,
    /// The last ones, without a gap up to `seen`.
    recent: VecDeque<Arc<TracedEvent>>,
    recent_bytes: usize,
    /// Durable events that came after a gap, without one among them. Without these, a tree that is faster than its
    /// journal is read would never be caught up with.
    held: VecDeque<RecordedEvent>,
}

impl RecentEvents {
    /// The last event that it took in.
    pub(super) const fn seen(&self) -> Seq {
        self.seen
    }

    /// Who is who after that event.
    pub(super) const fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Takes in the next event. One that comes after a gap is held until that is filled.
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

    /// Forgets what is no longer recent. Before events are taken in and not after, so that whoever waited for them
    /// finds all of them.
    pub(super) fn trim(&mut self) {
        while self.recent.len() > RECENT_MAX || self.recent_bytes > RECENT_BYTES_MAX {
            let Some(oldest) = self.recent.pop_front() else { return };
            self.recent_bytes -= weight(&oldest.recorded.event);
        }
    }

    /// The traced events after an event; none if that is longer ago than what is kept.
    pub(super) fn after(&self, place: Seq) -> Option<impl Iterator<Item = &Arc<TracedEvent>>> {
        let oldest = self.recent.front().map_or(next(self.seen), |traced| traced.recorded.seq);
        let known = self.recent.partition_point(|traced| traced.recorded.seq <= place);
        (next(place) >= oldest).then(|| self.recent.range(known..))
    }

    /// The next event, if it is held.
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

/// The place after this one.
const fn next(seq: Seq) -> Seq {
    Seq(seq.0.saturating_add(1))
}

/// About how many bytes an event has: the texts that may be long.
fn weight(event: &Event) -> usize {
    if let Event::CallEnded { outcome: Outcome::Done { body, asks, .. }, .. } = event {
        body.text.len() + asks.iter().map(|ask| ask.args.len()).sum::<usize>()
    } else if let Event::CallAsked { work: Work::Tool(tool), .. } = event {
        tool.args.len()
    } else if let Event::ToolAnswered { body, .. }
    | Event::MessageSent { body, .. }
    | Event::MessagePublished { body, .. }
    | Event::AgentEnded { result: Some(body), .. } = event
    {
        body.text.len()
    } else {
        0
    }
}
