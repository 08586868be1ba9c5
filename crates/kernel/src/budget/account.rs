//! One account: a ceiling per resource, and what of it is spent, held and lent.

use serde::{Deserialize, Serialize};

use super::{AccountIx, Amounts, Ceilings, ResourceSet, Seldom};

/// The terms on which an account is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    pub limit: Ceilings,
    /// Which ceilings were not given but taken from what the parent had left at that moment. They rise with the
    /// parent's, and where both refuse, the one that somebody set is named.
    #[serde(default, skip_serializing_if = "ResourceSet::is_empty")]
    pub inherited: ResourceSet,
    /// Which ceilings are held at every ancestor for as long as the account is open.
    #[serde(default, skip_serializing_if = "ResourceSet::is_empty")]
    pub lends: ResourceSet,
    /// What the accounts below must leave untouched, so that this one can still answer.
    #[serde(default, skip_serializing_if = "Amounts::is_zero")]
    pub reserve: Amounts,
    /// Whether that stays as it is when the ceilings rise. Otherwise it is a share of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reserve_fixed: bool,
}

impl Terms {
    /// Plain ceilings: nothing inherited, lent or reserved.
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
    /// The account above; none for the root.
    pub parent: Option<AccountIx>,
    /// What it was opened on.
    pub terms: Terms,
    pub spent: Amounts,
    /// Held for effects that run.
    pub held: Amounts,
    /// Promised to accounts below that were opened with `lends`, as far as they have not spent it.
    pub lent: Seldom,
    /// Asked by calls that wait for this very account.
    pub(super) line: Seldom,
    /// Used beyond what was held for it, or charged beyond what was free.
    pub overrun: Seldom,
    /// Takes no new hold, nor does anything below.
    pub shut: bool,
}

impl Account {
    pub(super) fn open(parent: Option<AccountIx>, terms: Terms) -> Self {
        Self {
            parent,
            terms,
            spent: Amounts::ZERO,
            held: Amounts::ZERO,
            lent: Seldom::default(),
            line: Seldom::default(),
            overrun: Seldom::default(),
            shut: false,
        }
    }

    /// The ceilings as they bind accounts below: less the reserve.
    pub(super) fn limit_below(&self) -> Amounts {
        self.terms.limit.amounts().minus(&self.terms.reserve)
    }

    /// What could be used once every running hold has returned.
    #[must_use]
    pub fn left(&self) -> Amounts {
        self.terms.limit.amounts().minus(&self.spent).minus(&self.lent)
    }

    /// What its ancestors keep lent for this account: what it has not spent of the ceilings it was lent, and never
    /// less than what runs below it.
    pub(super) fn claim(&self) -> Amounts {
        let unspent = self.terms.limit.amounts().minus(&self.spent);
        unspent.max(&self.held.plus(&self.lent)).only(self.terms.lends)
    }
}
