//! Prices: a hold is an upper bound of a call's cost, and the actual cost is rounded up once.

use proptest::prelude::*;
use spinney_kernel::budget::{
    AMOUNT_MAX, Amounts, Price, PriceActive, PriceChange, PriceTier, Rates, Resource, Usage, Used,
};
use spinney_kernel::primitives::{Body, CallId, Time, limit};
use spinney_kernel::record::Event;
use spinney_kernel::rules::report::{Done, Report};
use spinney_kernel::rules::request::{Hold, HoldFor, Request};
use spinney_testkit::Scenario;

use crate::observed::{events, name};

const NOW: Time = Time(1_700_000_000_000);
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

fn cached() -> Price {
    Price {
        cached_input_per_mtok: Some(300_000_000),
        cache_write_per_mtok: Some(3_750_000_000),
        ..Price::flat(3_000_000_000, 15_000_000_000)
    }
}

fn from(at: Time, rates: Rates) -> PriceChange {
    PriceChange { active: PriceActive::From(at), rates, tiers: Vec::new() }
}

fn daily(start_s: u32, end_s: u32, rates: Rates) -> PriceChange {
    PriceChange { active: PriceActive::Daily { start_s, end_s }, rates, tiers: Vec::new() }
}

/// G5 (caches): whatever a call within its bounds used, at whichever rates, never costs more than its hold.
#[test]
fn a_hold_is_an_upper_bound_whatever_the_cache_did() {
    let (input_tokens, output_cap) = (1_001, 77);
    let held = cached().worst_case(input_tokens, output_cap, NOW);
    for cached_input in (0..=input_tokens).step_by(91) {
        for cache_write in (0..=input_tokens - cached_input).step_by(77) {
            let input = input_tokens - cached_input - cache_write;
            for output in [0, 1, output_cap] {
                let usage = Usage { input, cached_input, cache_write, output, ..Usage::default() };
                assert!(cached().cost(&usage, NOW) <= held, "{usage:?}");
            }
        }
    }
}

/// The cost of a call is rounded up once, not once per part.
#[test]
fn a_cost_is_rounded_up_once_per_call() {
    let one = Price::flat(1, 1);
    let usage = |input, output| Usage { input, output, ..Usage::default() };
    assert_eq!(one.cost(&usage(0, 0), NOW), 0);
    assert_eq!(one.cost(&usage(1, 1), NOW), 1, "two millionths of a nano-dollar are one nano-dollar");
    assert_eq!(one.cost(&usage(600_000, 400_000), NOW), 1);
    assert_eq!(one.cost(&usage(600_000, 400_001), NOW), 2);
}

/// The largest affordable output is affordable, and one token more is not.
#[test]
fn the_output_that_money_pays_for_is_exact() {
    let price = cached();
    for nanos in [0, 1, 3_003_000, 4_000_000, 123_456_789, AMOUNT_MAX] {
        for input_tokens in [0, 1, 800] {
            match price.output_within(nanos, input_tokens, NOW) {
                None => assert!(price.worst_case(input_tokens, 0, NOW) > nanos),
                Some(cap) => {
                    assert!(price.worst_case(input_tokens, cap, NOW) <= nanos, "{nanos}, {input_tokens}");
                    assert!(price.worst_case(input_tokens, cap + 1, NOW) > nanos, "{nanos}, {input_tokens}");
                }
            }
        }
    }
    let free = Price { output_per_mtok: 0, ..cached() };
    assert_eq!(free.output_within(3_000_000_000, 0, NOW), Some(u64::MAX), "what costs nothing has no bound");
}

/// Every kind of token has its own rate, including one-hour caches and reasoning.
#[test]
fn each_kind_of_token_is_settled_at_its_own_rate() {
    let price = Price {
        cache_write_1h_per_mtok: Some(6_000_000_000),
        reasoning_per_mtok: Some(20_000_000_000),
        ..cached()
    };
    let usage = Usage {
        input: 1,
        cached_input: 10,
        cache_write: 100,
        cache_write_1h: 1_000,
        output: 2,
        reasoning: 3,
        ..Usage::default()
    };
    assert_eq!(price.cost(&usage, NOW), 3_000 + 3_000 + 375_000 + 6_000_000 + 30_000 + 60_000);
    assert_eq!(price.worst_case(1_111, 5, NOW), 1_111 * 6_000 + 5 * 20_000);
    assert_eq!(usage.tokens(), 1_116);
}

/// The cost that a provider reports counts if it is more than the token cost. What it bills in addition to the tokens is
/// added.
#[test]
fn a_reported_cost_is_a_floor_and_what_is_billed_apart_is_added() {
    let price = Price::flat(1_000_000, 2_000_000);
    let tokens = Usage { input: 10, output: 5, ..Usage::default() };
    let cost =
        |reported_nanos, apart_nanos| price.cost(&Usage { reported_nanos, apart_nanos, ..tokens }, NOW);
    assert_eq!(cost(0, 0), 20);
    assert_eq!(cost(19, 0), 20, "the tokens cost more");
    assert_eq!(cost(21, 0), 21);
    assert_eq!(cost(21, 4), 25);
    assert_eq!(cost(0, 4), 24);
    assert_eq!(cost(u64::MAX, u64::MAX), AMOUNT_MAX + 1, "no number overflows");
    assert_eq!(tokens.cost_with(0), 0, "without a price, tokens are free");
    assert_eq!(Usage { reported_nanos: 7, apart_nanos: 1, ..tokens }.cost_with(0), 8);
}

/// Absurd money is refused like absurd tokens, and a journal without these counts reads as before.
#[test]
fn reported_money_is_bounded_and_absent_from_the_journal_if_zero() {
    let usage = Usage { input: 1, output: 2, ..Usage::default() };
    for much in
        [Usage { reported_nanos: AMOUNT_MAX + 1, ..usage }, Usage { apart_nanos: AMOUNT_MAX + 1, ..usage }]
    {
        assert!(much.checked().is_err(), "{much:?}");
        let json = serde_json::to_string(&Used::Tokens(much)).unwrap();
        assert!(serde_json::from_str::<Used>(&json).is_err(), "{json}");
    }
    assert_eq!(serde_json::to_string(&usage).unwrap(), r#"{"input":1,"output":2}"#);
    assert_eq!(serde_json::from_str::<Usage>(r#"{"input":1,"output":2}"#).unwrap(), usage);
    let paid = Usage { reported_nanos: 3, apart_nanos: 4, ..usage };
    let json = r#"{"input":1,"output":2,"reported_nanos":3,"apart_nanos":4}"#;
    assert_eq!(serde_json::to_string(&paid).unwrap(), json);
    assert_eq!(serde_json::from_str::<Usage>(json).unwrap(), paid);
}

/// G5 (tiers): above a threshold the whole call costs the tier's price; at the threshold it does not.
#[test]
fn a_long_input_raises_the_price_of_the_whole_call() {
    let tier = |input_above, rates| PriceTier { input_above, rates };
    let price = Price {
        tiers: vec![
            tier(200, Rates::flat(4_000_000, 8_000_000)),
            tier(100, Rates::flat(3_000_000, 3_000_000)),
        ],
        ..Price::flat(1_000_000, 2_000_000)
    };
    let cost =
        |input, cached_input| price.cost(&Usage { input, cached_input, output: 10, ..Usage::default() }, NOW);
    assert_eq!(cost(100, 0), 120);
    assert_eq!(cost(101, 0), 333);
    assert_eq!(cost(1, 100), 333, "what a cache knew counts for the length");
    assert_eq!(cost(201, 0), 884);
    assert_eq!(price.worst_case(100, 10, NOW), 120);
    assert_eq!(price.worst_case(101, 10, NOW), 333);
    assert_eq!(price.worst_case(201, 10, NOW), 884);
    let cheaper = Price { tiers: vec![tier(100, Rates::flat(0, 0))], ..Price::flat(1_000_000, 0) };
    assert_eq!(cheaper.worst_case(101, 0, NOW), 101, "the true input may be shorter than its bound");
}

/// G5 (dated changes): a hold uses the dearest rates that can be active before the call ends, and a booking those of its start.
#[test]
fn a_hold_takes_the_dearest_rates_until_the_latest_end_and_a_booking_those_of_the_start() {
    let later = |ms| Time(NOW.0 + ms);
    let rises = |ms| Price {
        changes: vec![from(later(ms), Rates::flat(5_000_000, 5_000_000))],
        ..Price::flat(1_000_000, 1_000_000)
    };
    let usage = Usage { input: 10, output: 10, ..Usage::default() };
    assert_eq!(rises(limit::MODEL_CALL_MS_MAX).worst_case(10, 10, NOW), 100);
    assert_eq!(rises(limit::MODEL_CALL_MS_MAX + 1).worst_case(10, 10, NOW), 20);
    assert_eq!(rises(1).cost(&usage, NOW), 20);
    assert_eq!(rises(1).cost(&usage, later(1)), 100);
    let falls = Price {
        changes: vec![from(later(1), Rates::flat(1_000_000, 1_000_000))],
        ..Price::flat(5_000_000, 5_000_000)
    };
    assert_eq!(falls.worst_case(10, 10, NOW), 100);
    assert_eq!(falls.worst_case(10, 10, later(1)), 20, "what is over is not held for");
}

/// Times of day are in UTC, may pass midnight, and the last active price applies.
#[test]
fn daily_prices_hold_at_their_time_of_day() {
    let [low, peak, night] = [1, 2, 3].map(|usd| Rates::flat(usd * 1_000_000, usd * 1_000_000));
    let price = Price {
        changes: vec![
            from(Time(10 * DAY_MS), low),
            daily(3_600, 7_200, peak),
            daily(23 * 3_600, 1_800, night),
        ],
        ..Price::flat(9_000_000, 9_000_000)
    };
    let at = |day: u64, second: u64| {
        price.rates_at(Time(day * DAY_MS + second * 1_000), 0).input_per_mtok / 1_000_000
    };
    assert_eq!([at(9, 3_599), at(9, 3_600), at(9, 7_199), at(9, 7_200)], [9, 2, 2, 9]);
    assert_eq!([at(10, 0), at(10, 1_800), at(10, 3_600), at(10, 7_200)], [3, 1, 2, 1]);
    assert_eq!([at(11, 82_799), at(11, 82_800), at(12, 1_799), at(12, 1_800)], [1, 3, 3, 1]);
    assert_eq!(price.worst_case(10, 0, Time(20 * DAY_MS)), 30);
    assert_eq!(price.since(Time(20 * DAY_MS)), Some(Time(10 * DAY_MS)));
    assert_eq!(price.since(Time(DAY_MS)), None);
}

/// In a tree: input is held at the dearest input rate and settled at its actual one.
#[test]
fn input_is_held_at_the_dearest_rate_and_settled_at_the_true_one() {
    let mut play = Scenario::grow_as("root $1.00 / a", |tree| tree.models[0].price = Some(cached()));
    hold(&mut play, 1_000, 100);
    let held = Amounts::cost(1_000 * 3_750 + 100 * 15_000);
    assert_eq!(play.view("root").held, held.with(Resource::Tokens, 1_100).with(Resource::Steps, 1));
    done(
        &mut play,
        Usage { input: 100, cached_input: 800, cache_write: 100, output: 40, ..Usage::default() },
    );
    let spent = Amounts::cost(100 * 3_000 + 800 * 300 + 100 * 3_750 + 40 * 15_000);
    assert_eq!(play.view("root").spent, spent.with(Resource::Tokens, 1_040).with(Resource::Steps, 1));
}

/// In a tree: a call that starts before its model gets cheaper is booked at the price of its start, whenever it ends,
/// and the journal has that time. Calls without dated prices have none, as in older journals.
#[test]
fn a_call_is_booked_at_the_price_of_its_start() {
    let start = Scenario::seed().now();
    let price = Price {
        changes: vec![from(start.after_ms(5_000), Rates::flat(1_000_000_000, 1_000_000_000))],
        ..Price::flat(2_000_000_000, 2_000_000_000)
    };
    let mut play = Scenario::grow_as("root $1.00 / a", |tree| tree.models[0].price = Some(price));
    for held in [20 * 2_000, 20 * 1_000] {
        hold(&mut play, 10, 10);
        assert_eq!(play.view("root").held.get(Resource::Cost), held);
        play.pass(10_000);
        done(&mut play, Usage { input: 10, ..Usage::default() });
    }
    assert_eq!(play.view("root").spent.get(Resource::Cost), 10 * 2_000 + 10 * 1_000);
    assert_eq!(started(&play), [Some(start), Some(start.after_ms(10_000))]);

    let mut plain = Scenario::grow("root $1.00 / a");
    plain.run("call a $0.30");
    assert_eq!(started(&plain), [None]);
    let json = serde_json::to_value(events(&plain).last().unwrap()).unwrap();
    assert!(json.get("at").is_none(), "{json}");
}

/// A definition from an older version is read and written back byte for byte, and one with every field also survives.
#[test]
fn prices_of_older_definitions_keep_their_bytes() {
    for written in [
        r#"{"input_per_mtok":1,"output_per_mtok":2}"#,
        r#"{"input_per_mtok":1,"output_per_mtok":2,"cached_input_per_mtok":3,"cache_write_per_mtok":4}"#,
        r#"{"input_per_mtok":1,"output_per_mtok":2,"cache_write_1h_per_mtok":5,"reasoning_per_mtok":6,"tiers":[{"input_above":7,"rates":{"input_per_mtok":8,"output_per_mtok":9}}],"changes":[{"active":{"from":10},"rates":{"input_per_mtok":11,"output_per_mtok":12}},{"active":{"daily":{"start_s":13,"end_s":14}},"rates":{"input_per_mtok":15,"output_per_mtok":16},"tiers":[{"input_above":17,"rates":{"input_per_mtok":18,"output_per_mtok":19}}]}]}"#,
    ] {
        let price: Price = serde_json::from_str(written).unwrap();
        assert_eq!(serde_json::to_string(&price).unwrap(), written);
    }
    for unknown in [
        r#"{"input_per_mtok":1,"output_per_mtok":2,"surcharge":3}"#,
        r#"{"input_per_mtok":1,"output_per_mtok":2,"tiers":[{"input_above":7,"rates":{"input_per_mtok":8}}]}"#,
        r#"{"input_per_mtok":1,"output_per_mtok":2,"changes":[{"active":{"weekly":1},"rates":{"input_per_mtok":1,"output_per_mtok":2}}]}"#,
    ] {
        assert!(serde_json::from_str::<Price>(unknown).is_err(), "{unknown}");
    }
    let usage = r#"{"input":1,"cached_input":2,"cache_write":3,"output":4}"#;
    assert_eq!(serde_json::to_string(&serde_json::from_str::<Usage>(usage).unwrap()).unwrap(), usage);
}

fn hold(play: &mut Scenario, input_tokens: u64, output_cap: u64) {
    let effect = HoldFor::Model { model: None, input_tokens, output_cap: Some(output_cap) };
    play.must(Request::Hold(Hold { agent: name("a"), effect }));
}

/// Ends the last requested call with this usage.
fn done(play: &mut Scenario, usage: Usage) {
    let call = CallId(play.world().calls().next_id().0 - 1);
    play.report(Report::Done(Done::new(call, 1, Used::Tokens(usage), Body::default())));
}

fn started(play: &Scenario) -> Vec<Option<Time>> {
    let at = |event: Event| if let Event::CallStarted { at, .. } = event { Some(at) } else { None };
    events(play).into_iter().filter_map(at).collect()
}

fn any_rates() -> impl Strategy<Value = Rates> {
    let rate = || prop_oneof![0..10_u64, 0..100_000_000_000_u64, Just(AMOUNT_MAX)];
    let maybe = || proptest::option::of(rate());
    (rate(), rate(), maybe(), maybe(), maybe(), maybe()).prop_map(
        |(input, output, cached, write, hour, reasoning)| Rates {
            cached_input_per_mtok: cached,
            cache_write_per_mtok: write,
            cache_write_1h_per_mtok: hour,
            reasoning_per_mtok: reasoning,
            ..Rates::flat(input, output)
        },
    )
}

fn any_tiers() -> impl Strategy<Value = Vec<PriceTier>> {
    // Each length once: of two tiers for the same length a hold uses the dearer.
    let tiers = proptest::collection::btree_map(0..3_000_u64, any_rates(), 0..4);
    let tier = |(input_above, rates)| PriceTier { input_above, rates };
    tiers.prop_map(move |tiers| tiers.into_iter().map(tier).collect()).prop_shuffle()
}

fn any_price() -> impl Strategy<Value = Price> {
    let active = prop_oneof![
        (0..4 * DAY_MS).prop_map(|ms| PriceActive::From(Time(NOW.0 - 2 * DAY_MS + ms))),
        (0..86_400_u32, 0..86_400_u32).prop_map(|(start_s, end_s)| PriceActive::Daily { start_s, end_s }),
    ];
    let change = (active, any_rates(), any_tiers()).prop_map(|(active, rates, tiers)| PriceChange {
        active,
        rates,
        tiers,
    });
    let changes = proptest::collection::vec(change, 0..5);
    (any_rates(), any_tiers(), changes).prop_map(|(rates, tiers, changes)| Price {
        tiers,
        changes,
        ..Price::from(rates)
    })
}

/// A usage, and bounds of input and output that it does not exceed.
fn any_usage() -> impl Strategy<Value = (Usage, u64, u64)> {
    let tokens = || prop_oneof![0..20_u64, 0..4_000_u64, Just(AMOUNT_MAX / 8)];
    ((tokens(), tokens(), tokens(), tokens()), (tokens(), tokens()), 0..3_u64, 0..3_u64).prop_map(
        |((input, cached_input, cache_write, cache_write_1h), (output, reasoning), more_in, more_out)| {
            let usage = Usage {
                input,
                cached_input,
                cache_write,
                cache_write_1h,
                output,
                reasoning,
                ..Usage::default()
            };
            (usage, usage.input_tokens() + more_in * 700, usage.output_tokens() + more_out)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// G5 (any price): usage within a call's bounds, billed at any moment before its latest end, never costs more than its hold.
    #[test]
    fn a_hold_covers_every_use_within_its_bounds_at_every_moment(
        price in any_price(),
        (usage, input_tokens, output_cap) in any_usage(),
        since in 0..DAY_MS,
        lasts in 0..=limit::MODEL_CALL_MS_MAX,
    ) {
        let start = NOW.after_ms(since);
        let held = price.worst_case(input_tokens, output_cap, start);
        prop_assert!(price.cost(&usage, start) <= held, "at its start");
        prop_assert!(price.cost(&usage, start.after_ms(lasts)) <= held, "at its end");
    }

    /// A hold is at most the dearest rates of the price, and at least the current ones.
    #[test]
    fn a_hold_is_no_more_than_the_dearest_moment_of_the_call(
        price in any_price(),
        input_tokens in 0..4_000_u64,
        output_cap in 0..4_000_u64,
    ) {
        let held = price.worst_case(input_tokens, output_cap, NOW);
        // Every minute, and every moment at which a rate changes.
        let minutes = (0..=limit::MODEL_CALL_MS_MAX / 60_000).map(|minute| NOW.after_ms(minute * 60_000));
        let dated = price.changes.iter().filter_map(|change| match change.active {
            PriceActive::From(at) => Some(at).filter(|at| *at > NOW && *at <= NOW.after_ms(limit::MODEL_CALL_MS_MAX)),
            PriceActive::Daily { .. } => None,
        });
        let edges = price.changes.iter().flat_map(|change| match change.active {
            PriceActive::From(_) => Vec::new(),
            PriceActive::Daily { start_s, end_s } => [start_s, end_s]
                .into_iter()
                .flat_map(|s| [0, 1].map(|day| Time((NOW.0 / DAY_MS + day) * DAY_MS + u64::from(s) * 1_000)))
                .filter(|at| *at > NOW && *at <= NOW.after_ms(limit::MODEL_CALL_MS_MAX))
                .collect(),
        });
        let lengths: Vec<u64> = price
            .changes
            .iter()
            .flat_map(|change| &change.tiers)
            .chain(&price.tiers)
            .map(|tier| tier.input_above + 1)
            .filter(|length| *length <= input_tokens)
            .chain([0, input_tokens])
            .collect();
        let dearest = minutes.chain(dated).chain(edges).flat_map(|at| {
            let price = &price;
            lengths.iter().map(move |length| Price::from(price.rates_at(at, *length)).worst_case(input_tokens, output_cap, at))
        });
        prop_assert_eq!(held, dearest.max().unwrap_or_default());
    }

    /// What is affordable is paid, and one token more is not.
    #[test]
    fn what_money_pays_for_is_the_most_that_it_pays_for(
        price in any_price(),
        nanos in prop_oneof![0..1_000_u64, 0..10_000_000_000_u64],
        other in 0..4_000_u64,
    ) {
        match price.output_within(nanos, other, NOW) {
            None => prop_assert!(price.worst_case(other, 0, NOW) > nanos),
            Some(cap) => prop_assert!(price.worst_case(other, cap, NOW) <= nanos),
        }
        match price.input_within(nanos, other, NOW) {
            None => prop_assert!(price.worst_case(0, other, NOW) > nanos),
            Some(input) => {
                prop_assert!(price.worst_case(input, other, NOW) <= nanos);
                // Rounding up once instead of twice may leave room for slightly more; twice as much never fits.
                let more = input.saturating_mul(2).saturating_add(2_000_000);
                let is_free = price.worst_case(u64::MAX, other, NOW) <= nanos;
                prop_assert!(is_free || price.worst_case(more, other, NOW) > nanos);
            }
        }
    }

    /// No number overflows, however large: the sum saturates above every amount that a ledger accepts.
    #[test]
    fn no_number_overflows(price in any_price(), input in any::<u64>(), output in any::<u64>(), at in any::<u64>()) {
        let most = price.worst_case(input, output, Time(at));
        prop_assert!(most <= AMOUNT_MAX + 1);
        let usage = Usage { input, cached_input: input, cache_write: output, output, reasoning: output, ..Usage::default() };
        prop_assert!(price.cost(&usage, Time(at)) <= AMOUNT_MAX + 1);
        let _ = (price.output_within(input, output, Time(at)), price.input_within(input, output, Time(at)));
    }
}
