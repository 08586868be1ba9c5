//! The number of concurrent effects; waiting takes no slot.

use spinney_kernel::primitives::CallId;
use spinney_testkit::Scenario;

use crate::observed::{attempts, running};

/// X12: with one slot and a chain of parents that each wait for the one below, every agent works and the tree ends:
/// waiting parents hold no slot.
#[test]
fn x12_a_chain_of_waiting_parents_never_blocks_the_only_slot() {
    let chain = "root / a attached / b attached / c attached / d attached / e attached";
    let mut play = Scenario::grow_as(chain, |tree| tree.limits.parallel_max = 1);
    assert_eq!((running(&play).len(), play.world().calls().all().count()), (0, 5), "five wait, none runs");
    for (turn, agent) in ["e", "d", "c", "b", "a", "root"].iter().enumerate() {
        play.run(&format!("call {agent} $0.10"));
        assert_eq!(running(&play).len(), 1, "{agent} works");
        play.run(&format!("done #{} $0.10\nfinish {agent} ok", turn + 6));
    }
    assert!(play.world().is_over());
}

/// X12: when all of them need the slot at once, they get it one after the other, in the order they asked.
#[test]
fn x12_everyone_in_the_chain_gets_the_slot_in_order() {
    let chain = "root / a attached / b attached / c attached / d attached / e attached";
    let mut play = Scenario::grow_as(chain, |tree| tree.limits.parallel_max = 1);
    for agent in ["root", "a", "b", "c", "d", "e"] {
        play.run(&format!("call {agent} $0.10\nask {agent} Which?\nwait {agent} message"));
    }
    let mut order = Vec::new();
    while let [call] = running(&play).as_slice() {
        order.push(call.0);
        play.run(&format!("done #{} $0.10", call.0));
    }
    assert_eq!((order, attempts(&play)), (vec![6, 9, 12, 15, 18, 21], 6));
}

/// A call that waits for a slot starts when one is free, however the other call ended.
#[test]
fn a_free_slot_goes_to_the_first_who_waits() {
    let mut play =
        Scenario::grow_as("root $9.00 / a\nroot / b\nroot / c", |tree| tree.limits.parallel_max = 2);
    play.run("call a $0.10\ntool b read\ncall c $0.10\ntool a read\nfailed #1 auth\nlost #2\ndone #1 $0.01");
    insta::assert_snapshot!(format!("{}\n{}", play.log(), play.tree()), @"
    #1 asked by a
    #1 started: held $0.10 tokens=100 steps=1
    #2 asked by b
    #2 started: held tool_calls=1
    #3 asked by c
    #3 waiting: slot
    #4 asked by a
    #4 waiting: slot
    #1 attempt failed: Auth, spent nothing
    #1 switched: cheap, cap 100
    #1 started again (2): held $0.01 tokens=100 steps=1 retries=1
    #2 ended: lost, spent tool_calls=1
    #3 started: held $0.10 tokens=100 steps=1
    #1 ended: done, spent $0.01 tokens=100 steps=1 retries=1
    #4 started: held tool_calls=1
    root idle, spent $0.01 tokens=100 steps=1 tool_calls=1 retries=1, held $0.10 tokens=100 steps=1 tool_calls=1, of $9.00
      a running, spent $0.01 tokens=100 steps=1 retries=1, held tool_calls=1, of $9.00
      b idle, spent tool_calls=1, of $9.00
      c running, held $0.10 tokens=100 steps=1, of $9.00
    ");
}

/// A cancelled agent's running calls keep their slots until they report.
#[test]
fn a_stopped_call_keeps_its_slot_until_it_reports() {
    let mut play = Scenario::grow_as("root $9.00 / a\nroot / b", |tree| tree.limits.parallel_max = 1);
    play.run("call a $0.10\ncall b $0.10\ncancel a");
    assert_eq!(running(&play), [CallId(1)]);
    play.run("failed #1 stopped");
    assert_eq!(running(&play), [CallId(2)]);
}

/// Waiting for a slot is shown as such.
#[test]
fn a_call_without_a_slot_waits_for_one() {
    let mut play = Scenario::grow_as("root $9.00 / a\nroot / b", |tree| tree.limits.parallel_max = 1);
    play.run("call a $0.10\ncall b $0.10");
    insta::assert_snapshot!(play.tree(), @"
    root idle, held $0.10 tokens=100 steps=1, of $9.00
      a running, held $0.10 tokens=100 steps=1, of $9.00
      b waiting: slot, of $9.00
    ");
}
