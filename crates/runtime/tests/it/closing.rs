//! An account that nothing refers to is closed, and only its totals are kept.

use std::sync::{Arc, Weak};

use spinney::budget::{Hooks, Limits, Options};

use crate::executor::Task;
use crate::{limit, root, spend_at, usd};

/// A value with the lifetime of the account.
struct Canary(#[expect(dead_code, reason = "it is only watched from outside")] Arc<()>);

impl Hooks for Canary {}

fn watched() -> (Options, Weak<()>) {
    let canary = Arc::new(());
    let watch = Arc::downgrade(&canary);
    (Options::new().hooks(Canary(canary)).tag("task", "one of many"), watch)
}

#[test]
fn v13_of_an_ended_account_nothing_is_kept_but_its_totals_at_its_ancestors() {
    let root = root("1000.00");
    for _ in 0..10_000 {
        let (options, watch) = watched();
        let child = root.child_with(limit("0.50"), options).unwrap();
        let grandchild = child.child(Limits::none()).unwrap();
        spend_at(&grandchild, "0.01");
        drop(child);
        assert!(watch.strong_count() == 1 && root.accounts_open() == 3);
        drop(grandchild);
        assert!(watch.strong_count() == 0 && root.accounts_open() == 1);
    }
    assert_eq!(root.snapshot().spent, usd("100.00"));
}

#[test]
fn a_hold_and_a_waiting_call_keep_their_account_open() {
    let root = root("1.00");
    let (options, watch) = watched();
    let child = root.child_with(limit("0.50"), options).unwrap();
    let hold = child.try_hold(usd("0.40")).unwrap();
    let waiter = child.clone();
    let mut waiting = Task::started(async move { waiter.hold(usd("0.30")).await });
    drop(child);
    assert_eq!((watch.strong_count(), root.accounts_open()), (1, 2));
    drop(hold);
    let hold = waiting.poll().unwrap().unwrap();
    assert_eq!((watch.strong_count(), root.accounts_open()), (1, 2));
    drop(hold);
    assert_eq!((watch.strong_count(), root.accounts_open()), (0, 1));
}
