//! The line: calls wait only while other holds block them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use spinney::budget::{Amounts, Budget, BudgetRefusal, Limits, Options, Resource, WAITING_MAX, spend};
use spinney::clock::Clock;

use crate::clock::ManualClock;
use crate::executor::Task;
use crate::{limit, root, usd};

#[test]
fn v18_a_call_waits_in_order_for_other_holds_and_is_refused_only_if_it_never_fits() {
    let root = root("1.00");
    let (a, b) = (root.child(Limits::none()).unwrap(), root.child(Limits::none()).unwrap());
    let running = a.try_hold(usd("0.80")).unwrap();
    let mut first = Task::started(b.hold(usd("0.60")));
    let mut second = Task::started(a.hold(usd("0.30")));
    // It would fit beside the running hold, but would use what the first in line needs.
    let mut third = Task::started(b.hold(usd("0.20")));
    // What can never fit is refused at once.
    assert!(matches!(Task::new(b.hold(usd("1.10"))).poll(), Some(Err(BudgetRefusal::Ceiling { .. }))));

    // Now 0.60 are spent: the first can never run, the second runs, the third still waits.
    running.settle(usd("0.60")).unwrap();
    let refused = first.poll().unwrap().unwrap_err();
    let BudgetRefusal::Ceiling { account, short } = refused else { panic!("{refused:?}") };
    assert_eq!((&account, short.spent, short.asked), (root.id(), 600_000_000, 600_000_000));
    let second = second.poll().unwrap().unwrap();
    assert_eq!(root.snapshot().held, usd("0.30"));
    assert!(third.poll().is_none());

    second.settle(usd("0.10")).unwrap();
    assert_eq!(third.wakes(), 1);
    third.poll().unwrap().unwrap().settle(usd("0.20")).unwrap();
    assert_eq!((root.snapshot().spent, root.snapshot().held), (usd("0.90"), Amounts::ZERO));
}

#[test]
fn a_call_that_takes_nothing_the_others_wait_for_passes_them() {
    let root = Budget::root(limit("1.00").steps(10)).unwrap();
    let _running = root.try_hold(usd("0.90")).unwrap();
    let _waiting = Task::started(root.hold(usd("0.50")));
    drop(root.try_hold(spend::steps(1)).unwrap());
}

#[test]
fn dropping_a_waiting_call_leaves_the_line_and_lets_the_next_pass() {
    let root = root("1.00");
    let _running = root.try_hold(usd("0.50")).unwrap();
    let first = Task::started(root.hold(usd("0.60")));
    let mut second = Task::started(root.hold(usd("0.40")));
    drop(first);
    assert_eq!(second.wakes(), 1);
    assert!(matches!(second.poll(), Some(Ok(_))));
}

#[test]
fn a_call_dropped_after_its_turn_came_gives_the_hold_to_the_next() {
    let root = root("1.00");
    let running = root.try_hold(usd("0.50")).unwrap();
    let first = Task::started(root.hold(usd("0.60")));
    let mut second = Task::started(root.hold(usd("0.60")));
    drop(running);
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    drop(first);
    assert_eq!(second.wakes(), 1);
    drop(second.poll().unwrap().unwrap());
    assert_eq!(root.snapshot().held, Amounts::ZERO);
}

#[test]
fn a_waiting_thread_continues_when_the_blocking_hold_is_settled() {
    let root = root("1.00");
    let running = root.try_hold(usd("0.90")).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| root.hold_blocking(usd("0.50")).unwrap().settle(usd("0.50")).unwrap());
        running.settle(usd("0.10")).unwrap();
        waiting.join().unwrap();
    });
    assert_eq!(root.snapshot().spent, usd("0.60"));
}

#[test]
fn a_waiting_call_whose_deadline_passes_is_refused_when_polled() {
    let clock = ManualClock::at(0);
    let limits = limit("1.00").timeout(Duration::from_secs(1));
    let root = Budget::root_on(clock.clone(), limits, Options::new()).unwrap();
    let running = root.try_hold(usd("0.90")).unwrap();
    let mut waiting = Task::started(root.hold(usd("0.50")));
    let mut granted = Task::started(root.hold(usd("0.50")));
    clock.advance(1_000);
    assert!(matches!(waiting.poll(), Some(Err(BudgetRefusal::DeadlinePassed { .. }))));
    // Its turn came too late: the hold returns.
    drop(running);
    assert_eq!(granted.wakes(), 1);
    assert!(matches!(granted.poll(), Some(Err(BudgetRefusal::DeadlinePassed { .. }))));
    assert_eq!(root.snapshot().held, Amounts::ZERO);
}

/// Advances by a millisecond with every read.
struct RestlessClock(AtomicU64);

impl Clock for RestlessClock {
    fn now_ms(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

#[test]
fn a_parked_thread_wakes_by_itself_at_its_deadline() {
    let limits = limit("1.00").timeout(Duration::from_millis(8));
    let root = Budget::root_on(Arc::new(RestlessClock(AtomicU64::new(0))), limits, Options::new()).unwrap();
    let _running = root.try_hold(usd("0.90")).unwrap();
    let refused = root.hold_blocking(usd("0.50")).unwrap_err();
    assert!(matches!(refused, BudgetRefusal::DeadlinePassed { .. }), "{refused:?}");
}

#[test]
fn the_line_has_an_end() {
    let root = Budget::root(Limits::none().steps(1)).unwrap();
    let running = root.try_hold(spend::steps(1)).unwrap();
    let waiting: Vec<_> = (0..WAITING_MAX).map(|_| Task::started(root.hold(spend::steps(1)))).collect();
    let refused = Task::new(root.hold(spend::steps(1))).poll().unwrap().unwrap_err();
    assert_eq!(refused, BudgetRefusal::LineFull { waiting: WAITING_MAX, waiting_max: WAITING_MAX });
    // One settlement answers all of them.
    running.settle(spend::steps(1)).unwrap();
    for mut task in waiting {
        let refused = task.poll().unwrap().unwrap_err();
        assert!(matches!(refused, BudgetRefusal::Ceiling { short, .. } if short.resource == Resource::Steps));
    }
}
