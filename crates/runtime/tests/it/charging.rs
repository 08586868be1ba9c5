//! Outside spending that a program books, and the ceilings that a child starts with.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use spinney::budget::{
    AccountId, AccountState, Amounts, Budget, BudgetRefusal, Hooks, Limits, Options, Resource, spend,
};

use crate::{limit, root, spend_at, usd};

#[derive(Clone, Default)]
struct Counting(Arc<AtomicUsize>);

impl Hooks for Counting {
    fn before_call(&self, _: &AccountId, _: &Amounts) -> Result<(), String> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// V17, with the test below.
#[test]
fn v17_a_charge_goes_up_the_chain_is_never_refused_and_an_overrun_halts_new_work() {
    let root = root("1.00");
    let child = root.child(limit("0.50")).unwrap();
    let running = child.try_hold(usd("0.20")).unwrap();
    child.charge(usd("0.70")).unwrap();
    for (budget, overrun) in [(&child, "0.40"), (&root, "0.00")] {
        let snapshot = budget.snapshot();
        assert_eq!((snapshot.spent, snapshot.held), (usd("0.70"), usd("0.20")));
        assert_eq!(snapshot.overrun, usd(overrun));
    }
    let refused = child.try_hold(usd("0.01")).unwrap_err();
    assert!(matches!(refused, BudgetRefusal::Ceiling { account, .. } if account == *child.id()));
    // Never refused: neither above the ceiling nor after the end.
    running.settle(usd("0.20")).unwrap();
    root.abort("stop");
    child.charge(usd("5.00")).unwrap();
    assert_eq!(root.snapshot().spent, usd("5.90"));
    assert_eq!(child.snapshot().state, AccountState::Exhausted { resource: Resource::Cost });
}

/// V17, with the test above.
#[test]
fn v17_a_child_takes_over_what_is_left_the_parents_counts_no_timeout_and_no_hooks() {
    let hooks = Counting::default();
    let limits = limit("1.00").tokens(1_000).steps(60).tool_calls(40).retries(10);
    let limits = limits.timeout(Duration::from_secs(5));
    let parent = Budget::root_with(limits, Options::new().hooks(hooks.clone())).unwrap();
    let used = usd("0.25").with(Resource::Tokens, 100).with(Resource::Steps, 7).with(Resource::Retries, 2);
    parent.try_hold(used).unwrap().settle(used).unwrap();
    assert_eq!(hooks.0.swap(0, Ordering::SeqCst), 1);

    let child = parent.child(Limits::none()).unwrap();
    let snapshot = child.snapshot();
    // Remaining cost and tokens; the parent's own steps, tool calls and retries; no timeout of its own.
    assert_eq!(snapshot.limits, limit("0.75").tokens(900).steps(60).tool_calls(40).retries(10));
    assert_eq!(snapshot.deadline_ms, parent.snapshot().deadline_ms);

    spend_at(&child, "0.01");
    assert_eq!(hooks.0.load(Ordering::SeqCst), 0, "the parent's hooks are the parent's");
    let asked = parent.child_with(Limits::none(), Options::new().inherit_hooks()).unwrap();
    spend_at(&asked, "0.01");
    assert_eq!(hooks.0.load(Ordering::SeqCst), 1);
}

#[test]
fn a_charge_refuses_waiting_calls_that_no_longer_fit() {
    let root = root("1.00");
    let _running = root.try_hold(usd("0.60")).unwrap();
    let mut waiting = crate::executor::Task::started(root.hold(usd("0.50")));
    root.charge(usd("0.55")).unwrap();
    assert!(matches!(waiting.poll(), Some(Err(BudgetRefusal::Ceiling { .. }))));
}

#[test]
fn ceilings_of_which_nothing_was_given_or_taken_do_not_bind() {
    let root = Budget::root(Limits::none().steps(1)).unwrap();
    let child = root.child(Limits::none()).unwrap();
    assert_eq!(child.snapshot().limits, Limits::none().steps(1));
    child.charge(spend::tokens(1_000_000)).unwrap();
    drop(child.try_hold(usd("999.00")).unwrap());
}
