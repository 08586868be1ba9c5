//! One account: a ceiling per resource, and how much of it is spent, held and lent.

use serde::{Deserialize, Serialize};

use super::{AccountIx, Amounts, Ceilings, ResourceSet, SparseAmounts};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    pub limit: Ceilings,
    /// Ceilings that were not given but derived from what the parent had left. They rise with the parent's, and if
    /// both refuse, the refusal names the explicit one.
    #[serde(default, skip_serializing_if = "ResourceSet::is_empty")]
    pub inherited: ResourceSet,
    /// Ceilings that every ancestor holds while the account is open.
    #[serde(default, skip_serializing_if = "ResourceSet::is_empty")]
    pub lends: ResourceSet,
    /// What the accounts below must leave, so this one can still answer.
    #[serde(default, skip_serializing_if = "Amounts::is_zero")]
    pub reserve: Amounts,
    /// Whether the reserve stays the same when the ceilings rise. Otherwise it is a share of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reserve_fixed: bool,
}

impl Terms {
    /// Ceilings only: nothing inherited, lent or reserved.
    #[must_use]
    pub const fn plain(limit: Ceilings) -> Self {
        Self {
            limit,
            inherited: ResourceSet::EMPTY,
            lends: ResourceSet::EMPTY,
            reserve: Amounts::ZERO,
            reserve_fixed: false,
        }
    }
}

/// One account of the ledger. `spent`, `held` and `lent` count this account and everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// `None` for the root.
    pub parent: Option<AccountIx>,
    pub terms: Terms,
    pub spent: Amounts,
    /// Held for running effects.
    pub held: Amounts,
    /// Promised to accounts below that were opened with `lends`, minus what they have spent.
    pub lent: SparseAmounts,
    /// Requested by calls that wait for this account.
    pub(super) line: SparseAmounts,
    /// Used beyond its hold, or charged beyond what was free.
    pub overrun: SparseAmounts,
    /// The part of `spent` that no provider reported: calls settled at their full hold because they may be billed.
    pub presumed: SparseAmounts,
    /// Neither it nor anything below takes a new hold.
    pub shut: bool,
}

impl Account {
    pub(super) fn open(parent: Option<AccountIx>, terms: Terms) -> Self {
        Self {
            parent,
            terms,
            spent: Amounts::ZERO,
            held: Amounts::ZERO,
            lent: SparseAmounts::default(),
            line: SparseAmounts::default(),
            overrun: SparseAmounts::default(),
            presumed: SparseAmounts::default(),
            shut: false,
        }
    }

    /// The ceilings for the accounts below: less the reserve.
    pub(super) fn limit_below(&self) -> Amounts {
        self.terms.limit.amounts().minus(&self.terms.reserve)
    }

    /// What could be used if every running hold returned.
    #[must_use]
    pub fn left(&self) -> Amounts {
        self.terms.limit.amounts().minus(&self.spent).minus(&self.lent)
    }

    /// What its ancestors keep lent for this account: the unspent part of its lent ceilings, and at least what runs
    /// below it.
    pub(super) fn claim(&self) -> Amounts {
        let unspent = self.terms.limit.amounts().minus(&self.spent);
        unspent.max(&self.held.plus(&self.lent)).only(self.terms.lends)
    }
}
