//! The handle of an account, with everything except making calls.

use std::fmt;
use std::sync::Arc;

use spinney_kernel::budget::{AmountError, Amounts};

use super::account_node::{AccountNode, Ended};
use super::opening::{open_child, open_root};
use super::waiting::Waiting;
use super::{AccountId, BudgetHold, BudgetRefusal, Limits, OpenError, Options, Snapshot};
use crate::clock::{Clock, SystemClock};
use crate::sync::park_on;

/// A handle of one account in a tree of budgets. Clones are handles of the same account, usable from any thread. When
/// the last handle, hold and child of an account are gone, it is closed, and only its totals stay at its ancestors.
#[derive(Clone)]
pub struct Budget(pub(super) Arc<AccountNode>);

impl Budget {
    /// Opens the root of a new tree.
    ///
    /// # Errors
    /// If a limit is out of range.
    pub fn root(limits: Limits) -> Result<Self, OpenError> {
        Self::root_with(limits, Options::new())
    }

    /// Opens the root of a new tree, with options.
    ///
    /// # Errors
    /// If a limit or an option is invalid.
    pub fn root_with(limits: Limits, options: Options) -> Result<Self, OpenError> {
        Self::root_on(Arc::new(SystemClock::new()), limits, options)
    }

    /// Opens the root of a new tree with its own clock, which all accounts below also use.
    ///
    /// # Errors
    /// If a limit or an option is invalid.
    pub fn root_on(clock: Arc<dyn Clock>, limits: Limits, options: Options) -> Result<Self, OpenError> {
        open_root(clock, &limits, options).map(Arc::new).map(Self)
    }

    /// Opens an account below this one. Absent cost and token ceilings become what this account has left now; absent
    /// counts become this account's own ceilings; this account's timeout always applies. A ceiling above this
    /// account's is allowed, but this account's still applies.
    ///
    /// # Errors
    /// If a limit is out of range, or this account or an ancestor takes no more calls.
    pub fn child(&self, limits: Limits) -> Result<Self, OpenError> {
        self.child_with(limits, Options::new())
    }

    /// Opens an account below this one, with options.
    ///
    /// # Errors
    /// As [`child`](Self::child); also if an option is invalid, or the ceilings to lend do not fit.
    pub fn child_with(&self, limits: Limits, options: Options) -> Result<Self, OpenError> {
        open_child(&self.0, &limits, options).map(Arc::new).map(Self)
    }

    /// The account's id.
    #[must_use]
    pub fn id(&self) -> &AccountId {
        &self.0.id
    }

    /// Holds amounts here and at every ancestor. If only other holds block it, it waits in line, in order; dropping
    /// the future leaves the line.
    ///
    /// Do not wait while you keep a hold that blocks it yourself: use [`try_hold`](Self::try_hold) there. There is no
    /// timer here: a call in line notices its deadline when it is polled.
    ///
    /// # Errors
    /// If it can never fit, or an account up the chain takes no more calls.
    pub async fn hold(&self, amounts: Amounts) -> Result<BudgetHold, BudgetRefusal> {
        amounts.checked()?;
        match self.0.take(&amounts) {
            Err(BudgetRefusal::Busy { .. }) => Waiting::new(&self.0, amounts).await?,
            answer => answer?,
        }
        BudgetHold::guard(&self.0, amounts)
    }

    /// Holds amounts now or fails.
    ///
    /// # Errors
    /// As [`hold`](Self::hold); and [`BudgetRefusal::Busy`] where that would wait.
    #[inline]
    pub fn try_hold(&self, amounts: Amounts) -> Result<BudgetHold, BudgetRefusal> {
        amounts.checked()?;
        self.0.take(&amounts)?;
        BudgetHold::guard(&self.0, amounts)
    }

    /// Holds amounts and parks this thread while it waits in line, at most until the account's deadline.
    ///
    /// # Errors
    /// As [`hold`](Self::hold).
    #[inline]
    pub fn hold_blocking(&self, amounts: Amounts) -> Result<BudgetHold, BudgetRefusal> {
        amounts.checked()?;
        match self.0.take(&amounts) {
            Err(BudgetRefusal::Busy { .. }) => {
                park_on(Waiting::new(&self.0, amounts), || self.0.time_left())?;
            }
            answer => answer?,
        }
        BudgetHold::guard(&self.0, amounts)
    }

    /// Books spending that happened elsewhere, here and at every ancestor. It is never refused, because it has
    /// happened: what exceeds the free amount becomes overrun.
    ///
    /// # Errors
    /// If the number is implausible; nothing is booked.
    pub fn charge(&self, actual: Amounts) -> Result<(), AmountError> {
        actual.checked()?;
        self.0.book(&actual, |ledger, ix| ledger.charge(ix, &actual));
        Ok(())
    }

    /// Raises the ceilings of this account, and of those below that inherited them.
    ///
    /// # Errors
    /// If a ceiling would be out of range, or what this account borrows does not fit above.
    pub fn raise(&self, add: Amounts) -> Result<(), BudgetRefusal> {
        add.checked()?;
        let place = &self.0;
        place.tree.change(|books| {
            let terms = books.ledger.account(place.ix).terms;
            terms.limit.raised(&add)?;
            let lent = books.ledger.lent_by_raise(place.ix, &add);
            if let Some(parent) = place.parent.as_ref().filter(|_| !lent.is_zero()) {
                parent.answer(books.ledger.fit_below(parent.ix, &lent))?;
            }
            books.ledger.raise(place.ix, &add);
            Ok(())
        })
    }

    /// Stops the account: it and everything below accept no new calls from this moment. Calls that run end as usual.
    pub fn abort(&self, reason: impl Into<String>) {
        self.0.end(Ended::aborted(reason.into()));
    }

    /// Closes the account: it and everything below accept no new calls. Calls that run end as usual.
    pub fn close(&self) {
        self.0.end(Ended::Closed);
    }

    /// What a call at this account could hold now: the minimum over the chain.
    #[must_use]
    pub fn remaining(&self) -> Limits {
        let remaining = self.0.tree.books.lock().ledger.remaining(self.0.ix);
        Limits::from_kernel(&remaining, self.0.time_left())
    }

    /// Number of open accounts in this tree, this one included.
    #[must_use]
    pub fn accounts_open(&self) -> usize {
        self.0.tree.books.lock().ledger.len()
    }

    /// The account's current state.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.0.snapshot()
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Budget").field(&self.0.id).finish()
    }
}
