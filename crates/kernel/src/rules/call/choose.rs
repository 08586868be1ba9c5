//! Chooses model and output cap: fallbacks when a model fails, less when the budget is low.

use super::cost;
use crate::budget::{Amounts, Ceilings, Price, Resource, Shortfall};
use crate::definition::{ModelSpec, OnLow, Refusal, Unpriced};
use crate::primitives::{CallId, ModelName, Time, limit};
use crate::record::{ModelCall, Work};
use crate::rules::{Draft, program, turn};
use crate::world::{AgentIx, Call, World};

/// Refuses a model that does not exist, is not allowed for this agent, or has no price while money is limited.
pub(crate) fn check_model<'w>(
    world: &'w World,
    ix: AgentIx,
    name: &ModelName,
) -> Result<&'w ModelSpec, Refusal> {
    let model = world.definition().model(name)?;
    let agent = world.agent(ix);
    // Which models a program calls is not its role's to say: they are added when it names them.
    if program::of(world, ix).is_none() {
        agent.terms.caps.check_model(name)?;
    }
    if model.price.is_some() || world.definition().unpriced == Unpriced::Allow {
        return Ok(model);
    }
    match world.ledger().left(agent.account).get(Resource::Cost) {
        Some(_) => Err(Refusal::Unpriced { model: name.clone() }),
        None => Ok(model),
    }
}

/// An agent's turn with this model and its usual output cap.
pub(crate) fn turn_work(
    draft: &Draft<'_>,
    ix: AgentIx,
    model: &ModelName,
    input_tokens: u64,
) -> Result<ModelCall, Refusal> {
    let spec = draft.definition().model(model)?;
    let output_cap =
        draft.turns_of(ix).map_or_else(|| spec.output_cap(), |turns| turns.output_cap_with(spec));
    model_work(draft, ix, model, input_tokens, output_cap)
}

/// A model call, if the agent may make it and its numbers are plausible.
pub(crate) fn model_work(
    draft: &Draft<'_>,
    ix: AgentIx,
    model: &ModelName,
    input_tokens: u64,
    output_cap: u64,
) -> Result<ModelCall, Refusal> {
    let ModelSpec { price, output_max, .. } = check_model(draft, ix, model)?;
    let output_cap = output_cap.min(output_max.unwrap_or(u64::MAX));
    let cost = price.as_ref().map_or(0, |price| price.worst_case(input_tokens, output_cap, draft.now()));
    let tokens = input_tokens.saturating_add(output_cap);
    Amounts::cost(cost).with(Resource::Tokens, tokens).checked()?;
    Ok(ModelCall::new(model.clone(), input_tokens, output_cap))
}

/// The first fallback that a call can use, and its output cap.
pub(crate) fn fallback(draft: &Draft<'_>, id: CallId) -> Option<(ModelName, u64)> {
    let call = draft.call(id)?;
    let Work::Model(work) = &call.work else { return None };
    let first = tried(call).first().unwrap_or(&work.model);
    let chain = &draft.definition().models.get(first)?.fallback;
    chain.iter().find_map(|name| elsewhere(draft, call, work, name))
}

fn tried(call: &Call) -> &[ModelName] {
    call.past().map_or(&[], |past| &past.tried)
}

/// The call with another model: one that was not tried, is allowed and takes calls, within its own output limit.
fn elsewhere(draft: &Draft<'_>, call: &Call, work: &ModelCall, name: &ModelName) -> Option<(ModelName, u64)> {
    if *name == work.model || tried(call).contains(name) || draft.is_broken(name, draft.now()) {
        return None;
    }
    let spec = check_model(draft, call.agent, name).ok()?;
    let most = match draft.turns_of(call.agent) {
        Some(turns) => turns.output_cap_with(spec),
        None => spec.output_max.unwrap_or(u64::MAX),
    };
    Some((name.clone(), work.output_cap.min(most)))
}

/// What the agent's `on_low` makes of a call that cannot fit: another model, a smaller output cap, or nothing.
pub(crate) fn on_low(draft: &Draft<'_>, id: CallId, short: &Shortfall) -> Option<(ModelName, u64)> {
    let call = draft.call(id)?;
    let Work::Model(work) = &call.work else { return None };
    if !short.resource.stops_all() {
        return None; // Neither a cheaper model nor a shorter answer saves a step or a retry.
    }
    let chosen = match &draft.agent(call.agent).terms.on_low {
        OnLow::Halt => None,
        // Its cap is already fitted to what is left.
        OnLow::Shrink if work.outside.is_some() && draft.rules() >= 6 => None,
        // An outside program makes nothing of an answer that ends within its first sentence.
        OnLow::Shrink if work.outside.is_some() => {
            shrunk(draft, call.agent, work, limit::OUTPUT_TOKENS_SHRUNK)
        }
        OnLow::Shrink => shrunk(draft, call.agent, work, limit::OUTPUT_TOKENS_MIN),
        OnLow::Downgrade(model) => elsewhere(draft, call, work, model),
    };
    chosen.or_else(|| {
        // A turn is shrunk before the agent's last call replaces it.
        let least = match work.wrap_up {
            Some(_) => limit::WRAP_UP_OUTPUT_TOKENS_MIN,
            None => limit::OUTPUT_TOKENS_SHRUNK,
        };
        let is_turn = draft.rules() >= 3 && call.work.is_turn() && work.outside.is_none();
        let is_turn = is_turn && turn::takes_turns(draft, call.agent);
        is_turn.then(|| shrunk(draft, call.agent, work, least)).flatten()
    })
}

/// The same model with the largest output cap that fits, if that is not too small.
fn shrunk(draft: &Draft<'_>, ix: AgentIx, work: &ModelCall, least: u64) -> Option<(ModelName, u64)> {
    let cap = affordable_output(draft, ix, work)?;
    (cap >= least && cap < work.output_cap).then(|| (work.model.clone(), cap))
}

/// The largest output cap that the budgets up the chain cover together with the call's input.
pub(crate) fn affordable_output(draft: &Draft<'_>, ix: AgentIx, work: &ModelCall) -> Option<u64> {
    output_within(draft, work, draft.ledger().left(draft.agent(ix).account))
}

/// The largest output cap that `left` covers together with the call's input.
pub(super) fn output_within(draft: &Draft<'_>, work: &ModelCall, left: Ceilings) -> Option<u64> {
    let price = cost::price(draft.definition(), work);
    within(left, price.as_deref(), work.input_tokens, draft.now(), Price::output_within)
}

/// The largest input that the budget up the chain covers beside this output.
pub(crate) fn affordable_input(
    draft: &Draft<'_>,
    ix: AgentIx,
    model: &ModelName,
    output_cap: u64,
) -> Option<u64> {
    let left = draft.ledger().left(draft.agent(ix).account);
    within(left, draft.definition().price(model), output_cap, draft.now(), Price::input_within)
}

/// What is left for one part of a call after the other is paid.
fn within(
    left: Ceilings,
    price: Option<&Price>,
    taken_tokens: u64,
    now: Time,
    part_within: fn(&Price, u64, u64, Time) -> Option<u64>,
) -> Option<u64> {
    let by_tokens = match left.get(Resource::Tokens) {
        Some(tokens) => tokens.checked_sub(taken_tokens)?,
        None => u64::MAX,
    };
    let by_cost = match (left.get(Resource::Cost), price) {
        (Some(nanos), Some(price)) => part_within(price, nanos, taken_tokens, now)?,
        (None, _) | (_, None) => u64::MAX,
    };
    Some(by_tokens.min(by_cost))
}
