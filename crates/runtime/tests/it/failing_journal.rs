//! A journal that fails: nothing that is not durable is answered, shown or done.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use spinney::tree::{RequestError, Stopped};
use spinney::{Home, StartError};
use spinney_kernel::body::BlobRef;
use spinney_kernel::id::{Seq, TreeId};
use spinney_kernel::port::catalog::{CatalogKind, CatalogRow, Fact};
use spinney_kernel::port::journal::{Append, Appended, Entry, Head, Journal, JournalFault, Shared};
use spinney_testkit::{Stage, definition};

/// Writes so many batches; the disk is full then.
pub(crate) struct Full {
    inner: Arc<dyn Journal>,
    room: AtomicI64,
}

impl Full {
    pub(crate) fn new(inner: Arc<dyn Journal>, room: i64) -> Self {
        Self { inner, room: AtomicI64::new(room) }
    }
}

impl Journal for Full {
    fn append(&self, append: Append, done: Appended) {
        if self.room.fetch_sub(1, Ordering::Relaxed) > 0 {
            self.inner.append(append, done);
        } else {
            done(Err(JournalFault::DiskFull));
        }
    }

    fn read(&self, tree: TreeId, after: Seq, batches_max: usize) -> Result<Vec<Entry>, JournalFault> {
        self.inner.read(tree, after, batches_max)
    }

    fn head(&self, tree: TreeId) -> Result<Option<Head>, JournalFault> {
        self.inner.head(tree)
    }

    fn heads(&self, states: &[&str]) -> Result<Vec<Head>, JournalFault> {
        self.inner.heads(states)
    }

    fn catalog(&self, kind: CatalogKind, prefix: &str) -> Result<Vec<Fact>, JournalFault> {
        self.inner.catalog(kind, prefix)
    }

    fn replace_catalog(&self, tree: TreeId, at: Seq, rows: Vec<CatalogRow>) -> Result<(), JournalFault> {
        self.inner.replace_catalog(tree, at, rows)
    }

    fn blob(&self, blob: &BlobRef) -> Result<Option<Vec<u8>>, JournalFault> {
        self.inner.blob(blob)
    }

    fn remove(&self, tree: TreeId, shared: Shared) -> Result<(), JournalFault> {
        self.inner.remove(tree, shared)
    }
}

const SCRIPT: &str = "rules: [{ say: done, think_ms: 10 }]";

/// A home whose disk has room for so many batches.
fn home(room: i64) -> (Stage, Home) {
    let inner = Arc::clone(Stage::new(SCRIPT).journal());
    let stage = Stage::on(Arc::new(Full::new(inner, room)), SCRIPT);
    let home = stage.home();
    (stage, home)
}

#[tokio::test(start_paused = true)]
async fn a_tree_that_could_not_be_written_is_not_started() {
    let (stage, home) = home(0);
    let started = home.start(definition("root turns=3")).await;
    assert_eq!(started.err(), Some(StartError::Journal(JournalFault::DiskFull)));
    assert_eq!((stage.model().model().calls(), stage.journal().heads(&[]).unwrap()), (0, Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_written_is_not_shown() {
    let (stage, home) = home(1);
    let tree = stage.start(&home, "root turns=3").await;
    let before = tree.status();
    let status = tree.ended().await;
    assert_eq!(status.stopped, Some(Stopped::Journal(JournalFault::DiskFull)));
    assert_eq!((status.seq, status.state), (before.seq, before.state));
    let gone = RequestError::Stopped(Stopped::Journal(JournalFault::DiskFull));
    assert_eq!(tree.look().await.err(), Some(gone));
}
