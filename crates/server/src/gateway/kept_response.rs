//! The bytes of a response as the journal keeps them. All responses that are open share a bound: one that finds no room
//! passes to its program all the same, and the journal says that it was not kept.

use std::sync::Arc;

use spinney_kernel::words::limit;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Most bytes of all open responses, in units.
const UNITS_MAX: usize = 4_096;
const UNIT_BYTES: usize = 64 * 1024;

/// The memory of all open responses.
#[derive(Clone, Debug)]
pub(super) struct ResponseMemory(Arc<Semaphore>);

impl Default for ResponseMemory {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(UNITS_MAX)))
    }
}

/// What is kept of one response.
#[derive(Debug)]
pub(super) struct KeptResponse {
    memory: ResponseMemory,
    bytes: Vec<u8>,
    share: Vec<OwnedSemaphorePermit>,
    /// All bytes that came, kept or not.
    total: usize,
    is_kept: bool,
}

impl KeptResponse {
    pub(super) const fn new(memory: ResponseMemory) -> Self {
        Self { memory, bytes: Vec::new(), share: Vec::new(), total: 0, is_kept: true }
    }

    /// Keeps a piece, if there is room for it. What is above the largest blob is left out.
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.total = self.total.saturating_add(piece.len());
        if !self.is_kept {
            return;
        }
        let room = limit::BLOB_BYTES_MAX.saturating_sub(self.bytes.len());
        let piece = &piece[..piece.len().min(room)];
        while self.share.len() * UNIT_BYTES < self.bytes.len() + piece.len() {
            let Ok(unit) = Arc::clone(&self.memory.0).try_acquire_owned() else {
                // A part of a response is of no use.
                (self.bytes, self.share, self.is_kept) = (Vec::new(), Vec::new(), false);
                return;
            };
            self.share.push(unit);
        }
        self.bytes.extend_from_slice(piece);
    }

    /// What the journal keeps.
    pub(super) fn into_text(self) -> String {
        if self.is_kept {
            return String::from_utf8_lossy(&self.bytes).into_owned();
        }
        format!("{} bytes, not kept: too many large responses at the same time", self.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_without_room_is_not_kept_and_the_others_are() {
        let memory = ResponseMemory(Arc::new(Semaphore::new(3)));
        let kept = || KeptResponse::new(memory.clone());
        let (mut one, mut two, mut three) = (kept(), kept(), kept());
        one.push(b"hello ");
        two.push(&[b'x'; UNIT_BYTES + 1]);
        assert_eq!(memory.0.available_permits(), 0);
        three.push(b"no room");
        two.push(&[b'x'; UNIT_BYTES]);
        // It gave back what it had.
        assert_eq!(memory.0.available_permits(), 2);
        two.push(b"x");
        one.push(b"world");
        assert_eq!(one.into_text(), "hello world");
        let text = |bytes| format!("{bytes} bytes, not kept: too many large responses at the same time");
        assert_eq!((two.into_text(), three.into_text()), (text(2 * UNIT_BYTES + 2), text(7)));
        assert_eq!(memory.0.available_permits(), 3);
    }

    #[test]
    fn a_response_is_kept_up_to_the_largest_blob() {
        let mut kept = KeptResponse::new(ResponseMemory::default());
        for _ in 0..3 {
            kept.push(&vec![b'x'; limit::BLOB_BYTES_MAX / 2 + 1]);
        }
        assert_eq!(kept.into_text().len(), limit::BLOB_BYTES_MAX);
    }
}
