//! Adjusting a tree: what holds for all of it from now on.

use spinney_kernel::budget::{Amounts, Ceilings, Resource, Usage, Used};
use spinney_kernel::definition::{OnLow, Refusal};
use spinney_kernel::primitives::{Body, CallId, SourceFiles};
use spinney_kernel::record::{Event, Outcome};
use spinney_kernel::rules::report::{Done, Report};
use spinney_kernel::rules::request::{Adjust, Hold, HoldFor, Raise, Request};
use spinney_kernel::world::TreeState;
use spinney_testkit::Scenario;

use crate::observed::{agent, events, name, person, refused, running};

const NOTHING: Adjust = Adjust {
    limit: Ceilings::NONE,
    parallel_max: None,
    on_low: None,
    timeout_ms: None,
    sources: SourceFiles::NONE,
};

/// A call of the model `m`, whose tokens cost $0.001 each.
fn call(agent: &str, tokens: u64) -> Hold {
    Hold { agent: name(agent), effect: HoldFor::outside(name("m"), 0, tokens) }
}

fn done(play: &mut Scenario, id: u64, tokens: u64) {
    let used = Used::Tokens(Usage { output: tokens, ..Usage::default() });
    play.report(Report::Done(Done::new(CallId(id), 1, used, Body::text("an answer"))));
}

/// A ceiling on cost of so many tokens of the model `m`.
fn at_most(tokens: u64) -> Adjust {
    Adjust { limit: Ceilings::NONE.with(Resource::Cost, tokens * 1_000_000), ..NOTHING }
}

#[test]
fn a_higher_ceiling_lets_a_halted_tree_go_on() {
    let mut play = Scenario::grow("root $1.00");
    play.must(call("root", 900));
    done(&mut play, 1, 900);
    play.must(call("root", 400));
    assert_eq!(play.world().state(), TreeState::Halted);
    play.must(at_most(1_200));
    assert_eq!(play.world().state(), TreeState::Halted, "that is not enough");
    play.must(at_most(1_300));
    assert_eq!(running(&play), [CallId(2)]);
}

/// A ceiling may fall to what is used, held and lent, and not below it.
#[test]
fn a_lower_ceiling_is_refused_below_what_is_used() {
    let mut play = Scenario::grow("root $5.00");
    play.must(call("root", 900));
    done(&mut play, 1, 800);
    play.must(call("root", 100));
    let refusal = refused(&mut play, person(Request::Adjust(at_most(899))));
    let Refusal::CeilingBelowUse { account, short } = &refusal else { panic!("{refusal}") };
    assert_eq!(
        (account.as_str(), short.limit, short.spent, short.held),
        ("root", 899_000_000, 800_000_000, 100_000_000)
    );
    play.must(at_most(900));
    done(&mut play, 2, 100);
    play.must(call("root", 1));
    assert_eq!(play.world().state(), TreeState::Halted);
}

/// A reserve is a share of the ceiling, also after the ceiling fell to almost nothing and rose again.
#[test]
fn a_reserve_falls_and_rises_with_its_ceiling() {
    for reserve in ["20%", "default"] {
        let mut play = Scenario::grow(&format!("root $5.00 reserve={reserve} / a"));
        play.must(Adjust { limit: Ceilings::NONE.with(Resource::Cost, 1), ..NOTHING });
        play.must(call("a", 100));
        let halt = play.world().halted().cloned().unwrap();
        assert_eq!(play.world().state(), TreeState::Halted);
        let add = Amounts::ZERO.with(Resource::Cost, halt.short.missing());
        play.must(Raise { agent: name("root"), add, add_ms: 0 });
        assert_eq!(running(&play), [CallId(1)], "{reserve}");
    }
}

/// A tree without a ceiling gets one, and everything below is bound by it.
#[test]
fn a_first_ceiling_binds_agents_that_are_there() {
    let mut play = Scenario::grow("root / child");
    play.must(call("child", 700));
    let refusal = refused(&mut play, person(Request::Adjust(at_most(699))));
    assert!(matches!(refusal, Refusal::CeilingBelowUse { .. }), "{refusal}");
    play.must(at_most(1_000));
    done(&mut play, 1, 700);
    play.must(call("child", 400));
    assert_eq!(play.world().state(), TreeState::Halted);
    play.must(Raise { agent: name("root"), add: Amounts::cost(100_000_000), add_ms: 0 });
    assert_eq!(running(&play), [CallId(2)]);
}

/// A call that waits on a model without a price does not start under a first ceiling on cost.
#[test]
fn a_first_ceiling_on_cost_refuses_a_waiting_call_without_a_price() {
    let mut play = Scenario::grow("root tokens=1000");
    play.must(call("root", 1_000));
    play.must(Hold { agent: name("root"), effect: HoldFor::outside(name("free"), 0, 900) });
    play.must(at_most(5_000));
    done(&mut play, 1, 10);
    assert_eq!(running(&play), []);
    let refused = |event: &Event| {
        matches!(
            event,
            Event::CallEnded { outcome: Outcome::Refused { refusal: Refusal::Unpriced { .. } }, .. }
        )
    };
    assert!(events(&play).iter().any(refused), "{:?}", events(&play));
}

/// The same for a retry: the price is missing, whatever the fault of the attempt before was.
#[test]
fn a_first_ceiling_on_cost_refuses_a_retry_without_a_price() {
    let mut play = Scenario::grow_as("root tokens=9000", |definition| definition.models[2].fallback.clear());
    play.run("call root $1.00 model=free\nfailed #1 server");
    play.must(at_most(5_000));
    play.run("pass 5s");
    insta::assert_snapshot!(play.log(), @"
    #1 asked by root
    #1 started: held tokens=1000 steps=1
    #1 attempt failed: Server, spent nothing
    #1 waiting: backoff until 1371
    root adjusted: $5.00
    #1 ended: refused (model `free` has no known price and cost has a ceiling: give it a price, or set `unpriced: allow`), spent nothing
    ");
}

/// What happens to a call that does not fit may change, for agents that are there and for later ones.
#[test]
fn a_call_that_did_not_fit_gets_a_smaller_cap_when_that_is_allowed() {
    let mut play = Scenario::grow("root $5.00");
    play.must(call("root", 9_000));
    assert_eq!(play.world().state(), TreeState::Halted);
    play.must(Adjust { on_low: Some(OnLow::Shrink), ..NOTHING });
    assert_eq!(running(&play), [CallId(1)]);
    let switched =
        events(&play).into_iter().any(|event| matches!(event, Event::CallSwitched { output_cap: 4_096, .. }));
    assert!(switched, "{:?}", events(&play));
    done(&mut play, 1, 10);
    play.must(Adjust { on_low: Some(OnLow::Halt), ..NOTHING });
    play.must(call("root", 9_000));
    assert_eq!(play.world().state(), TreeState::Halted);
}

#[test]
fn more_calls_run_when_more_may() {
    let mut play = Scenario::grow("root $5.00");
    play.must(Adjust { parallel_max: Some(1), ..NOTHING });
    play.must(call("root", 10));
    play.must(call("root", 10));
    assert_eq!(running(&play), [CallId(1)]);
    play.must(Adjust { parallel_max: Some(2), ..NOTHING });
    assert_eq!(running(&play), [CallId(1), CallId(2)]);
    for bad in [0, u32::MAX] {
        refused(&mut play, person(Request::Adjust(Adjust { parallel_max: Some(bad), ..NOTHING })));
    }
}

/// A timeout counts from the start, whenever it is set. A first one begins when it is set.
#[test]
fn a_timeout_is_set_for_the_whole_time() {
    let mut play = Scenario::grow("root $5.00");
    play.must(Adjust { timeout_ms: Some(10_000), ..NOTHING });
    play.pass(4_000);
    let refusal = refused(&mut play, person(Request::Adjust(Adjust { timeout_ms: Some(4_000), ..NOTHING })));
    assert_eq!(refusal, Refusal::TimeoutBelowUse { agent: name("root"), ms: 4_000, used_ms: 4_000 });
    play.must(Adjust { timeout_ms: Some(6_000), ..NOTHING });
    let clocks: Vec<u64> = events(&play)
        .iter()
        .filter_map(|event| match event {
            Event::ClockSet { left_ms, alarm: Some(_), .. } => Some(*left_ms),
            _ => None,
        })
        .collect();
    assert_eq!(clocks, [10_000, 2_000]);
}

#[test]
fn only_a_person_adjusts_a_tree_and_never_to_nothing() {
    let mut play = Scenario::grow("root $5.00");
    assert_eq!(refused(&mut play, person(Request::Adjust(NOTHING))), Refusal::AdjustsNothing);
    let refusal = refused(&mut play, agent("root", Request::Adjust(at_most(9_000))));
    assert!(matches!(refusal, Refusal::PersonOnly { .. }), "{refusal}");
    let downgrade = OnLow::Downgrade(name("unknown"));
    let refusal = refused(&mut play, person(Request::Adjust(Adjust { on_low: Some(downgrade), ..NOTHING })));
    assert!(matches!(refusal, Refusal::UnknownModel { .. }), "{refusal}");
}

/// A halt names everything that the call lacks, so one round of raises is enough.
#[test]
fn g17_a_halt_names_every_ceiling_that_the_call_lacks() {
    let mut play = Scenario::grow("root $1.00 steps=1 tokens=1000");
    play.must(call("root", 900));
    done(&mut play, 1, 900);
    play.must(call("root", 400));
    let halt = play.world().halted().cloned().unwrap();
    let lacks: Vec<(Resource, u64)> =
        halt.shortfalls().map(|(_, short)| (short.resource, short.missing())).collect();
    assert_eq!(lacks, [(Resource::Cost, 300_000_000), (Resource::Tokens, 300), (Resource::Steps, 1)]);
    let add = lacks.iter().fold(Amounts::ZERO, |add, (resource, more)| add.with(*resource, *more));
    play.must(Raise { agent: name("root"), add, add_ms: 0 });
    assert_eq!(running(&play), [CallId(2)]);
}
