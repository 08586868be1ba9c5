//! Which blobs an event refers to. A replay must find all of them.

use spinney_kernel::primitives::{BlobRef, Part, Thought};
use spinney_kernel::record::Event;

/// Whole texts, parts and reasoning, what the tree is resumed from, and files that agents wrote.
#[must_use]
pub fn blobs_of(event: &Event) -> Vec<&BlobRef> {
    let bodies = event.bodies().into_iter();
    bodies
        .flat_map(|body| {
            let thought = body.thought().into_iter().flat_map(Thought::blobs);
            body.rest().into_iter().chain(body.parts().iter().map(Part::blob)).chain(thought)
        })
        .chain(event.sources().iter().map(|file| &file.blob))
        .chain(event.files().iter().map(|file| &file.blob))
        .collect()
}
