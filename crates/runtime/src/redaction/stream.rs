//! A text that is redacted while it arrives.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::scan::Scan;
use super::values::{Secret, Values};

/// A text that arrives in pieces. However it is cut, what is shown of it is the same.
pub struct RedactedStream {
    scan: Scan,
    /// What is held back, and what of it is secret.
    held: Vec<(u8, Option<Secret>)>,
    /// The position of the first byte that is held back.
    from: usize,
    /// Whether the byte before that was secret.
    is_in_secret: bool,
}

impl RedactedStream {
    pub(super) fn new(values: Arc<Values>) -> Self {
        Self { scan: Scan::new(values), held: Vec::new(), from: 0, is_in_secret: false }
    }

    /// Takes the next piece. Returns what can be shown by now: everything except an end that could be the beginning of a
    /// secret.
    pub fn push(&mut self, piece: &str) -> String {
        self.held.reserve(piece.len());
        for byte in piece.bytes() {
            self.held.push((byte, None));
            let (held, from) = (&mut self.held, self.from);
            self.scan.step(byte, |Range { start, end }, secret| {
                // What was shown before is covered by its mark already.
                for (_, covered) in &mut held[start.saturating_sub(from)..end - from] {
                    *covered = Some(secret);
                }
            });
        }
        self.show(self.scan.decided())
    }

    /// How much is held back, in bytes.
    #[must_use]
    pub const fn held_bytes(&self) -> usize {
        self.held.len()
    }

    /// Returns the rest: nothing follows.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.show(self.from + self.held.len())
    }

    /// What is before a position.
    fn show(&mut self, to: usize) -> String {
        let mut shown = Vec::new();
        for (byte, secret) in self.held.drain(..to - self.from) {
            match secret {
                None => shown.push(byte),
                Some(_) if self.is_in_secret => {}
                Some(secret) => {
                    let name = self.scan.values().name(secret);
                    shown.extend(format!("[redacted: {name}]").bytes());
                }
            }
            self.is_in_secret = secret.is_some();
        }
        self.from = to;
        // Secrets begin and end where letters do.
        String::from_utf8_lossy(&shown).into_owned()
    }
}

impl fmt::Debug for RedactedStream {
    /// Shows nothing of the text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedactedStream({} bytes held back)", self.held.len())
    }
}
