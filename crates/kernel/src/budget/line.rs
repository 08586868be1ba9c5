//! The line: requests that only other holds block wait here, in order, until those settle.
//!
//! A request waits at the lowest account that blocks it and is entitled to its amount there: a later request may pass
//! only if it leaves that untouched. If another account blocks it next, it moves there. So no request starves, and
//! branches that do not share the short account do not block each other.

use std::collections::BTreeMap;

use super::fit::Asker;
use super::{AccountIx, Amounts, Ceilings, Fit, Ledger};

/// Waiting requests by ticket; the lowest ticket is first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line(BTreeMap<u64, Waiter>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiter {
    pub at: AccountIx,
    /// The account that blocks it: `at` or an ancestor.
    pub blocked: AccountIx,
    pub ask: Amounts,
}

impl Ledger {
    /// Adds a request to the line, or moves it if it is already there.
    pub fn line_join(&mut self, ticket: u64, waiter: Waiter) {
        self.line_leave(ticket);
        self.account_mut(waiter.blocked).line.add(&waiter.ask);
        self.line.0.insert(ticket, waiter);
    }

    /// Removes a request; does nothing if it is not in line.
    pub fn line_leave(&mut self, ticket: u64) {
        if let Some(waiter) = self.line.0.remove(&ticket) {
            self.account_mut(waiter.blocked).line.take_away(&waiter.ask);
        }
    }

    #[must_use]
    pub fn line_of(&self, ticket: u64) -> Option<Waiter> {
        self.line.0.get(&ticket).copied()
    }

    #[must_use]
    pub fn line_len(&self) -> usize {
        self.line.0.len()
    }

    /// The next request after `ticket`, or the first one.
    #[must_use]
    pub fn line_after(&self, ticket: Option<u64>) -> Option<(u64, Waiter)> {
        let from = ticket.map_or(0, |ticket| ticket.saturating_add(1));
        self.line.0.range(from..).next().map(|(ticket, waiter)| (*ticket, *waiter))
    }
}

/// One pass over the line, in order. Remembers what skipped requests are entitled to.
#[derive(Debug, Default)]
pub struct Scan {
    ahead: BTreeMap<AccountIx, Amounts>,
}

impl Scan {
    /// Whether `ask` can be held now without taking anything from skipped requests.
    #[must_use]
    pub fn fit(&self, ledger: &Ledger, at: AccountIx, ask: &Amounts) -> Fit {
        ledger.fit_behind(at, ask, Asker::Own, |ix, _| self.ahead.get(&ix).copied().unwrap_or_default())
    }

    /// What `at` can use now without taking anything from skipped requests.
    #[must_use]
    pub fn free(&self, ledger: &Ledger, at: AccountIx) -> Ceilings {
        ledger.free_behind(at, |ix, _| self.ahead.get(&ix).copied().unwrap_or_default())
    }

    /// Skips a request that still waits at `blocked`.
    pub fn pass(&mut self, blocked: AccountIx, ask: &Amounts) {
        self.ahead.entry(blocked).or_default().add(ask);
    }
}
