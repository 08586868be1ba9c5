//! One tree of accounts: the kernel's ledger behind one lock, and the calls that wait for it.
//!
//! Wakers are foreign code: dropping the last one may drop a task and with it a hold, which takes this lock again. So
//! nothing under the lock wakes, clones or drops one; they are returned and handled outside.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::task::Waker;

use spinney_kernel::budget::{AccountIx, Amounts, Fit, Ledger, Scan, Terms, Waiter};

use super::BudgetRefusal;
use crate::clock::Clock;
use crate::sync::Mutex;

/// Most waiting calls of one tree. Every settlement visits each of them, so a longer line is too expensive.
pub const WAITING_MAX: usize = 10_000;

pub(super) struct Tree {
    pub(super) books: Mutex<Books>,
    pub(super) clock: Arc<dyn Clock>,
}

impl Tree {
    /// Runs `change`, then serves the line and wakes the calls that got an answer.
    #[inline]
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Books) -> R) -> R {
        let mut books = self.books.lock();
        let result = change(&mut books);
        if books.ledger.line_len() == 0 {
            return result;
        }
        let answered = books.serve();
        drop(books);
        answered.into_iter().for_each(Waker::wake);
        result
    }
}

/// The state under the lock.
#[derive(Default)]
pub(super) struct Books {
    pub(super) ledger: Ledger,
    /// Calls in the ledger's line, and answered ones that have not been polled since.
    waiting: BTreeMap<u64, Waiting>,
    tickets: u64,
    /// Accounts ever opened.
    accounts: u64,
}

struct Waiting {
    at: AccountIx,
    ask: Amounts,
    /// Taken when the answer comes.
    waker: Option<Waker>,
    answer: Option<Fit>,
}

impl Books {
    /// Returns the account's index and number.
    pub(super) fn open(&mut self, parent: Option<AccountIx>, terms: Terms) -> (AccountIx, u64) {
        self.accounts += 1;
        (self.ledger.open(parent, terms), self.accounts)
    }

    /// Holds `ask` if it fits now, behind all waiting calls.
    #[inline]
    pub(super) fn take(&mut self, at: AccountIx, ask: &Amounts) -> Fit {
        let fit = self.ledger.fit(at, ask);
        if matches!(fit, Fit::Yes) {
            self.ledger.hold(at, ask);
        }
        fit
    }

    /// Adds a call to the line and returns its ticket. Takes the waker only if the call waits.
    pub(super) fn join(&mut self, waiter: Waiter, waker: &mut Option<Waker>) -> Result<u64, BudgetRefusal> {
        let waiting = self.ledger.line_len();
        if waiting >= WAITING_MAX {
            return Err(BudgetRefusal::LineFull { waiting, waiting_max: WAITING_MAX });
        }
        self.tickets += 1;
        self.ledger.line_join(self.tickets, waiter);
        let Waiter { at, ask, .. } = waiter;
        self.waiting.insert(self.tickets, Waiting { at, ask, waker: waker.take(), answer: None });
        Ok(self.tickets)
    }

    /// Checks for the answer; if it is yes, the amounts are held and the ticket is removed. Without an answer, swaps
    /// the stored waker.
    pub(super) fn look(&mut self, ticket: u64, waker: &mut Option<Waker>) -> Option<Fit> {
        let waiter = self.waiting.get_mut(&ticket)?;
        if waiter.answer.is_none() {
            mem::swap(&mut waiter.waker, waker);
            return None;
        }
        self.waiting.remove(&ticket)?.answer
    }

    /// Removes a call that no longer waits: from the line, or, if it was already answered, by returning its hold.
    pub(super) fn leave(&mut self, ticket: u64) -> Option<Waker> {
        let waiter = self.waiting.remove(&ticket)?;
        match waiter.answer {
            None => self.ledger.line_leave(ticket),
            Some(Fit::Yes) => {
                self.ledger.settle(waiter.at, &waiter.ask, &Amounts::ZERO);
            }
            Some(Fit::Wait(..) | Fit::Never(..) | Fit::Shut(_)) => {}
        }
        waiter.waker
    }

    /// Answers every call in line that fits now or never will, in order.
    #[cold]
    fn serve(&mut self) -> Vec<Waker> {
        let mut answered = Vec::new();
        let mut scan = Scan::default();
        let mut last = None;
        while let Some((ticket, waiter)) = self.ledger.line_after(last) {
            last = Some(ticket);
            let Waiter { at, ask, .. } = waiter;
            let fit = scan.fit(&self.ledger, at, &ask);
            if let Fit::Wait(blocked, _) = fit {
                scan.pass(blocked, &ask);
                if blocked != waiter.blocked {
                    self.ledger.line_join(ticket, Waiter { blocked, ..waiter });
                }
                continue;
            }
            self.ledger.line_leave(ticket);
            if fit == Fit::Yes {
                self.ledger.hold(at, &ask);
            }
            if let Some(waiter) = self.waiting.get_mut(&ticket) {
                waiter.answer = Some(fit);
                answered.extend(waiter.waker.take());
            }
        }
        answered
    }
}
