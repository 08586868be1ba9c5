//! Prompt caches: of several calls that begin with the same long prefix one goes first, and the others follow when the
//! provider has cached it. No call waits longer than the model allows.

use crate::context::{self, Goal};
use crate::primitives::{CallId, Time, TokenCount, limit};
use crate::record::{WaitReason, Work};
use crate::rules::Draft;
use crate::world::{Call, CallStage, Prefix};

/// What a call does about the cache when it could start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CacheRole {
    /// Its prefix is cached, or there is nothing to gain.
    Alone,
    /// It fills the cache.
    Leads,
    /// Another call fills the cache; it waits until then at most.
    Waits(Time),
}

pub(super) fn role(draft: &Draft<'_>, id: CallId) -> CacheRole {
    let Some(call) = draft.call(id) else { return CacheRole::Alone };
    let Some(wait_ms) = wait_ms(draft, call) else { return CacheRole::Alone };
    let now = draft.now();
    let Prefix { leader, cached_until } = draft.prefix(id).copied().unwrap_or_default();
    // Refreshed early, so a busy prefix never expires.
    let is_cached = |margin_ms| cached_until.is_some_and(|until| until > now.after_ms(margin_ms));
    match leader {
        Some(_) if is_cached(0) => CacheRole::Alone,
        Some((_, since)) => {
            let until = since.after_ms(wait_ms);
            if until > now && !has_waited(draft, call) { CacheRole::Waits(until) } else { CacheRole::Alone }
        }
        None if is_cached(limit::CACHE_KEPT_MS / 2) => CacheRole::Alone,
        None => CacheRole::Leads,
    }
}

/// How long a call may wait for a cached prefix, if that pays.
fn wait_ms(draft: &Draft<'_>, call: &Call) -> Option<u64> {
    let Work::Model(work) = &call.work else { return None };
    if work.summary.is_some() || work.wrap_up.is_some() || work.outside.is_some() {
        return None; // Their prompts begin otherwise.
    }
    let model = draft.definition().models.get(&work.model)?;
    let wait_ms = model.cache_wait_ms.unwrap_or(limit::CACHE_WAIT_MS);
    if draft.rules() < 5 || wait_ms == 0 {
        return None;
    }
    let rates = model.price.as_ref()?.rates_at(draft.now(), work.input_tokens);
    let (turns, caps) = (draft.turns_of(call.agent)?, &draft.agent(call.agent).terms.caps);
    let no_goal = Goal { text: "", tokens: Some(TokenCount::ZERO), schema: None };
    let shared_tokens = context::first_tokens(draft.definition(), caps, turns, no_goal);
    (rates.saves_by_cache() && shared_tokens.estimate() >= limit::CACHED_TOKENS_MIN).then_some(wait_ms)
}

/// Whether its time to wait is over, whichever call fills the cache now.
fn has_waited(draft: &Draft<'_>, call: &Call) -> bool {
    let alarm = call.timer.and_then(|timer| draft.subject(timer)).map(|(at, _)| at);
    call.stage == CallStage::Waiting(WaitReason::Cache) && alarm.is_some_and(|at| at <= draft.now())
}
