//! Hold, then settle: every amount counts at the agent and at every ancestor, and no ceiling is ever exceeded.

use spinney_kernel::budget::{Amounts, Resource, Shortfall};
use spinney_kernel::definition::{Refusal, TreeLimits};
use spinney_kernel::record::{Due, Event};
use spinney_kernel::rules::Reply;
use spinney_kernel::rules::request::HoldReply;
use spinney_testkit::{Scenario, check};

use crate::observed::{attempts, effects, events, model_call, name, refusals, running, taken, turn};

const DOLLAR: u64 = 1_000_000_000;

/// V1: what C spends shows once at C, at B and at A.
#[test]
fn v1_what_a_grandchild_spends_shows_once_at_every_ancestor() {
    insta::assert_snapshot!(check("root $1.00 / b $0.60 / c", "call c $0.20\ndone #1 $0.20"), @"
    #1 asked by c
    #1 started: held $0.20 tokens=200 steps=1
    #1 ended: done, spent $0.20 tokens=200 steps=1
    root idle, spent $0.20 tokens=200 steps=1, of $1.00
      b idle, spent $0.20 tokens=200 steps=1, of $0.60
        c idle, spent $0.20 tokens=200 steps=1, of $0.60
    ");
}

/// V2: the full account refuses, whichever it is, and nothing runs.
#[test]
fn v2_a_full_account_anywhere_up_the_chain_refuses_before_anything_runs() {
    // The tree, who spends how much, who asks next, and whose account refuses.
    for (fixture, spender, spent, asker, account) in [
        ("root $9.00 / a $9.00 / b $0.50", "b", "$0.50", "b", "b"),
        ("root $9.00 / a $0.50 / b / c", "b", "$0.50", "c", "a"),
        ("root $9.00 / a $0.50 / b $0.70 / c $0.60", "c", "$0.50", "c", "a"),
        ("root $1.00 reserve=10% / a / b / c", "a", "$0.90", "c", "root"),
    ] {
        let mut play = Scenario::grow(fixture);
        play.run(&format!("call {spender} {spent}\ndone #1 {spent}"));
        let recorded = effects(&mut play, &format!("call {asker} $0.10"));
        assert_eq!((recorded, attempts(&play)), (Vec::new(), 1), "{fixture}");
        let accounts: Vec<String> = refusals(&play)
            .iter()
            .filter_map(Refusal::shortfall)
            .map(|(account, _)| account.to_string())
            .collect();
        assert_eq!(accounts, [account], "{fixture}");
    }
}

/// V2: a hold counts like spent money: what does not fit beside it does not start, at any depth.
#[test]
fn v2_what_is_held_keeps_calls_below_from_starting() {
    let script = "call a $0.30\ndone #1 $0.30\ncall b $0.60\ncall c $0.20\ncall a $0.80";
    insta::assert_snapshot!(check("root $1.00 reserve=10% / a / b / c", script), @"
    #1 asked by a
    #1 started: held $0.30 tokens=300 steps=1
    #1 ended: done, spent $0.30 tokens=300 steps=1
    #2 asked by b
    #2 started: held $0.60 tokens=600 steps=1
    #3 asked by c
    #3 waiting: budget of a
    #4 asked by a
    #4 ended: refused (cost ceiling of `root`: limit $1.00 less $0.10 in reserve, spent $0.30, held $0.60, asked $0.80: answer with what you have, or ask for less), spent nothing
    a ending: exhausted (cost of root)
    b ending: cancelled (`a` ended)
    #3 ended: cancelled, spent nothing
    c ended: cancelled (`a` ended), spent nothing
    root idle, spent $0.30 tokens=300 steps=1, held $0.60 tokens=600 steps=1, of $1.00
      a ending, spent $0.30 tokens=300 steps=1, held $0.60 tokens=600 steps=1, of $0.90
        b ending, held $0.60 tokens=600 steps=1, of $0.90
          c cancelled
    ");
}

/// A tree whose `n` children all ask for 90 % of the root's dollar at once.
fn rush(n: usize, root: &str) -> Scenario {
    let mut play = Scenario::grow_as(&format!("{root} / c later"), |definition| {
        definition.limits = TreeLimits { children_max: 256, ..definition.limits };
    });
    for child in 0..n {
        play.run(&format!("spawn root c{child} as c"));
    }
    for child in 0..n {
        let _ = play.ask(model_call(&format!("c{child}"), 900));
        assert!(taken(&play, "root", Resource::Cost) <= DOLLAR);
    }
    assert_eq!(running(&play).len(), 1, "exactly one runs");
    play
}

/// V3: of N children that each need 90 %, one runs and the rest are refused with the numbers.
#[test]
fn v3_of_many_children_that_want_ninety_percent_exactly_one_runs() {
    for n in [2, 8, 32, 256] {
        let mut play = rush(n, "root $1.00 reserve=10%");
        play.run("done #1 $0.90");
        let short = Shortfall {
            resource: Resource::Cost,
            limit: DOLLAR,
            reserve: DOLLAR / 10,
            spent: DOLLAR * 9 / 10,
            held: 0,
            lent: 0,
            asked: DOLLAR * 9 / 10,
        };
        let refusal = Refusal::Ceiling { account: name("root"), short };
        assert_eq!(refusals(&play), vec![refusal; n - 1]);
        assert_eq!((attempts(&play), running(&play)), (1, Vec::new()));
        assert_eq!(play.view("root").spent, turn(900));
    }
}

/// V3: a root without a reserve halts with the same numbers, and still only one ran.
#[test]
fn v3_a_root_without_a_reserve_halts_with_the_numbers() {
    for n in [2, 8, 32, 256] {
        let mut play = rush(n, "root $1.00");
        play.run("done #1 $0.90");
        let halt = play.world().halted().map(|halt| (halt.account.to_string(), halt.short));
        let short = Shortfall {
            resource: Resource::Cost,
            limit: DOLLAR,
            reserve: 0,
            spent: DOLLAR * 9 / 10,
            held: 0,
            lent: 0,
            asked: DOLLAR * 9 / 10,
        };
        assert_eq!(halt, Some(("root".to_owned(), short)));
        assert_eq!((attempts(&play), running(&play)), (1, Vec::new()));
    }
}

/// V4: without a ceiling a child gets what its parent has left at that moment.
#[test]
fn v4_a_child_without_a_ceiling_gets_what_its_parent_has_left() {
    let script = "
        call root $0.25
        done #1 $0.25
        spawn root a
        call a $0.10
        done #2 $0.10
        spawn a b
        spawn root c $0.40 lend
        spawn root d";
    insta::assert_snapshot!(check("root $1.00 tokens=5000 / a later\nroot / b later\nroot / c later\nroot / d later", script), @"
    #1 asked by root
    #1 started: held $0.25 tokens=250 steps=1
    #1 ended: done, spent $0.25 tokens=250 steps=1
    a spawned by root: $0.75 tokens=4750
    #2 asked by a
    #2 started: held $0.10 tokens=100 steps=1
    #2 ended: done, spent $0.10 tokens=100 steps=1
    b spawned by a: $0.65 tokens=4650
    c spawned by root: $0.40 tokens=4650
    d spawned by root: $0.25 tokens=4650
    root idle, spent $0.35 tokens=350 steps=2, lent $0.40, of $1.00 tokens=5000
      a idle, spent $0.10 tokens=100 steps=1, of $0.75 tokens=4750
        b idle, of $0.65 tokens=4650
      c idle, of $0.40 tokens=4650
      d idle, of $0.25 tokens=4650
    ");
}

/// V4: a ceiling above the parent's has no effect, because the parent's still applies.
#[test]
fn v4_a_child_with_a_larger_ceiling_is_bound_by_its_parents() {
    let script = "call a $0.80\ndone #1 $0.80\ncall a $0.30";
    insta::assert_snapshot!(check("root $1.00 reserve=10% / a $5.00", script), @"
    #1 asked by a
    #1 started: held $0.80 tokens=800 steps=1
    #1 ended: done, spent $0.80 tokens=800 steps=1
    #2 asked by a
    #2 ended: refused (cost ceiling of `root`: limit $1.00 less $0.10 in reserve, spent $0.80, held $0.00, asked $0.30: answer with what you have, or ask for less), spent nothing
    a ended: exhausted (cost of root), spent $0.80 tokens=800 steps=1
    root idle, spent $0.80 tokens=800 steps=1, of $1.00
      a exhausted, spent $0.80 tokens=800 steps=1
    ");
}

/// V5: steps, retries, tokens and tool calls count at every ancestor, like money.
#[test]
fn v5_every_resource_counts_at_every_ancestor() {
    let mut play = Scenario::grow("root / a / b / c");
    play.run("tool c read $0.01\ndone #1 $0.01\ncall c $0.20\nfailed #2 server $0.05\ndone #2 $0.002");
    let spent = Amounts::cost(62_000_000)
        .with(Resource::Tokens, 50 + 20)
        .with(Resource::Steps, 1)
        .with(Resource::ToolCalls, 1)
        .with(Resource::Retries, 1);
    for agent in ["root", "a", "b", "c"] {
        assert_eq!(play.view(agent).spent, spent, "{agent}");
    }
}

/// V5: a ceiling of any resource at any ancestor binds everything below together.
#[test]
fn v5_every_resource_has_a_ceiling_that_binds_the_whole_branch() {
    for (ceiling, first, second) in [
        ("steps=1", "call b $0.01\ndone #1 $0.01", "call c $0.01"),
        ("tokens=100", "call b $0.09\ndone #1 $0.09", "call c $0.02"),
        ("tool_calls=1", "tool b read\ndone #1", "tool c read"),
        ("$0.10", "tool b read $0.10\ndone #1 $0.10", "tool c read"),
    ] {
        let mut play = Scenario::grow(&format!("root / a {ceiling} / b\nroot / a / c"));
        play.run(first).run(second);
        let refused: Vec<String> = refusals(&play)
            .iter()
            .filter_map(Refusal::shortfall)
            .map(|(account, short)| format!("{account} {}", short.resource))
            .collect();
        let resource = ceiling.split_once('=').map_or("cost", |(resource, _)| resource);
        assert_eq!(refused, [format!("a {resource}")]);
        assert_eq!(attempts(&play), 1, "{ceiling}");
    }
}

/// V5: one retry budget for the whole tree limits a storm of failing calls.
#[test]
fn v5_one_retry_budget_stops_a_storm_in_the_whole_tree() {
    let mut play = Scenario::grow("root retries=3 / a / b\nroot / c / d\nroot / e\nroot / f");
    for agent in ["a", "b", "c", "d", "e", "f"] {
        play.run(&format!("call {agent} $0.01"));
    }
    while let Some(call) = running(&play).first() {
        play.run(&format!("failed #{} server\npass 60s", call.0));
    }
    assert_eq!(play.view("root").spent, Amounts::ZERO.with(Resource::Retries, 3));
    assert_eq!(attempts(&play), 6 + 3);
    assert_eq!(play.world().calls().all().count(), 0, "nobody tries for ever");
}

/// V7: a failed call pays what it used, and the rest of its hold returns.
#[test]
fn v7_a_failed_call_pays_what_it_used_and_returns_the_rest() {
    let script = "call a $0.50\nfailed #1 invalid $0.20\nfailed #1 invalid $0.01\ncall a $0.79";
    insta::assert_snapshot!(check("root $1.00 / a", script), @"
    #1 asked by a
    #1 started: held $0.50 tokens=500 steps=1
    #1 attempt failed: Invalid, spent $0.20 tokens=200
    #1 switched: cheap, cap 500
    #1 started again (2): held $0.05 tokens=500 steps=1 retries=1
    #1 ended: failed (Invalid), spent $0.01 tokens=100 retries=1
    #2 asked by a
    #2 started: held $0.79 tokens=790 steps=1
    root idle, spent $0.21 tokens=300 retries=1, held $0.79 tokens=790 steps=1, of $1.00
      a running, spent $0.21 tokens=300 retries=1, held $0.79 tokens=790 steps=1, of $1.00
    ");
}

/// V7: a broken stream without final usage settles at input and full output cap.
#[test]
fn v7_a_call_cut_off_without_final_usage_is_charged_in_full() {
    let script = "call a $0.50 model=cheap\nfailed #1 cut ?\ncall a $0.30\nlost #2";
    insta::assert_snapshot!(check("root $1.00 / a", script), @"
    #1 asked by a
    #1 started: held $0.05 tokens=500 steps=1
    #1 attempt failed: Cut, spent $0.05 tokens=500, presumed $0.05 tokens=500
    #1 waiting: backoff until 1371
    #2 asked by a
    #2 started: held $0.30 tokens=300 steps=1
    #2 attempt failed: lost, spent $0.30 tokens=300, presumed $0.30 tokens=300
    #2 started again (2): held $0.30 tokens=300 steps=1
    root idle, spent $0.35 tokens=800, held $0.30 tokens=300 steps=1, of $1.00
      a running, spent $0.35 tokens=800, held $0.30 tokens=300 steps=1, of $1.00
    ");
}

/// V7: fifty failing calls never book more than the ceiling, nor nothing.
#[test]
fn v7_fifty_failing_calls_never_pass_the_ceiling() {
    let mut play = Scenario::grow("root $1.00 / a");
    for call in 1..=50 {
        play.run(&format!("call a $0.30\nfailed #{call} invalid $0.30"));
        assert!(taken(&play, "root", Resource::Cost) <= DOLLAR);
    }
    let failed = Amounts::cost(DOLLAR * 9 / 10).with(Resource::Tokens, 900);
    assert_eq!(play.view("root").spent, failed);
}

/// V8: usage beyond the hold is booked as overrun at every account, and a full account accepts no new work.
#[test]
fn v8_use_above_the_hold_is_an_overrun_and_stops_new_work() {
    let script = "call b $0.20\ndone #1 $0.70\ntool b read\ncall a $0.01\ncall root $0.20";
    insta::assert_snapshot!(check("root $1.00 / a $0.50 / b", script), @"
    #1 asked by b
    #1 started: held $0.20 tokens=200 steps=1
    #1 ended: done, spent $0.70 tokens=700 steps=1, overrun $0.50 tokens=500
    #2 asked by b
    #2 ended: refused (cost ceiling of `a`: limit $0.50, spent $0.70, held $0.00: answer with what you have, or ask for less), spent nothing
    #3 asked by a
    #3 ended: refused (cost ceiling of `a`: limit $0.50, spent $0.70, held $0.00, asked $0.01: answer with what you have, or ask for less), spent nothing
    a ending: exhausted (cost of a)
    b ended: cancelled (`a` ended), spent $0.70 tokens=700 steps=1
    a ended: exhausted (cost of a), spent $0.70 tokens=700 steps=1
    #4 asked by root
    #4 started: held $0.20 tokens=200 steps=1
    root running, spent $0.70 tokens=700 steps=1, held $0.20 tokens=200 steps=1, overrun $0.50 tokens=500, of $1.00
      a exhausted, spent $0.70 tokens=700 steps=1
        b cancelled, spent $0.70 tokens=700 steps=1
    ");
}

/// V8: a failed attempt may also have used more than its hold.
#[test]
fn v8_a_failed_attempt_can_overrun_too() {
    let script = "call a $0.20\nfailed #1 auth $0.25\nfailed #1 auth $0.03";
    insta::assert_snapshot!(check("root $1.00 / a", script), @"
    #1 asked by a
    #1 started: held $0.20 tokens=200 steps=1
    #1 attempt failed: Auth, spent $0.25 tokens=250, overrun $0.05 tokens=50
    #1 switched: cheap, cap 200
    #1 started again (2): held $0.02 tokens=200 steps=1 retries=1
    #1 ended: failed (Auth), spent $0.03 tokens=300 retries=1, overrun $0.01 tokens=100
    root idle, spent $0.28 tokens=550 retries=1, overrun $0.06 tokens=150, of $1.00
      a idle, spent $0.28 tokens=550 retries=1, overrun $0.06 tokens=150, of $1.00
    ");
}

/// V9: ten dimes are exactly a dollar, and the eleventh is refused.
#[test]
fn v9_ten_dimes_are_a_dollar_and_the_eleventh_is_refused() {
    let mut play = Scenario::grow("root $9.00 / a $1.00");
    for call in 1..=10 {
        assert_eq!(
            play.ask(model_call("a", 100)),
            Ok(Reply::Hold(HoldReply::Started { call: spinney_kernel::primitives::CallId(call) }))
        );
        play.run(&format!("done #{call} $0.10"));
    }
    assert_eq!(play.view("a").spent.get(Resource::Cost), DOLLAR);
    let short = Shortfall {
        resource: Resource::Cost,
        limit: DOLLAR,
        reserve: 0,
        spent: DOLLAR,
        held: 0,
        lent: 0,
        asked: DOLLAR / 10,
    };
    let refusal = Refusal::Ceiling { account: name("a"), short };
    let call = spinney_kernel::primitives::CallId(11);
    assert_eq!(play.ask(model_call("a", 100)), Ok(Reply::Hold(HoldReply::Refused { call, refusal })));
    assert_eq!(play.view("root").spent.get(Resource::Cost), DOLLAR);
}

/// V17 (decision part): outside spending is charged up the chain and never refused; what does not fit is an overrun,
/// and the full account accepts no new work. Hooks belong to the library handle.
#[test]
fn v17_outside_spending_is_charged_up_the_chain_and_never_refused() {
    let script = "charge b $0.30\ncharge b $0.90 tokens=7\ncall b $0.01\ncharge b $0.05\ncharge root $0.10";
    insta::assert_snapshot!(check("root $2.00 / a $1.00 / b", script), @"
    b charged $0.30
    b charged $0.90 tokens=7
    #1 asked by b
    #1 ended: refused (cost ceiling of `a`: limit $1.00, spent $1.20, held $0.00, asked $0.01: answer with what you have, or ask for less), spent nothing
    b ended: exhausted (cost of a), spent $1.20 tokens=7
    a charged $0.05
    root charged $0.10
    root idle, spent $1.35 tokens=7, of $2.00
      a idle, spent $1.25 tokens=7, overrun $0.25, of $1.00
        b exhausted, spent $1.20 tokens=7
    ");
}

/// V17 (decision part): a charge for an ended agent is booked at its nearest living ancestor.
#[test]
fn v17_a_late_bill_goes_to_the_nearest_living_ancestor() {
    insta::assert_snapshot!(check("root $2.00 / a / b", "finish b ok\ncharge b $0.30"), @"
    b ended: completed, spent nothing
    a charged $0.30
    root idle, spent $0.30, of $2.00
      a idle, spent $0.30, of $2.00
        b completed
    ");
}

/// V17 (decision part): spawn defaults are what is left of cost and tokens, the parent's own steps and retries, and no
/// timeout.
#[test]
fn v17_a_child_defaults_to_what_is_left_the_parents_counts_and_no_timeout() {
    let mut play = Scenario::grow("root $1.00 tokens=2000 steps=9 tool_calls=8 retries=7 / a later");
    play.run("call root $0.40\nfailed #1 server $0.10\ndone #1 $0.01\ntool root read\ndone #2\nspawn root a");
    let Some(Event::AgentSpawned(spawned)) = events(&play).pop() else { panic!("a was spawned") };
    insta::assert_snapshot!(play.tree(), @"
    root idle, spent $0.11 tokens=200 steps=1 tool_calls=1 retries=1, of $1.00 tokens=2000 steps=9 tool_calls=8 retries=7
      a idle, of $0.89 tokens=1800 steps=9 tool_calls=8 retries=7
    ");
    assert_eq!(spawned.due, Due::default());
}
