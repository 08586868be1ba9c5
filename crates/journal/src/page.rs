//! Reading a whole journal, page by page, so that no more than a page of it is ever in memory.

use spinney_kernel::words::{Seq, TreeId, limit};

use crate::{Blocking, Entry, Journal, JournalFault};

/// The pages of a journal after an event, up to what is its end by then. After a fault there is no further page.
pub fn pages(journal: &dyn Journal, tree: TreeId, after: Seq) -> Pages<'_> {
    Pages { journal, tree, after: Some(after) }
}

/// The pages of a journal, one after the other.
pub struct Pages<'j> {
    journal: &'j dyn Journal,
    tree: TreeId,
    /// The last event that was read; none after the end.
    after: Option<Seq>,
}

impl<'j> Pages<'j> {
    /// The next page; none at the end.
    ///
    /// # Errors
    /// If the tree is not there, or what is stored cannot be read.
    pub async fn next(&mut self) -> Result<Option<Vec<Entry>>, JournalFault> {
        let Some(after) = self.after.take() else { return Ok(None) };
        let page = self.journal.read(self.tree, after, limit::PAGE_BATCHES_MAX).await?;
        // The end is an empty page.
        self.after = page.last().map(Entry::end);
        Ok(self.after.map(|_| page))
    }

    /// The same for tools that are not async: each page blocks the thread until it is read.
    pub fn blocking(mut self) -> impl Iterator<Item = Result<Vec<Entry>, JournalFault>> + use<'j> {
        std::iter::from_fn(move || self.next().wait().transpose())
    }
}
