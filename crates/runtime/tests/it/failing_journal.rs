//! A journal that fails: nothing is answered, shown or executed before it is durable.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use spinney::tree::{RequestError, Stopped};
use spinney::{Home, StartError};
use spinney_journal::{Append, Appended, Blocking, Journal, JournalFault, JournalLayer};
use spinney_testkit::{TestHome, definition};

/// Writes this many batches; then the disk is full.
pub(crate) struct Full {
    inner: Arc<dyn Journal>,
    room: AtomicI64,
}

impl Full {
    pub(crate) fn new(inner: Arc<dyn Journal>, room: i64) -> Self {
        Self { inner, room: AtomicI64::new(room) }
    }
}

impl JournalLayer for Full {
    fn inner(&self) -> &dyn Journal {
        &*self.inner
    }

    fn append(&self, append: Append, done: Appended) {
        if self.room.fetch_sub(1, Ordering::Relaxed) > 0 {
            self.inner.append(append, done);
        } else {
            done(Err(JournalFault::Full));
        }
    }
}

const SCRIPT: &str = "rules: [{ say: done, think_ms: 10 }]";

/// A home whose disk has room for this many batches.
fn home(room: i64) -> (TestHome, Home) {
    let inner = Arc::clone(TestHome::new(SCRIPT).journal());
    let stage = TestHome::on(Arc::new(Full::new(inner, room)), SCRIPT);
    let home = stage.home();
    (stage, home)
}

#[tokio::test(start_paused = true)]
async fn a_tree_that_could_not_be_written_is_not_started() {
    let (stage, home) = home(0);
    let started = home.start(definition("root turns=3")).await;
    assert_eq!(started.err(), Some(StartError::Journal(JournalFault::Full)));
    assert_eq!((stage.model().model().calls(), stage.journal().heads(&[]).wait().unwrap()), (0, Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_written_is_not_shown() {
    let (stage, home) = home(1);
    let tree = stage.start(&home, "root turns=3").await;
    let before = tree.status();
    let status = tree.ended().await;
    assert_eq!(status.stopped, Some(Stopped::Journal(JournalFault::Full)));
    assert_eq!((status.seq, status.state), (before.seq, before.state));
    let gone = RequestError::Stopped(Stopped::Journal(JournalFault::Full));
    assert_eq!(tree.snapshot().await.err(), Some(gone));
}
