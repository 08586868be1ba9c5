//! The bytes of parts, for a model's driver: read-only, and of no blob but those that its packet shows.

use std::fmt;
use std::sync::Arc;

use super::Pending;
use super::journal::JournalFault;
use super::model::{Attempt, Missed};
use crate::body::BlobRef;
use crate::context::Shown;
use crate::fault::{Fault, FaultKind};
use crate::part::Part;
use crate::report::Used;

/// Reads blobs for one attempt. Only [`Attempt::bytes`] asks it, and only for what the packet shows.
#[derive(Clone, Default)]
pub struct PartReader(Option<Arc<ReadBlob>>);

type ReadBlob = dyn Fn(BlobRef) -> Pending<Result<Option<Vec<u8>>, JournalFault>> + Send + Sync;

impl PartReader {
    /// One that reads like this.
    pub fn new<F>(read: F) -> Self
    where
        F: Fn(BlobRef) -> Pending<Result<Option<Vec<u8>>, JournalFault>> + Send + Sync + 'static,
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

impl Attempt {
    /// The bytes of a part that the packet shows. A part that it does not show, or only as a placeholder, is a fault,
    /// and so are bytes that are not there any more.
    pub fn bytes(&self, part: &Part) -> Pending<Result<Vec<u8>, Missed>> {
        let is_it = |shown: Shown<'_>| matches!(shown, Shown::Whole(whole) if whole.blob() == part.blob());
        let is_shown = self.packet.messages.iter().any(|message| message.parts().any(is_it));
        let name = part.name().clone();
        let missed = move |why: String| {
            let fault = Fault { message: format!("`{name}` {why}"), ..Fault::of(FaultKind::Invalid) };
            Missed { fault, used: Used::NOTHING }
        };
        let Some(read) = self.parts.0.as_ref().filter(|_| is_shown) else {
            return Box::pin(async move { Err(missed("is not shown in this packet".to_owned())) });
        };
        let read = read(part.blob().clone());
        Box::pin(async move {
            match read.await {
                Ok(Some(bytes)) => Ok(bytes),
                Ok(None) => Err(missed("has no bytes in this home".to_owned())),
                Err(fault) => Err(missed(format!("cannot be read: {fault}"))),
            }
        })
    }
}
