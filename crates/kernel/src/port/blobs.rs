//! Blob access for a model's driver: read-only, and only for blobs that its packet shows.

use std::fmt;
use std::future::ready;
use std::sync::Arc;

use crate::budget::Used;
use crate::context::{Message, Shown};
use crate::port::Pending;
use crate::port::model::{AttemptError, ModelAttempt, Purpose};
use crate::primitives::{BlobRef, Fault, FaultKind, Part};

/// Reads blobs for one attempt. Only [`ModelAttempt`] uses it, and only for what the packet shows.
#[derive(Clone, Default)]
pub struct BlobReader(Option<Arc<Read>>);

type Read = dyn Fn(&BlobRef, &str) -> Pending<Result<Vec<u8>, AttemptError>> + Send + Sync;

impl BlobReader {
    /// One that reads like this: a blob, and what it is called where it cannot be read.
    pub fn new<F>(read: F) -> Self
    where
        F: Fn(&BlobRef, &str) -> Pending<Result<Vec<u8>, AttemptError>> + Send + Sync + 'static,
    {
        Self(Some(Arc::new(read)))
    }

    fn read(&self, blob: &BlobRef, name: &str) -> Pending<Result<Vec<u8>, AttemptError>> {
        match &self.0 {
            Some(read) => read(blob, name),
            None => Box::pin(ready(Err(missed(name, "has no bytes here")))),
        }
    }
}

impl PartialEq for BlobReader {
    /// Always equal: the packet identifies each blob by its hash.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for BlobReader {}

impl fmt::Debug for BlobReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BlobReader")
    }
}

impl ModelAttempt {
    /// The bytes of a part that the packet shows. Fails if the part is not shown, is only a placeholder, or its bytes
    /// are gone.
    pub fn bytes(&self, part: &Part) -> Pending<Result<Vec<u8>, AttemptError>> {
        let is_it = |shown: Shown<'_>| matches!(shown, Shown::Whole(whole) if whole.blob() == part.blob());
        if self.packet.messages.iter().any(|message| message.parts().any(is_it)) {
            self.blobs.read(part.blob(), part.name().as_str())
        } else {
            Box::pin(ready(Err(missed(part.name().as_str(), "is not shown in this packet"))))
        }
    }

    /// The bytes of the text that was cut, whole, if this attempt continues it. It comes right before the message
    /// that asks for the rest; a model that only thought left none.
    pub fn cut_answer(&self) -> Option<Pending<Result<Vec<u8>, AttemptError>>> {
        if self.purpose != Purpose::Continue {
            return None;
        }
        let messages = &self.packet.messages;
        let asked = messages.iter().rposition(|message| matches!(message.as_ref(), Message::Heard { .. }))?;
        let Message::Said { body, .. } = messages.get(asked.checked_sub(1)?)?.as_ref() else { return None };
        Some(match body.rest() {
            Some(rest) => self.blobs.read(rest, "the answer that was cut"),
            None => Box::pin(ready(Ok(body.text.clone().into_bytes()))),
        })
    }

    /// The opaque state that belongs to a message of the packet, if the model of this call produced it.
    pub fn continuation(&self, message: &Message) -> Option<Pending<Result<Vec<u8>, AttemptError>>> {
        let thought = message.thought().filter(|thought| thought.model == self.model && self.has(message))?;
        let blob = thought.continuation.as_ref()?;
        Some(self.blobs.read(blob, "what the model thought"))
    }

    fn has(&self, message: &Message) -> bool {
        self.packet.messages.iter().any(|shown| std::ptr::eq(shown.as_ref(), message))
    }
}

/// A blob that cannot be read, and why.
#[must_use]
pub fn missed(name: &str, why: &str) -> AttemptError {
    let message = format!("`{name}` {why}");
    AttemptError { fault: Fault { message, ..Fault::new(FaultKind::Invalid) }, used: Used::NOTHING }
}
