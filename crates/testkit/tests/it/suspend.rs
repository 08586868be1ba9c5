//! A tree that no process runs, or whose process is stopping: running calls may end, and nothing new starts.

use spinney_kernel::budget::{Ceilings, Resource};
use spinney_kernel::primitives::TreeId;
use spinney_kernel::record::{Event, RULES};
use spinney_kernel::rules::request::{Branch, Request};
use spinney_kernel::world::TreeState;
use spinney_testkit::{Scenario, check};

use crate::observed::{name, person};

#[test]
fn a_suspended_tree_lets_what_runs_end_and_starts_nothing_until_it_continues() {
    let script = "
        call a $0.10
        suspend
        suspend
        done #1 $0.10
        call a $0.20
        tool root read
        continue
        continue";
    insta::assert_snapshot!(check("root $9.00 / a", script), @"
    #1 asked by a
    #1 started: held $0.10 tokens=100 steps=1
    tree suspended
    stale
    #1 ended: done, spent $0.10 tokens=100 steps=1
    #2 asked by a
    #2 waiting: suspended
    #3 asked by root
    #3 waiting: suspended
    tree continued
    #2 started: held $0.20 tokens=200 steps=1
    #3 started: held tool_calls=1
    stale
    root running, spent $0.10 tokens=100 steps=1, held $0.20 tokens=200 steps=1 tool_calls=1, of $9.00
      a running, spent $0.10 tokens=100 steps=1, held $0.20 tokens=200 steps=1, of $9.00
    ");
}

/// A paused agent is still paused after any stop, and a stop outlasts any pause.
#[test]
fn a_pause_and_a_stop_do_not_end_each_other() {
    let script = "
        suspend
        call a $0.10
        pause root
        continue
        suspend
        unpause root
        continue";
    insta::assert_snapshot!(check("root $9.00 / a", script), @"
    tree suspended
    #1 asked by a
    #1 waiting: suspended
    root paused
    #1 waiting: paused
    tree continued
    tree suspended
    root unpaused
    #1 waiting: suspended
    tree continued
    #1 started: held $0.10 tokens=100 steps=1
    root idle, held $0.10 tokens=100 steps=1, of $9.00
      a running, held $0.10 tokens=100 steps=1, of $9.00
    ");
}

/// Versions before rules 4 paused the root to stop a tree.
#[test]
fn a_pause_that_was_a_stop_becomes_one() {
    let script = "
        pause root
        call a $0.10
        suspend was-pause
        continue";
    insta::assert_snapshot!(check("root $9.00 / a", script), @"
    root paused
    #1 asked by a
    #1 waiting: paused
    tree suspended
    root unpaused
    #1 waiting: suspended
    tree continued
    #1 started: held $0.10 tokens=100 steps=1
    root idle, held $0.10 tokens=100 steps=1, of $9.00
      a running, held $0.10 tokens=100 steps=1, of $9.00
    ");
}

#[test]
fn a_suspended_tree_is_stopped_unless_a_person_paused_it() {
    let mut play = Scenario::grow("root $9.00 / a");
    play.run("call a $0.10\nsuspend");
    assert_eq!(play.world().state(), TreeState::Suspended);
    play.run("done #1 $0.10\ncall a $0.10");
    assert_eq!(play.world().state(), TreeState::Suspended);
    play.run("pause root");
    assert_eq!(play.world().state(), TreeState::Paused);
    play.run("unpause root\ncontinue");
    assert_eq!(play.world().state(), TreeState::Running);
}

/// A branch is suspended from its first batch on; under older rules its root is paused, as before.
#[test]
fn a_branch_starts_suspended_and_under_older_rules_paused() {
    let first = |rules: u32| -> Vec<&'static str> {
        let mut play = Scenario::grow_under(rules, "root $9.00 / a");
        play.run("call a $0.10");
        let budget = Ceilings::NONE.with(Resource::Cost, 1_000_000_000);
        let branch = Branch { tree: TreeId::new([9; 16]), agent: name("a"), budget, since: play.now() };
        let decided = play.input(person(Request::Branch(branch))).unwrap();
        decided.events.iter().map(Event::as_str).collect()
    };
    assert_eq!(first(3)[..2], ["tree_branched", "agent_paused"]);
    assert_eq!(first(RULES)[..2], ["tree_branched", "tree_suspended"]);
}
