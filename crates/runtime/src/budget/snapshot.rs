//! A snapshot: one account at one moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use spinney_kernel::budget::{Account, Amounts, Resource};

use super::account_node::{AccountNode, Ended};
use super::{AccountId, Limits};

/// One account at one moment. `spent`, `held` and `lent` count the account and everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The account.
    pub id: AccountId,
    /// `None` for the root.
    pub parent: Option<AccountId>,
    /// Its own ceilings and timeout, given or inherited.
    pub limits: Limits,
    /// Actual usage, as calls report it.
    pub spent: Amounts,
    /// The part of `spent` that no call reported: calls that ended without a report are booked at their estimate.
    pub presumed: Amounts,
    /// Held for running calls.
    pub held: Amounts,
    /// Promised to accounts below, minus what they have spent.
    pub lent: Amounts,
    /// Used beyond its hold, or charged beyond what was free.
    pub overrun: Amounts,
    /// When it takes no more calls, in milliseconds since the Unix epoch: the earliest deadline up the chain.
    pub deadline_ms: Option<u64>,
    /// Whether it takes new calls, ignoring its ancestors.
    pub state: AccountState,
    /// The tags it was opened with.
    pub tags: Arc<BTreeMap<String, String>>,
}

/// Whether an account takes new calls. Its ancestors may still refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AccountState {
    /// It takes calls.
    Open,
    /// A ceiling is reached; raising it opens the account again.
    Exhausted {
        /// What has run out.
        resource: Resource,
    },
    /// Its deadline has passed.
    TimedOut,
    /// It was aborted.
    Aborted {
        /// The reason.
        reason: String,
    },
    /// It was closed.
    Closed,
}

impl AccountNode {
    pub(super) fn snapshot(&self) -> Snapshot {
        let account = self.tree.books.lock().ledger.account(self.ix).clone();
        Snapshot {
            id: self.id.clone(),
            parent: self.parent.as_ref().map(|parent| parent.id.clone()),
            limits: Limits::from_kernel(&account.terms.limit, self.timeout),
            state: self.state(&account),
            spent: account.spent,
            presumed: *account.presumed,
            held: account.held,
            lent: *account.lent,
            overrun: *account.overrun,
            deadline_ms: self.deadline_ms,
            tags: Arc::clone(&self.tags),
        }
    }

    fn state(&self, account: &Account) -> AccountState {
        let reached = |r: &Resource| {
            r.stops_all() && account.terms.limit.get(*r).is_some_and(|limit| account.spent.get(*r) >= limit)
        };
        match self.ended.get() {
            Some(Ended::Aborted { reason }) => AccountState::Aborted { reason: reason.clone() },
            Some(Ended::Closed) => AccountState::Closed,
            None if self.in_time().is_err() => AccountState::TimedOut,
            None => match Resource::ALL.into_iter().find(reached) {
                Some(resource) => AccountState::Exhausted { resource },
                None => AccountState::Open,
            },
        }
    }
}
