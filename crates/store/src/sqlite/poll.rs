//! Notices what another process writes: the only place that polls. A thread looks at the heads that a caller waits for, and
//! ends when no caller waits. A process that writes needs none, because all writes are its own.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use spinney_journal::{Blocking, JournalFault, Reading};
use spinney_kernel::primitives::{Seq, TreeId};

use super::read;
use super::readers::Readers;
use crate::waiting::Waiting;

/// Pause between two looks: fast for people, cheap for the machine.
const INTERVAL: Duration = Duration::from_millis(50);

#[derive(Clone, Default)]
pub(super) struct Poll {
    is_running: Arc<Mutex<bool>>,
}

impl Poll {
    /// Looks for as long as something waits.
    pub(super) async fn during<T>(
        self,
        mut waits: Reading<T>,
        readers: Weak<Readers>,
        waiting: Arc<Waiting>,
    ) -> Result<T, JournalFault> {
        poll_fn(|context| {
            let polled = waits.as_mut().poll(context);
            if polled.is_pending() {
                // After it was polled: now it waits, and the thread does not end before that is over.
                self.start(&readers, &waiting);
            }
            polled
        })
        .await
    }

    /// Starts to look, unless it does already.
    fn start(&self, readers: &Weak<Readers>, waiting: &Arc<Waiting>) {
        let mut is_running = self.is_running.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut *is_running, true) {
            let (running, readers) = (Arc::clone(&self.is_running), Weak::clone(readers));
            let waiting = Arc::clone(waiting);
            thread::spawn(move || run(&running, &readers, &waiting));
        }
    }
}

fn run(is_running: &Mutex<bool>, readers: &Weak<Readers>, waiting: &Waiting) {
    loop {
        thread::park_timeout(INTERVAL);
        let mut is_running = is_running.lock().unwrap_or_else(PoisonError::into_inner);
        let trees = waiting.trees();
        let readers = readers.upgrade().filter(|_| !trees.is_empty());
        let Some(readers) = readers else {
            // Under the lock: a caller that comes now starts another one.
            *is_running = false;
            return;
        };
        drop(is_running);
        let asked = trees.clone();
        match readers.read(move |connection| changed(connection, &asked)).wait() {
            Ok(changed) => changed.into_iter().for_each(|tree| waiting.wake(tree)),
            // Each caller reads its head again, and gets the fault.
            Err(_) => trees.into_iter().for_each(|(tree, _)| waiting.wake(tree)),
        }
    }
}

/// The trees with events after these, and those that are gone.
fn changed(connection: &Connection, trees: &[(TreeId, Seq)]) -> Result<Vec<TreeId>, JournalFault> {
    let mut changed = Vec::new();
    for (tree, after) in trees {
        if read::head(connection, *tree)?.is_none_or(|head| head.seq > *after) {
            changed.push(*tree);
        }
    }
    Ok(changed)
}
