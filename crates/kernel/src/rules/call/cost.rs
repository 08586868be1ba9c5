//! The most that a call can use, and what it did use. The only place that turns work into amounts.

use std::borrow::Cow;

use crate::budget::{Amounts, CacheWrites, Price, Resource, ResourceSet, Used};
use crate::definition::Definition;
use crate::primitives::Time;
use crate::record::{ModelCall, Work};
use crate::world::Call;

/// The most that the next attempt can use if it starts now.
pub(crate) fn worst_case(definition: &Definition, call: &Call, now: Time) -> Amounts {
    with_retry(call, first_attempt(definition, &call.work, now))
}

/// [`worst_case`] with another output cap.
pub(super) fn worst_case_with(
    definition: &Definition,
    call: &Call,
    work: &ModelCall,
    output_cap: u64,
    now: Time,
) -> Amounts {
    with_retry(call, model_attempt(definition, work, output_cap, now))
}

fn with_retry(call: &Call, attempt: Amounts) -> Amounts {
    attempt.with(Resource::Retries, u64::from(call.is_retry()))
}

/// The most that the first attempt can use if it starts now. A summary is not a step.
pub(crate) fn first_attempt(definition: &Definition, work: &Work, now: Time) -> Amounts {
    match work {
        Work::Model(work) => model_attempt(definition, work, work.output_cap, now),
        Work::Tool(work) if work.is_program => Amounts::ZERO,
        Work::Tool(work) => Amounts::cost(work.cost_nanos_max).with(Resource::ToolCalls, 1),
        Work::Child(_) | Work::Wait(_) | Work::Question(_) => Amounts::ZERO,
    }
}

fn model_attempt(definition: &Definition, work: &ModelCall, output_cap: u64, now: Time) -> Amounts {
    let price = price(definition, work);
    let cost = price.map_or(0, |price| price.worst_case(work.input_tokens, output_cap, now));
    let tokens = work.input_tokens.saturating_add(output_cap);
    Amounts::cost(cost).with(Resource::Tokens, tokens).with(Resource::Steps, u64::from(work.is_turn()))
}

/// The price that holds use: without the rates of cache writes that the request cannot cause.
pub(super) fn price<'d>(definition: &'d Definition, work: &ModelCall) -> Option<Cow<'d, Price>> {
    let price = definition.price(&work.model)?;
    Some(match work.writes() {
        CacheWrites::Hour => Cow::Borrowed(price),
        writes => Cow::Owned(price.with_writes(writes)),
    })
}

/// The usage of a completed attempt.
pub(crate) fn used(definition: &Definition, call: &Call, used: Used) -> Amounts {
    let counts = call.held().without(ResourceSet::MEASURED);
    metered(definition, call, used).plus(&counts)
}

/// The usage of a failed attempt. A failed turn is not a step; a tool call counts, because it may have had an effect.
pub(crate) fn used_in_vain(definition: &Definition, call: &Call, used: Used) -> Amounts {
    let counts = call.held().without(ResourceSet::MEASURED).with(Resource::Steps, 0);
    metered(definition, call, used).plus(&counts)
}

fn metered(definition: &Definition, call: &Call, used: Used) -> Amounts {
    // Implausible numbers count as unknown.
    match used.checked().unwrap_or(Used::Unknown) {
        // The worst case, because it may be billed in full.
        Used::Unknown => call.held().only(ResourceSet::MEASURED),
        Used::Tokens(usage) => {
            let price = match &call.work {
                Work::Model(work) => definition.price(&work.model),
                Work::Tool(_) | Work::Child(_) | Work::Wait(_) | Work::Question(_) => None,
            };
            let start = call.start().unwrap_or_default();
            // The provider may report a cost even if the model has no price.
            let cost = price.map_or_else(|| usage.cost_with(0), |price| price.cost(&usage, start));
            Amounts::cost(cost).with(Resource::Tokens, usage.tokens())
        }
        Used::CostNanos(nanos) => Amounts::cost(nanos),
    }
}
