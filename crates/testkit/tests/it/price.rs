//! Prices: a hold is an upper bound of what a call can cost, and what it did cost is rounded up once.

use spinney_kernel::budget::{AMOUNT_MAX, Amounts, Price, Resource, Usage, Used};
use spinney_kernel::record::StopReason;
use spinney_kernel::rules::report::{Done, Report};
use spinney_kernel::rules::request::{Hold, HoldFor, Request};
use spinney_kernel::words::{Body, CallId};
use spinney_testkit::Play;

use crate::seen::name;

const CACHED: Price = Price {
    input_per_mtok: 3_000_000_000,
    output_per_mtok: 15_000_000_000,
    cached_input_per_mtok: Some(300_000_000),
    cache_write_per_mtok: Some(3_750_000_000),
};

/// Whatever a call within its bounds used, by whichever rates, is never more than what was held for it.
#[test]
fn a_hold_is_an_upper_bound_whatever_the_cache_did() {
    let (input_tokens, output_cap) = (1_001, 77);
    let held = CACHED.worst_case(input_tokens, output_cap);
    for cached_input in (0..=input_tokens).step_by(91) {
        for cache_write in (0..=input_tokens - cached_input).step_by(77) {
            let input = input_tokens - cached_input - cache_write;
            for output in [0, 1, output_cap] {
                let usage = Usage { input, cached_input, cache_write, output };
                assert!(CACHED.cost(&usage) <= held, "{usage:?}");
            }
        }
    }
}

/// The cost of a call is rounded up once, not once per part.
#[test]
fn a_cost_is_rounded_up_once_per_call() {
    let one = Price {
        input_per_mtok: 1,
        output_per_mtok: 1,
        cached_input_per_mtok: None,
        cache_write_per_mtok: None,
    };
    let usage = |input, output| Usage { input, output, ..Usage::default() };
    assert_eq!(one.cost(&usage(0, 0)), 0);
    assert_eq!(one.cost(&usage(1, 1)), 1, "two millionths of a nano-dollar are one nano-dollar");
    assert_eq!(one.cost(&usage(600_000, 400_000)), 1);
    assert_eq!(one.cost(&usage(600_000, 400_001)), 2);
}

/// The largest output that some money pays for is paid for by it, and one token more is not.
#[test]
fn the_output_that_money_pays_for_is_exact() {
    for nanos in [0, 1, 3_003_000, 4_000_000, 123_456_789, AMOUNT_MAX] {
        for input_tokens in [0, 1, 800] {
            match CACHED.output_within(nanos, input_tokens) {
                None => assert!(CACHED.worst_case(input_tokens, 0) > nanos),
                Some(cap) => {
                    assert!(CACHED.worst_case(input_tokens, cap) <= nanos, "{nanos}, {input_tokens}");
                    assert!(CACHED.worst_case(input_tokens, cap + 1) > nanos, "{nanos}, {input_tokens}");
                }
            }
        }
    }
    let free = Price { output_per_mtok: 0, ..CACHED };
    assert_eq!(free.output_within(3_000_000_000, 0), Some(u64::MAX), "what costs nothing has no bound");
}

/// In a tree: input is held at the dearest input rate and settled at what it was.
#[test]
fn input_is_held_at_the_dearest_rate_and_settled_at_the_true_one() {
    let mut play = Play::grow_as("root $1.00 / a", |tree| tree.models[0].price = Some(CACHED));
    let effect = HoldFor::Model { model: None, input_tokens: 1_000, output_cap: Some(100) };
    play.must(Request::Hold(Hold { agent: name("a"), effect }));
    let held = Amounts::cost(1_000 * 3_750 + 100 * 15_000);
    assert_eq!(play.view("root").held, held.with(Resource::Tokens, 1_100).with(Resource::Steps, 1));
    let usage = Usage { input: 100, cached_input: 800, cache_write: 100, output: 40 };
    let used = Used::Tokens(usage);
    play.report(Report::Done(Done {
        call: CallId(1),
        attempt: 1,
        used,
        body: Body::default(),
        asks: Vec::new(),
        is_error: false,
        mismatch: None,
        stop: StopReason::End,
    }));
    let spent = Amounts::cost(100 * 3_000 + 800 * 300 + 100 * 3_750 + 40 * 15_000);
    assert_eq!(play.view("root").spent, spent.with(Resource::Tokens, 1_040).with(Resource::Steps, 1));
}
