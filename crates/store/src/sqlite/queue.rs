//! A bounded queue from many threads to one or more. Its lock is held only to move items, so a task of an async
//! runtime may push.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use spinney_journal::JournalFault;

/// Capacity. A tree has at most 256 batches in flight, so this is reached only when the disk hangs.
const ITEMS_MAX: usize = 1 << 18;

pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    filled: Condvar,
}

struct State<T> {
    items: VecDeque<T>,
    is_closed: bool,
}

impl<T> Queue<T> {
    pub(super) fn new() -> Self {
        let state = State { items: VecDeque::new(), is_closed: false };
        Self { state: Mutex::new(state), filled: Condvar::new() }
    }

    /// Adds an item, or returns it with the reason. Never blocks.
    pub(super) fn push(&self, item: T) -> Result<(), (T, JournalFault)> {
        let mut state = self.state();
        if state.is_closed {
            return Err((item, JournalFault::Closed));
        }
        if state.items.len() >= ITEMS_MAX {
            return Err((item, JournalFault::Overloaded { waiting: ITEMS_MAX }));
        }
        state.items.push_back(item);
        drop(state);
        self.filled.notify_one();
        Ok(())
    }

    /// Waits for items and takes the oldest, at most `items_max`; `None` once the queue is closed and empty.
    pub(super) fn take(&self, items_max: usize) -> Option<Vec<T>> {
        let is_idle = |state: &mut State<T>| state.items.is_empty() && !state.is_closed;
        let waited = self.filled.wait_while(self.state(), is_idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        let count = state.items.len().min(items_max);
        if count == 0 { None } else { Some(state.items.drain(..count).collect()) }
    }

    /// Rejects further items. Queued ones can still be taken.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.filled.notify_all();
    }

    /// Closes the queue and drops its items.
    pub(super) fn abandon(&self) {
        self.close();
        let items = std::mem::take(&mut self.state().items);
        drop(items);
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_out_in_order_and_in_groups() {
        let queue = Queue::new();
        (0..5).for_each(|item| assert_eq!(queue.push(item), Ok(())));
        assert_eq!(queue.take(3), Some(vec![0, 1, 2]));
        assert_eq!(queue.take(3), Some(vec![3, 4]));
    }

    #[test]
    fn a_closed_queue_gives_what_is_in_it_and_takes_no_more() {
        let queue = Queue::new();
        assert_eq!(queue.push(1), Ok(()));
        queue.close();
        assert_eq!(queue.push(2), Err((2, JournalFault::Closed)));
        assert_eq!((queue.take(9), queue.take(9)), (Some(vec![1]), None));
    }

    #[test]
    fn a_full_queue_refuses_instead_of_waiting() {
        let queue = Queue::new();
        (0..ITEMS_MAX).for_each(|item| assert_eq!(queue.push(item), Ok(())));
        assert_eq!(queue.push(0), Err((0, JournalFault::Overloaded { waiting: ITEMS_MAX })));
    }
}
