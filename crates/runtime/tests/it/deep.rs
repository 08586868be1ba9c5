//! Very deep and very wide trees: loops, no recursion.

use std::thread;

use spinney::budget::{Amounts, Budget, Limits};
use spinney::clock::{Clock, SystemClock};

use crate::{limit, root, spend_at, usd};

fn chain(depth: usize) -> Budget {
    let limits = limit("1000.00").tokens(1_000);
    let mut leaf = Budget::root(limits).unwrap();
    for _ in 1..depth {
        leaf = leaf.child(limits).unwrap();
    }
    leaf
}

/// The shortest time for this many charges.
fn charging_ms(leaf: &Budget, times: u64) -> u64 {
    let clock = SystemClock::new();
    let time = |_| {
        let start = clock.now_ms();
        (0..times).for_each(|_| leaf.charge(Amounts::cost(1)).unwrap());
        clock.now_ms() - start
    };
    (0..3).map(time).min().unwrap()
}

/// V11, with the test below: a chain 10,000 deep is charged without overflow or deadlock. A tenth as many charges at
/// ten times the depth take about as long; with quadratic cost they would take ten times as long.
#[test]
fn v11_a_chain_ten_thousand_deep_is_charged_in_time_linear_in_its_depth() {
    let (leaf, shallow) = (chain(10_000), chain(1_000));
    let (deep_ms, shallow_ms) = (charging_ms(&leaf, 200), charging_ms(&shallow, 2_000));
    assert!(deep_ms <= 4 * shallow_ms.max(1), "{deep_ms} ms at 10,000, {shallow_ms} ms at 1,000");
    // A deadlock would never return.
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    leaf.charge(Amounts::cost(1)).unwrap();
                    leaf.try_hold(Amounts::cost(2)).unwrap().settle(Amounts::cost(1)).unwrap();
                }
            });
        }
    });
    assert_eq!(leaf.snapshot().spent, Amounts::cost(600 + 200));

    // Dropping the last handle closes the whole chain, also in a loop: tested with a small stack.
    assert_eq!(leaf.accounts_open(), 10_000);
    thread::scope(|scope| {
        let small = thread::Builder::new().stack_size(64 * 1024);
        let thread = small.spawn_scoped(scope, move || {
            leaf.charge(usd("1.00")).unwrap();
            drop(leaf);
        });
        thread.unwrap().join().unwrap();
    });
}

/// V11, with the test above. Visiting every sibling would be ten thousand million steps.
#[test]
fn v11_a_parent_of_a_hundred_thousand_children_charges_each_once() {
    const CHILDREN: u64 = 100_000;
    let parent = root("1000.00");
    let children: Vec<_> = (0..CHILDREN).map(|_| parent.child(Limits::none()).unwrap()).collect();
    children.iter().for_each(|child| child.charge(Amounts::cost(1)).unwrap());
    assert_eq!(parent.snapshot().spent, Amounts::cost(CHILDREN));
    assert_eq!(parent.accounts_open(), 100_001);
    drop(children);
    assert_eq!(parent.accounts_open(), 1);
}

#[test]
fn the_middle_of_a_chain_outlives_its_handles_as_long_as_something_below_is_open() {
    let root = root("1.00");
    let leaf = root.child(limit("0.50")).unwrap().child(limit("0.40")).unwrap();
    let hold = leaf.try_hold(usd("0.10")).unwrap();
    drop(leaf);
    assert_eq!(root.accounts_open(), 3);
    hold.settle(usd("0.10")).unwrap();
    assert_eq!(root.accounts_open(), 1);
    assert_eq!(root.snapshot().spent, usd("0.10"));
    spend_at(&root, "0.90");
}
