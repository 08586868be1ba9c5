//! Reads a whole journal page by page, so at most one page is in memory.

use spinney_kernel::primitives::{Seq, TreeId, limit};

use crate::{Blocking, Entry, Journal, JournalFault};

/// The pages after an event, up to the current end of the journal. No page follows a fault.
pub fn pages(journal: &dyn Journal, tree: TreeId, after: Seq) -> Pages<'_> {
    Pages { journal, tree, after: Some(after) }
}

pub struct Pages<'j> {
    journal: &'j dyn Journal,
    tree: TreeId,
    /// The last event that was read; `None` after the end.
    after: Option<Seq>,
}

impl<'j> Pages<'j> {
    /// The next page; `None` at the end.
    ///
    /// # Errors
    /// If the tree does not exist, or its data cannot be read.
    pub async fn next(&mut self) -> Result<Option<Vec<Entry>>, JournalFault> {
        let Some(after) = self.after.take() else { return Ok(None) };
        let page = self.journal.read(self.tree, after, limit::PAGE_BATCHES_MAX).await?;
        // An empty page marks the end.
        self.after = page.last().map(Entry::end);
        Ok(self.after.map(|_| page))
    }

    /// The same as [`Blocking`]: each page blocks the thread.
    #[doc(hidden)]
    pub fn blocking(mut self) -> impl Iterator<Item = Result<Vec<Entry>, JournalFault>> + use<'j> {
        std::iter::from_fn(move || self.next().wait().transpose())
    }
}
