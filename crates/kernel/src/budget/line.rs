//! The line: asks that fit but for other holds wait here, in order, until those settle.
//!
//! A later ask may pass an earlier one only where it takes nothing the earlier one needs, so nobody starves and
//! unrelated branches do not block each other.

use std::collections::BTreeMap;

use super::{AccountIx, Amounts, Fit, Ledger, fit::Asker};

/// Asks that wait, by ticket; a lower ticket goes first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line(BTreeMap<u64, (AccountIx, Amounts)>);

impl Ledger {
    /// Puts an ask in line.
    pub fn line_join(&mut self, ticket: u64, at: AccountIx, ask: &Amounts) {
        self.line_leave(ticket);
        self.line.0.insert(ticket, (at, *ask));
        self.walk(at, *ask, |account, ask| account.line = account.line.plus(ask));
    }

    /// Takes an ask out of the line; nothing happens if it is not in it.
    pub fn line_leave(&mut self, ticket: u64) {
        if let Some((at, ask)) = self.line.0.remove(&ticket) {
            self.walk(at, ask, |account, ask| account.line = account.line.minus(ask));
        }
    }

    /// How many asks wait.
    #[must_use]
    pub fn line_len(&self) -> usize {
        self.line.0.len()
    }

    /// The first ask in line after `ticket`, or the first of all.
    #[must_use]
    pub fn line_after(&self, ticket: Option<u64>) -> Option<(u64, AccountIx, Amounts)> {
        let from = ticket.map_or(0, |ticket| ticket.saturating_add(1));
        self.line.0.range(from..).next().map(|(ticket, (at, ask))| (*ticket, *at, *ask))
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

    /// Passes over an ask that still waits.
    pub fn pass(&mut self, ledger: &Ledger, at: AccountIx, ask: &Amounts) {
        let mut left = *ask;
        let mut next = Some(at);
        while let Some(ix) = next {
            let account = ledger.account(ix);
            let ahead = self.ahead.entry(ix).or_default();
            *ahead = ahead.plus(&left);
            left = left.without(account.terms.lends);
            next = account.parent;
        }
    }
}
