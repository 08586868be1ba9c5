//! Reading a whole journal, page by page, so that no more than a page of it is ever in memory.

use spinney_kernel::words::{Seq, TreeId, limit};

use crate::{Entry, Journal, JournalFault};

/// The pages of a journal after an event, up to what is its end by then. After a fault there is no further page.
pub fn pages(
    journal: &dyn Journal,
    tree: TreeId,
    after: Seq,
) -> impl Iterator<Item = Result<Vec<Entry>, JournalFault>> {
    let mut next = Some(after);
    std::iter::from_fn(move || {
        let page = journal.read(tree, next?, limit::PAGE_BATCHES_MAX);
        next = page.as_ref().ok().and_then(|page| page.last()).map(Entry::end);
        // The end is an empty page.
        if page.as_ref().is_ok_and(Vec::is_empty) { None } else { Some(page) }
    })
}
