//! Absurd numbers from any source are clear errors, and change nothing.

use spinney_kernel::budget::{
    AMOUNT_MAX, AmountError, Amounts, Ceilings, Price, PriceActive, PriceChange, PriceTier, Rates, Resource,
    Usage, Used, nanos_from_usd, usd,
};
use spinney_kernel::definition::{BudgetSpec, Definition, Refusal, TreeLimits};
use spinney_kernel::primitives::{Body, CallId, Time, limit};
use spinney_kernel::record::Event;
use spinney_kernel::rules::report::{Done, Report};
use spinney_kernel::rules::request::{Charge, Hold, HoldFor, Raise, Request, Spawn, Start, Wait};
use spinney_kernel::world::World;
use spinney_testkit::{Scenario, fixture};

use crate::observed::{events, name, person, refused, turn};

/// Values that are not numbers, negative, fractional or too large for any integer, as JSON would have them.
const NO_AMOUNTS: [&str; 14] = [
    "NaN",
    "Infinity",
    "-1",
    "-0.5",
    "0.5",
    "1e3",
    "1e400",
    "-1e400",
    "\"12\"",
    "\"\"",
    "[1]",
    "{}",
    "true",
    "18446744073709551616",
];

/// V10 (kernel side): dollars are parsed exactly or not at all.
#[test]
fn dollars_are_read_exactly_or_not_at_all() {
    for (text, nanos) in [
        ("0", 0),
        ("0.000000001", 1),
        ("$0.25", 250_000_000),
        (".5", 500_000_000),
        ("1.", 1_000_000_000),
        ("10", 10_000_000_000),
        ("007.10", 7_100_000_000),
        ("1000000", AMOUNT_MAX),
    ] {
        assert_eq!(nanos_from_usd(text), Ok(nanos), "{text}");
    }
    for text in [
        "",
        "$",
        ".",
        "$.",
        "NaN",
        "nan",
        "inf",
        "-inf",
        "Infinity",
        "-1",
        "-0",
        "+1",
        "1e3",
        "1E400",
        "0x10",
        "1_000",
        "1,5",
        "1.2.3",
        " 1",
        "1 ",
        "$$1",
        "1$",
        "\u{0661}",
        "\u{ff11}",
        "1\0",
        "0.0000000001",
        "one",
        "99999999999999999999999",
    ] {
        let error = AmountError::NotUsd { text: text.to_owned() };
        assert_eq!(nanos_from_usd(text), Err(error), "{text}");
    }
    for (text, amount) in [("1000000.000000001", AMOUNT_MAX + 1), ("18446744073", 18_446_744_073_000_000_000)]
    {
        let error = AmountError::TooLarge { what: "cost".to_owned(), amount };
        assert_eq!(nanos_from_usd(text), Err(error), "{text}");
    }
    let long = nanos_from_usd(&"9".repeat(10_000)).unwrap_err().to_string();
    assert!(long.len() < 200, "an error shows no more than a line of what was wrong");
}

/// V10 (kernel side): an amount shown as dollars parses back to the same amount.
#[test]
fn dollars_are_shown_exactly() {
    for nanos in [0, 1, 10, 999_999_999, 1_000_000_000, 1_100_000_000, AMOUNT_MAX] {
        assert_eq!(nanos_from_usd(&usd(nanos)), Ok(nanos), "{}", usd(nanos));
    }
    assert_eq!([usd(0), usd(250_000_000), usd(1)], ["$0.00", "$0.25", "$0.000000001"]);
}

/// V10 (kernel side): JSON with anything but a plain integer as an amount is not an input.
#[test]
fn no_amount_is_read_from_anything_but_a_plain_integer() {
    for bad in NO_AMOUNTS {
        for field in ["cost_nanos", "tokens", "steps", "tool_calls", "retries"] {
            let json = format!("{{\"{field}\": {bad}}}");
            assert!(serde_json::from_str::<Amounts>(&json).is_err(), "{json}");
            assert!(serde_json::from_str::<Ceilings>(&json).is_err(), "{json}");
        }
        for json in [
            format!(r#"{{"verb":"hold","agent":"a","effect":{{"kind":"model","input_tokens":{bad}}}}}"#),
            format!(
                r#"{{"verb":"hold","agent":"a","effect":{{"kind":"tool","tool":"t","cost_nanos_max":{bad}}}}}"#
            ),
            format!(r#"{{"verb":"charge","agent":"a","amounts":{{"cost_nanos":{bad}}}}}"#),
            format!(r#"{{"verb":"raise","agent":"a","add":{{"tokens":{bad}}}}}"#),
            format!(r#"{{"verb":"wait","agent":"a","wait":{{"for":"message"}},"timeout_ms":{bad}}}"#),
            format!(
                r#"{{"verb":"spawn","parent":"a","role":"b","goal":"g","budget":{{"limit":{{"cost_nanos":{bad}}}}}}}"#
            ),
            format!(
                r#"{{"verb":"spawn","parent":"a","role":"b","goal":"g","budget":{{"answer_reserve":{bad}}}}}"#
            ),
        ] {
            assert!(serde_json::from_str::<Request>(&json).is_err(), "{json}");
        }
        for json in [
            format!(r#"{{"kind":"done","call":1,"attempt":1,"used":{{"tokens":{{"output":{bad}}}}}}}"#),
            format!(r#"{{"kind":"done","call":1,"attempt":1,"used":{{"cost_nanos":{bad}}}}}"#),
            format!(r#"{{"kind":"rate","model":"m","until":{bad}}}"#),
        ] {
            assert!(serde_json::from_str::<Report>(&json).is_err(), "{json}");
        }
        let price = format!(r#"{{"input_per_mtok":0,"output_per_mtok":{bad}}}"#);
        assert!(serde_json::from_str::<Price>(&price).is_err(), "{price}");
    }
    assert!(serde_json::from_str::<Amounts>(r#"{"cost_usd": 1}"#).is_err(), "an unknown resource is none");
}

/// V10 (kernel side): a ceiling too large to make sense is an error; it never becomes "no ceiling".
#[test]
fn an_absurd_ceiling_never_becomes_no_ceiling() {
    for amount in [AMOUNT_MAX + 1, 1 << 61, (1 << 61) + 1, 1 << 62, (1 << 62) + 1, u64::MAX] {
        let limit = Ceilings::NONE.with(Resource::Cost, amount);
        let too_large = AmountError::TooLarge { what: "cost".to_owned(), amount };
        // One number stands for "none"; in JSON it is refused like the others.
        if limit != Ceilings::NONE {
            assert_eq!(limit.checked(), Err(too_large.clone()), "{amount}");
        }
        let json = format!(
            r#"{{"verb":"spawn","parent":"root","role":"a","goal":"g","budget":{{"limit":{{"cost_nanos":{amount}}}}}}}"#
        );
        let mut play = Scenario::grow("root $1.00 / a");
        match serde_json::from_str::<Request>(&json) {
            Err(error) => assert!(error.to_string().contains(&amount.to_string()), "{error}"),
            Ok(request) => assert_eq!(refused(&mut play, person(request)), Refusal::Amount(too_large)),
        }
    }
}

/// Every request that carries amounts, each with one that is too large.
fn absurd_requests(amount: u64) -> Vec<Request> {
    let amounts = |resource| Amounts::ZERO.with(resource, amount);
    let model = |input_tokens, output_cap| HoldFor::Model { model: None, input_tokens, output_cap };
    let tool = HoldFor::Tool {
        tool: name("t"),
        args: String::new(),
        cost_nanos_max: amount,
        lost: Default::default(),
    };
    let mut requests = vec![
        Request::Hold(Hold { agent: name("a"), effect: model(amount, None) }),
        Request::Hold(Hold { agent: name("a"), effect: model(0, Some(amount)) }),
        Request::Hold(Hold { agent: name("a"), effect: model(amount, Some(amount)) }),
        Request::Hold(Hold { agent: name("a"), effect: tool }),
    ];
    for resource in Resource::ALL {
        let (agent, note) = (name("a"), String::new());
        requests.push(Request::Charge(Charge { agent, amounts: amounts(resource), note }));
        requests.push(Request::Raise(Raise { agent: name("root"), add: amounts(resource), add_ms: 0 }));
        let budget = BudgetSpec::with_limit(Ceilings::NONE.with(resource, amount));
        requests.push(Request::Spawn(Spawn { budget, ..Scenario::spawn("root", "a") }));
    }
    requests
}

/// V10 (kernel side): a request with an absurd amount is refused with that number and the maximum, and changes nothing.
#[test]
fn a_request_with_an_absurd_amount_is_refused_and_changes_nothing() {
    for fixture in ["root $1.00 tokens=1000 / a", "root / a"] {
        let mut play = Scenario::grow(fixture);
        for amount in [AMOUNT_MAX + 1, u64::MAX / 2, u64::MAX] {
            for request in absurd_requests(amount) {
                let refusal = refused(&mut play, person(request.clone()));
                assert!(matches!(refusal, Refusal::Amount(_)), "{request:?}: {refusal:?}");
                assert!(refusal.to_string().contains(&AMOUNT_MAX.to_string()), "{refusal}");
            }
        }
    }
}

/// V10 (kernel side): a call with an absurd price is refused, even without a cost ceiling.
#[test]
fn a_call_whose_price_makes_it_absurd_is_refused() {
    let mut play = Scenario::grow("root / a");
    let effect = HoldFor::Model { model: None, input_tokens: 0, output_cap: Some(AMOUNT_MAX) };
    let refusal = refused(&mut play, person(Request::Hold(Hold { agent: name("a"), effect })));
    let error = AmountError::TooLarge { what: "cost".to_owned(), amount: AMOUNT_MAX + 1 };
    assert_eq!(refusal, Refusal::Amount(error));
}

/// V10 (kernel side): absurd times are also refused.
#[test]
fn timeouts_of_nothing_or_for_ever_are_refused() {
    let mut play = Scenario::grow("root / a");
    for ms in [0, limit::TIMEOUT_MS_MAX + 1, u64::MAX] {
        let wait = spinney_kernel::record::WaitFor::Message;
        let budget = BudgetSpec { timeout_ms: Some(ms), ..BudgetSpec::default() };
        for request in [
            Request::Wait(Wait { agent: name("a"), wait, timeout_ms: Some(ms) }),
            Request::Spawn(Spawn { budget, ..Scenario::spawn("root", "a") }),
        ] {
            let ms_max = limit::TIMEOUT_MS_MAX;
            assert_eq!(refused(&mut play, person(request)), Refusal::BadTimeout { ms, ms_max });
        }
    }
    let budget = BudgetSpec { answer_reserve: Some(91), ..BudgetSpec::default() };
    let refusal =
        refused(&mut play, person(Request::Spawn(Spawn { budget, ..Scenario::spawn("root", "a") })));
    assert_eq!(refusal, Refusal::BadReserve { percent: 91, percent_max: 90 });
}

type Damage = fn(&mut Definition);

/// V10 (kernel side): a definition with an absurd number anywhere starts no tree.
#[test]
fn a_definition_with_an_absurd_number_starts_no_tree() {
    const TOO_MUCH: u64 = AMOUNT_MAX + 1;
    let absurd = |price: fn(&mut Price)| {
        let mut one = Price::flat(1, 1);
        price(&mut one);
        one.check()
    };
    assert!(absurd(|price| price.input_per_mtok = TOO_MUCH).is_err());
    assert!(absurd(|price| price.cached_input_per_mtok = Some(TOO_MUCH)).is_err());
    assert!(absurd(|price| price.cache_write_per_mtok = Some(u64::MAX)).is_err());
    assert!(absurd(|price| price.cache_write_1h_per_mtok = Some(TOO_MUCH)).is_err());
    assert!(absurd(|price| price.reasoning_per_mtok = Some(TOO_MUCH)).is_err());
    let rates = Rates::flat(1, TOO_MUCH);
    assert!(
        absurd(|price| price.tiers.push(PriceTier { input_above: 1, rates: Rates::flat(TOO_MUCH, 1) }))
            .is_err()
    );
    let change = PriceChange { active: PriceActive::From(Time(1)), rates, tiers: Vec::new() };
    assert!(Price { changes: vec![change], ..Price::flat(1, 1) }.check().is_err());
    let damages: [Damage; 13] = [
        |tree| tree.budget.limit = tree.budget.limit.with(Resource::Cost, TOO_MUCH),
        |tree| tree.budget.limit = tree.budget.limit.with(Resource::Retries, u64::MAX),
        |tree| tree.budget.timeout_ms = Some(0),
        |tree| tree.budget.answer_reserve = Some(100),
        |tree| tree.roles[1].budget.limit = Ceilings::NONE.with(Resource::Tokens, TOO_MUCH),
        |tree| tree.roles[1].budget.timeout_ms = Some(u64::MAX),
        |tree| tree.models[0].price.as_mut().unwrap().output_per_mtok = TOO_MUCH,
        |tree| {
            let tier = PriceTier { input_above: 1, rates: Rates::flat(1, 1) };
            tree.models[0].price.as_mut().unwrap().tiers = vec![tier; limit::PRICE_RATES_MAX];
        },
        |tree| tree.limits = TreeLimits { depth_max: u32::MAX, ..tree.limits },
        |tree| tree.limits = TreeLimits { children_max: u32::MAX, ..tree.limits },
        |tree| tree.limits = TreeLimits { agents_max: 0, ..tree.limits },
        |tree| tree.limits = TreeLimits { parallel_max: 0, ..tree.limits },
        |tree| tree.goal = String::new(),
    ];
    let mut recorded = Vec::new();
    for damage in damages {
        let mut definition = fixture::definition(&fixture::plants("root $1.00 / a"));
        damage(&mut definition);
        let mut play = Scenario::seed();
        let start = Request::Start(Start::new(definition));
        recorded.push(refused(&mut play, person(start)).to_string());
        assert_eq!(play.world(), &World::new(play.world().tree()));
    }
    insta::assert_snapshot!(recorded.join("\n"), @"
    cost of 1000000000000001 is above the largest amount 1000000000000000: check the unit (cost is in nano-USD)
    retries of 18446744073709551615 is above the largest amount 1000000000000000: check the unit (cost is in nano-USD)
    a timeout of 0 ms is not between 1 and 31536000000: give one in that range or leave it out
    an answer reserve of 100 % is above 90 %: leave something for the children
    tokens of 1000000000000001 is above the largest amount 1000000000000000: check the unit (cost is in nano-USD)
    a timeout of 18446744073709551615 ms is not between 1 and 31536000000: give one in that range or leave it out
    output price of 1000000000000001 is above the largest amount 1000000000000000: check the unit (cost is in nano-USD)
    rates of a price: 257 is above the limit 256: use fewer
    limits.depth: 4294967295 is above the limit 100000: use fewer
    limits.children: 4294967295 is above the limit 1000000: use fewer
    limits.agents, limits.parallel and max_steps must be at least 1: with 0 the tree could do nothing
    limits.agents, limits.parallel and max_steps must be at least 1: with 0 the tree could do nothing
    the goal is empty
    ");
}

/// V10 (kernel side): a report with an absurd amount cannot be decoded; one that a driver constructs is settled at its
/// hold.
#[test]
fn an_absurd_report_never_reaches_an_account() {
    for amount in [AMOUNT_MAX + 1, u64::MAX] {
        for json in
            [format!(r#"{{"tokens":{{"output":{amount}}}}}"#), format!(r#"{{"cost_nanos":{amount}}}"#)]
        {
            let error = serde_json::from_str::<Used>(&json).unwrap_err().to_string();
            assert!(error.contains(&AMOUNT_MAX.to_string()), "{error}");
        }
        let split = Usage { input: amount, cached_input: amount, output: amount, ..Usage::default() };
        for used in [Used::Tokens(split), Used::CostNanos(amount)] {
            assert!(used.checked().is_err());
            let mut play = Scenario::grow("root $1.00 / a");
            play.run("call a $0.30");
            play.report(Report::Done(Done::new(CallId(1), 1, used, Body::default())));
            assert_eq!(play.view("root").spent, turn(300), "nobody believes it: the hold is the upper bound");
        }
    }
}

/// V10 (kernel side): sums of large valid amounts stay exact, and their journal can be read again.
#[test]
fn sums_above_the_largest_single_amount_can_be_read_again() {
    let mut play = Scenario::grow("root tokens=1000000000000000 $1.00 / a");
    let most = |resource| Amounts::ZERO.with(resource, AMOUNT_MAX);
    for _ in 0..3 {
        let raise = Request::Raise(Raise { agent: name("root"), add: most(Resource::Tokens), add_ms: 0 });
        assert!(matches!(play.ask(raise), Err(Refusal::Amount(AmountError::TooLarge { .. }))));
        play.must(Request::Charge(Charge {
            agent: name("a"),
            amounts: most(Resource::Steps),
            note: String::new(),
        }));
    }
    play.run("spawn root b as a\nfinish a ok\nfinish root ok");
    assert_eq!(play.view("root").spent, Amounts::ZERO.with(Resource::Steps, 3 * AMOUNT_MAX));
    for event in events(&play) {
        let json = serde_json::to_string(&event).unwrap();
        let read: Event = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
        assert_eq!(read, event);
    }
}
