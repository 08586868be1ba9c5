//! Whether a requested amount fits. The only place that compares amounts with ceilings.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Account, AccountIx, Amounts, Ledger, Resource, ResourceSet};

/// Whether an amount can be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It fits at every account up the chain.
    Yes,
    /// Not now: other holds, or earlier requests in line, block it and will clear.
    Wait(AccountIx, Shortfall),
    /// Never, unless a ceiling rises: what is spent and lent leaves too little.
    Never(AccountIx, Shortfall),
    /// An account up the chain is shut.
    Shut(AccountIx),
}

/// The numbers behind a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortfall {
    pub resource: Resource,
    pub limit: u64,
    /// The part kept for the account's own answer.
    pub reserve: u64,
    pub spent: u64,
    /// The part held by running effects.
    pub held: u64,
    /// The part lent to accounts below.
    pub lent: u64,
    pub asked: u64,
}

impl Shortfall {
    /// What could be used if every running hold returned.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.limit.saturating_sub(self.reserve).saturating_sub(self.spent).saturating_sub(self.lent)
    }

    /// The smallest raise with which the call can start, also if running calls use everything that they hold. A reserve
    /// grows with its ceiling.
    #[must_use]
    pub fn missing(&self) -> u64 {
        // A ceiling that is spent stops even what costs nothing.
        let asked = self.asked.max(1);
        let need = [self.spent, self.held, self.lent, asked].into_iter().map(u128::from).sum::<u128>();
        let whole = match self.limit.checked_sub(self.reserve) {
            Some(free) if free > 0 && self.reserve > 0 => {
                (need * u128::from(self.limit)).div_ceil(u128::from(free))
            }
            // All of it is in reserve, which does not grow.
            Some(_) | None => need + u128::from(self.reserve),
        };
        u64::try_from(whole.saturating_sub(u128::from(self.limit))).unwrap_or(u64::MAX).max(1)
    }

    /// The numbers for people, with the account that has the ceiling.
    #[must_use]
    pub fn describe(&self, account: &impl fmt::Display) -> String {
        let show = |amount| self.resource.show(amount);
        let mut text = format!("{} ceiling of `{account}`: limit {}", self.resource, show(self.limit));
        if self.reserve > 0 {
            text += &format!(" less {} in reserve", show(self.reserve));
        }
        text += &format!(", spent {}, held {}", show(self.spent), show(self.held));
        if self.lent > 0 {
            text += &format!(", lent {}", show(self.lent));
        }
        if self.asked > 0 {
            text += &format!(", asked {}", show(self.asked));
        }
        text
    }
}

/// Who asks: an account's own work may use its reserve, work below it may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    Own,
    Below,
}

impl Ledger {
    /// Whether `ask` can be held at `at` and every account above, behind all requests already in line.
    #[must_use]
    pub fn fit(&self, at: AccountIx, ask: &Amounts) -> Fit {
        if self.roomy_up(at, ask) { Fit::Yes } else { self.fit_exact(at, ask) }
    }

    #[cold]
    fn fit_exact(&self, at: AccountIx, ask: &Amounts) -> Fit {
        self.fit_behind(at, ask, Asker::Own, |_, account| *account.line)
    }

    /// Fast path of [`fit`](Self::fit): true if every account up the chain has room to spare. False decides nothing.
    fn roomy_up(&self, at: AccountIx, ask: &Amounts) -> bool {
        let mut next = Some(at);
        while let Some(ix) = next {
            let account = self.account(ix);
            if account.shut || !roomy(account, ask) {
                return false;
            }
            next = account.parent;
        }
        true
    }

    /// Whether `ask` can be lent to a new account below `at`.
    #[must_use]
    pub fn fit_below(&self, at: AccountIx, ask: &Amounts) -> Fit {
        self.fit_behind(at, ask, Asker::Below, |_, account| *account.line)
    }

    /// The walk up the chain. `ahead` returns what earlier requests are entitled to at an account.
    #[inline]
    pub(super) fn fit_behind(
        &self,
        at: AccountIx,
        ask: &Amounts,
        asker: Asker,
        ahead: impl Fn(AccountIx, &Account) -> Amounts,
    ) -> Fit {
        let mut asker = asker;
        // An account opened with `lends` already holds its ceiling at every ancestor.
        let mut covered = ResourceSet::EMPTY;
        let mut wait = None;
        let mut never: Option<(AccountIx, Shortfall)> = None;
        let mut next = Some(at);
        while let Some(ix) = next {
            let account = self.account(ix);
            if account.shut {
                return Fit::Shut(ix);
            }
            let ceiling = match asker {
                Asker::Own => *account.terms.limit.amounts(),
                Asker::Below => account.limit_below(),
            };
            let ahead = ahead(ix, account);
            match tight(account, ask, &ceiling, &ahead, covered) {
                Tight::No => {}
                Tight::Wait(resource) => {
                    wait = wait.or_else(|| Some((ix, shortfall(account, ask, resource, asker))));
                }
                Tight::Never(resource) => {
                    // An explicit ceiling is a better reason than one that only mirrors it.
                    let mirrors =
                        never.is_some_and(|(at, short)| self.account(at).terms.inherited.has(short.resource));
                    if never.is_none() || (mirrors && !account.terms.inherited.has(resource)) {
                        never = Some((ix, shortfall(account, ask, resource, asker)));
                    }
                }
            }
            covered = covered.union(account.terms.lends);
            asker = Asker::Below;
            next = account.parent;
        }
        match (never, wait) {
            (Some((at, short)), _) => Fit::Never(at, short),
            (None, Some((at, short))) => Fit::Wait(at, short),
            (None, None) => Fit::Yes,
        }
    }
}

impl Ledger {
    /// Every ceiling of `at` and above that `ask` can never fit, resource by resource. One that only mirrors a ceiling above
    /// is left out if it rises enough with that.
    #[must_use]
    pub fn shortfalls(&self, at: AccountIx, ask: &Amounts) -> Vec<(AccountIx, Shortfall)> {
        let (mut asker, mut covered) = (Asker::Own, ResourceSet::EMPTY);
        let mut found: Vec<(AccountIx, Shortfall)> = Vec::new();
        let mut next = Some(at);
        while let Some(ix) = next {
            let account = self.account(ix);
            let ceiling = match asker {
                Asker::Own => *account.terms.limit.amounts(),
                Asker::Below => account.limit_below(),
            };
            for resource in Resource::ALL.into_iter().filter(|r| !covered.has(*r)) {
                if is_never(account, ask, &ceiling, resource) {
                    let short = shortfall(account, ask, resource, asker);
                    found.retain(|(below, other)| {
                        other.resource != resource
                            || !self.follows(*below, ix).has(resource)
                            || other.missing() > short.missing()
                    });
                    found.push((ix, short));
                }
            }
            covered = covered.union(account.terms.lends);
            asker = Asker::Below;
            next = account.parent;
        }
        found
    }
}

/// Whether everything fits without touching the reserve. Branch-free per resource.
#[inline]
fn roomy(account: &Account, ask: &Amounts) -> bool {
    let Account { terms, spent, held, lent, line, .. } = account;
    let mut ok = true;
    for r in Resource::ALL {
        let settled = spent.get(r) + terms.reserve.get(r);
        let used = settled + held.get(r) + lent.get(r) + line.get(r);
        let limit = terms.limit.amounts().get(r);
        ok &= (used + ask.get(r) <= limit) & (!r.stops_all() | (settled < limit));
    }
    ok
}

enum Tight {
    No,
    Wait(Resource),
    Never(Resource),
}

/// Finds the resource that blocks, permanent reasons first.
fn tight(
    account: &Account,
    ask: &Amounts,
    ceiling: &Amounts,
    ahead: &Amounts,
    covered: ResourceSet,
) -> Tight {
    let mut found = Tight::No;
    for r in Resource::ALL.into_iter().filter(|r| !covered.has(*r)) {
        if is_never(account, ask, ceiling, r) {
            return Tight::Never(r);
        }
        let used = account.spent.get(r) + account.lent.get(r) + account.held.get(r);
        if ask.get(r) > 0 && used + ahead.get(r) + ask.get(r) > ceiling.get(r) {
            found = Tight::Wait(r);
        }
    }
    found
}

/// Whether it does not fit even if every running hold returns.
fn is_never(account: &Account, ask: &Amounts, ceiling: &Amounts, r: Resource) -> bool {
    let (ask, ceiling, spent) = (ask.get(r), ceiling.get(r), account.spent.get(r));
    let is_exhausted = r.stops_all() && spent >= ceiling;
    is_exhausted || (ask > 0 && spent + account.lent.get(r) + ask > ceiling)
}

fn shortfall(account: &Account, ask: &Amounts, resource: Resource, asker: Asker) -> Shortfall {
    Shortfall {
        resource,
        limit: account.terms.limit.amounts().get(resource),
        reserve: if asker == Asker::Below { account.terms.reserve.get(resource) } else { 0 },
        spent: account.spent.get(resource),
        held: account.held.get(resource),
        lent: account.lent.get(resource),
        asked: ask.get(resource),
    }
}
