//! Lend, reserve and remaining: what a parent lends, keeps and shows.

use spinney::budget::{Amounts, Budget, BudgetRefusal, Limits, OpenError, Options};

use crate::{limit, root, spend_at, usd};

fn lent(parent: &Budget, text: &str) -> Result<Budget, OpenError> {
    parent.child_with(limit(text), Options::new().lend())
}

#[test]
fn what_is_lent_is_guaranteed_to_the_child_and_returns_when_it_closes() {
    let root = root("1.00");
    let middle = root.child(Limits::none()).unwrap();
    let child = lent(&middle, "0.60").unwrap();
    assert_eq!((root.snapshot().lent, middle.snapshot().lent), (usd("0.60"), usd("0.60")));
    assert_eq!(root.remaining(), limit("0.40"));

    let refused = root.try_hold(usd("0.50")).unwrap_err();
    let BudgetRefusal::Ceiling { account, short } = &refused else { panic!("{refused:?}") };
    assert_eq!((account, short.lent, short.asked), (root.id(), 600_000_000, 500_000_000));
    assert_eq!(
        refused.to_string(),
        "cost ceiling of `a1`: limit $1.00, spent $0.00, held $0.00, lent $0.60, asked $0.50: \
         ask for less, or raise the ceiling"
    );
    // Others spend all the rest, and the child still has its share, counted once.
    spend_at(&root, "0.40");
    spend_at(&child, "0.50");
    assert_eq!((root.snapshot().spent, root.snapshot().lent), (usd("0.90"), usd("0.10")));
    drop(child);
    assert_eq!((root.snapshot().spent, root.snapshot().lent), (usd("0.90"), Amounts::ZERO));
    spend_at(&root, "0.10");
}

#[test]
fn lending_what_is_not_there_is_refused_with_numbers() {
    let root = root("1.00");
    spend_at(&root, "0.30");
    let running = root.try_hold(usd("0.30")).unwrap();
    let Err(OpenError::Refused(BudgetRefusal::Ceiling { short, .. })) = lent(&root, "0.80") else { panic!() };
    assert_eq!((short.spent, short.asked), (300_000_000, 800_000_000));
    let Err(OpenError::Refused(BudgetRefusal::Busy { short, .. })) = lent(&root, "0.50") else { panic!() };
    assert_eq!((short.held, short.asked), (300_000_000, 500_000_000));
    assert_eq!((root.accounts_open(), root.snapshot().lent), (1, Amounts::ZERO));
    drop(running);
    lent(&root, "0.50").unwrap();
}

#[test]
fn a_child_without_a_ceiling_has_nothing_to_be_lent() {
    let refused = root("1.00").child_with(Limits::none(), Options::new().lend()).unwrap_err();
    assert_eq!(refused, OpenError::LendWithoutCeiling);
}

#[test]
fn what_a_closed_child_gives_back_lets_a_waiting_call_pass() {
    let root = root("1.00");
    let child = lent(&root, "0.50").unwrap();
    let running = root.try_hold(usd("0.40")).unwrap();
    let mut waiting = crate::executor::Task::started(root.hold(usd("0.50")));
    drop(child);
    assert!(matches!(waiting.poll(), Some(Ok(_))));
    drop(running);
}

#[test]
fn children_leave_the_reserve_and_the_account_itself_may_use_it() {
    let root = Budget::root_with(limit("1.00"), Options::new().reserve(usd("0.20"))).unwrap();
    let child = root.child(Limits::none()).unwrap();
    assert_eq!(child.snapshot().limits, limit("0.80"));
    let refused = child.try_hold(usd("0.90")).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "cost ceiling of `a1`: limit $1.00 less $0.20 in reserve, spent $0.00, held $0.00, asked $0.90: \
         ask for less, or raise the ceiling"
    );
    spend_at(&child, "0.80");
    assert!(child.try_hold(usd("0.01")).is_err());
    assert_eq!((child.remaining(), root.remaining()), (limit("0.00"), limit("0.20")));
    spend_at(&root, "0.20");
}

#[test]
fn remaining_is_the_least_any_account_up_the_chain_has_free() {
    let root = Budget::root(limit("1.00").steps(10)).unwrap();
    let child = root.child(limit("0.60")).unwrap();
    let _held = root.try_hold(usd("0.70")).unwrap();
    assert_eq!(child.remaining(), limit("0.30").steps(10));
}
