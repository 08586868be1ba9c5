//! How a call ends: at its true usage, below or above its hold.

use spinney::budget::{AccountState, Amounts, BudgetRefusal, Resource, RunError, Settled, spend};

use crate::executor::{Task, pause};
use crate::{limit, root, usd};

#[test]
fn v7_a_call_that_fails_or_is_cut_off_is_charged_what_it_used_and_the_rest_returns() {
    let root = root("1.00");
    let child = root.child(limit("0.80")).unwrap();
    let estimate = usd("0.30").with(Resource::Tokens, 1_000);
    let used = usd("0.10").with(Resource::Tokens, 400);

    let failed = child.run_blocking(estimate, |call| {
        call.used(used).unwrap();
        Err::<(), _>("timeout")
    });
    assert_eq!(failed, Err(RunError::Failed("timeout")));
    assert_eq!((child.snapshot().spent, child.snapshot().held), (used, Amounts::ZERO));

    let streaming = Task::started(child.run(estimate, |call| async move {
        call.used(spend::tokens(10)).unwrap();
        call.used(used).unwrap();
        pause().await;
        Ok::<_, ()>(())
    }));
    assert_eq!(child.snapshot().held, estimate);
    // The caller is dropped in the middle of the stream.
    drop(streaming);
    for budget in [&child, &root] {
        assert_eq!((budget.snapshot().spent, budget.snapshot().held), (used.plus(&used), Amounts::ZERO));
    }
}

#[test]
fn fifty_failing_calls_that_report_nothing_are_charged_their_estimates() {
    let root = root("1.00");
    let failures = (0..50).filter(|_| {
        let failed = root.run_blocking(usd("0.09"), |_| Err::<(), _>(()));
        failed == Err(RunError::Failed(()))
    });
    assert_eq!(failures.count(), 11);
    assert_eq!(root.snapshot().spent, usd("0.99"));
}

/// G40 (the budget handle): what a call did not report is presumed, at its account and at every one above.
#[test]
fn g40_a_call_that_reports_nothing_is_presumed_in_full_and_every_account_above_says_so() {
    let root = root("1.00");
    let child = root.child(limit("0.80")).unwrap();
    let estimate = usd("0.30").with(Resource::Tokens, 1_000).with(Resource::Steps, 1);
    let presumed = usd("0.30").with(Resource::Tokens, 1_000);
    let reported = usd("0.10").with(Resource::Tokens, 400);

    child.run_blocking(estimate, |call| call.used(reported)).unwrap();
    assert_eq!(child.snapshot().presumed, Amounts::ZERO);
    let failed = child.run_blocking(estimate, |_| Err::<(), _>("cut"));
    assert_eq!(failed, Err(RunError::Failed("cut")));
    // A caller that is gone releases what it did not report, and a settled hold is what its caller says.
    drop(Task::started(child.run(estimate, |_| std::future::pending::<Result<(), ()>>())));
    root.try_hold(usd("0.10")).unwrap().settle(usd("0.05")).unwrap();

    let spent = estimate.plus(&reported).with(Resource::Steps, 2);
    assert_eq!((child.snapshot().spent, child.snapshot().presumed), (spent, presumed));
    assert_eq!((root.snapshot().spent, root.snapshot().presumed), (spent.plus(&usd("0.05")), presumed));
}

#[test]
fn v8_usage_above_the_hold_is_recorded_as_overrun_and_the_account_refuses_new_work() {
    let root = root("1.00");
    let child = root.child(limit("0.50")).unwrap();
    let hold = child.try_hold(usd("0.10")).unwrap();
    let settled = hold.settle(usd("0.60")).unwrap();
    assert_eq!(settled, Settled { overrun: usd("0.50") });
    for budget in [&child, &root] {
        let snapshot = budget.snapshot();
        assert_eq!((snapshot.spent, snapshot.overrun), (usd("0.60"), usd("0.50")));
    }
    assert_eq!(child.snapshot().state, AccountState::Exhausted { resource: Resource::Cost });
    // Nothing new starts, not even calls that cost nothing.
    for ask in [usd("0.01"), Amounts::ZERO, spend::steps(1)] {
        let refused = child.try_hold(ask).unwrap_err();
        assert!(matches!(refused, BudgetRefusal::Ceiling { account, .. } if account == *child.id()));
    }
    // The parent is below its own ceiling and continues.
    drop(root.try_hold(usd("0.40")).unwrap());
}

#[test]
fn a_hold_returns_what_was_not_used_and_a_dropped_one_all_of_it() {
    let root = root("1.00");
    root.try_hold(usd("0.80")).unwrap().settle(usd("0.30")).unwrap();
    let hold = root.try_hold(usd("0.70")).unwrap();
    assert_eq!(*hold.amounts(), usd("0.70"));
    drop(hold);
    assert_eq!((root.snapshot().spent, root.snapshot().held), (usd("0.30"), Amounts::ZERO));
}

#[test]
fn the_counts_that_were_held_are_used_by_making_the_call() {
    let root = root("1.00");
    let estimate = usd("0.30").with(Resource::Steps, 1).with(Resource::ToolCalls, 2);
    root.run_blocking(estimate, |call| call.used(usd("0.10"))).unwrap();
    root.run_blocking(estimate, |call| call.used(usd("0.10").with(Resource::ToolCalls, 5))).unwrap();
    assert_eq!(root.snapshot().spent, usd("0.20").with(Resource::Steps, 2).with(Resource::ToolCalls, 7));
}
