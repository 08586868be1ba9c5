//! Names that are unique among the trees of a journal. A tree knows no other trees, so the name of a request is reserved for
//! it in the journal before the request is decided, and its event takes it.

use std::sync::Arc;

use spinney_journal::{CatalogKind, Claim, Journal, Reservation};
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::CheckpointName;
use spinney_kernel::rules::request::{Checkpoint, Request};

/// The name that a request asks for, if any. Dropping it frees the name, unless an event takes it.
pub(crate) struct ReservedName {
    journal: Arc<dyn Journal>,
    claim: Claim,
    name: Option<CheckpointName>,
}

impl ReservedName {
    /// Reserves the name that a request asks for.
    pub(crate) async fn new(
        journal: &Arc<dyn Journal>,
        claim: Claim,
        request: &Request,
    ) -> Result<Self, Refusal> {
        let mut reserved = Self { journal: Arc::clone(journal), claim, name: None };
        if let Request::Checkpoint(Checkpoint { name: Some(name), .. }) = request {
            match journal.reserve(claim, CatalogKind::Checkpoint, name.as_str()).await {
                Ok(Reservation::Reserved) => reserved.name = Some(name.clone()),
                Ok(Reservation::Taken { tree }) => {
                    return Err(Refusal::NameTaken { name: name.clone(), tree });
                }
                Err(fault) => {
                    return Err(Refusal::NameUnknown { name: name.clone(), reason: fault.to_string() });
                }
            }
        }
        Ok(reserved)
    }

    /// The event with the name was decided.
    pub(crate) fn give(mut self) {
        self.name = None;
    }
}

impl Drop for ReservedName {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // It is queued, and nothing waits for it. If it fails, the next owner of the tree frees the name.
            drop(self.journal.free(self.claim, CatalogKind::Checkpoint, name.as_str()));
        }
    }
}
