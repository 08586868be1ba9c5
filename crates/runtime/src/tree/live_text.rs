//! The text that a running attempt streams, as watchers are shown it: in order, and redacted if its tree has a redactor.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spinney_kernel::context::Origin;
use spinney_kernel::port::model::DeltaKind;
use spinney_kernel::primitives::limit;

use super::effects::Ticket;
use crate::bus::{Delta, Hub};
use crate::redaction::{RedactedStream, Redactor};

/// The text of one attempt.
pub(super) struct LiveText {
    ticket: Ticket,
    origin: Arc<Origin>,
    hub: Arc<Hub>,
    redactor: Option<Redactor>,
    pieces: Mutex<Pieces>,
}

/// What has come so far. Reasoning and what tools print are passed on and not kept.
#[derive(Default)]
struct Pieces {
    text: String,
    reasoning_bytes: usize,
    output_bytes: usize,
    shown: [Shown; 3],
    is_over: bool,
}

/// What was shown of the text of one kind.
#[derive(Default)]
struct Shown {
    bytes: usize,
    redacted: Option<RedactedStream>,
}

impl LiveText {
    pub(super) fn new(
        ticket: Ticket,
        origin: Arc<Origin>,
        hub: Arc<Hub>,
        redactor: Option<Redactor>,
    ) -> Self {
        Self { ticket, origin, hub, redactor, pieces: Mutex::default() }
    }

    /// Takes a piece. Returns whether it is the first of its kind.
    pub(super) fn add(&self, kind: DeltaKind, text: &str) -> bool {
        // Under the lock, so that pieces arrive in order.
        let mut pieces = self.pieces();
        let Some(offset) = pieces.add(kind, text) else { return false };
        match &self.redactor {
            None => self.show(&mut pieces, kind, text),
            Some(redactor) => {
                let stream = pieces.shown[kind as usize].redacted.get_or_insert_with(|| redactor.stream());
                let piece = stream.push(text);
                self.show(&mut pieces, kind, &piece);
            }
        }
        offset == 0
    }

    /// Shows what is held back: the attempt is over, and nothing of it is shown later.
    pub(super) fn end(&self) {
        let mut pieces = self.pieces();
        pieces.is_over = true;
        for kind in [DeltaKind::Text, DeltaKind::Reasoning, DeltaKind::Output] {
            if let Some(stream) = pieces.shown[kind as usize].redacted.take() {
                self.show(&mut pieces, kind, &stream.finish());
            }
        }
    }

    /// The answer so far, as it came.
    pub(super) fn text(&self) -> String {
        self.pieces().text.clone()
    }

    fn show(&self, pieces: &mut Pieces, kind: DeltaKind, text: &str) {
        if text.is_empty() {
            return;
        }
        let shown = &mut pieces.shown[kind as usize];
        let offset = shown.bytes;
        shown.bytes += text.len();
        let Ticket { call, attempt } = self.ticket;
        self.hub.say(|after| {
            let (origin, text) = (Arc::clone(&self.origin), text.to_owned());
            Delta { origin, call, attempt, kind, offset, text, after }
        });
    }

    fn pieces(&self) -> MutexGuard<'_, Pieces> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pieces {
    /// The offset of a new piece; none if it is empty, too late, or goes beyond what an answer can have.
    fn add(&mut self, kind: DeltaKind, text: &str) -> Option<usize> {
        let offset = match kind {
            DeltaKind::Text => self.text.len(),
            DeltaKind::Reasoning => self.reasoning_bytes,
            DeltaKind::Output => self.output_bytes,
        };
        if self.is_over || text.is_empty() || offset + text.len() > limit::BLOB_BYTES_MAX {
            return None;
        }
        match kind {
            DeltaKind::Text => self.text.push_str(text),
            DeltaKind::Reasoning => self.reasoning_bytes += text.len(),
            DeltaKind::Output => self.output_bytes += text.len(),
        }
        Some(offset)
    }
}
