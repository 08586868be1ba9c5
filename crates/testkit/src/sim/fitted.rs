//! The laws of fitted output caps, for calls of outside programs under `on_low: shrink`. These checks find what a call
//! needs to start, and its share, by trying caps against the ledger.

use spinney_kernel::budget::{Amounts, Ceilings, Fit, Resource, Shortfall};
use spinney_kernel::definition::OnLow;
use spinney_kernel::primitives::{AgentId, CallId, ModelName, limit};
use spinney_kernel::record::{ModelCall, WaitReason, Work};
use spinney_kernel::world::{Call, CallStage, World};

use super::law::{Law, hold};
use super::start::dearest;

/// The model call whose cap is fitted, if it is one.
fn fitted<'w>(world: &'w World, call: &'w Call) -> Option<&'w ModelCall> {
    let Work::Model(work) = &call.work else { return None };
    let shrinks = world.agents().agent(call.agent).terms.on_low == OnLow::Shrink;
    (work.outside.is_some() && shrinks && world.rules() >= 6).then_some(work)
}

fn amounts(world: &World, work: &ModelCall, output_cap: u64) -> Amounts {
    let cost = world.definition().price(&work.model).map_or(0, |price| dearest(price, work, output_cap));
    Amounts::cost(cost).with(Resource::Tokens, work.input_tokens.saturating_add(output_cap))
}

/// The largest cap up to `most` with which the call fits into `left`, by binary search.
fn output_within(world: &World, work: &ModelCall, left: Ceilings, most: u64) -> u64 {
    let fits = |output_cap: u64| {
        let ask = amounts(world, work, output_cap);
        [Resource::Cost, Resource::Tokens]
            .into_iter()
            .all(|resource| left.get(resource).is_none_or(|left| ask.get(resource) <= left))
    };
    let (mut low, mut high) = (0, most.saturating_add(1));
    while high - low > 1 {
        let middle = low.midpoint(high);
        if fits(middle) { low = middle } else { high = middle }
    }
    low
}

/// The smallest cap with which the call may start.
fn least(world: &World, call: &Call, work: &ModelCall) -> u64 {
    let left = world.ledger().left(world.agents().agent(call.agent).account);
    let most = work.output_cap.min(limit::OUTPUT_TOKENS_FITTED);
    let asked_min = work.outside.as_ref().map_or(0, |outside| outside.output_cap_min);
    let found = output_within(world, work, left, most);
    if found < most && found >= limit::OUTPUT_TOKENS_SHRUNK.max(asked_min) { found } else { most }
}

/// What it needs to start, if its cap is fitted.
pub(super) fn ask(world: &World, call: &Call) -> Option<Amounts> {
    let work = fitted(world, call)?;
    let retries = u64::from(call.is_retry());
    let ask = amounts(world, work, least(world, call, work));
    Some(ask.with(Resource::Steps, 1).with(Resource::Retries, retries))
}

/// What a model call needs to start.
pub(super) fn needed(world: &World, call: &Call) -> Amounts {
    let Work::Model(work) = &call.work else { return Amounts::ZERO };
    let retries = u64::from(call.is_retry());
    let whole =
        || amounts(world, work, work.output_cap).with(Resource::Steps, 1).with(Resource::Retries, retries);
    ask(world, call).unwrap_or_else(whole)
}

/// Half of what is free, divided among this call and the waiting calls: once with the whole line ahead of it, once with
/// none of it.
fn shares(world: &World, id: CallId, call: &Call, work: &ModelCall) -> [u64; 2] {
    let waits =
        |call: &Call| matches!(call.stage, CallStage::Waiting(WaitReason::Budget { .. } | WaitReason::Slot));
    let waiting = world.calls().all().filter(|(other, call)| *other != id && waits(call)).count() as u64;
    let at = world.agents().agent(call.agent).account;
    [world.ledger().free(at), world.ledger().remaining(at)]
        .map(|free| output_within(world, work, free, u64::MAX / 4) / 2 / (1 + waiting))
}

/// A call starts with no more than its share, unless that is less than the smallest cap.
pub(super) fn judge_start(world: &World, id: CallId, call: &Call) -> Law {
    let Some(work) = fitted(world, call) else { return Ok(()) };
    let [_, share] = shares(world, id, call, work);
    let most = share.max(least(world, call, work));
    hold(work.output_cap <= most, || format!("{id} starts with {} of {most} tokens", work.output_cap))
}

/// A cap is lowered to the call's share, and not further.
pub(super) fn judge_switch(world: &World, id: CallId, model: &ModelName, cap: u64) -> Law {
    let Some(call) = world.call(id) else { return Err(format!("{id} was switched and is not open")) };
    let Some(work) = fitted(world, call).filter(|work| work.model == *model) else { return Ok(()) };
    let (least, [low, high]) = (least(world, call, work), shares(world, id, call, work));
    hold((low.max(least)..=high.max(least)).contains(&cap) && cap < work.output_cap, || {
        format!("{id} gets {cap} of {}: its share is {low} to {high}, and {least} at least", work.output_cap)
    })
}

/// Raising every ceiling that a halt names by what is missing there is enough for its call. What is lent needs room above,
/// which the raise itself checks.
pub(super) fn judge_halt(world: &World, id: CallId, lacks: &[(&AgentId, &Shortfall)]) -> Law {
    let Some(call) = world.call(id).filter(|_| world.rules() >= 6) else { return Ok(()) };
    let Work::Model(work) = &call.work else { return Ok(()) };
    let at = world.agents().agent(call.agent).account;
    let mut above = std::iter::successors(Some(at), |ix| world.ledger().account(*ix).parent);
    if work.outside.is_none() || above.any(|ix| !world.ledger().account(ix).terms.lends.is_empty()) {
        return Ok(());
    }
    let retries = u64::from(call.is_retry());
    let whole =
        amounts(world, work, work.output_cap).with(Resource::Steps, 1).with(Resource::Retries, retries);
    let ask = ask(world, call).unwrap_or(whole);
    let mut ledger = world.ledger().clone();
    for (account, short) in lacks {
        let Some(ix) = world.agents().find(account) else { return Err(format!("{account} does not exist")) };
        let add = Amounts::ZERO.with(short.resource, short.missing());
        ledger.raise(world.agents().agent(ix).account, &add);
    }
    let fit = ledger.fit(at, &ask);
    hold(!matches!(fit, Fit::Never(..)), || {
        format!("the raises that the halt of {id} names are not enough: {fit:?}")
    })
}

/// A tree is not halted at a call that could start with a smaller cap.
pub(super) fn check_halt(world: &World) -> Law {
    let Some(call) = world.halted().and_then(|halt| world.call(halt.call)) else { return Ok(()) };
    let Some(ask) = ask(world, call) else { return Ok(()) };
    let fit = world.ledger().fit(world.agents().agent(call.agent).account, &ask);
    hold(matches!(fit, Fit::Never(..) | Fit::Shut(_)), || {
        format!(
            "the tree is halted at a call that could start or wait: {fit:?}, {ask:?}, {:?}",
            world.halted()
        )
    })
}
