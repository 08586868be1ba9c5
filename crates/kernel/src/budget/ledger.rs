//! The ledger: the accounts of one tree, linked to their parents, and the walks up the chain that move amounts.
//!
//! Every walk is a loop, so a chain may be as deep as memory allows. What a caller may do is decided before
//! ([`Ledger::fit`]); the moves themselves cannot fail.

use std::collections::BTreeSet;

use super::{Account, Amounts, Ceilings, Fit, Line, Resource, ResourceSet, Seldom, Shortfall, Terms};

/// The place of an account in its ledger. A closed account's place is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountIx(u32);

impl AccountIx {
    /// Its number; the lowest free one is handed out first.
    #[must_use]
    pub const fn place(self) -> usize {
        self.0 as usize
    }
}

/// The accounts of one tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    accounts: Vec<Account>,
    free: BTreeSet<u32>,
    pub(super) line: Line,
}

impl Ledger {
    /// Opens an account below `parent`; what it lends is held at every ancestor from here on.
    pub fn open(&mut self, parent: Option<AccountIx>, terms: Terms) -> AccountIx {
        let account = Account::open(parent, terms);
        let lent = account.claim();
        let ix = match self.free.pop_first() {
            Some(ix) => {
                self.accounts[ix as usize] = account;
                AccountIx(ix)
            }
            None => {
                // An eighth more at a time: a large ledger that doubles keeps as much room for nothing.
                if self.accounts.len() == self.accounts.capacity() {
                    self.accounts.reserve_exact(self.accounts.len() / 8 + 4);
                }
                self.accounts.push(account);
                AccountIx(u32::try_from(self.accounts.len() - 1).unwrap_or(u32::MAX))
            }
        };
        if !terms.lends.is_empty() {
            self.shift_above(ix, Shift { more: lent, less: Amounts::ZERO });
        }
        ix
    }

    /// Closes an account without holds or accounts below: what it was lent and did not use returns. Gives what was
    /// spent.
    pub fn close(&mut self, ix: AccountIx) -> Amounts {
        let account = self.account(ix);
        let spent = account.spent;
        if !account.terms.lends.is_empty() {
            let less = account.claim();
            self.shift_above(ix, Shift { more: Amounts::ZERO, less });
        }
        if ix.place() + 1 == self.accounts.len() {
            self.accounts.pop();
            self.shrink();
        } else {
            *self.account_mut(ix) = Account::open(None, Terms::plain(Ceilings::NONE));
            self.free.insert(ix.0);
        }
        spent
    }

    /// Gives back what the last accounts took once they are closed.
    fn shrink(&mut self) {
        while self.free.last().is_some_and(|last| *last as usize + 1 == self.accounts.len()) {
            self.free.pop_last();
            self.accounts.pop();
        }
        if self.accounts.capacity() > 64 + self.accounts.len() * 4 {
            self.accounts.shrink_to(self.accounts.len() * 2);
        }
    }

    /// The account at `ix`.
    #[must_use]
    #[inline]
    pub fn account(&self, ix: AccountIx) -> &Account {
        &self.accounts[ix.0 as usize]
    }

    /// How many accounts are open.
    #[must_use]
    pub fn len(&self) -> usize {
        self.accounts.len() - self.free.len()
    }

    /// Whether no account is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Holds `ask` at `at` and at every account above.
    pub fn hold(&mut self, at: AccountIx, ask: &Amounts) {
        self.walk(at, *ask, |account, ask| account.held.add(ask));
    }

    /// Ends a hold: books what was really used, returns the rest. Gives what was used beyond the hold.
    pub fn settle(&mut self, at: AccountIx, held: &Amounts, actual: &Amounts) -> Amounts {
        let beyond = actual.minus(held);
        let mut left = *held;
        let mut lent = Shift::default();
        // By how much the sum of everything grows. It changes only above an account that lends.
        let mut growth = beyond;
        let mut plain = beyond.is_zero();
        let mut next = Some(at);
        while let Some(ix) = next {
            let account = self.account_mut(ix);
            let lends = account.terms.lends;
            let claim = if lends.is_empty() { Amounts::ZERO } else { account.claim() };
            account.held.take_away(&left);
            account.spent.add(actual);
            if !plain {
                lent.apply(&mut account.lent);
                account.overrun.add(&growth);
            }
            if !lends.is_empty() {
                left = left.without(lends);
                lent = lent.above(lends, &claim, &account.claim());
                growth = lent.growth(actual).minus(&left);
                plain = false;
            }
            next = account.parent;
        }
        beyond
    }

    /// Books outside spending. Never refused; what is not free becomes overrun.
    pub fn charge(&mut self, at: AccountIx, actual: &Amounts) {
        let mut lent = Shift::default();
        let mut next = Some(at);
        while let Some(ix) = next {
            let account = self.account_mut(ix);
            let (claim, free) = (account.claim(), account.left().minus(&account.held));
            account.spent.add(actual);
            lent.apply(&mut account.lent);
            account.overrun.add(&lent.growth(actual).minus(&free));
            lent = lent.above(account.terms.lends, &claim, &account.claim());
            next = account.parent;
        }
    }

    /// Raises the ceilings of `at`, and those that accounts below inherited from them.
    pub fn raise(&mut self, at: AccountIx, add: &Amounts) {
        let lent = self.lent_by_raise(at, add);
        let followers: Vec<(u32, ResourceSet)> = (0..self.accounts.len())
            .filter_map(|ix| u32::try_from(ix).ok())
            .map(|ix| (ix, self.follows(AccountIx(ix), at)))
            .filter(|(_, set)| !set.is_empty())
            .collect();
        for (ix, set) in followers {
            let account = &mut self.accounts[ix as usize];
            let bounded = account.terms.limit.bounded();
            let raised = account.terms.limit.amounts().plus(&add.only(set).only(bounded));
            let limit = std::mem::replace(&mut account.terms.limit, Ceilings::from_amounts(raised));
            if !account.terms.reserve_fixed {
                account.terms.reserve = account.terms.reserve.grown(limit.amounts(), &raised);
            }
        }
        self.shift_above(at, Shift { more: lent, less: Amounts::ZERO });
    }

    /// What raising the ceilings of `at` would lend on top.
    #[must_use]
    pub fn lent_by_raise(&self, at: AccountIx, add: &Amounts) -> Amounts {
        let account = self.account(at);
        let raised = account.terms.limit.amounts().plus(add).minus(&account.spent).only(account.terms.lends);
        raised.minus(&account.claim())
    }

    /// Begins every account anew on the terms it has, and the root's on others: nothing is spent, and what is lent is
    /// lent in full again. Holds stay.
    pub(crate) fn renew(&mut self, root: AccountIx, terms: Terms) {
        for account in &mut self.accounts {
            account.spent = Amounts::ZERO;
            (account.overrun, account.lent) = (Seldom::default(), Seldom::default());
        }
        self.account_mut(root).terms = terms;
        let all = (0..self.accounts.len()).filter_map(|ix| u32::try_from(ix).ok()).map(AccountIx);
        let mut lends: Vec<(usize, AccountIx)> = all
            .filter(|ix| !self.account(*ix).terms.lends.is_empty())
            .map(|ix| (self.depth(ix), ix))
            .collect();
        // As they were opened: those above first.
        lends.sort_unstable();
        for (_, ix) in lends {
            let more = self.account(ix).claim();
            self.shift_above(ix, Shift { more, less: Amounts::ZERO });
        }
    }

    /// Of which resource an account has lent more than it may, and by which numbers.
    pub(crate) fn overlent(&self, at: AccountIx) -> Option<Shortfall> {
        let account = self.account(at);
        let (limit, reserve) = (account.terms.limit, account.terms.reserve);
        Resource::ALL.into_iter().find_map(|resource| {
            let (limit, reserve) = (limit.of(resource)?, reserve.of(resource));
            let asked = account.lent.of(resource);
            let short = Shortfall { resource, limit, reserve, spent: 0, held: 0, lent: 0, asked };
            (asked > limit.saturating_sub(reserve)).then_some(short)
        })
    }

    fn depth(&self, at: AccountIx) -> usize {
        std::iter::successors(Some(at), |ix| self.account(*ix).parent).count()
    }

    /// Shuts an account: it and everything below take no new hold.
    pub fn shut(&mut self, at: AccountIx) {
        self.account_mut(at).shut = true;
    }

    /// What a new account below `at` could use at most: the least of what every account up the chain has left,
    /// running holds not counted, because they return.
    #[must_use]
    pub fn left_below(&self, at: AccountIx) -> Ceilings {
        self.least(at, |_, account| account.limit_below().minus(&account.spent).minus(&account.lent))
    }

    /// The terms of an account below `at` that was given only these ceilings. Of cost and tokens the rest is what is
    /// left at this moment; of what is counted it is the ceiling of `at`. Both are marked as inherited.
    #[must_use]
    pub fn terms_below(&self, at: AccountIx, given: Ceilings) -> Terms {
        let (left, above) = (self.left_below(at), self.account(at).terms.limit);
        let mut terms = Terms::plain(given);
        for resource in Resource::ALL.into_iter().filter(|resource| given.of(*resource).is_none()) {
            let taken = if resource.stops_all() { left.of(resource) } else { above.of(resource) };
            if let Some(amount) = taken {
                terms.limit = terms.limit.with(resource, amount);
                terms.inherited = terms.inherited.with(resource);
            }
        }
        terms
    }

    /// What `at` itself could use at most, running holds not counted.
    #[must_use]
    pub fn left(&self, at: AccountIx) -> Ceilings {
        self.least(at, |ix, account| {
            let ceiling = if ix == at { *account.terms.limit.amounts() } else { account.limit_below() };
            ceiling.minus(&account.spent).minus(&account.lent)
        })
    }

    /// What `at` can use at this moment, running holds counted.
    #[must_use]
    pub fn remaining(&self, at: AccountIx) -> Ceilings {
        self.least(at, |ix, account| {
            let ceiling = if ix == at { *account.terms.limit.amounts() } else { account.limit_below() };
            ceiling.minus(&account.spent).minus(&account.lent).minus(&account.held)
        })
    }

    /// The first account up the chain, `at` included, that leaves nothing of a resource an agent cannot do without.
    #[must_use]
    pub fn exhausted_below(&self, at: AccountIx) -> Option<(AccountIx, Shortfall)> {
        let least = Amounts::cost(1).with(Resource::Tokens, 1).with(Resource::Steps, 1);
        match self.fit_below(at, &least) {
            // Nothing in particular was asked, only whether there is anything.
            Fit::Never(ix, short) => Some((ix, Shortfall { asked: 0, ..short })),
            Fit::Yes | Fit::Wait(..) | Fit::Shut(_) => None,
        }
    }

    fn least(&self, at: AccountIx, of: impl Fn(AccountIx, &Account) -> Amounts) -> Ceilings {
        let mut least = *Ceilings::NONE.amounts();
        let mut covered = ResourceSet::EMPTY;
        let mut next = Some(at);
        while let Some(ix) = next {
            let account = self.account(ix);
            let here = of(ix, account);
            for r in Resource::ALL.into_iter().filter(|r| !covered.has(*r)) {
                // An account without a ceiling says nothing.
                if account.terms.limit.of(r).is_some() {
                    least = least.with(r, least.of(r).min(here.of(r)));
                }
            }
            covered = covered.union(account.terms.lends);
            next = account.parent;
        }
        Ceilings::from_amounts(least)
    }

    /// The ceilings of `ix` that rise when those of `at` do.
    fn follows(&self, ix: AccountIx, at: AccountIx) -> ResourceSet {
        let mut set: ResourceSet = Resource::ALL.into_iter().collect();
        let mut here = ix;
        while here != at {
            let account = self.account(here);
            let inherited = account.terms.inherited;
            set = set.iter().filter(|r| inherited.has(*r)).collect();
            match account.parent {
                Some(parent) if !set.is_empty() => here = parent,
                _ => return ResourceSet::EMPTY,
            }
        }
        set
    }

    /// From `at` to the root, with what still has to move: an account that lends covers its ancestors.
    #[inline]
    pub(super) fn walk(
        &mut self,
        at: AccountIx,
        amounts: Amounts,
        mut visit: impl FnMut(&mut Account, &Amounts),
    ) {
        let mut left = amounts;
        let mut next = Some(at);
        while let Some(ix) = next {
            let account = self.account_mut(ix);
            visit(account, &left);
            if !account.terms.lends.is_empty() {
                left = left.without(account.terms.lends);
            }
            next = account.parent;
        }
    }

    /// Changes what the accounts above `at` keep lent.
    fn shift_above(&mut self, at: AccountIx, shift: Shift) {
        let mut shift = shift;
        let mut next = self.account(at).parent;
        while let Some(ix) = next.filter(|_| !shift.is_zero()) {
            let account = self.account_mut(ix);
            let claim = account.claim();
            shift.apply(&mut account.lent);
            shift = shift.above(account.terms.lends, &claim, &account.claim());
            next = account.parent;
        }
    }

    #[inline]
    pub(super) fn account_mut(&mut self, ix: AccountIx) -> &mut Account {
        &mut self.accounts[ix.0 as usize]
    }
}

/// How the amounts change that an account keeps lent above it.
#[derive(Clone, Copy, Default)]
struct Shift {
    more: Amounts,
    less: Amounts,
}

impl Shift {
    fn is_zero(&self) -> bool {
        self.more.is_zero() && self.less.is_zero()
    }

    fn apply(&self, lent: &mut Seldom) {
        lent.add(&self.more);
        lent.take_away(&self.less);
    }

    /// What the accounts above see: of what this one lends, the change of its own claim; the rest as it came.
    fn above(&self, lends: ResourceSet, before: &Amounts, after: &Amounts) -> Self {
        Self {
            more: self.more.without(lends).plus(&after.minus(before)),
            less: self.less.without(lends).plus(&before.minus(after)),
        }
    }

    /// By how much an account grows that books `actual` and shifts this.
    fn growth(&self, actual: &Amounts) -> Amounts {
        actual.plus(&self.more).minus(&self.less)
    }
}
