//! Calls of programs outside the tree: they hold and settle like any call, wait where an agent of ours would end, and
//! are never made twice.

use spinney_kernel::budget::{Amounts, CacheWrites, Price, PriceTier, Resource, Usage, Used};
use spinney_kernel::context::Contexts;
use spinney_kernel::definition::{BudgetSpec, ModelSpec, OnLow, Refusal};
use spinney_kernel::primitives::{Actor, Body, CallId, Fault, FaultKind, Time, limit};
use spinney_kernel::record::{Event, HeldBy, Outcome, WaitReason, Work};
use spinney_kernel::rules::report::{Done, Failed, HeldBack, Lost, Report, Resumed};
use spinney_kernel::rules::request::{
    AddModel, Collect, Hold, HoldFor, HoldReply, Raise, Request, Spawn, Withdraw,
};
use spinney_kernel::world::TreeState;
use spinney_testkit::Scenario;

use crate::observed::{agent, attempts, events, name, outcomes, person, refused, running, taken};

/// A call of the model `m`, whose tokens cost $0.001 each.
fn call(agent: &str, tokens: u64) -> Hold {
    let effect = HoldFor::outside(name("m"), 0, tokens);
    Hold { agent: name(agent), effect }
}

fn done(play: &mut Scenario, id: u64, tokens: u64) {
    let used = Used::Tokens(Usage { output: tokens, ..Usage::default() });
    play.report(Report::Done(Done::new(CallId(id), 1, used, Body::text("an answer"))));
}

fn raise(agent: &str, tokens: u64) -> Raise {
    Raise { agent: name(agent), add: Amounts::cost(tokens * 1_000_000), add_ms: 0 }
}

/// G9: of 32 and 256 calls at 90 % of the ceiling, one runs at a time and the second that cannot fit halts the tree.
#[test]
fn g9_a_storm_of_outside_calls_never_spends_more_than_the_ceiling() {
    for calls in [32, 256] {
        let mut play = Scenario::grow("root $1.00");
        for _ in 0..calls {
            play.must(call("root", 900));
            assert!(taken(&play, "root", Resource::Cost) <= 1_000_000_000);
        }
        assert_eq!(running(&play), [CallId(1)], "the others wait in line");
        done(&mut play, 1, 900);
        assert_eq!(play.world().state(), TreeState::Halted);
        assert_eq!((running(&play), attempts(&play)), (Vec::new(), 1));
        assert_eq!(taken(&play, "root", Resource::Cost), 900_000_000);
    }
}

/// G11: at the ceiling nothing ends and nothing is refused: every call waits, and a raise lets them continue in order.
#[test]
fn g11_an_outside_call_that_cannot_fit_halts_the_tree_until_a_raise() {
    let mut play = Scenario::grow("root $1.00");
    assert_eq!(play.must(call("root", 900)), HoldReply::Started { call: CallId(1) });
    done(&mut play, 1, 900);
    assert_eq!(play.must(call("root", 400)), HoldReply::Waiting { call: CallId(2), why: WaitReason::Halted });
    assert_eq!(play.must(call("root", 50)), HoldReply::Waiting { call: CallId(3), why: WaitReason::Halted });
    assert_eq!(play.world().state(), TreeState::Halted);
    play.must(raise("root", 2_000));
    assert_eq!(running(&play), [CallId(2), CallId(3)]);
    assert_eq!(outcomes(&play).len(), 1, "only the first has ended");
}

/// G11: a call that is larger than the whole ceiling also waits: a person may raise it.
#[test]
fn g11_a_call_larger_than_the_whole_ceiling_waits_for_a_person() {
    let mut play = Scenario::grow("root $1.00");
    assert_eq!(
        play.must(call("root", 5_000)),
        HoldReply::Waiting { call: CallId(1), why: WaitReason::Halted }
    );
    play.must(raise("root", 3_000));
    assert_eq!(play.world().state(), TreeState::Halted, "it is still too large");
    play.must(raise("root", 1_000));
    assert_eq!(running(&play), [CallId(1)]);
}

/// G11: the account of a sub-agent halts the tree as well, and only its own raise continues it.
#[test]
fn g11_the_account_of_a_sub_agent_halts_the_tree_until_it_is_raised() {
    let mut play = Scenario::grow("root $9.00 / a $0.50");
    assert_eq!(play.must(call("a", 600)), HoldReply::Waiting { call: CallId(1), why: WaitReason::Halted });
    assert!(
        matches!(events(&play).iter().rev().nth(1), Some(Event::TreeHalted { account, .. }) if *account == name("a"))
    );
    play.must(raise("root", 1_000));
    assert_eq!(play.world().state(), TreeState::Halted);
    play.must(raise("a", 100));
    assert_eq!(running(&play), [CallId(1)]);
}

#[test]
fn a_withdrawn_call_ends_its_halt_and_the_others_go_on() {
    let mut play = Scenario::grow("root $1.00");
    play.must(call("root", 5_000));
    play.must(call("root", 300));
    play.must(Withdraw { agent: name("root"), call: CallId(1) });
    assert_eq!(outcomes(&play), [Outcome::Cancelled]);
    assert_eq!(running(&play), [CallId(2)]);
    let again =
        refused(&mut play, person(Request::Withdraw(Withdraw { agent: name("root"), call: CallId(1) })));
    assert_eq!(again, Refusal::NotWaiting { call: CallId(1) });
    let runs =
        refused(&mut play, person(Request::Withdraw(Withdraw { agent: name("root"), call: CallId(2) })));
    assert_eq!(runs, Refusal::NotWaiting { call: CallId(2) });
}

/// G11: what ran when the process died is presumed spent and not made again; what waited is dropped.
#[test]
fn g11_after_a_crash_outside_calls_are_presumed_spent_and_never_repeated() {
    let mut play = Scenario::grow("root $1.00");
    play.must(call("root", 600));
    play.must(call("root", 600));
    let since = play.now();
    play.report(Report::Resumed(Resumed { since }));
    play.report(Report::Lost(Lost { call: CallId(1), attempt: 1 }));
    assert_eq!(outcomes(&play), [Outcome::Cancelled, Outcome::Lost]);
    assert_eq!((running(&play), attempts(&play)), (Vec::new(), 1));
    assert_eq!(play.view("root").spent.get(Resource::Cost), 600_000_000);
}

#[test]
fn the_retries_of_an_outside_program_are_its_own() {
    let mut play = Scenario::grow("root $1.00");
    play.must(call("root", 600));
    let fault = Fault::new(FaultKind::Server);
    play.report(Report::Failed(Failed { call: CallId(1), attempt: 1, fault, used: Used::NOTHING }));
    assert_eq!(running(&play), []);
    assert!(matches!(outcomes(&play).as_slice(), [Outcome::Failed { .. }]));
    assert_eq!(play.view("root").spent.get(Resource::Cost), 0);
}

/// A tree whose calls have their output caps fitted to what is free.
fn shrinking(tree: &str) -> Scenario {
    Scenario::grow_as(tree, |tree| {
        tree.budget = BudgetSpec { on_low: Some(OnLow::Shrink), ..tree.budget.clone() };
    })
}

/// The output caps of the calls that started, in order.
fn caps(play: &Scenario) -> Vec<u64> {
    let world = play.world();
    let running = running(play).into_iter().filter_map(|id| match &world.call(id)?.work {
        Work::Model(work) => Some(work.output_cap),
        _ => None,
    });
    running.collect()
}

/// G21 (decision part): a call gets half of what is free, and those that come after it half of the rest, down to 4,096.
#[test]
fn g21_an_outside_call_leaves_half_of_what_is_free() {
    let mut play = shrinking("root $64.00");
    for _ in 0..5 {
        play.must(call("root", 128_000));
    }
    assert_eq!(caps(&play), [32_000, 16_000, 8_000, 4_096]);
    assert!(taken(&play, "root", Resource::Cost) <= 64_000_000_000);
    // The fifth waits until there is room for 4,096. No other call shares what is free.
    done(&mut play, 1, 10);
    assert_eq!(caps(&play), [16_000, 8_000, 4_096, (64_000 - 10 - 28_096) / 2]);
}

/// G21 (decision part): what is free is divided among the calls that wait.
#[test]
fn g21_waiting_calls_share_what_is_free() {
    let mut play = Scenario::grow_as("root $64.00", |tree| {
        tree.budget = BudgetSpec { on_low: Some(OnLow::Shrink), ..tree.budget.clone() };
        tree.limits.parallel_max = 1;
    });
    for _ in 0..4 {
        play.must(call("root", 128_000));
    }
    assert_eq!(caps(&play), [32_000], "no other call waited when it came");
    done(&mut play, 1, 0);
    assert_eq!(caps(&play), [64_000 / 2 / 3], "two more wait");
    done(&mut play, 2, 0);
    assert_eq!(caps(&play), [64_000 / 2 / 2]);
    done(&mut play, 3, 0);
    assert_eq!(caps(&play), [32_000]);
}

/// A call that asks for less than its share gets what it asks for.
#[test]
fn a_small_cap_is_not_changed() {
    let mut play = shrinking("root $10.00");
    play.must(call("root", 5_000));
    play.must(call("root", 300));
    assert_eq!(caps(&play), [5_000, 300]);
    assert!(!events(&play).iter().any(|event| matches!(event, Event::CallSwitched { .. })));
}

/// If the budget allows less than 4,096 tokens, a call gets what is left, down to 1,024. Below that the tree halts.
#[test]
fn shrink_lowers_the_cap_of_an_outside_call_but_never_to_a_stub() {
    let mut play = shrinking("root $3.00");
    play.must(call("root", 5_000));
    assert_eq!(caps(&play), [3_000]);
    let left = limit::OUTPUT_TOKENS_SHRUNK;
    done(&mut play, 1, 3_000 - left);
    play.must(call("root", 5_000));
    assert_eq!(caps(&play), [left]);
    done(&mut play, 2, 1);
    assert_eq!(
        play.must(call("root", 5_000)),
        HoldReply::Waiting { call: CallId(3), why: WaitReason::Halted }
    );
    // What it asks for is the least with which it would start.
    let short = play.world().halted().unwrap().short;
    assert_eq!(short.asked, limit::OUTPUT_TOKENS_FITTED * 1_000_000);
}

/// The provider refuses a smaller cap with some requests, so they halt sooner.
#[test]
fn a_cap_is_not_lowered_below_what_the_provider_takes() {
    let with_min = |output_cap_min| {
        let mut play = shrinking("root $1.10");
        let HoldFor::Outside { model, input_tokens, writes, request, .. } = HoldFor::outside(name("m"), 0, 0)
        else {
            unreachable!()
        };
        let output_cap = 5_000;
        let effect = HoldFor::Outside { model, input_tokens, output_cap, output_cap_min, writes, request };
        play.must(Hold { agent: name("root"), effect });
        caps(&play)
    };
    assert_eq!(with_min(0), [1_100]);
    assert_eq!(with_min(1_100), [1_100]);
    assert_eq!(with_min(1_101), [0_u64; 0]);
}

/// A call that waits for others to settle keeps the cap that it asked for.
#[test]
fn a_call_that_waits_is_fitted_when_it_starts() {
    let mut play = shrinking("root $10.00");
    play.must(call("root", 4_500));
    play.must(call("root", 4_500));
    let waiting = play.must(call("root", 4_500));
    assert!(
        matches!(waiting, HoldReply::Waiting { why: WaitReason::Budget { ask }, .. } if ask.get(Resource::Cost) == 4_096_000_000)
    );
    assert_eq!(caps(&play), [4_500, 4_096]);
    done(&mut play, 1, 0);
    assert_eq!(caps(&play), [4_096, 4_096]);
}

/// A call that a process limit held back is fitted to what is free when it starts again.
#[test]
fn a_call_that_was_held_back_gets_a_new_cap() {
    let mut play = shrinking("root $10.00");
    play.must(call("root", 5_000));
    play.must(call("root", 5_000));
    assert_eq!(caps(&play), [5_000, 4_096]);
    let until = Time(1_000_000);
    play.report(Report::HeldBack(HeldBack { call: CallId(2), attempt: 1, by: HeldBy::ModelRate, until }));
    done(&mut play, 1, 0);
    play.run("pass 1000s");
    assert_eq!(caps(&play), [5_000], "{}", play.log());
}

/// A request without cache markers is held at the rate of uncached input.
#[test]
fn a_hold_has_the_write_rate_that_the_request_can_cause() {
    let held = |writes| {
        let mut play = Scenario::grow_as("root $9.00", |tree| {
            let mut price = Price::flat(1_000_000, 0);
            (price.cache_write_per_mtok, price.cache_write_1h_per_mtok) = (Some(1_250_000), Some(2_000_000));
            price.tiers = vec![PriceTier { input_above: 200_000, rates: price.rates_at(Time(0), 0) }];
            tree.models.insert(name("m"), ModelSpec { price: Some(price), ..ModelSpec::default() });
        });
        let (input_tokens, output_cap, output_cap_min) = (1_000_000, 1, 0);
        let (model, request) = (name("m"), Body::default());
        let effect = HoldFor::Outside { model, input_tokens, output_cap, output_cap_min, writes, request };
        play.must(Hold { agent: name("root"), effect });
        play.view("root").held.get(Resource::Cost)
    };
    let holds = [CacheWrites::None, CacheWrites::Minutes, CacheWrites::Hour].map(held);
    assert_eq!(holds, [1_000_000, 1_250_000, 2_000_000]);
}

/// G40 (decision part): unreported usage is marked as presumed, at the agent and at every ancestor.
#[test]
fn g40_an_unknown_usage_is_presumed_up_the_chain() {
    let mut play = Scenario::grow("root $9.00 / a");
    play.must(call("a", 600));
    play.must(call("a", 300));
    play.must(call("root", 100));
    let fault = Fault::new(FaultKind::Cut);
    play.report(Report::Failed(Failed { call: CallId(1), attempt: 1, fault, used: Used::Unknown }));
    done(&mut play, 2, 200);
    play.report(Report::Lost(Lost { call: CallId(3), attempt: 1 }));
    let of = |agent: &str| {
        let view = play.view(agent);
        [view.spent, view.presumed]
            .map(|amounts| (amounts.get(Resource::Cost), amounts.get(Resource::Tokens)))
    };
    assert_eq!(of("a"), [(800_000_000, 800), (600_000_000, 600)]);
    assert_eq!(of("root"), [(900_000_000, 900), (700_000_000, 700)]);
    assert_eq!(play.view("root").presumed.get(Resource::Steps), 0, "what is counted is not presumed");
}

#[test]
fn an_agent_of_an_outside_program_is_spawned_in_a_halted_tree_and_at_a_spent_ceiling() {
    let mut play = Scenario::grow("root $1.00\nroot / a later");
    play.must(call("root", 1_000));
    done(&mut play, 1, 1_000);
    let spawn = |id: &str, collect| Spawn { id: Some(name(id)), collect, ..Scenario::spawn("root", "a") };
    refused(&mut play, person(Request::Spawn(spawn("x", Collect::Detached))));
    play.must(spawn("x", Collect::Outside));
    assert_eq!(play.must(call("x", 10)), HoldReply::Waiting { call: CallId(2), why: WaitReason::Halted });
    refused(&mut play, person(Request::Spawn(spawn("y", Collect::Detached))));
    play.must(spawn("y", Collect::Outside));
    let by_agent = refused(&mut play, agent("root", Request::Spawn(spawn("z", Collect::Outside))));
    assert!(matches!(by_agent, Refusal::PersonOnly { .. }));
}

#[test]
fn a_model_is_added_once_with_its_price_and_only_by_people() {
    let mut play = Scenario::grow("root $1.00");
    let price = play.world().definition().price(&name("m")).cloned();
    let add = |model: &str| AddModel {
        model: name(model),
        spec: Box::new(ModelSpec { price: price.clone(), ..ModelSpec::default() }),
    };
    play.must(add("p/new"));
    let exists = refused(&mut play, person(Request::AddModel(add("p/new"))));
    assert_eq!(exists, Refusal::ModelExists { model: name("p/new") });
    refused(&mut play, agent("root", Request::AddModel(add("p/other"))));
    let effect = HoldFor::outside(name("p/new"), 0, 100);
    assert_eq!(play.must(Hold { agent: name("root"), effect }), HoldReply::Started { call: CallId(1) });
    assert_eq!(taken(&play, "root", Resource::Cost), 100_000_000);
}

#[test]
fn an_added_model_without_a_price_is_refused_under_a_cost_ceiling() {
    let mut play = Scenario::grow("root $1.00");
    play.must(AddModel { model: name("p/free"), spec: Box::default() });
    let effect = HoldFor::outside(name("p/free"), 0, 100);
    let hold = Request::Hold(Hold { agent: name("root"), effect });
    assert_eq!(refused(&mut play, person(hold)), Refusal::Unpriced { model: name("p/free") });
}

#[test]
fn a_tree_has_at_most_256_models() {
    let mut play = Scenario::grow("root $1.00");
    let before = play.world().definition().models.len();
    let add = |at: usize| AddModel { model: name(&format!("p/m{at}")), spec: Box::default() };
    for at in before..limit::NAMES_MAX {
        play.must(add(at));
    }
    let more = refused(&mut play, person(Request::AddModel(add(limit::NAMES_MAX))));
    assert!(matches!(more, Refusal::TooMany { count, .. } if count == limit::NAMES_MAX + 1));
}

/// The context of an outside program is its own.
#[test]
fn what_an_outside_program_is_answered_is_no_message_of_its_agent() {
    let mut play = Scenario::grow("root $1.00");
    play.must(call("root", 100));
    done(&mut play, 1, 10);
    let tree = play.world().tree();
    let (mut contexts, mut whole) = (Contexts::new(tree), Contexts::whole(tree));
    for event in events(&play) {
        contexts.apply(&event);
        whole.apply(&event);
    }
    assert_eq!(contexts.messages(&name("root")).map(<[_]>::len), Some(0));
    assert_eq!(whole.messages(&name("root")).map(<[_]>::len), Some(0));
}

#[test]
fn only_the_agent_itself_or_a_person_withdraws_a_call() {
    let mut play = Scenario::grow("root $1.00 / a");
    play.must(call("root", 5_000));
    let other = Withdraw { agent: name("root"), call: CallId(1) };
    let refusal = refused(&mut play, agent("a", Request::Withdraw(other)));
    assert!(matches!(refusal, Refusal::NotYours { .. }));
    play.ask_as(Actor::Agent(name("root")), Withdraw { agent: name("root"), call: CallId(1) }).unwrap();
}
