//! The bytes of a response as the journal keeps them. All responses that are open share a bound: one that finds no room
//! passes to its program anyway, and the journal says that it was not kept.

use std::sync::Arc;

use spinney_drivers::wire::Secrets;
use spinney_kernel::primitives::limit;
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

    /// The bytes that are kept.
    pub(super) const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// What the journal keeps, without keys. They are looked for in the whole: a piece may have only half of one.
    pub(super) fn into_text(self, secrets: &Secrets) -> String {
        if self.is_kept {
            let is_cut = self.bytes.len() < self.total;
            let clean = if is_cut { secrets.hide_cut(&self.bytes) } else { secrets.hide(&self.bytes) };
            return String::from_utf8_lossy(&clean).into_owned();
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
        let none = Secrets::default();
        assert_eq!(one.into_text(&none), "hello world");
        let text = |bytes| format!("{bytes} bytes, not kept: too many large responses at the same time");
        assert_eq!((two.into_text(&none), three.into_text(&none)), (text(2 * UNIT_BYTES + 2), text(7)));
        assert_eq!(memory.0.available_permits(), 3);
    }

    #[test]
    fn a_response_is_kept_up_to_the_largest_blob() {
        let mut kept = KeptResponse::new(ResponseMemory::default());
        for _ in 0..3 {
            kept.push(&vec![b'x'; limit::BLOB_BYTES_MAX / 2 + 1]);
        }
        assert_eq!(kept.into_text(&Secrets::default()).len(), limit::BLOB_BYTES_MAX);
    }

    /// A key is found in several pieces, and at the end of what is kept.
    #[test]
    fn a_key_is_not_kept_however_it_comes() {
        let secrets = Secrets::new(["sk-0123456789".to_owned()]);
        let mut kept = KeptResponse::new(ResponseMemory::default());
        for piece in ["it is s", "k-01234", "5678", "9."] {
            kept.push(piece.as_bytes());
        }
        assert_eq!(kept.into_text(&secrets), "it is [key].");
        let mut cut = KeptResponse::new(ResponseMemory::default());
        cut.push(&vec![b'x'; limit::BLOB_BYTES_MAX - 10]);
        cut.push(b"sk-0123456789");
        let text = cut.into_text(&secrets);
        assert!(text.ends_with("xx[key]"), "{}", &text[text.len() - 20..]);
    }
}
