//! The contexts that a sequence of events leads to.

use spinney_kernel::context::{Contexts, Places};
use spinney_kernel::primitives::TreeId;
use spinney_kernel::record::Event;

/// Folds all events of a tree, and keeps what later rollbacks return to.
#[must_use]
pub fn contexts_of<'e>(tree: TreeId, events: impl Iterator<Item = &'e Event> + Clone) -> Contexts {
    let (mut contexts, mut places) = (Contexts::new(tree), Places::default());
    events.clone().for_each(|event| places.note(event));
    contexts.keep(places);
    events.for_each(|event| contexts.apply(event));
    contexts
}
