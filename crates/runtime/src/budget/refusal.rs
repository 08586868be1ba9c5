//! Refusals: every reason why an account refuses, with the numbers asked and available and what to do instead.

use spinney_kernel::budget::{AmountError, Shortfall};
use spinney_kernel::primitives::Millis;

use super::AccountId;

/// Why an account refused. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BudgetRefusal {
    /// What is spent and lent leaves too little, even if all holds return.
    #[error("{}: ask for less, or raise the ceiling", short.describe(account))]
    Ceiling {
        /// The account with the ceiling: the one asked or an ancestor.
        account: AccountId,
        /// The numbers.
        short: Shortfall,
    },
    /// Other holds block it and will clear. Only callers that do not wait in line get this.
    #[error("{}: other holds are in the way, try again when they have settled", short.describe(account))]
    Busy {
        /// The account with the ceiling.
        account: AccountId,
        /// The numbers.
        short: Shortfall,
    },
    /// The account was stopped.
    #[error("`{account}` was aborted: {reason}; it and everything below accept no new calls")]
    Aborted {
        /// The aborted account: the one asked or an ancestor.
        account: AccountId,
        /// The reason given.
        reason: String,
    },
    /// The account was closed.
    #[error("`{account}` is closed: it and everything below accept no new calls, open another account")]
    Closed {
        /// The closed account: the one asked or an ancestor.
        account: AccountId,
    },
    /// The account's deadline has passed.
    #[error(
        "the deadline of `{account}` passed {} ago: use another account with a longer timeout",
        Millis(*late_ms)
    )]
    DeadlinePassed {
        /// The account with the timeout: the one asked or an ancestor.
        account: AccountId,
        /// How long ago.
        late_ms: u64,
    },
    /// A hook of the account refused.
    #[error("a hook of `{account}` refused the call: {reason}")]
    Vetoed {
        /// The hook's account.
        account: AccountId,
        /// The hook's reason.
        reason: String,
    },
    /// Too many calls in a row failed.
    #[error("the breaker of `{account}` is open for another {}: try again then", Millis(*left_ms))]
    BreakerOpen {
        /// The account with the breaker.
        account: AccountId,
        /// When one call may probe, in milliseconds since the Unix epoch.
        until_ms: u64,
        /// How long that is from now, in milliseconds.
        left_ms: u64,
    },
    /// The breaker was open and one call finds out whether things work again.
    #[error("the breaker of `{account}` waits for a running probe: try again when it has ended")]
    BreakerProbing {
        /// The account with the breaker.
        account: AccountId,
    },
    /// The line is full.
    #[error("{waiting} calls wait for this budget and the limit is {waiting_max}: start fewer at a time")]
    LineFull {
        /// Waiting calls.
        waiting: usize,
        /// The limit.
        waiting_max: usize,
    },
    /// The amount itself is invalid.
    #[error(transparent)]
    Amount(#[from] AmountError),
}
