//! Halted, aborted, timed out or closed: nothing below starts a new call, effective immediately.

use std::time::Duration;

use spinney::budget::{AccountState, Budget, BudgetRefusal, Limits, OpenError, Options, RunError};

use crate::clock::ManualClock;
use crate::executor::Task;
use crate::{limit, root, spend_at, usd};

/// A chain of seven below the root, and a running call of the deepest.
fn family(top: &Budget) -> Vec<Budget> {
    let mut all = vec![top.clone()];
    for _ in 0..7 {
        all.extend(all.last().unwrap().child(Limits::none()));
    }
    all
}

fn all_refuse(family: &[Budget], expected: &dyn Fn(&BudgetRefusal) -> bool) {
    for budget in family {
        let refused = budget.run_blocking(usd("0.01"), |_| -> Result<(), ()> { panic!("the call ran") });
        let Err(RunError::Refused(refusal)) = refused else { panic!("{refused:?}") };
        assert!(expected(&refusal), "{refusal:?}");
    }
}

#[test]
fn v6_below_a_parent_that_is_halted_aborted_timed_out_or_closed_nothing_starts() {
    let clock = ManualClock::at(1_000);
    let open = |limits| {
        let root = Budget::root_on(clock.clone(), limits, Options::new()).unwrap();
        let family = family(&root);
        let running = family[7].try_hold(usd("0.10")).unwrap();
        (root, family, running)
    };

    let (halted, family, running) = open(limit("1.00"));
    halted.charge(usd("1.00")).unwrap();
    all_refuse(
        &family,
        &|refusal| matches!(refusal, BudgetRefusal::Ceiling { account, .. } if account == halted.id()),
    );
    running.settle(usd("0.10")).unwrap();

    let (aborted, family, running) = open(limit("1.00"));
    aborted.abort("the user left");
    all_refuse(&family, &|refusal| {
        *refusal
            == BudgetRefusal::Aborted { account: aborted.id().clone(), reason: "the user left".to_owned() }
    });
    running.settle(usd("0.10")).unwrap();
    assert_eq!(aborted.snapshot().spent, usd("0.10"));

    let (closed, family, running) = open(limit("1.00"));
    closed.close();
    all_refuse(&family, &|refusal| *refusal == BudgetRefusal::Closed { account: closed.id().clone() });
    running.settle(usd("0.10")).unwrap();

    let (late, family, running) = open(limit("1.00").timeout(Duration::from_millis(500)));
    clock.advance(499);
    spend_at(&family[7], "0.01");
    clock.advance(1);
    all_refuse(&family, &|refusal| {
        *refusal == BudgetRefusal::DeadlinePassed { account: late.id().clone(), late_ms: 0 }
    });
    running.settle(usd("0.10")).unwrap();
    assert_eq!(family[7].snapshot().state, AccountState::TimedOut);
}

#[test]
fn calls_that_wait_below_are_refused_the_moment_their_parent_is_aborted() {
    let root = root("1.00");
    let child = root.child(Limits::none()).unwrap().child(Limits::none()).unwrap();
    let _running = root.try_hold(usd("0.90")).unwrap();
    let mut waiting = Task::started(child.hold(usd("0.50")));
    root.abort("enough");
    assert_eq!(waiting.wakes(), 1);
    let refused = waiting.poll().unwrap().unwrap_err();
    assert_eq!(refused, BudgetRefusal::Aborted { account: root.id().clone(), reason: "enough".to_owned() });
}

#[test]
fn the_siblings_of_an_aborted_account_continue() {
    let root = root("1.00");
    let (stopped, other) = (root.child(Limits::none()).unwrap(), root.child(Limits::none()).unwrap());
    stopped.abort("stuck");
    spend_at(&other, "0.10");
    spend_at(&root, "0.10");
    assert_eq!(stopped.snapshot().state, AccountState::Aborted { reason: "stuck".to_owned() });
    assert_eq!(root.snapshot().state, AccountState::Open);
}

#[test]
fn the_first_reason_to_end_stays() {
    let root = root("1.00");
    root.abort("first");
    root.abort("second");
    root.close();
    assert_eq!(root.snapshot().state, AccountState::Aborted { reason: "first".to_owned() });
}

#[test]
fn a_reason_longer_than_a_line_is_cut_between_characters() {
    let root = root("1.00");
    root.abort("é".repeat(2_000));
    assert_eq!(root.snapshot().state, AccountState::Aborted { reason: "é".repeat(512) });
}

#[test]
fn no_account_is_opened_below_one_that_takes_no_calls() {
    let clock = ManualClock::at(0);
    let limits = limit("1.00").timeout(Duration::from_secs(1));
    let root = Budget::root_on(clock.clone(), limits, Options::new()).unwrap();
    let child = root.child(Limits::none()).unwrap();
    child.close();
    let refused = child.child(Limits::none()).unwrap_err();
    assert_eq!(refused, OpenError::Refused(BudgetRefusal::Closed { account: child.id().clone() }));
    clock.advance(1_500);
    let refused = root.child(Limits::none()).unwrap_err();
    let late = BudgetRefusal::DeadlinePassed { account: root.id().clone(), late_ms: 500 };
    assert_eq!(refused, OpenError::Refused(late));
}

#[test]
fn a_childs_own_timeout_counts_from_its_opening_and_never_outlasts_its_parents() {
    let clock = ManualClock::at(0);
    let root = Budget::root_on(clock.clone(), limit("1.00").timeout(Duration::from_secs(10)), Options::new())
        .unwrap();
    clock.advance(4_000);
    let shorter = root.child(Limits::none().timeout(Duration::from_secs(1))).unwrap();
    let longer = root.child(Limits::none().timeout(Duration::from_secs(60))).unwrap();
    assert_eq!(shorter.snapshot().deadline_ms, Some(5_000));
    assert_eq!(longer.snapshot().deadline_ms, Some(10_000));
    clock.advance(1_000);
    let refused = shorter.try_hold(usd("0.01")).unwrap_err();
    assert_eq!(refused, BudgetRefusal::DeadlinePassed { account: shorter.id().clone(), late_ms: 0 });
    spend_at(&longer, "0.01");
    clock.advance(6_000);
    let refused = longer.try_hold(usd("0.01")).unwrap_err();
    assert_eq!(refused, BudgetRefusal::DeadlinePassed { account: root.id().clone(), late_ms: 1_000 });
}
