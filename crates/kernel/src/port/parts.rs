//! The bytes of parts, for a model's driver: read-only, and of no blob but those that its packet shows.

use std::fmt;
use std::future::ready;
use std::sync::Arc;

use crate::budget::Used;
use crate::context::Shown;
use crate::port::Pending;
use crate::port::model::{Missed, ModelAttempt};
use crate::words::{Fault, FaultKind, Part};

/// Reads parts for one attempt. Only [`ModelAttempt::bytes`] asks it, and only for what the packet shows.
#[derive(Clone, Default)]
pub struct PartReader(Option<Arc<Read>>);

type Read = dyn Fn(&Part) -> Pending<Result<Vec<u8>, Missed>> + Send + Sync;

impl PartReader {
    /// One that reads like this.
    pub fn new<F>(read: F) -> Self
    where
        F: Fn(&Part) -> Pending<Result<Vec<u8>, Missed>> + Send + Sync + 'static,
    {
        Self(Some(Arc::new(read)))
    }
}

impl PartialEq for PartReader {
    /// It is a way to bytes and says nothing about them: the packet names each by its hash.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for PartReader {}

impl fmt::Debug for PartReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PartReader")
    }
}

impl ModelAttempt {
    /// The bytes of a part that the packet shows. A part that it does not show, or only as a placeholder, is a fault,
    /// and so are bytes that are not there any more.
    pub fn bytes(&self, part: &Part) -> Pending<Result<Vec<u8>, Missed>> {
        let is_it = |shown: Shown<'_>| matches!(shown, Shown::Whole(whole) if whole.blob() == part.blob());
        let is_shown = self.packet.messages.iter().any(|message| message.parts().any(is_it));
        match &self.parts.0 {
            Some(read) if is_shown => read(part),
            Some(_) | None => Box::pin(ready(Err(missed(part, "is not shown in this packet")))),
        }
    }
}

/// A part that cannot be read, and why.
#[must_use]
pub fn missed(part: &Part, why: &str) -> Missed {
    let message = format!("`{}` {why}", part.name());
    Missed { fault: Fault { message, ..Fault::of(FaultKind::Invalid) }, used: Used::NOTHING }
}
