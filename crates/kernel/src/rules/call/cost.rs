//! The most that a call can use, and what it did use. The only place that turns work into amounts.

use crate::budget::{Amounts, Resource, ResourceSet, Used};
use crate::definition::Definition;
use crate::record::Work;
use crate::words::Time;
use crate::world::Call;

/// The most that the next attempt can use if it starts now.
pub(crate) fn worst_case(definition: &Definition, call: &Call, now: Time) -> Amounts {
    let retries = u64::from(call.is_retry());
    first_attempt(definition, &call.work, now).with(Resource::Retries, retries)
}

/// The most that the first attempt can use if it starts now. A summary is not a step.
pub(crate) fn first_attempt(definition: &Definition, work: &Work, now: Time) -> Amounts {
    let steps = u64::from(work.is_turn());
    match work {
        Work::Model(work) => {
            let price = definition.price(&work.model);
            let cost = price.map_or(0, |price| price.worst_case(work.input_tokens, work.output_cap, now));
            let tokens = work.input_tokens.saturating_add(work.output_cap);
            Amounts::cost(cost).with(Resource::Tokens, tokens).with(Resource::Steps, steps)
        }
        Work::Tool(work) => Amounts::cost(work.cost_nanos_max).with(Resource::ToolCalls, 1),
        Work::Child(_) | Work::Wait(_) | Work::Question(_) => Amounts::ZERO,
    }
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
            let cost = price.map_or(0, |price| price.cost(&usage, call.start().unwrap_or_default()));
            Amounts::cost(cost).with(Resource::Tokens, usage.tokens())
        }
        Used::CostNanos(nanos) => Amounts::cost(nanos),
    }
}
