//! The line: asks that fit but for other holds wait here, in order, until those settle.
//!
//! An ask waits at the one account that blocks it, the lowest, and is entitled to what it asked there: a later ask
//! may pass only if it leaves that untouched. If another account blocks it next, it moves there. So nobody starves,
//! and branches that do not share the account that is short do not block each other.

use std::collections::BTreeMap;

use super::fit::Asker;
use super::{AccountIx, Amounts, Fit, Ledger};

/// Asks that wait, by ticket; a lower ticket goes first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line(BTreeMap<u64, Waiter>);

/// An ask that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// The account that asks.
    pub at: AccountIx,
    /// The account that blocks it: the same one or one above.
    pub blocked: AccountIx,
    pub ask: Amounts,
}

impl Ledger {
    /// Puts an ask in line, or moves it if it is in line already.
    pub fn line_join(&mut self, ticket: u64, waiter: Waiter) {
        self.line_leave(ticket);
        self.account_mut(waiter.blocked).line.add(&waiter.ask);
        self.line.0.insert(ticket, waiter);
    }

    /// Takes an ask out of the line; nothing happens if it is not in it.
    pub fn line_leave(&mut self, ticket: u64) {
        if let Some(waiter) = self.line.0.remove(&ticket) {
            self.account_mut(waiter.blocked).line.take_away(&waiter.ask);
        }
    }

    /// The ask with this ticket, if it is in line.
    #[must_use]
    pub fn line_of(&self, ticket: u64) -> Option<Waiter> {
        self.line.0.get(&ticket).copied()
    }

    /// How many asks wait.
    #[must_use]
    pub fn line_len(&self) -> usize {
        self.line.0.len()
    }

    /// The first ask in line after `ticket`, or the first of all.
    #[must_use]
    pub fn line_after(&self, ticket: Option<u64>) -> Option<(u64, Waiter)> {
        let from = ticket.map_or(0, |ticket| ticket.saturating_add(1));
        self.line.0.range(from..).next().map(|(ticket, waiter)| (*ticket, *waiter))
    }
}

/// One pass over those who wait, first to last: remembers what the passed ones are entitled to.
#[derive(Debug, Default)]
pub struct Scan {
    ahead: BTreeMap<AccountIx, Amounts>,
}

impl Scan {
    /// Whether `ask` may be held now without taking anything from those already passed over.
    #[must_use]
    pub fn fit(&self, ledger: &Ledger, at: AccountIx, ask: &Amounts) -> Fit {
        ledger.fit_behind(at, ask, Asker::Own, |ix, _| self.ahead.get(&ix).copied().unwrap_or_default())
    }

    /// Passes over an ask that still waits at `blocked`.
    pub fn pass(&mut self, blocked: AccountIx, ask: &Amounts) {
        self.ahead.entry(blocked).or_default().add(ask);
    }
}
