//! An event with its position and time, as batches store them.

use spinney_journal::Entry;
use spinney_kernel::record::Event;
use spinney_kernel::words::{Seq, Time};

/// An event with its position and time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedEvent {
    /// Its position.
    pub seq: Seq,
    /// When its input arrived.
    pub at: Time,
    /// The event.
    pub event: Event,
}

/// The events of a stored batch, each with its position and time.
pub fn recorded_events(entry: Entry) -> impl Iterator<Item = RecordedEvent> {
    let (at, first) = (entry.batch.input.now, entry.after.0 + 1);
    let numbered = entry.batch.events.into_iter().zip(first..);
    numbered.map(move |(event, seq)| RecordedEvent { seq: Seq(seq), at, event })
}
