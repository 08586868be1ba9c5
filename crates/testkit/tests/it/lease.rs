//! Leases: what a parent lends a child, what returns, and that the totals add up.

use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use spinney_kernel::budget::Resource;
use spinney_kernel::definition::{Refusal, TreeLimits};
use spinney_kernel::primitives::Body;
use spinney_kernel::record::{Effect, Event, Exit, Outcome, StopReason};
use spinney_kernel::rules::request::{Hold, HoldFor, Request, Spawn};
use spinney_testkit::{Scenario, check};

use crate::observed::{
    attempts, effects, ends, events, model_call, name, person, refused, running, taken, turn,
};

/// L20 (decision part): with nothing left, or nothing beyond the parent's reserve, no child is spawned and no model is
/// called.
#[test]
fn nothing_left_means_no_child_and_no_model_call() {
    for (fixture, script, account) in [
        ("root tokens=1000 / a", "charge root tokens=1000", "root"),
        ("root tokens=1000 reserve=10% / a", "charge root tokens=900", "root"),
        ("root $1.00 / a", "charge root $1.00", "root"),
        ("root steps=3 / a", "charge root steps=3", "root"),
        ("root tokens=1000 / a tokens=100", "charge a tokens=100", "a"),
    ] {
        let mut play = Scenario::grow(&format!("{fixture}\nroot / b"));
        play.run(script);
        let parent = if account == "a" { "a" } else { "root" };
        let spawn = Spawn { id: Some(name("c")), ..Scenario::spawn(parent, "b") };
        let refusal = refused(&mut play, person(Request::Spawn(spawn)));
        let Refusal::Ceiling { account: by, .. } = &refusal else { panic!("{refusal:?}") };
        assert_eq!((by.as_str(), attempts(&play)), (account, 0), "{fixture}");
    }
}

/// L21: of 1,000 a child uses 300: 700 remain, and its result reports 300.
#[test]
fn l21_what_a_child_used_is_reported_and_the_rest_remains() {
    let mut play = Scenario::grow("root tokens=1000 / a");
    play.run("call a $0.40\ndone #1 $0.30\nfinish a ok");
    assert_eq!(play.view("root").remaining.and_then(|left| left.get(Resource::Tokens)), Some(700));
    assert_eq!(ends(&play), [(name("a"), Exit::Completed, turn(300))]);
}

/// L22: two children that would use 500 each on 800 tokens, in any order of asking, ending and failing: never more than
/// 800.
#[test]
fn l22_two_children_never_use_more_than_there_is_in_any_interleaving() {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let config = Config { cases: 1_000, failure_persistence: None, ..Config::default() };
    let steps = vec(any::<u8>(), 4..24);
    TestRunner::new_with_rng(config, rng)
        .run(&steps, |steps| {
            interleave(&steps);
            Ok(())
        })
        .unwrap();
}

fn interleave(steps: &[u8]) {
    let mut play = Scenario::grow_as("root tokens=800 / a\nroot / b", |tree| tree.models[0].fallback.clear());
    for step in steps {
        let agent = if step & 1 == 0 { "a" } else { "b" };
        match (step >> 1) % 4 {
            0 | 1 => drop(play.ask(model_call(agent, 500))),
            2 => report(&mut play, step >> 3, "done"),
            _ => report(&mut play, step >> 3, "failed"),
        }
        assert!(taken(&play, "root", Resource::Tokens) <= 800, "{}", play.log());
    }
    while !running(&play).is_empty() {
        report(&mut play, 0, "done");
        assert!(taken(&play, "root", Resource::Tokens) <= 800, "{}", play.log());
    }
}

/// Ends one of the running calls at all, half or nothing of what it may use.
fn report(play: &mut Scenario, pick: u8, how: &str) {
    let running = running(play);
    let Some(call) = running.get(usize::from(pick) % running.len().max(1)) else { return };
    let used = ["$0.50", "$0.25", "$0.00"][usize::from(pick) % 3];
    play.run(&format!("{how} #{} {}{used}\npass 60s", call.0, if how == "failed" { "cut " } else { "" }));
}

/// L22: with a hundred children on leases, lent plus spent never exceeds the whole, and at the end spent plus remaining
/// is the whole.
#[test]
fn l22_a_hundred_leases_and_what_is_spent_are_never_more_than_the_whole() {
    let whole = 10_000;
    let mut play = Scenario::grow_as("root tokens=10000 / c later", |definition| {
        definition.limits = TreeLimits { children_max: 200, parallel_max: 200, ..definition.limits };
    });
    let check = |play: &Scenario| {
        let root = play.world().agents().root().unwrap();
        let account = play.world().ledger().account(play.world().agents().agent(root).account);
        let (spent, lent) = (account.spent.get(Resource::Tokens), account.lent.get(Resource::Tokens));
        assert!(spent + lent <= whole, "spent {spent}, lent {lent}");
        spent
    };
    for child in 0..100 {
        play.run(&format!("spawn root c{child} as c tokens={} lend\ncall c{child} $0.05", 50 + child / 2));
        play.run(&format!("spawn root too-much as c tokens={} lend", whole - child * 50));
        check(&play);
    }
    assert_eq!(running(&play).len(), 100);
    let mut expected = 0;
    for call in running(&play) {
        let used = call.0 % 50;
        play.run(&format!("done #{} $0.{used:03}\nfinish c{} ok", call.0, call.0 - 1));
        expected += used;
        assert_eq!(check(&play), expected);
    }
    let root = play.view("root");
    let (spent, left) =
        (root.spent.get(Resource::Tokens), root.remaining.and_then(|left| left.get(Resource::Tokens)));
    assert_eq!((spent, left), (expected, Some(whole - expected)));
}

/// L23 (decision part): a child that used more than its lease stops at its next call, ends marked as exhausted, and its
/// true usage is booked.
#[test]
fn l23_a_child_that_exceeds_its_lease_stops_at_the_next_call() {
    let script = "call a $0.15\ndone #2 $0.25\ncall a $0.02";
    insta::assert_snapshot!(check("root tokens=1000 / a tokens=200 lend attached", script), @"
    #2 asked by a
    #2 started: held $0.15 tokens=150 steps=1
    #2 ended: done, spent $0.25 tokens=250 steps=1, overrun $0.10 tokens=100
    #3 asked by a
    #3 ended: refused (tokens ceiling of `a`: limit 200, spent 250, held 0, asked 20: answer with what you have, or ask for less), spent nothing
    a ended: exhausted (tokens of a), spent $0.25 tokens=250 steps=1
    #1 ended: children a exhausted, spent nothing
    root idle, spent $0.25 tokens=250 steps=1, overrun $0.10 tokens=50, of tokens=1000
      a exhausted, spent $0.25 tokens=250 steps=1
    ");
}

/// L23 (decision part): the last text of such a child is returned with its end: the event names its position.
#[test]
fn l23_the_last_thing_an_exhausted_child_said_is_its_partial_result() {
    let mut play = Scenario::grow("root tokens=1000 / a tokens=200 lend");
    play.run("call a $0.10\ndone #1 $0.10\ncall a $0.09\ndone #2 $0.09\ncall a $0.02");
    let all = events(&play);
    let Some(Event::AgentEnded { exit, result, said: Some(seq), .. }) = all.last() else {
        panic!("{:?}", all.last());
    };
    assert_eq!((exit.as_str(), result), ("exhausted", &None));
    let said = usize::try_from(seq.0 - 1).ok().and_then(|at| all.get(at));
    let body = Body::text("ok");
    let last = |event: &Event| {
        matches!(event, Event::CallEnded { call, outcome, .. }
            if call.0 == 2 && *outcome == Outcome::Done { body: body.clone(), asks: Vec::new(), is_error: false, mismatch: None, stop: StopReason::End, files: Vec::new(), removed: Vec::new(), exit: None })
    };
    assert!(said.is_some_and(last), "{said:?}");
}

/// L24 (decision part): a child that fails, times out or is cancelled after 200 tokens has used 200, and the rest of
/// its lease returns.
#[test]
fn a_child_that_ends_badly_returns_the_rest_of_its_lease() {
    for ending in [
        "call a $0.20\ndone #1 $0.20\nfail a broken",
        "call a $0.20\ndone #1 $0.20\npass 5s",
        "call a $0.20\ndone #1 $0.20\ncancel a",
        "call a $0.40\nfail a broken\nfailed #1 stopped $0.20",
        "call a $0.40\npass 5s\nfailed #1 stopped $0.20",
        "call a $0.40\ncancel a\nfailed #1 stopped $0.20",
    ] {
        let mut play = Scenario::grow("root tokens=1000 / a tokens=500 lend timeout=5s");
        assert_eq!(play.view("root").remaining.and_then(|left| left.get(Resource::Tokens)), Some(500));
        play.run(ending);
        let root = play.view("root");
        let (spent, left) =
            (root.spent.get(Resource::Tokens), root.remaining.and_then(|left| left.get(Resource::Tokens)));
        assert_eq!((spent, left), (200, Some(800)), "{ending}");
        assert_eq!(play.view("a").spent.get(Resource::Tokens), 200, "{ending}");
    }
}

/// L25 (decision part): with 150 tokens left of its lease, no request to a provider asks for more than 150; the input
/// counts as well.
#[test]
fn l25_the_provider_is_never_asked_for_more_than_the_lease_has_left() {
    for (on_low, input_tokens, cap) in [("shrink", 0, Some(150)), ("shrink", 40, Some(110)), ("", 0, None)] {
        let mut play = Scenario::grow(&format!("root tokens=5000 / a tokens=400 lend {on_low}"));
        play.run("call a $0.25\ndone #1 $0.25");
        let effect = HoldFor::Model { model: None, input_tokens, output_cap: None };
        play.must(Request::Hold(Hold { agent: name("a"), effect }));
        let event = events(&play).into_iter().rev().find(|event| matches!(event, Event::CallStarted { .. }));
        let asked = event.and_then(|event| play.world().effect_of(&event)).and_then(|effect| match effect {
            Effect::CallModel { output_cap, .. } => Some(output_cap),
            Effect::CallTool { .. } | Effect::StopCalls { .. } | Effect::SetTimer { .. } => None,
        });
        assert_eq!(asked, cap, "{on_low}");
    }
}

/// L26 (decision part): a grandchild's usage reduces what child, parent and root have left, exactly once each.
#[test]
fn a_grandchild_reduces_every_view_exactly_once() {
    let mut play = Scenario::grow("root tokens=1000 / a tokens=800 / b tokens=600 / c");
    let recorded = effects(&mut play, "call c $0.20");
    assert_eq!(recorded.len(), 1);
    play.run("done #1 $0.15\nfinish c ok");
    let left = |agent: &str| play.view(agent).remaining.and_then(|left| left.get(Resource::Tokens));
    assert_eq!([left("root"), left("a"), left("b")], [Some(850), Some(650), Some(450)]);
    for agent in ["root", "a", "b", "c"] {
        assert_eq!(play.view(agent).spent, turn(150), "{agent}");
    }
}
