//! A hold: amounts set aside at an account and at every ancestor for one call. It ends exactly once: settled at what
//! the call used, or dropped, and then all of it returns.

use std::fmt;
use std::sync::Arc;

use spinney_kernel::budget::{AmountError, Amounts};

use super::{BudgetRefusal, Place};

/// Amounts held for one call.
#[must_use = "dropping a hold releases it"]
pub struct BudgetHold {
    place: Arc<Place>,
    amounts: Amounts,
    ended: bool,
}

/// What became of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// What was booked beyond the hold.
    pub overrun: Amounts,
}

/// A hold could not be settled at a number that cannot be true. Nothing has changed: the hold still stands.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Unsettled {
    /// What was wrong.
    pub error: AmountError,
    /// The hold, to settle it at the right number. Dropping it releases it.
    pub hold: BudgetHold,
}

impl BudgetHold {
    /// Guards amounts that the ledger holds already, and asks the account's hook whether the call may start.
    #[inline]
    pub(super) fn guard(place: &Arc<Place>, amounts: Amounts) -> Result<Self, BudgetRefusal> {
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

    /// What is held.
    #[must_use]
    pub const fn amounts(&self) -> &Amounts {
        &self.amounts
    }

    /// Ends the hold: books what the call really used and returns the rest. Using more than was held is booked too.
    ///
    /// # Errors
    /// If the number cannot be true; the hold comes back with the error.
    #[inline]
    pub fn settle(mut self, actual: Amounts) -> Result<Settled, Unsettled> {
        match actual.checked() {
            Ok(_) => Ok(self.book(&actual)),
            Err(error) => Err(Unsettled { error, hold: self }),
        }
    }

    /// Settles at amounts that were checked before, once.
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
