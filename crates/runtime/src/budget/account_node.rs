//! A place in the tree: one open account with its parent, and what the ledger does not store. It stays open while a
//! handle, a hold, a waiting call or a place below refers to it; then its account is closed.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use spinney_kernel::budget::{AccountIx, Amounts, Fit, Ledger};
use spinney_kernel::primitives::limit::NOTE_BYTES_MAX;

use super::hooks::charge_veto;
use super::tree::{Books, Tree};
use super::{AccountId, BudgetRefusal, Hooks};
use crate::breaker::Breaker;
use crate::sync::Mutex;

pub(super) struct AccountNode {
    pub(super) tree: Arc<Tree>,
    pub(super) ix: AccountIx,
    pub(super) id: AccountId,
    pub(super) parent: Option<Arc<AccountNode>>,
    /// This account's own timeout.
    pub(super) timeout: Option<Duration>,
    /// The earliest deadline up the chain.
    pub(super) deadline_ms: Option<u64>,
    pub(super) hooks: Option<Arc<dyn Hooks>>,
    pub(super) breaker: Option<Mutex<Breaker>>,
    pub(super) tags: Arc<BTreeMap<String, String>>,
    /// Set under the tree's lock, before the ledger shuts the account; the first reason stays.
    pub(super) ended: OnceLock<Ended>,
}

/// Why an account takes no new calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Aborted { reason: String },
    Closed,
}

impl AccountNode {
    #[inline]
    pub(super) fn take(&self, ask: &Amounts) -> Result<(), BudgetRefusal> {
        self.in_time()?;
        let fit = self.tree.books.lock().take(self.ix, ask);
        if matches!(fit, Fit::Yes) { Ok(()) } else { self.answer(fit) }
    }

    /// The ledger's answer with account names.
    #[cold]
    pub(super) fn answer(&self, fit: Fit) -> Result<(), BudgetRefusal> {
        let named = |ix| self.upward(ix).id.clone();
        Err(match fit {
            Fit::Yes => return Ok(()),
            Fit::Wait(ix, short) => BudgetRefusal::Busy { account: named(ix), short },
            Fit::Never(ix, short) => BudgetRefusal::Ceiling { account: named(ix), short },
            Fit::Shut(ix) => match self.upward(ix).ended.get() {
                Some(Ended::Aborted { reason }) => {
                    BudgetRefusal::Aborted { account: named(ix), reason: reason.clone() }
                }
                Some(Ended::Closed) | None => BudgetRefusal::Closed { account: named(ix) },
            },
        })
    }

    /// Refuses after the deadline. Reads the clock only if there is one.
    #[inline]
    pub(super) fn in_time(&self) -> Result<(), BudgetRefusal> {
        match self.deadline_ms {
            None => Ok(()),
            Some(deadline_ms) => self.in_time_for(deadline_ms),
        }
    }

    fn in_time_for(&self, deadline_ms: u64) -> Result<(), BudgetRefusal> {
        match self.tree.clock.now_ms().checked_sub(deadline_ms) {
            None => Ok(()),
            Some(late_ms) => {
                let same = |place: &&Self| place.deadline_ms == self.deadline_ms;
                let owner = self.chain().take_while(same).last().unwrap_or(self);
                Err(BudgetRefusal::DeadlinePassed { account: owner.id.clone(), late_ms })
            }
        }
    }

    pub(super) fn time_left(&self) -> Option<Duration> {
        let deadline_ms = self.deadline_ms?;
        Some(Duration::from_millis(deadline_ms.saturating_sub(self.tree.clock.now_ms())))
    }

    /// Books spending with `write`, after the hook has seen it. A veto cannot undo the spending, but stops the next
    /// call.
    #[inline]
    pub(super) fn book<R>(&self, actual: &Amounts, write: impl FnOnce(&mut Ledger, AccountIx) -> R) -> R {
        let veto = charge_veto(self, actual);
        self.tree.change(|books| {
            let result = write(&mut books.ledger, self.ix);
            if let Some(reason) = veto {
                self.shut(books, Ended::aborted(reason));
            }
            result
        })
    }

    /// Shuts the account: it and everything below accept no new calls.
    pub(super) fn end(&self, ended: Ended) {
        self.tree.change(|books| self.shut(books, ended));
    }

    fn shut(&self, books: &mut Books, ended: Ended) {
        // The first reason stays, so a later one is dropped on purpose.
        let _ = self.ended.set(ended);
        books.ledger.shut(self.ix);
    }

    fn upward(&self, ix: AccountIx) -> &Self {
        self.chain().find(|place| place.ix == ix).unwrap_or(self)
    }

    /// From this place to the root.
    fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |place| place.parent.as_deref())
    }
}

impl Ended {
    /// A reason that is too long for one line is cut.
    pub(super) fn aborted(mut reason: String) -> Self {
        let end = (0..=reason.len().min(NOTE_BYTES_MAX)).rev().find(|at| reason.is_char_boundary(*at));
        reason.truncate(end.unwrap_or(0));
        Self::Aborted { reason }
    }
}

impl Drop for AccountNode {
    /// Closes the account, and ancestors that only this one kept open. A loop, because a chain may be deeper than the
    /// stack.
    fn drop(&mut self) {
        self.tree.change(|books| books.ledger.close(self.ix));
        let mut next = self.parent.take();
        while let Some(parent) = next {
            next = Arc::into_inner(parent).and_then(|mut place| place.parent.take());
        }
    }
}
