//! A hold: amounts set aside at an account and every ancestor for one call. It ends exactly once: settled at the
//! call's usage, or dropped, which returns all of it.

use std::fmt;
use std::sync::Arc;

use spinney_kernel::budget::{AmountError, Amounts, ResourceSet};

use super::{AccountNode, BudgetRefusal};

/// Amounts held for one call.
#[must_use = "dropping a hold releases it"]
pub struct BudgetHold {
    place: Arc<AccountNode>,
    amounts: Amounts,
    ended: bool,
}

/// The result of settling a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// What was booked beyond the hold.
    pub overrun: Amounts,
}

/// A hold was not settled because the number is implausible. Nothing has changed: the hold still exists.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Unsettled {
    /// What was wrong.
    pub error: AmountError,
    /// The hold, to settle it with the right number. Dropping it releases it.
    pub hold: BudgetHold,
}

impl BudgetHold {
    /// Wraps amounts that the ledger already holds, and asks the account's hook whether the call may start.
    #[inline]
    pub(super) fn guard(place: &Arc<AccountNode>, amounts: Amounts) -> Result<Self, BudgetRefusal> {
        match &place.hooks {
            None => Ok(Self { place: Arc::clone(place), amounts, ended: false }),
            Some(hooks) => {
                let hold = Self { place: Arc::clone(place), amounts, ended: false };
                match hooks.before_call(&place.id, &amounts) {
                    Ok(()) => Ok(hold),
                    Err(reason) => Err(BudgetRefusal::Vetoed { account: place.id.clone(), reason }),
                }
            }
        }
    }

    /// The held amounts.
    #[must_use]
    pub const fn amounts(&self) -> &Amounts {
        &self.amounts
    }

    /// Ends the hold: books the actual usage and returns the rest. Usage beyond the hold is also booked.
    ///
    /// # Errors
    /// If the number is implausible; the error returns the hold.
    #[inline]
    pub fn settle(mut self, actual: Amounts) -> Result<Settled, Unsettled> {
        match actual.checked() {
            Ok(_) => Ok(self.book(&actual)),
            Err(error) => Err(Unsettled { error, hold: self }),
        }
    }

    /// Settles a call that reported nothing at the hold itself. Counts are used by starting the call; the rest is
    /// presumed.
    pub(super) fn book_presumed(&mut self) {
        self.ended = true;
        let (held, presumed) = (&self.amounts, self.amounts.only(ResourceSet::MEASURED));
        self.place.book(held, |ledger, ix| {
            ledger.settle(ix, held, held);
            ledger.presume(ix, &presumed);
        });
    }

    /// Settles at checked amounts, once.
    #[inline]
    pub(super) fn book(&mut self, actual: &Amounts) -> Settled {
        self.ended = true;
        let held = &self.amounts;
        let overrun = self.place.book(actual, |ledger, ix| ledger.settle(ix, held, actual));
        Settled { overrun }
    }
}

impl Drop for BudgetHold {
    #[inline]
    fn drop(&mut self) {
        if !self.ended {
            self.place.tree.change(|books| {
                books.ledger.settle(self.place.ix, &self.amounts, &Amounts::ZERO);
            });
        }
    }
}

impl fmt::Debug for BudgetHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold").field("account", &self.place.id).field("amounts", &self.amounts).finish()
    }
}
