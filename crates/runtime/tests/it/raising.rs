//! Raising a ceiling: exhaustion is a state, not an end.

use spinney::budget::{AccountState, Amounts, BudgetRefusal, Limits, Options, Resource};

use crate::executor::Task;
use crate::{limit, root, spend_at, usd};

/// X3 (the budget handle): an exhausted account continues once its ceiling is raised.
#[test]
fn an_exhausted_tree_continues_once_its_ceiling_is_raised() {
    let root = root("1.00");
    let heir = root.child(Limits::none()).unwrap().child(Limits::none()).unwrap();
    let fixed = root.child(limit("0.30")).unwrap();
    spend_at(&fixed, "0.30");
    spend_at(&heir, "0.70");
    let exhausted = AccountState::Exhausted { resource: Resource::Cost };
    assert_eq!((root.snapshot().state, root.snapshot().spent), (exhausted.clone(), usd("1.00")));
    assert!(matches!(heir.try_hold(usd("0.10")), Err(BudgetRefusal::Ceiling { .. })));

    root.raise(usd("0.50")).unwrap();
    // An inherited ceiling rises with it; its own ceiling does not.
    assert_eq!((root.snapshot().limits, root.snapshot().state), (limit("1.50"), AccountState::Open));
    assert_eq!((heir.snapshot().limits, heir.snapshot().state), (limit("1.50"), AccountState::Open));
    assert_eq!((fixed.snapshot().limits, fixed.snapshot().state), (limit("0.30"), exhausted));
    assert!(fixed.try_hold(usd("0.10")).is_err());
    spend_at(&heir, "0.50");
    assert_eq!(root.snapshot().spent, usd("1.50"));
}

#[test]
fn raising_a_ceiling_lets_waiting_calls_pass() {
    let root = root("1.00");
    let _running = root.try_hold(usd("0.80")).unwrap();
    let mut waiting = Task::started(root.hold(usd("0.50")));
    root.raise(usd("0.30")).unwrap();
    assert_eq!(waiting.wakes(), 1);
    assert!(matches!(waiting.poll(), Some(Ok(_))));
}

#[test]
fn a_borrowed_ceiling_rises_only_as_far_as_the_ancestors_can_lend() {
    let root = root("1.00");
    let child = root.child_with(limit("0.60"), Options::new().lend()).unwrap();
    let Err(BudgetRefusal::Ceiling { account, short }) = child.raise(usd("0.50")) else { panic!() };
    assert_eq!((&account, short.lent, short.asked), (root.id(), 600_000_000, 500_000_000));
    assert_eq!((child.snapshot().limits, root.snapshot().lent), (limit("0.60"), usd("0.60")));
    child.raise(usd("0.40")).unwrap();
    assert_eq!((child.snapshot().limits, root.snapshot().lent), (limit("1.00"), usd("1.00")));
    drop(child);
    assert_eq!(root.snapshot().lent, Amounts::ZERO);
}

#[test]
fn raising_does_not_reopen_an_aborted_account() {
    let root = root("1.00");
    root.abort("enough");
    root.raise(usd("1.00")).unwrap();
    assert!(matches!(root.try_hold(usd("0.10")), Err(BudgetRefusal::Aborted { .. })));
}
