//! Hooks to observe or stop the calls of one account. They run outside the lock, so they may use the budget.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use spinney_kernel::budget::Amounts;

use super::{AccountId, AccountNode};

/// Hooks around every call made at one account. They belong to that account: children have none unless they are
/// opened with [`Options::inherit_hooks`](super::Options::inherit_hooks).
pub trait Hooks: Send + Sync {
    /// The amounts are held and the call is about to start. An error refuses it, and the hold returns.
    ///
    /// # Errors
    /// The reason to refuse.
    fn before_call(&self, account: &AccountId, estimate: &Amounts) -> Result<(), String> {
        let _ = (account, estimate);
        Ok(())
    }

    /// The actual amounts are about to be booked. An error cannot undo them: they are booked, and the account is
    /// aborted with that reason. A panic counts as an error.
    ///
    /// # Errors
    /// The reason to abort.
    fn before_charge(&self, account: &AccountId, actual: &Amounts) -> Result<(), String> {
        let _ = (account, actual);
        Ok(())
    }

    /// A call made with `run` returned an error; what it used is booked.
    fn on_error(&self, account: &AccountId, error: &dyn fmt::Debug) {
        let _ = (account, error);
    }
}

/// Asks the account's hook about a charge. Returns the reason to abort, if any.
#[inline]
pub(super) fn charge_veto(place: &AccountNode, actual: &Amounts) -> Option<String> {
    let hooks = place.hooks.as_ref()?;
    // The money is spent: whatever the hook does, the booking must happen.
    match catch_unwind(AssertUnwindSafe(|| hooks.before_charge(&place.id, actual))) {
        Ok(verdict) => verdict.err(),
        Err(_) => Some(String::from("the hook before_charge panicked")),
    }
}
