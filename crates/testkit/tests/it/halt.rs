//! The root's ceiling halts the tree: a person can raise it, and the tree continues from there.

use spinney_kernel::budget::Amounts;
use spinney_kernel::definition::Refusal;
use spinney_kernel::rules::request::{Raise, Request};
use spinney_kernel::world::TreeState;
use spinney_testkit::{Scenario, check};

use crate::observed::{agent, name, refused};

/// X3 (decision part): the root's own call reaches its ceiling; after a raise the same call continues.
#[test]
fn a_raised_halted_tree_continues_with_the_same_call() {
    let script = "
        call root $0.80
        done #1 $0.80
        call root $0.50
        call a $0.10
        spawn root b as a
        raise root $1.00
        done #2 $0.50
        done #3 $0.10
        finish a found
        finish root ok";
    insta::assert_snapshot!(check("root $1.00 / a", script), @"
    #1 asked by root
    #1 started: held $0.80 tokens=800 steps=1
    #1 ended: done, spent $0.80 tokens=800 steps=1
    #2 asked by root
    tree halted: cost of root
    #2 waiting: halted
    #3 asked by a
    #3 waiting: halted
    refused: the tree is halted at its ceiling: raise the ceiling, or cancel the tree
    root raised by $1.00
    tree unhalted
    #2 started: held $0.50 tokens=500 steps=1
    #3 started: held $0.10 tokens=100 steps=1
    #2 ended: done, spent $0.50 tokens=500 steps=1
    #3 ended: done, spent $0.10 tokens=100 steps=1
    a ended: completed, spent $0.10 tokens=100 steps=1
    root ended: completed, spent $1.40 tokens=1400 steps=3
    root completed, spent $1.40 tokens=1400 steps=3
      a completed, spent $0.10 tokens=100 steps=1
    ");
}

/// X3 (decision part): the same for a root without a reserve, like a graph's: the call of its child is parked and
/// continues.
#[test]
fn a_parked_call_of_a_child_continues_after_the_raise() {
    let script = "
        call a $0.90
        call b $0.30
        call c $0.05
        done #1 $0.90
        raise root $0.50
        done #2 $0.30
        done #3 $0.05";
    insta::assert_snapshot!(check("root $1.00 / a\nroot / b\nroot / c", script), @"
    #1 asked by a
    #1 started: held $0.90 tokens=900 steps=1
    #2 asked by b
    #2 waiting: budget of root
    #3 asked by c
    #3 waiting: budget of root
    #1 ended: done, spent $0.90 tokens=900 steps=1
    tree halted: cost of root
    #2 waiting: halted
    #3 waiting: halted
    root raised by $0.50
    tree unhalted
    #2 started: held $0.30 tokens=300 steps=1
    #3 started: held $0.05 tokens=50 steps=1
    #2 ended: done, spent $0.30 tokens=300 steps=1
    #3 ended: done, spent $0.05 tokens=50 steps=1
    root idle, spent $1.25 tokens=1250 steps=3, of $1.50
      a idle, spent $0.90 tokens=900 steps=1, of $1.50
      b idle, spent $0.30 tokens=300 steps=1, of $1.50
      c idle, spent $0.05 tokens=50 steps=1, of $1.50
    ");
}

/// X3 (decision part): a raise that is too small halts the tree again, with the new numbers.
#[test]
fn a_top_up_that_is_too_small_halts_again() {
    insta::assert_snapshot!(check("root $1.00 / a", "charge root $0.90\ncall a $0.60\nraise root $0.20\nraise root $0.30"), @"
    root charged $0.90
    #1 asked by a
    tree halted: cost of root
    #1 waiting: halted
    root raised by $0.20
    tree unhalted
    tree halted: cost of root
    root raised by $0.30
    tree unhalted
    #1 started: held $0.60 tokens=600 steps=1
    root idle, spent $0.90, held $0.60 tokens=600 steps=1, of $1.50
      a running, held $0.60 tokens=600 steps=1, of $1.50
    ");
}

/// X3 (decision part): calls that were running when the tree halted end and are booked, their results are kept, and
/// nothing is lost.
#[test]
fn what_ran_when_the_tree_halted_is_kept() {
    let mut play = Scenario::grow("root $1.00 / a\nroot / b");
    play.run("call a $0.60\ncall root $2.00");
    assert_eq!(play.world().state(), TreeState::Running, "something still runs");
    play.run("done #1 $0.60\nfinish a found");
    assert_eq!(play.world().state(), TreeState::Halted);
    assert_eq!(play.view("a").status.to_string(), "completed");
    play.run("raise root $2.00");
    assert_eq!(play.world().state(), TreeState::Running);
    insta::assert_snapshot!(format!("{}\n{}", play.log(), play.tree()), @"
    #1 asked by a
    #1 started: held $0.60 tokens=600 steps=1
    #2 asked by root
    tree halted: cost of root
    #2 waiting: halted
    #1 ended: done, spent $0.60 tokens=600 steps=1
    a ended: completed, spent $0.60 tokens=600 steps=1
    root raised by $2.00
    tree unhalted
    #2 started: held $2.00 tokens=2000 steps=1
    root running, spent $0.60 tokens=600 steps=1, held $2.00 tokens=2000 steps=1, of $3.00
      a completed, spent $0.60 tokens=600 steps=1
      b idle, of $3.00
    ");
}

/// X3 (decision part): inherited ceilings rise with the root's; explicit ones stay.
#[test]
fn inherited_ceilings_rise_with_the_one_they_mirror() {
    insta::assert_snapshot!(check("root $1.00 / a / b $0.50 / c", "raise root $1.00\nraise b $0.25"), @"
    root raised by $1.00
    b raised by $0.25
    root idle, of $2.00
      a idle, of $2.00
        b idle, of $0.75
          c idle, of $0.75
    ");
}

/// A halted tree can be cancelled instead; waiting calls are dropped.
#[test]
fn a_halted_tree_can_be_cancelled() {
    insta::assert_snapshot!(check("root $1.00 / a", "charge root $0.90\ncall a $0.60\ncancel root"), @"
    root charged $0.90
    #1 asked by a
    tree halted: cost of root
    #1 waiting: halted
    root ending: cancelled ()
    #1 ended: cancelled, spent nothing
    a ended: cancelled (`root` ended), spent nothing
    root ended: cancelled (), spent $0.90
    root cancelled, spent $0.90
      a cancelled
    ");
}

/// Counts halt a tree like money does, and are raised alike.
#[test]
fn steps_halt_a_tree_and_are_topped_up_too() {
    insta::assert_snapshot!(check("root steps=1 / a", "call a $0.10\ndone #1 $0.10\ncall a $0.10\nraise root steps=1"), @"
    #1 asked by a
    #1 started: held $0.10 tokens=100 steps=1
    #1 ended: done, spent $0.10 tokens=100 steps=1
    #2 asked by a
    tree halted: steps of root
    #2 waiting: halted
    root raised by steps=1
    tree unhalted
    #2 started: held $0.10 tokens=100 steps=1
    root idle, spent $0.10 tokens=100 steps=1, held $0.10 tokens=100 steps=1, of steps=2
      a running, spent $0.10 tokens=100 steps=1, held $0.10 tokens=100 steps=1, of steps=2
    ");
}

/// A tool call that does not fit is refused and its agent decides what to do; only a model call halts.
#[test]
fn a_tool_that_does_not_fit_is_refused_and_halts_nothing() {
    insta::assert_snapshot!(check("root $1.00 / a", "tool a read $2.00\ncall a $0.10"), @"
    #1 asked by a
    #1 ended: refused (cost ceiling of `root`: limit $1.00, spent $0.00, held $0.00, asked $2.00: answer with what you have, or ask for less), spent nothing
    #2 asked by a
    #2 started: held $0.10 tokens=100 steps=1
    root idle, held $0.10 tokens=100 steps=1, of $1.00
      a running, held $0.10 tokens=100 steps=1, of $1.00
    ");
}

/// Only a person can raise.
#[test]
fn an_agent_cannot_raise_its_own_ceiling() {
    let mut play = Scenario::grow("root $1.00 / a");
    play.run("call a $2.00");
    let raise = Request::Raise(Raise { agent: name("root"), add: Amounts::cost(1), add_ms: 0 });
    let refusal = refused(&mut play, agent("root", raise));
    assert_eq!(refusal, Refusal::PersonOnly { verb: "raise a ceiling".to_owned() });
}
