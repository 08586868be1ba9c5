//! An event with its position and time, as batches store them.

use spinney_journal::{Batch, Entry};
use spinney_kernel::primitives::{Actor, Seq, Time};
use spinney_kernel::record::Event;
use spinney_kernel::rules::{Input, InputKind};

/// An event with its position and time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedEvent {
    /// Its position.
    pub seq: Seq,
    /// When its input arrived.
    pub at: Time,
    /// Who made the request that it was decided for, if one did.
    pub actor: Option<Actor>,
    /// The event.
    pub event: Event,
}

/// The events of a stored batch, each with its position and time.
pub fn recorded_events(entry: Entry) -> impl Iterator<Item = RecordedEvent> {
    let (Batch { input, events }, first) = (entry.batch, entry.after.0 + 1);
    let (at, actor) = (input.now, actor_of(&input).cloned());
    let numbered = events.into_iter().zip(first..);
    numbered.map(move |(event, seq)| RecordedEvent { seq: Seq(seq), at, actor: actor.clone(), event })
}

/// Who made the request; `None` for a report.
pub(crate) const fn actor_of(input: &Input) -> Option<&Actor> {
    match &input.what {
        InputKind::Request { by, .. } => Some(by),
        InputKind::Report(_) => None,
    }
}
