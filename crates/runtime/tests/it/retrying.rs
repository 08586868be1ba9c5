//! Counts other than money, and one retry budget for the whole tree.

use std::cell::Cell;

use spinney::budget::{Amounts, Budget, BudgetRefusal, Limits, Resource, RunError, spend};

use crate::executor::now;
use crate::usd;

#[test]
fn v5_every_resource_is_counted_at_every_ancestor_and_one_retry_budget_stops_a_storm() {
    let all = Limits::none().tokens(1_000).steps(5).tool_calls(5).retries(3);
    let root = Budget::root(all).unwrap();
    let middle = root.child(Limits::none()).unwrap();
    let leaves: Vec<_> = (0..4).map(|_| middle.child(Limits::none()).unwrap()).collect();

    let call = spend::tokens(100).with(Resource::Steps, 1).with(Resource::ToolCalls, 1);
    leaves[0].run_blocking(call, |_| Ok::<_, ()>(())).unwrap();
    for budget in [&leaves[0], &middle, &root] {
        assert_eq!(budget.snapshot().spent, call);
    }
    for (resource, amount) in [(Resource::Tokens, 901), (Resource::Steps, 5), (Resource::ToolCalls, 5)] {
        let refused = leaves[1].try_hold(Amounts::ZERO.with(resource, amount)).unwrap_err();
        let BudgetRefusal::Ceiling { account, short } = refused else { panic!("{refused:?}") };
        assert_eq!((&account, short.resource, short.asked), (root.id(), resource, amount));
    }

    // Four agents whose calls always fail, each with up to ten tries: the tree allows three retries in all.
    let attempts = Cell::new(0);
    let mut stopped = 0;
    for leaf in &leaves {
        let failed = leaf.run_with_retries_blocking(Amounts::ZERO, 10, |call| {
            attempts.set(attempts.get() + 1);
            Err::<(), _>(call.attempt())
        });
        let Err(RunError::RetryRefused { refusal: BudgetRefusal::Ceiling { account, short }, .. }) = failed
        else {
            panic!("{failed:?}")
        };
        assert_eq!((&account, short.resource, short.spent), (root.id(), Resource::Retries, 3));
        stopped += 1;
    }
    assert_eq!((attempts.get(), stopped), (4 + 3, 4));
    assert_eq!(root.snapshot().spent.get(Resource::Retries), 3);
}

#[test]
fn a_call_is_tried_again_until_it_gives_a_value() {
    let root = Budget::root(Limits::usd("1.00").unwrap().retries(5)).unwrap();
    let value = now(root.run_with_retries(usd("0.10"), 5, |call| async move {
        if call.attempt() < 3 { Err("not yet") } else { Ok(call.attempt()) }
    }));
    assert_eq!(value, Ok(3));
    assert_eq!(root.snapshot().spent, usd("0.30").with(Resource::Retries, 2));
}

#[test]
fn the_last_error_comes_back_when_the_attempts_are_used_up() {
    let root = Budget::root(Limits::usd("1.00").unwrap()).unwrap();
    let attempts = Cell::new(0);
    for (attempts_max, expected) in [(0, 1), (1, 1), (3, 3)] {
        attempts.set(0);
        let failed = root.run_with_retries_blocking(usd("0.01"), attempts_max, |call| {
            attempts.set(attempts.get() + 1);
            Err::<(), _>(call.attempt())
        });
        assert_eq!((failed, attempts.get()), (Err(RunError::Failed(expected)), expected));
    }
}

#[test]
fn a_first_attempt_that_is_refused_has_no_error_of_its_own() {
    let root = Budget::root(Limits::none().steps(0)).unwrap();
    let refused = root.run_with_retries_blocking(spend::steps(1), 3, |_| Err::<(), _>("ran"));
    assert!(matches!(refused, Err(RunError::Refused(BudgetRefusal::Ceiling { .. }))), "{refused:?}");
}

#[test]
fn an_own_loop_pays_for_its_retries_too() {
    let root = Budget::root(Limits::none().retries(1)).unwrap();
    let attempt = |number| now(root.run_attempt(number, Amounts::ZERO, |_| async { Err::<(), _>("no") }));
    assert_eq!(attempt(1), Err(RunError::Failed("no")));
    assert_eq!(attempt(2), Err(RunError::Failed("no")));
    assert!(matches!(attempt(3), Err(RunError::Refused(BudgetRefusal::Ceiling { .. }))));
}
