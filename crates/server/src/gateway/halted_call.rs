//! The call at which everything waits, with what a person can do about it.

use spinney_kernel::budget::{Price, Resource, Shortfall};
use spinney_kernel::primitives::{Time, limit};
use spinney_kernel::record::ModelCall;
use spinney_kernel::world::Halt;

/// The halt of a tree.
#[derive(Clone, Debug)]
pub(super) struct HaltedCall {
    pub(super) halt: Halt,
    /// The output cap of the call, if it would fit with a smaller one.
    pub(super) large_cap: Option<u64>,
}

/// The output cap of a call that does not fit, if `on_low: shrink` would have found a smaller one that does.
pub(super) fn large_cap(call: &ModelCall, price: &Price, short: &Shortfall, now: Time) -> Option<u64> {
    let fits = match short.resource {
        Resource::Cost => price.output_within(short.left(), call.input_tokens, now)?,
        Resource::Tokens => short.left().checked_sub(call.input_tokens)?,
        Resource::Steps | Resource::ToolCalls | Resource::Retries => return None,
    };
    (limit::OUTPUT_TOKENS_SHRUNK..call.output_cap).contains(&fits).then_some(call.output_cap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_is_large_if_a_smaller_one_would_fit() {
        // A token of output costs ten.
        let price = Price::flat(1_000_000, 10_000_000);
        let call = ModelCall::new("m".parse().unwrap(), 2_000, 128_000);
        let at = |resource, limit, spent| {
            let asked = 1_282_000;
            let short = Shortfall { resource, limit, reserve: 0, spent, held: 0, lent: 0, asked };
            large_cap(&call, &price, &short, Time(0))
        };
        assert_eq!(at(Resource::Cost, 1_000_000, 0), Some(128_000));
        assert_eq!(at(Resource::Cost, 12_240, 0), Some(128_000));
        assert_eq!(at(Resource::Cost, 12_239, 0), None);
        assert_eq!(at(Resource::Cost, 1_000_000, 999_000), None);
        assert_eq!(at(Resource::Tokens, 100_000, 0), Some(128_000));
        assert_eq!(at(Resource::Tokens, 3_000, 0), None);
        assert_eq!(at(Resource::Steps, 1, 1), None);
    }
}
