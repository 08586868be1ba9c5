//! A journal of your own, in memory: it stores what the library's does and counts what is written.
//! `cargo run -p spinney --example journal`. One over a database has the same methods; the conformance suite in
//! `spinney-testkit` says what each must do.
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use spinney::block_on;
use spinney::id::{BlobRef, Seq, TreeId};
use spinney::journal::{
    Append, Appended, CatalogKind, CatalogRow, Claim, Entry, Fact, Head, HeadCursor, HeadPage, Reading,
    Reservation, Shared, StoredEntry,
};
use spinney::prelude::*;
use spinney::record::TreeState;
use spinney::{Journal, MemoryJournal};

#[derive(Default)]
pub(crate) struct Counting {
    inner: MemoryJournal,
    pub(crate) batches: AtomicUsize,
    pub(crate) bytes: AtomicUsize,
}

impl Journal for Counting {
    /// A tree waits for `done` before anything that depends on the batch leaves the process.
    fn append(&self, append: Append, done: Appended) {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(append.batch.bytes().len(), Ordering::Relaxed);
        self.inner.append(append, done);
    }

    fn claim(&self, tree: TreeId) -> Reading<Claim> {
        self.inner.claim(tree)
    }

    fn release(&self, claim: Claim) -> Reading<()> {
        self.inner.release(claim)
    }

    fn read(&self, tree: TreeId, after: Seq, batches_max: usize) -> Reading<Vec<Entry>> {
        self.inner.read(tree, after, batches_max)
    }

    fn read_stored(&self, tree: TreeId, after: Seq, batches_max: usize) -> Reading<Vec<StoredEntry>> {
        self.inner.read_stored(tree, after, batches_max)
    }

    fn head(&self, tree: TreeId) -> Reading<Option<Head>> {
        self.inner.head(tree)
    }

    fn changed(&self, tree: TreeId, after: Seq) -> Reading<Head> {
        self.inner.changed(tree, after)
    }

    fn head_page(&self, states: &[TreeState], after: HeadCursor, heads_max: usize) -> Reading<HeadPage> {
        self.inner.head_page(states, after, heads_max)
    }

    fn catalog(&self, kind: CatalogKind, prefix: &str) -> Reading<Vec<Fact>> {
        self.inner.catalog(kind, prefix)
    }

    fn reserve(&self, claim: Claim, kind: CatalogKind, key: &str) -> Reading<Reservation> {
        self.inner.reserve(claim, kind, key)
    }

    fn free(&self, claim: Claim, kind: CatalogKind, key: &str) -> Reading<()> {
        self.inner.free(claim, kind, key)
    }

    fn replace_catalog(&self, tree: TreeId, at: Seq, rows: Vec<CatalogRow>) -> Reading<()> {
        self.inner.replace_catalog(tree, at, rows)
    }

    fn blob(&self, blob: &BlobRef) -> Reading<Option<Vec<u8>>> {
        self.inner.blob(blob)
    }

    fn remove(&self, tree: TreeId, shared: Shared) -> Reading<()> {
        self.inner.remove(tree, shared)
    }
}

const TREE: &str = "
name: wood
goal: What is a spinney?
budget: { steps: 3 }
models: { poet: { provider: scripted, script: none } } # the program brings its own
agents: { lead: { model: poet } }
";

fn main() -> Result<(), Box<dyn Error>> {
    let journal = Arc::new(Counting::default());
    println!("{}", block_on(answer(Arc::clone(&journal)))??);
    let (batches, bytes) = (journal.batches.load(Ordering::Relaxed), journal.bytes.load(Ordering::Relaxed));
    println!("{bytes} bytes in {batches} batches");
    Ok(())
}

/// Runs a tree to its end on this journal.
pub(crate) async fn answer(journal: Arc<Counting>) -> Result<String, Box<dyn Error>> {
    let poet = FunctionModel::new(|_| async { Ok(ModelAnswer::text("A small wood.")) });
    let home = Home::open(journal, Drivers::new().with_model("poet".parse()?, Arc::new(poet)));
    let tree = home.start(TreeFile::parse("wood.yaml", TREE)?.definition).await?;
    tree.ended().await;
    let end = tree.snapshot().await?.end.ok_or("it has not ended")?;
    Ok(end.shown.text)
}
