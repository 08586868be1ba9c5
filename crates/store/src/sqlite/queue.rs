//! A bounded queue from many threads to one or more. Its lock is held only to move items, so a task of an async
//! runtime may push.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use spinney_journal::JournalFault;

/// Capacity. A tree has at most 256 batches in flight, so this is reached only when the disk hangs.
const ITEMS_MAX: usize = 1 << 18;
/// How often an idle taker gives up its core and looks again before it sleeps. Waking a sleeping thread takes longer
/// than a commit, and one tree's next batch usually comes within this time, about 50 µs.
const LOOKS_MAX: u32 = 100;

pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    filled: Condvar,
}

struct State<T> {
    items: VecDeque<T>,
    is_closed: bool,
    /// Takers that sleep. Without one, an item needs no wake-up call.
    sleeping: usize,
}

impl<T> State<T> {
    fn is_idle(&self) -> bool {
        self.items.is_empty() && !self.is_closed
    }
}

impl<T> Queue<T> {
    pub(super) fn new() -> Self {
        let state = State { items: VecDeque::new(), is_closed: false, sleeping: 0 };
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
        let is_awaited = state.sleeping > 0;
        drop(state);
        if is_awaited {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Waits for items and takes the oldest, at most `items_max`; `None` once the queue is closed and empty.
    pub(super) fn take(&self, items_max: usize) -> Option<Vec<T>> {
        let mut looks = 0;
        while looks < LOOKS_MAX && self.state().is_idle() {
            std::thread::yield_now();
            looks += 1;
        }
        let mut state = self.state();
        state.sleeping += 1;
        let slept = self.filled.wait_while(state, |state| state.is_idle());
        let mut state = slept.unwrap_or_else(PoisonError::into_inner);
        state.sleeping -= 1;
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
    fn sleeping_takers_wake_for_an_item_and_for_the_end() {
        let queue = Queue::new();
        std::thread::scope(|scope| {
            let takers: Vec<_> = (0..2).map(|_| scope.spawn(|| (queue.take(1), queue.take(1)))).collect();
            let until_asleep = |count| {
                while queue.state().sleeping < count {
                    std::thread::yield_now();
                }
            };
            until_asleep(2);
            assert_eq!(queue.push(1), Ok(()));
            while !queue.state().items.is_empty() {
                std::thread::yield_now();
            }
            until_asleep(2);
            queue.close();
            let taken: Vec<_> = takers.into_iter().map(|taker| taker.join().unwrap()).collect();
            assert_eq!(taken.iter().filter(|(first, _)| *first == Some(vec![1])).count(), 1);
            assert!(taken.iter().all(|(_, last)| last.is_none()));
        });
    }

    #[test]
    fn a_full_queue_refuses_instead_of_waiting() {
        let queue = Queue::new();
        (0..ITEMS_MAX).for_each(|item| assert_eq!(queue.push(item), Ok(())));
        assert_eq!(queue.push(0), Err((0, JournalFault::Overloaded { waiting: ITEMS_MAX })));
    }
}
