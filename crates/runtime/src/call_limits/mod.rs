//! Limits that all trees of a process share: one circuit breaker per provider, one rate limit per model and key, and
//! the limits that providers announce; and the rates of roles and trees. A call asks here just before it is sent. The
//! answer is a pass, or how long to wait.

mod announced;
mod limiter;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spinney_kernel::budget::Used;
use spinney_kernel::definition::RateLimit;
use spinney_kernel::port::model::{Announced, AttemptError, Model, ModelAnswer};
use spinney_kernel::primitives::{CallId, FaultKind, ModelName, RoleName, TreeId};
use spinney_kernel::record::HeldBy;

use crate::breaker::{Breaker, CallEnd, Pass, Tripped};
use crate::clock::Clock;
use announced::{Left, Sent};
use limiter::{Asking, Limiter, Taken};

/// How long a call waits while another one finds out whether its provider works again.
const PROBE_WAIT_MS: u64 = 10_000;

/// A model call that is about to be sent.
pub(crate) struct Sending<'a> {
    pub(crate) tree: TreeId,
    pub(crate) call: CallId,
    pub(crate) role: &'a RoleName,
    pub(crate) model: &'a ModelName,
    /// Upper bounds.
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) rates: CallRates,
}

/// The rates of a tree file that apply to one call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallRates {
    pub(crate) model: RateLimit,
    pub(crate) role: RateLimit,
    pub(crate) tree: RateLimit,
}

/// Why a call must wait, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotYet {
    pub(crate) by: HeldBy,
    pub(crate) wait_ms: u64,
}

#[derive(Default)]
pub(crate) struct CallLimits {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By provider.
    breakers: BTreeMap<String, Breaker>,
    /// By model and key.
    quotas: BTreeMap<String, Quota>,
    scoped: BTreeMap<Scope, Limiter>,
}

/// A rate within one tree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    Tree(TreeId),
    Role(TreeId, RoleName),
}

impl Scope {
    const fn tree(&self) -> TreeId {
        match self {
            Self::Tree(tree) | Self::Role(tree, _) => *tree,
        }
    }
}

/// What one key may send to one model.
#[derive(Default)]
struct Quota {
    limiter: Limiter,
    left: Left,
    /// Everything that was ever sent.
    sent: Sent,
    /// The provider asked for a pause until then.
    paused_until_ms: u64,
}

impl CallLimits {
    /// Lets a call pass, or says how long it must wait. A call that passes counts at once.
    pub(crate) fn admit(
        self: &Arc<Self>,
        sending: &Sending<'_>,
        driver: &Arc<dyn Model>,
        clock: &Arc<dyn Clock>,
    ) -> Result<CallPass, NotYet> {
        let now_ms = clock.now_ms();
        let mut state = self.state();
        state.check(sending, driver.as_ref(), now_ms)?;
        let through = match driver.service() {
            Some(service) => Some(state.pass_breaker(service, now_ms)?),
            None => None,
        };
        let taken = state.take(sending, driver.as_ref(), now_ms);
        let (limits, driver, clock) = (Arc::clone(self), Arc::clone(driver), Arc::clone(clock));
        Ok(CallPass { limits, driver, clock, model: sending.model.clone(), through, taken })
    }

    /// Removes what is kept for a tree that no longer runs.
    pub(crate) fn forget(&self, tree: TreeId) {
        let mut state = self.state();
        state.scoped.retain(|scope, _| scope.tree() != tree);
        state.quotas.values_mut().for_each(|quota| quota.limiter.forget(tree));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Asks every rate that applies. The longest wait is the answer, because an earlier one would be in vain.
    fn check(&mut self, sending: &Sending<'_>, driver: &dyn Model, now_ms: u64) -> Result<(), NotYet> {
        let asking = sending.asking();
        let mut longest: Option<NotYet> = None;
        let mut note = |by, wait_ms| {
            if wait_ms > longest.map_or(0, |longest| longest.wait_ms) {
                longest = Some(NotYet { by, wait_ms });
            }
        };
        if let Some(quota) = self.quotas.get(quota_of(sending, driver)) {
            let by_provider = quota.left.wait_ms(sending.sent(), now_ms);
            note(HeldBy::Provider, by_provider.max(quota.paused_until_ms.saturating_sub(now_ms)));
        }
        let model = sending.rates.model;
        if !model.is_none() {
            let limiter = &mut self.quota(sending, driver).limiter;
            note(HeldBy::ModelRate, limiter.ask(asking, model, now_ms).err().unwrap_or(0));
        }
        for (by, rate, scope) in sending.scoped() {
            let limiter = self.scoped.entry(scope).or_default();
            note(by, limiter.ask(asking, rate, now_ms).err().unwrap_or(0));
        }
        longest.map_or(Ok(()), Err)
    }

    fn pass_breaker(&mut self, service: &str, now_ms: u64) -> Result<Pass, NotYet> {
        let Some(breaker) = self.breakers.get_mut(service) else { return Ok(Pass::Plain) };
        breaker.admit(now_ms).map_err(|tripped| {
            let wait_ms = match tripped {
                Tripped::Open { until_ms } => until_ms.saturating_sub(now_ms).max(1),
                Tripped::Probing => PROBE_WAIT_MS,
            };
            NotYet { by: HeldBy::Breaker, wait_ms }
        })
    }

    fn take(&mut self, sending: &Sending<'_>, driver: &dyn Model, now_ms: u64) -> TakenLimits {
        let asking = sending.asking();
        let model = sending.rates.model;
        let quota = self.quota(sending, driver);
        let limited = (!model.is_none()).then(|| quota.limiter.take(asking, model, now_ms));
        quota.left.take(sending.sent());
        quota.sent = quota.sent.plus(sending.sent());
        let sent = quota.sent;
        let mut take = |(_, rate, scope): (HeldBy, RateLimit, Scope)| {
            let taken = self.scoped.entry(scope.clone()).or_default().take(asking, rate, now_ms);
            (scope, taken)
        };
        let scoped = sending.scoped().map(&mut take).collect();
        TakenLimits { limited, sent, scoped }
    }

    fn quota(&mut self, sending: &Sending<'_>, driver: &dyn Model) -> &mut Quota {
        let name = quota_of(sending, driver);
        if !self.quotas.contains_key(name) {
            self.quotas.insert(name.to_owned(), Quota::default());
        }
        match self.quotas.get_mut(name) {
            Some(quota) => quota,
            None => unreachable!("it was inserted"),
        }
    }
}

/// Models without their own quota are limited by their name.
fn quota_of<'a>(sending: &Sending<'a>, driver: &'a dyn Model) -> &'a str {
    driver.quota().unwrap_or(sending.model.as_str())
}

impl Sending<'_> {
    /// The rates within its tree that apply to it.
    fn scoped(&self) -> impl Iterator<Item = (HeldBy, RateLimit, Scope)> {
        let CallRates { role, tree, .. } = self.rates;
        let of_role = || (HeldBy::RoleRate, role, Scope::Role(self.tree, self.role.clone()));
        let of_tree = || (HeldBy::TreeRate, tree, Scope::Tree(self.tree));
        (!role.is_none()).then(of_role).into_iter().chain((!tree.is_none()).then(of_tree))
    }

    const fn asking(&self) -> Asking {
        let tokens = self.input_tokens.saturating_add(self.output_tokens);
        Asking { tree: self.tree, call: self.call, tokens }
    }

    const fn sent(&self) -> Sent {
        Sent { requests: 1, input_tokens: self.input_tokens, output_tokens: self.output_tokens }
    }
}

/// What a call took of each limit.
struct TakenLimits {
    limited: Option<Taken>,
    /// Everything that was ever sent with its quota, this call included.
    sent: Sent,
    scoped: Vec<(Scope, Taken)>,
}

/// Permission to send one call. It returns how the call ended; dropped, it says nothing about the provider.
pub(crate) struct CallPass {
    limits: Arc<CallLimits>,
    driver: Arc<dyn Model>,
    clock: Arc<dyn Clock>,
    model: ModelName,
    through: Option<Pass>,
    taken: TakenLimits,
}

impl CallPass {
    /// Learns from how the call ended.
    pub(crate) fn end(mut self, ended: &Result<ModelAnswer, AttemptError>) {
        let now_ms = self.clock.now_ms();
        let (used, end, pause_ms) = match ended {
            Ok(answer) => (answer.used, CallEnd::Succeeded, None),
            Err(missed) => {
                let end =
                    if is_down(missed.fault.kind) { CallEnd::Failed { now_ms } } else { CallEnd::Unsaid };
                let pause_ms = missed.fault.retry_after_ms;
                (missed.used, end, pause_ms.filter(|_| missed.fault.kind == FaultKind::RateLimit))
            }
        };
        let announced = self.driver.announced();
        let limits = Arc::clone(&self.limits);
        let mut state = limits.state();
        self.return_pass(&mut state, end);
        self.settle(&mut state, used);
        self.learn(&mut state, announced, pause_ms, now_ms);
    }

    fn return_pass(&mut self, state: &mut State, end: CallEnd) {
        if let (Some(pass), Some(service)) = (self.through.take(), self.driver.service()) {
            match state.breakers.get_mut(service) {
                Some(breaker) => breaker.end(pass, end),
                // A provider that never failed needs no breaker.
                None if matches!(end, CallEnd::Failed { .. }) => {
                    let mut breaker = Breaker::new();
                    breaker.end(pass, end);
                    state.breakers.insert(service.to_owned(), breaker);
                }
                None => {}
            }
        }
    }

    fn settle(&self, state: &mut State, used: Used) {
        let Used::Tokens(usage) = used else { return };
        let tokens = usage.tokens();
        if let (Some(taken), Some(quota)) = (self.taken.limited, state.quotas.get_mut(self.quota())) {
            quota.limiter.settle(taken, tokens);
        }
        for (scope, taken) in &self.taken.scoped {
            if let Some(limiter) = state.scoped.get_mut(scope) {
                limiter.settle(*taken, tokens);
            }
        }
    }

    fn learn(&self, state: &mut State, announced: Announced, pause_ms: Option<u64>, now_ms: u64) {
        let Some(quota) = state.quotas.get_mut(self.quota()) else { return };
        quota.left.learn(announced, quota.sent.minus(self.taken.sent), now_ms);
        if let Some(ms) = pause_ms {
            quota.paused_until_ms = quota.paused_until_ms.max(now_ms.saturating_add(ms));
        }
    }

    fn quota(&self) -> &str {
        self.driver.quota().unwrap_or(self.model.as_str())
    }
}

impl Drop for CallPass {
    /// A call that was stopped or never made frees the slot of a probe.
    fn drop(&mut self) {
        if self.through.is_some() {
            let limits = Arc::clone(&self.limits);
            self.return_pass(&mut limits.state(), CallEnd::Unsaid);
        }
    }
}

/// Whether a fault says that the provider does not work, rather than that it refuses this call.
const fn is_down(kind: FaultKind) -> bool {
    matches!(kind, FaultKind::Server | FaultKind::Overloaded | FaultKind::Timeout | FaultKind::Cut)
}
