//! A journal over another one that counts what is written: `cargo run -p spinney --example journal`. A store over a
//! database implements [`Journal`] itself; the conformance suite in `spinney-testkit` says what each method must do.
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use spinney::block_on;
use spinney::journal::{Append, Appended, JournalLayer};
use spinney::prelude::*;
use spinney::{Journal, MemoryJournal};

#[derive(Default)]
pub(crate) struct Counting {
    inner: MemoryJournal,
    pub(crate) batches: AtomicUsize,
    pub(crate) bytes: AtomicUsize,
}

impl JournalLayer for Counting {
    fn inner(&self) -> &dyn Journal {
        &self.inner
    }

    /// A tree waits for `done` before anything that depends on the batch leaves the process.
    fn append(&self, append: Append, done: Appended) {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(append.batch.bytes().len(), Ordering::Relaxed);
        self.inner.append(append, done);
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
