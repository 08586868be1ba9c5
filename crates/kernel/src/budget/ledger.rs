//! The ledger: the accounts of one tree, linked to their parents, and the walks up the chain that move amounts.
//!
//! Every walk is a loop, so a chain may be as deep as memory allows. [`Ledger::fit`] decides whether a move is
//! allowed; the moves themselves cannot fail.

use std::collections::BTreeSet;

use super::{Account, Amounts, Ceilings, Fit, Line, Resource, ResourceSet, Shortfall, SparseAmounts, Terms};

/// The index of an account in its ledger. Indices of closed accounts are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountIx(u32);

impl AccountIx {
    /// The index; the lowest free one is used first.
    #[must_use]
    pub const fn place(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    accounts: Vec<Account>,
    free: BTreeSet<u32>,
    pub(super) line: Line,
}

impl Ledger {
    /// Opens an account below `parent`. From now on every ancestor holds what it lends.
    pub fn open(&mut self, parent: Option<AccountIx>, terms: Terms) -> AccountIx {
        let account = Account::open(parent, terms);
        let lent = account.claim();
        let ix = match self.free.pop_first() {
            Some(ix) => {
                self.accounts[ix as usize] = account;
                AccountIx(ix)
            }
            None => {
                // Grow by an eighth: doubling would waste as much memory as a large ledger uses.
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

    /// Closes an account that has no holds and no accounts below. Unused lent amounts return. Returns what was spent.
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

    /// Frees the memory of closed accounts at the end.
    fn shrink(&mut self) {
        while self.free.last().is_some_and(|last| *last as usize + 1 == self.accounts.len()) {
            self.free.pop_last();
            self.accounts.pop();
        }
        if self.accounts.capacity() > 64 + self.accounts.len() * 4 {
            self.accounts.shrink_to(self.accounts.len() * 2);
        }
    }

    #[must_use]
    #[inline]
    pub fn account(&self, ix: AccountIx) -> &Account {
        &self.accounts[ix.0 as usize]
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.accounts.len() - self.free.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Holds `ask` at `at` and at every account above it.
    pub fn hold(&mut self, at: AccountIx, ask: &Amounts) {
        self.walk(at, *ask, |account, ask| account.held.add(ask));
    }

    /// Ends a hold: books the actual usage and returns the rest. Returns the usage beyond the hold.
    pub fn settle(&mut self, at: AccountIx, held: &Amounts, actual: &Amounts) -> Amounts {
        let beyond = actual.minus(held);
        let mut left = *held;
        let mut lent = Shift::default();
        // How much the total grows. It changes only above an account that lends.
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

    /// Marks a part of the spending of `at` and of every account above it as presumed.
    pub fn presume(&mut self, at: AccountIx, presumed: &Amounts) {
        let mut next = Some(at).filter(|_| !presumed.is_zero());
        while let Some(ix) = next {
            let account = self.account_mut(ix);
            account.presumed.add(presumed);
            next = account.parent;
        }
    }

    /// Books spending that happened outside. Never refused; what exceeds the free amount becomes overrun.
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

    /// Raises the ceilings of `at` and those that accounts below inherited from them.
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

    /// Sets ceilings of `at`; those that are not named stay. One that rises also raises the ceilings below that mirror it;
    /// one that falls or is new binds everything below from here.
    pub fn set_ceilings(&mut self, at: AccountIx, limit: &Ceilings) {
        let mut add = Amounts::ZERO;
        for resource in limit.bounded().iter() {
            let terms = &mut self.account_mut(at).terms;
            let (old, new) = (terms.limit.get(resource), limit.get(resource).unwrap_or_default());
            match old {
                Some(old) if old < new => add = add.with(resource, new - old),
                Some(_) | None => {
                    let before = *terms.limit.amounts();
                    terms.limit = terms.limit.with(resource, new);
                    if old.is_some() && !terms.reserve_fixed {
                        // A share stays one: all of a small ceiling would stay all of it when that is raised.
                        terms.reserve = terms.reserve.grown(&before, terms.limit.amounts());
                    }
                    terms.reserve = terms.reserve.with(resource, terms.reserve.get(resource).min(new));
                }
            }
        }
        self.raise(at, &add);
    }

    /// How much more would be lent if the ceilings of `at` were raised.
    #[must_use]
    pub fn lent_by_raise(&self, at: AccountIx, add: &Amounts) -> Amounts {
        let account = self.account(at);
        let raised = account.terms.limit.amounts().plus(add).minus(&account.spent).only(account.terms.lends);
        raised.minus(&account.claim())
    }

    /// Resets every account: nothing is spent, and lent amounts are lent in full again. The root gets new terms, the
    /// others keep theirs. Holds stay.
    pub(crate) fn renew(&mut self, root: AccountIx, terms: Terms) {
        for account in &mut self.accounts {
            account.spent = Amounts::ZERO;
            (account.overrun, account.presumed, account.lent) = Default::default();
        }
        self.account_mut(root).terms = terms;
        let all = (0..self.accounts.len()).filter_map(|ix| u32::try_from(ix).ok()).map(AccountIx);
        let mut lends: Vec<(usize, AccountIx)> = all
            .filter(|ix| !self.account(*ix).terms.lends.is_empty())
            .map(|ix| (self.depth(ix), ix))
            .collect();
        // In the order of opening: ancestors first.
        lends.sort_unstable();
        for (_, ix) in lends {
            let more = self.account(ix).claim();
            self.shift_above(ix, Shift { more, less: Amounts::ZERO });
        }
    }

    /// The first resource that an account has lent beyond its ceiling, with the numbers.
    pub(crate) fn overlent(&self, at: AccountIx) -> Option<Shortfall> {
        let account = self.account(at);
        let (limit, reserve) = (account.terms.limit, account.terms.reserve);
        Resource::ALL.into_iter().find_map(|resource| {
            let (limit, reserve) = (limit.get(resource)?, reserve.get(resource));
            let asked = account.lent.get(resource);
            let short = Shortfall { resource, limit, reserve, spent: 0, held: 0, lent: 0, asked };
            (asked > limit.saturating_sub(reserve)).then_some(short)
        })
    }

    fn depth(&self, at: AccountIx) -> usize {
        std::iter::successors(Some(at), |ix| self.account(*ix).parent).count()
    }

    /// Shuts an account: neither it nor anything below takes a new hold.
    pub fn shut(&mut self, at: AccountIx) {
        self.account_mut(at).shut = true;
    }

    /// The most that a new account below `at` could use: the minimum over the chain. Running holds do not count,
    /// because they return.
    #[must_use]
    pub fn left_below(&self, at: AccountIx) -> Ceilings {
        self.least(at, |_, account| account.limit_below().minus(&account.spent).minus(&account.lent))
    }

    /// The terms of an account below `at` that was given only `given`. Missing cost and token ceilings become what is
    /// left now; missing counts become the ceilings of `at`. Both are marked as inherited.
    #[must_use]
    pub fn terms_below(&self, at: AccountIx, given: Ceilings) -> Terms {
        let (left, above) = (self.left_below(at), self.account(at).terms.limit);
        let mut terms = Terms::plain(given);
        for resource in Resource::ALL.into_iter().filter(|resource| given.get(*resource).is_none()) {
            let taken = if resource.stops_all() { left.get(resource) } else { above.get(resource) };
            if let Some(amount) = taken {
                terms.limit = terms.limit.with(resource, amount);
                terms.inherited = terms.inherited.with(resource);
            }
        }
        terms
    }

    /// The most that `at` itself could use, not counting running holds.
    #[must_use]
    pub fn left(&self, at: AccountIx) -> Ceilings {
        self.least(at, |ix, account| {
            let ceiling = if ix == at { *account.terms.limit.amounts() } else { account.limit_below() };
            ceiling.minus(&account.spent).minus(&account.lent)
        })
    }

    /// What `at` can use now, counting running holds.
    #[must_use]
    pub fn remaining(&self, at: AccountIx) -> Ceilings {
        self.free_behind(at, |_, _| Amounts::ZERO)
    }

    /// What `at` can use now, after the requests ahead of it in line at an account.
    pub(super) fn free_behind(
        &self,
        at: AccountIx,
        ahead: impl Fn(AccountIx, &Account) -> Amounts,
    ) -> Ceilings {
        self.least(at, |ix, account| {
            let ceiling = if ix == at { *account.terms.limit.amounts() } else { account.limit_below() };
            let taken = account.spent.plus(&account.lent).plus(&account.held).plus(&ahead(ix, account));
            ceiling.minus(&taken)
        })
    }

    /// What `at` can use now, after all requests in line.
    #[must_use]
    pub fn free(&self, at: AccountIx) -> Ceilings {
        self.free_behind(at, |_, account| *account.line)
    }

    /// The first account up the chain, including `at`, that has run out of a resource that stops all work.
    #[must_use]
    pub fn exhausted_below(&self, at: AccountIx) -> Option<(AccountIx, Shortfall)> {
        let least = Amounts::cost(1).with(Resource::Tokens, 1).with(Resource::Steps, 1);
        match self.fit_below(at, &least) {
            // No particular amount was asked for.
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
                if account.terms.limit.get(r).is_some() {
                    least = least.with(r, least.get(r).min(here.get(r)));
                }
            }
            covered = covered.union(account.terms.lends);
            next = account.parent;
        }
        Ceilings::from_amounts(least)
    }

    /// The ceilings of `ix` that rise when those of `at` rise.
    pub(super) fn follows(&self, ix: AccountIx, at: AccountIx) -> ResourceSet {
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

    /// Iterates from `at` to the root with the amounts still to move: an account that lends covers its ancestors.
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

    /// Changes the lent amounts of the accounts above `at`.
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

/// A change of the amounts that an account's ancestors keep lent for it.
#[derive(Clone, Copy, Default)]
struct Shift {
    more: Amounts,
    less: Amounts,
}

impl Shift {
    fn is_zero(&self) -> bool {
        self.more.is_zero() && self.less.is_zero()
    }

    fn apply(&self, lent: &mut SparseAmounts) {
        lent.add(&self.more);
        lent.take_away(&self.less);
    }

    /// The change that the accounts above see: for lent resources, the change of this account's claim; the rest
    /// unchanged.
    fn above(&self, lends: ResourceSet, before: &Amounts, after: &Amounts) -> Self {
        Self {
            more: self.more.without(lends).plus(&after.minus(before)),
            less: self.less.without(lends).plus(&before.minus(after)),
        }
    }

    /// How much an account grows that books `actual` and applies this shift.
    fn growth(&self, actual: &Amounts) -> Amounts {
        actual.plus(&self.more).minus(&self.less)
    }
}
