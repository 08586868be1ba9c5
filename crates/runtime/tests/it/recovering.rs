//! Resuming everything in a home that has more trees than a page.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use spinney::Shutdown;
use spinney_journal::{Append, Blocking, HeadCursor, HeadPage, Journal, JournalLayer, Reading};
use spinney_kernel::primitives::{Seq, TreeId, limit};
use spinney_kernel::record::ExitKind;
use spinney_kernel::world::TreeState;
use spinney_store::MemoryJournal;
use spinney_testkit::{TestHome, conformance, settled};

const ASKS: &str =
    "rules: [{ when: { turn: 1 }, call: [{ tool: ask_human, args: { question: Which? } }] }, { say: done }]";

/// A journal that notes how many trees each page had, and how many trees had been read by then.
#[derive(Default)]
struct Paged {
    inner: MemoryJournal,
    reads: AtomicUsize,
    pages: Mutex<Vec<(usize, usize)>>,
}

impl JournalLayer for Paged {
    fn inner(&self) -> &dyn Journal {
        &self.inner
    }

    fn read(&self, tree: TreeId, after: Seq, batches_max: usize) -> Reading<Vec<spinney_journal::Entry>> {
        self.reads.fetch_add(usize::from(after == Seq(0)), Ordering::SeqCst);
        self.inner.read(tree, after, batches_max)
    }

    fn head_page(&self, states: &[TreeState], after: HeadCursor, heads_max: usize) -> Reading<HeadPage> {
        let page = self.inner.head_page(states, after, heads_max).wait();
        let listed = page.as_ref().map_or(0, |page| page.heads.len());
        self.pages.lock().unwrap().push((self.reads.load(Ordering::SeqCst), listed));
        Box::pin(std::future::ready(page))
    }
}

/// G30 (many trees in one journal): each tree is resumed before the page after its own is listed, and trees that ended are
/// not read.
#[tokio::test(start_paused = true)]
async fn all_trees_are_resumed_page_by_page() {
    let journal = Arc::new(Paged::default());
    let stage = TestHome::on(Arc::<Paged>::clone(&journal), ASKS);
    let home = stage.home();
    let first = stage.start(&home, "root $9.00 turns=9").await;
    settled(&first).await;
    home.shutdown(Shutdown::Kill).await;
    let entries = journal.inner.read(first.id(), Seq(0), usize::MAX).wait().unwrap();
    let copies = 2 * limit::HEADS_MAX + 100;
    for number in 1..=copies {
        let tree = TreeId::new((number as u128).to_be_bytes());
        let state = if number % 50 == 0 { TreeState::Ended(ExitKind::Completed) } else { TreeState::Waiting };
        for entry in &entries {
            let copy = conformance::append_for(tree, entry.after, &entry.batch);
            conformance::append(&journal.inner, Append { state, catalog: Vec::new(), ..copy }).unwrap();
        }
    }
    journal.reads.store(0, Ordering::SeqCst);
    let home = stage.home();
    let resumed = home.recover().await.unwrap();
    let living = 1 + copies - copies / 50;
    assert_eq!(resumed.len(), living);
    assert!(
        resumed.iter().all(|(tree, resumed)| resumed.as_ref().is_ok_and(|resumed| resumed.id() == *tree))
    );
    let page = limit::HEADS_MAX;
    let expected = [(0, page), (page, page), (2 * page, living - 2 * page)];
    assert_eq!(*journal.pages.lock().unwrap(), expected);
    home.shutdown(Shutdown::Kill).await;
}
