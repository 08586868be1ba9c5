//! Fixed bugs, each with the script that showed it.

use spinney_kernel::budget::{Amounts, Resource, nanos_from_usd};
use spinney_kernel::record::RULES;
use spinney_kernel::rules::report::{Report, Timer};
use spinney_kernel::rules::request::Accepted;
use spinney_kernel::world::TreeState;
use spinney_testkit::{Scenario, check};

use crate::observed::name;

fn cost(play: &Scenario, name: &str) -> (u64, u64) {
    let view = play.view(name);
    (view.spent.get(Resource::Cost), view.held.get(Resource::Cost))
}

fn usd(text: &str) -> u64 {
    nanos_from_usd(text).unwrap_or_else(|error| panic!("{error}"))
}

/// What runs below a borrower stays claimed above it, even after outside spending used up what it was lent.
#[test]
fn a_charge_on_a_borrower_does_not_free_what_runs_below_it() {
    let mut play = Scenario::grow("root $1.00 / l $0.50 lend\nroot / b");
    play.run("call l $0.50\ncharge l $0.50\ncall b $0.50\ndone #1 $0.50");
    assert_eq!(cost(&play, "root"), (usd("1.00"), 0));
    assert!(play.log().contains("#2 ended: refused"), "{}", play.log());
}

#[test]
fn an_overrun_of_a_borrower_does_not_free_what_runs_below_it() {
    let mut play = Scenario::grow("root $1.00 / l $0.50 lend\nroot / b");
    play.run("call l $0.25\ncall l $0.25\ndone #1 $0.50\ncall b $0.50");
    assert_eq!(cost(&play, "root"), (usd("0.50"), usd("0.00")), "the second hold is claimed as lent");
    assert!(play.log().contains("#3 ended: refused"), "{}", play.log());
}

/// Lent money returns: no agent ends and nothing halts because of it.
#[test]
fn what_is_only_lent_halts_no_tree_and_ends_no_agent() {
    insta::assert_snapshot!(check("root $1.00 / l $0.80 lend", "call root $0.25\ncall l $0.10\nfinish l ok\ncall root $0.25"), @"
    #1 asked by root
    #1 ended: refused (cost ceiling of `root`: limit $1.00, spent $0.00, held $0.00, lent $0.80, asked $0.25: answer with what you have, or ask for less), spent nothing
    #2 asked by l
    #2 started: held $0.10 tokens=100 steps=1
    l ending: completed
    #3 asked by root
    #3 ended: refused (cost ceiling of `root`: limit $1.00, spent $0.00, held $0.00, lent $0.80, asked $0.25: answer with what you have, or ask for less), spent nothing
    root idle, held tokens=100 steps=1, lent $0.80, of $1.00
      l ending, held $0.10 tokens=100 steps=1, of $0.80
    ");
    insta::assert_snapshot!(check("root $5.00 / p $1.00 / l $0.80 lend", "call l $0.10\ncall p $0.25"), @"
    #1 asked by l
    #1 started: held $0.10 tokens=100 steps=1
    #2 asked by p
    #2 ended: refused (cost ceiling of `p`: limit $1.00, spent $0.00, held $0.00, lent $0.80, asked $0.25: answer with what you have, or ask for less), spent nothing
    root idle, held tokens=100 steps=1, lent $0.80, of $5.00
      p idle, held tokens=100 steps=1, lent $0.80, of $1.00
        l running, held $0.10 tokens=100 steps=1, of $0.80
    ");
}

/// A long line at one account does not affect its siblings.
#[test]
fn a_flood_of_one_agent_does_not_starve_its_siblings() {
    let mut play = Scenario::grow("root $10.00 / a $0.50\nroot / b");
    for _ in 0..21 {
        play.run("call a $0.50");
    }
    play.run("call b $0.10\ncall root $0.10");
    assert_eq!(play.view("b").status.to_string(), "running");
    assert_eq!(play.view("root").status.to_string(), "running");
}

/// An agent that asks for more than there ever was ends alone.
#[test]
fn an_oversized_ask_does_not_freeze_the_tree() {
    let mut play = Scenario::grow("root $1.00 / a\nroot / b");
    play.run("call a $1.50\ncall b $0.10");
    assert_eq!(play.view("a").status.to_string(), "exhausted");
    assert_eq!(play.view("b").status.to_string(), "running");
}

/// A halt ends with the call that asked for more.
#[test]
fn a_tree_continues_when_the_call_that_halted_it_is_dropped() {
    insta::assert_snapshot!(
        check("root $1.00 / a\nroot / b", "charge root $0.80\ncall a $0.50\ncall b $0.10\ncancel a"), @"
    root charged $0.80
    #1 asked by a
    tree halted: cost of root
    #1 waiting: halted
    #2 asked by b
    #2 waiting: halted
    #1 ended: cancelled, spent nothing
    a ended: cancelled (), spent nothing
    tree unhalted
    #2 started: held $0.10 tokens=100 steps=1
    root idle, spent $0.80, held $0.10 tokens=100 steps=1, of $1.00
      a cancelled
      b running, held $0.10 tokens=100 steps=1, of $1.00
    ");
}

/// Crashes use up no retries.
#[test]
fn lost_attempts_do_not_count_as_faults() {
    let mut play = Scenario::grow("root $9.00 / a");
    play.run("call a $0.10 model=cheap\nlost #1\nlost #1\nlost #1\nfailed #1 server");
    assert_eq!(play.view("a").status.to_string(), "waiting: backoff");
}

/// A call that is lost repeatedly may be what kills the process.
#[test]
fn a_call_that_is_always_lost_is_given_up() {
    let mut play = Scenario::grow("root / a");
    play.run("tool a read repeatable");
    for _ in 0..20 {
        play.run("lost #1");
    }
    assert!(play.log().ends_with("stale"), "{}", play.log());
    assert_eq!(play.view("a").status.to_string(), "idle");
}

/// A model may set the number of losses.
#[test]
fn a_model_says_how_often_a_lost_call_is_started_again() {
    for (losses_max, lost) in [(Some(0), 1), (Some(3), 4), (None, 9)] {
        let mut play = Scenario::grow_as("root $9.00 / a", |definition| {
            definition.models.values_mut().for_each(|model| model.losses_max = losses_max);
        });
        play.run("call a $0.10 model=cheap");
        for death in 1..lost {
            play.run("lost #1");
            assert_eq!(play.view("a").status.to_string(), "running", "{losses_max:?} after {death} deaths");
        }
        play.run("lost #1");
        assert_eq!(play.view("a").status.to_string(), "idle", "{losses_max:?}");
    }
}

/// A retry that does not fit is refused as any call is: its agent is exhausted and names the ceiling. Before rules 6
/// the call ended with its fault.
#[test]
fn a_retry_that_does_not_fit_is_refused_like_any_call() {
    let script = "call a $1.00 model=cheap\nfailed #1 server $0.10\npass 5s";
    let mut play = Scenario::grow("root $1.00 / a $0.15");
    play.run(script);
    insta::assert_snapshot!(play.log(), @"
    #1 asked by a
    #1 started: held $0.10 tokens=1000 steps=1
    #1 attempt failed: Server, spent $0.10 tokens=1000
    #1 waiting: backoff until 1371
    #1 ended: refused (cost ceiling of `a`: limit $0.15, spent $0.10, held $0.00, asked $0.10: answer with what you have, or ask for less), spent nothing
    a ended: exhausted (cost of a), spent $0.10 tokens=1000
    ");
    let mut play = Scenario::grow_under(5, "root $1.00 / a $0.15");
    play.run(script);
    assert!(play.log().ends_with("#1 ended: failed (Server), spent nothing"), "{}", play.log());
    assert_eq!(play.view("a").status.to_string(), "idle");
}

/// A retry or a fallback that does not fit under the root's ceiling halts the tree, and is made after a raise.
#[test]
fn a_retry_that_does_not_fit_halts_the_tree_until_a_raise() {
    for fallback in [None, Some("m")] {
        let mut play = Scenario::grow_as("root $0.15", |definition| {
            definition.models[0].fallback.clear();
            definition.models[1].fallback = fallback.into_iter().map(name).collect();
        });
        play.run("call root $1.00 model=cheap\nfailed #1 server $0.10\npass 5s");
        assert_eq!(play.world().state(), TreeState::Halted, "{}", play.log());
        let halt = play.world().halted().unwrap();
        assert_eq!((halt.account.as_str(), halt.short.spent), ("root", usd("0.10")), "{fallback:?}");
        play.run("raise root $9.00");
        assert_eq!(play.view("root").status.to_string(), "running", "{}", play.log());
        play.run("done #1 $0.01");
        assert_eq!(play.view("root").spent.get(Resource::Retries), 1, "{fallback:?}");
    }
}

/// A tree without retries left reports the fault, even if money is short as well.
#[test]
fn without_retries_left_a_call_ends_with_its_fault() {
    let mut play =
        Scenario::grow_as("root $0.15 retries=0 / a", |definition| definition.models[1].fallback.clear());
    play.run("call a $1.00 model=cheap\nfailed #1 server $0.10\npass 5s");
    assert!(play.log().ends_with("#1 ended: failed (Server), spent $0.10 tokens=1000"), "{}", play.log());
}

/// The same if another call took the last retry while this one waited for its own.
#[test]
fn a_call_whose_retry_was_taken_by_another_ends_with_its_fault() {
    let mut play = Scenario::grow_as("root $9.00 retries=1 / a / b", |definition| {
        definition.models[1].fallback.clear();
    });
    play.run(
        "call a $0.10 model=cheap\ncall b $0.10 model=cheap\nfailed #1 server\nfailed #2 server\npass 5s\ndone #1",
    );
    insta::assert_snapshot!(play.log(), @"
    #1 asked by a
    #1 started: held $0.01 tokens=100 steps=1
    #2 asked by b
    #2 started: held $0.01 tokens=100 steps=1
    #1 attempt failed: Server, spent nothing
    #1 waiting: backoff until 1371
    #2 attempt failed: Server, spent nothing
    #2 waiting: backoff until 1391
    #1 started again (2): held $0.01 tokens=100 steps=1 retries=1
    #2 waiting: budget of a
    #1 ended: done, spent steps=1 retries=1
    #2 ended: failed (Server), spent nothing
    ");
}

/// The retry of a tool call that does not fit ends the call with its fault: its agent can continue without it.
#[test]
fn a_tool_whose_retry_does_not_fit_ends_with_its_fault() {
    let mut play = Scenario::grow("root $1.00 / a $0.15");
    play.run("tool a read repeatable $0.10\nfailed #1 timeout $0.10 after=10ms\npass 10ms");
    insta::assert_snapshot!(play.log(), @"
    #1 asked by a
    #1 started: held $0.10 tool_calls=1
    #1 attempt failed: Timeout, spent $0.10 tool_calls=1
    #1 waiting: backoff until 1010
    #1 ended: failed (Timeout), spent nothing
    ");
    assert_eq!(play.view("a").status.to_string(), "idle");
}

/// A retry that comes too late is refused for time. Before rules 6 it ended with the fault of the attempt before.
#[test]
fn a_retry_that_comes_too_late_is_refused_for_time() {
    let outcome = |rules: u32| {
        let mut play = Scenario::grow_under(rules, "root $9.00 timeout=5s turns=5");
        play.run("failed #1 rate_limit after=4s");
        // The timer of the retry fires after the time of the tree, whose own timer fires later.
        play.pass(6_000);
        let retry = play.world().alarms().min_by_key(|alarm| alarm.at).unwrap().timer;
        play.report(Report::Timer(Timer { timer: retry }));
        play.log().lines().last().unwrap().to_owned()
    };
    assert_eq!(outcome(RULES), "root ended: failed (timeout), spent nothing");
    assert_eq!(outcome(5), "root ended: failed (model_rate_limit), spent nothing");
}

/// An agent whose time is over ends because of that when its call is lost, even if no timer fired before. Before rules 6
/// it ended because of the call.
#[test]
fn a_call_that_is_lost_too_late_ends_its_agent_because_of_time() {
    for (rules, end) in [(RULES, "timeout"), (5, "model_lost")] {
        let mut play = Scenario::grow_under(rules, "root $9.00 wall=5s turns=5");
        play.pass(6_000);
        play.run("lost #1");
        let log = play.log();
        assert!(log.contains(&format!("root ended: failed ({end}")), "{rules}: {log}");
    }
}

/// Freed slots go to the calls that waited longest.
#[test]
fn a_fallback_does_not_jump_the_queue_for_a_slot() {
    let mut play = Scenario::grow_as("root / a\nroot / b", |definition| definition.limits.parallel_max = 1);
    play.run("call a $0.10\ncall b $0.10\nfailed #1 server");
    assert_eq!(play.view("a").status.to_string(), "running", "the older call keeps its place");
    play.run("call a $0.10\ndone #1 $0.10");
    assert_eq!(play.view("b").status.to_string(), "running");
}

/// A cheaper model does not help against a shortage of steps.
#[test]
fn a_shortage_of_steps_switches_no_model() {
    let mut play = Scenario::grow("root / a steps=0 downgrade=cheap");
    play.run("call a $0.10");
    assert!(!play.log().contains("switched"), "{}", play.log());
}

/// A reserve that the file sets as a share grows with its ceiling.
#[test]
fn a_raise_raises_the_reserve_too() {
    let mut play = Scenario::grow("root $1.00 reserve=10% / a");
    let add = Amounts::cost(usd("9.00"));
    let raise = spinney_kernel::rules::request::Raise { agent: "root".parse().unwrap(), add, add_ms: 0 };
    assert_eq!(play.ask(raise), Ok(Accepted {}));
    play.run("call a $9.00");
    assert_eq!(play.view("a").status.to_string(), "running");
    play.run("done #1 $9.00\ncall a $0.10");
    assert_eq!(play.view("a").status.to_string(), "exhausted");
}

/// A call that starts may block a waiting call at another account. The calls behind that one continue at once.
#[test]
fn a_call_behind_one_that_is_now_blocked_elsewhere_starts() {
    let mut play = Scenario::grow("root $1.00 / p tool_calls=1 / a\np / c\nroot / b\nroot / x");
    play.run("call x $0.50\nsuspend\ntool a read $0.60\ncall b $0.40\ntool c read\ncontinue");
    insta::assert_snapshot!(play.log(), @"
    #1 asked by x
    #1 started: held $0.50 tokens=500 steps=1
    tree suspended
    #2 asked by a
    #2 waiting: suspended
    #3 asked by b
    #3 waiting: suspended
    #4 asked by c
    #4 waiting: suspended
    tree continued
    #2 waiting: budget of root
    #3 waiting: budget of root
    #4 started: held tool_calls=1
    #2 waiting: budget of p
    #3 started: held $0.40 tokens=400 steps=1
    ");
}
