//! How far a tree is durable, for those who follow it. Cheap to move on when nobody does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use spinney_kernel::id::Seq;
use tokio::sync::Notify;

/// The last durable event of a tree, and whether more may come. Clones are the same.
#[derive(Clone)]
pub(super) struct Progress(Arc<Inner>);

struct Inner {
    seq: AtomicU64,
    over: AtomicBool,
    moved: Notify,
}

impl Progress {
    pub(super) fn new(seq: Seq) -> Self {
        let (seq, over) = (AtomicU64::new(seq.0), AtomicBool::new(false));
        Self(Arc::new(Inner { seq, over, moved: Notify::new() }))
    }

    /// The last durable event.
    pub(super) fn seq(&self) -> Seq {
        Seq(self.0.seq.load(Ordering::Acquire))
    }

    /// Everything up to here is durable.
    pub(super) fn reach(&self, seq: Seq) {
        self.0.seq.store(seq.0, Ordering::Release);
        self.0.moved.notify_waiters();
    }

    /// Nothing more will come.
    pub(super) fn end(&self) {
        self.0.over.store(true, Ordering::Release);
        self.0.moved.notify_waiters();
    }

    /// Waits until there is something after `seen`, or nothing more will come; says how far it is.
    pub(super) async fn past(&self, seen: Seq) -> Seq {
        loop {
            // Registered before looking, so that nothing in between is missed.
            let moved = self.0.moved.notified();
            let over = self.0.over.load(Ordering::Acquire);
            let seq = self.seq();
            if seq > seen || over {
                return seq;
            }
            moved.await;
        }
    }
}

/// Ends the progress when its tree is no longer run, however that came about.
pub(super) struct EndOnDrop(pub(super) Progress);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}
