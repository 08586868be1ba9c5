//! Refusals: every reason an account says no, with the numbers asked and available and what to do instead.

use spinney_kernel::budget::{AmountError, Shortfall};
use spinney_kernel::words::Millis;

use super::AccountId;

/// Why an account said no. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BudgetRefusal {
    /// What is spent and lent leaves too little, whatever returns.
    #[error("{}: ask for less, or raise the ceiling", short.describe(account))]
    Ceiling {
        /// The account whose ceiling it is: the one asked or one above it.
        account: AccountId,
        /// The numbers.
        short: Shortfall,
    },
    /// Other holds are in the way and will clear. Only those who do not wait in line see this.
    #[error("{}: other holds are in the way, try again when they have settled", short.describe(account))]
    Busy {
        /// The account whose ceiling it is.
        account: AccountId,
        /// The numbers.
        short: Shortfall,
    },
    /// Somebody stopped the account.
    #[error("`{account}` was aborted: {reason}; it and everything below accept no new calls")]
    Aborted {
        /// The account that was stopped: the one asked or one above it.
        account: AccountId,
        /// The reason given.
        reason: String,
    },
    /// The account was closed.
    #[error("`{account}` is closed: it and everything below accept no new calls, open another account")]
    Closed {
        /// The account that was closed: the one asked or one above it.
        account: AccountId,
    },
    /// The account's time is up.
    #[error(
        "the deadline of `{account}` passed {} ago: use another account with a longer timeout",
        Millis(*late_ms)
    )]
    DeadlinePassed {
        /// The account whose timeout it was: the one asked or one above it.
        account: AccountId,
        /// How long ago.
        late_ms: u64,
    },
    /// A hook of the account said no.
    #[error("a hook of `{account}` refused the call: {reason}")]
    Vetoed {
        /// The account the hook belongs to.
        account: AccountId,
        /// The reason the hook gave.
        reason: String,
    },
    /// Too many calls in a row failed.
    #[error("the breaker of `{account}` is open for another {}: try again then", Millis(*left_ms))]
    BreakerOpen {
        /// The account whose breaker it is.
        account: AccountId,
        /// When one call may probe, in milliseconds since the Unix epoch.
        until_ms: u64,
        /// How long that is from now.
        left_ms: u64,
    },
    /// The breaker was open and one call finds out whether things work again.
    #[error("the breaker of `{account}` waits for a running probe: try again when it has ended")]
    BreakerProbing {
        /// The account whose breaker it is.
        account: AccountId,
    },
    /// More calls wait than a tree keeps in line.
    #[error("{waiting} calls wait for this budget and the limit is {waiting_max}: start fewer at a time")]
    LineFull {
        /// How many wait.
        waiting: usize,
        /// How many may.
        waiting_max: usize,
    },
    /// The amount itself is wrong.
    #[error(transparent)]
    Amount(#[from] AmountError),
}
