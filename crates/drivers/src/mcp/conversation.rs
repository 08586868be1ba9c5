//! What has been asked of a server and not been answered, and how much it sends that nobody asked for. The SDK answers and
//! remembers everything that it is given, so this decides what it is given.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

/// Requests of a server that wait for our answers. More are not heard.
const PEER_REQUESTS_MAX: u32 = 16;
/// What a server may send between two answers before each message more waits.
const UNASKED_MAX: u32 = 1_000;

#[derive(Debug, Default)]
pub(super) struct Conversation {
    asked: Mutex<BTreeSet<i64>>,
    peer_requests: AtomicU32,
    unasked: AtomicU32,
    tools_changed: AtomicBool,
    /// Rings when they have.
    changes: Notify,
}

impl Conversation {
    fn asked(&self) -> MutexGuard<'_, BTreeSet<i64>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request goes out.
    pub(super) fn ask(&self, id: i64) {
        self.asked().insert(id);
    }

    /// Nobody waits for this answer any more.
    pub(super) fn give_up(&self, id: i64) {
        self.asked().remove(&id);
    }

    /// What was asked before is not waited for: its answers come too late.
    pub(super) fn begin_again(&self) {
        self.asked().clear();
    }

    /// Whether somebody waits for this answer. It is taken once.
    pub(super) fn take_answer(&self, id: i64) -> bool {
        let is_awaited = self.asked().remove(&id);
        if is_awaited {
            self.unasked.store(0, Ordering::Relaxed);
        }
        is_awaited
    }

    /// Every answer that is waited for.
    pub(super) fn take_all(&self) -> BTreeSet<i64> {
        std::mem::take(&mut *self.asked())
    }

    /// Whether a request of the server is heard.
    pub(super) fn hear_request(&self) -> bool {
        let heard = self.peer_requests.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| {
            (open < PEER_REQUESTS_MAX).then_some(open + 1)
        });
        heard.is_ok()
    }

    /// A request of the server was answered.
    pub(super) fn answered_request(&self) {
        let less = |open: u32| Some(open.saturating_sub(1));
        let _ = self.peer_requests.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Counts a message that answers nothing. Whether the next one has to wait.
    pub(super) fn count_unasked(&self) -> bool {
        let more = |count: u32| Some(count.saturating_add(1));
        let before = self.unasked.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        before.is_ok_and(|before| before >= UNASKED_MAX)
    }

    /// The server says that its tools are others now.
    pub(super) fn note_changed_tools(&self) {
        self.tools_changed.store(true, Ordering::Release);
        self.changes.notify_one();
    }

    /// Waits until the server says that its tools are others. Whether it did in time.
    pub(super) async fn wait_for_changed_tools(&self, within: Duration) -> bool {
        let changed = async {
            while !self.take_changed_tools() {
                self.changes.notified().await;
            }
        };
        timeout(within, changed).await.is_ok()
    }

    /// Whether it said so since this was asked.
    pub(super) fn take_changed_tools(&self) -> bool {
        self.tools_changed.swap(false, Ordering::AcqRel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_asked_is_answered_and_only_once() {
        let conversation = Conversation::default();
        conversation.ask(1);
        conversation.ask(2);
        conversation.give_up(2);
        assert_eq!([1, 1, 2, 3].map(|id| conversation.take_answer(id)), [true, false, false, false]);
    }

    #[test]
    fn what_nobody_asked_for_waits_after_a_while() {
        let conversation = Conversation::default();
        assert!(!(0..UNASKED_MAX).any(|_| conversation.count_unasked()));
        assert!(conversation.count_unasked());
        conversation.ask(1);
        assert!(conversation.take_answer(1) && !conversation.count_unasked());
    }

    #[test]
    fn a_server_has_few_requests_open() {
        let conversation = Conversation::default();
        assert_eq!((0..100).filter(|_| conversation.hear_request()).count(), PEER_REQUESTS_MAX as usize);
        conversation.answered_request();
        assert!(conversation.hear_request() && !conversation.hear_request());
    }
}
