//! Which model, and how much of it: fallback when one fails, less when the budget is low.

use super::{Call, ModelCall, Work};
use crate::agent::AgentIx;
use crate::budget::{Amounts, Resource, Shortfall};
use crate::definition::{Model, OnLow, Unpriced};
use crate::id::{CallId, ModelName};
use crate::limit;
use crate::refusal::Refusal;
use crate::world::World;

/// The model called `name`. Refuses one that does not exist, is not allowed to this agent, or has no price while money is limited.
pub(crate) fn check_model<'w>(world: &'w World, ix: AgentIx, name: &ModelName) -> Result<&'w Model, Refusal> {
    let model = world.definition().model(name)?;
    let agent = world.agent(ix);
    agent.charter.caps.check_model(name)?;
    if model.price.is_some() || world.definition().unpriced == Unpriced::Allow {
        return Ok(model);
    }
    match world.ledger().left(agent.account).of(Resource::Cost) {
        Some(_) => Err(Refusal::Unpriced { model: name.clone() }),
        None => Ok(model),
    }
}

/// A call to a model, as far as the agent may make it and the numbers can be believed.
pub(crate) fn model_work(
    world: &World,
    ix: AgentIx,
    model: &ModelName,
    input_tokens: u64,
    output_cap: u64,
) -> Result<Work, Refusal> {
    let Model { price, output_max, .. } = check_model(world, ix, model)?;
    let output_cap = output_cap.min(output_max.unwrap_or(u64::MAX));
    let cost = price.map_or(0, |price| price.worst_case(input_tokens, output_cap));
    let tokens = input_tokens.saturating_add(output_cap);
    Amounts::cost(cost).with(Resource::Tokens, tokens).checked()?;
    Ok(Work::Model(ModelCall { model: model.clone(), input_tokens, output_cap, summary: None, left: None }))
}

/// The next model to try for a call, and the output cap there: the first fallback that it can go to.
pub(crate) fn fallback(world: &World, id: CallId) -> Option<(ModelName, u64)> {
    let call = world.call(id)?;
    let Work::Model(work) = &call.work else { return None };
    let first = tried(call).first().unwrap_or(&work.model);
    let chain = &world.definition().models.get(first)?.fallback;
    chain.iter().find_map(|name| elsewhere(world, call, work, name))
}

/// Models that were tried or passed over before the present one.
fn tried(call: &Call) -> &[ModelName] {
    call.past().map_or(&[], |past| &past.tried)
}

/// How a call goes on with another model: one that was not tried, is allowed and takes calls, within its own largest
/// output.
fn elsewhere(world: &World, call: &Call, work: &ModelCall, name: &ModelName) -> Option<(ModelName, u64)> {
    if *name == work.model || tried(call).contains(name) || world.is_broken(name) {
        return None;
    }
    let most = check_model(world, call.agent, name).ok()?.output_max.unwrap_or(u64::MAX);
    Some((name.clone(), work.output_cap.min(most)))
}

/// What the agent's `on_low` makes of a call that cannot fit: another model or a smaller output cap, or nothing.
pub(crate) fn on_low(world: &World, id: CallId, short: &Shortfall) -> Option<(ModelName, u64)> {
    let call = world.call(id)?;
    let Work::Model(work) = &call.work else { return None };
    if !short.resource.stops_all() {
        return None; // Neither a cheaper model nor a shorter answer saves a step or a retry.
    }
    match &world.agent(call.agent).charter.on_low {
        OnLow::Halt => None,
        OnLow::Shrink => {
            let cap = affordable_output(world, call.agent, work)?;
            (cap >= limit::OUTPUT_TOKENS_MIN && cap < work.output_cap).then(|| (work.model.clone(), cap))
        }
        OnLow::Downgrade(model) => elsewhere(world, call, work, model),
    }
}

/// The largest output cap that what is left up the chain can pay for.
fn affordable_output(world: &World, ix: AgentIx, work: &ModelCall) -> Option<u64> {
    let left = world.ledger().left(world.agent(ix).account);
    let by_tokens = match left.of(Resource::Tokens) {
        Some(tokens) => tokens.checked_sub(work.input_tokens)?,
        None => u64::MAX,
    };
    let price = world.definition().models.get(&work.model).and_then(|model| model.price);
    let by_cost = match (left.of(Resource::Cost), price) {
        (Some(nanos), Some(price)) => price.output_within(nanos, work.input_tokens)?,
        (None, _) | (_, None) => u64::MAX,
    };
    Some(by_tokens.min(by_cost))
}
