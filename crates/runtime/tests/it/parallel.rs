//! Parallel calls never exceed a ceiling.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use spinney::Budget;
use spinney::budget::{BudgetRefusal, Resource, RunError, Shortfall};

use crate::executor::{Task, pause, run_all};
use crate::{limit, root, usd};

const COUNTS: [usize; 4] = [2, 8, 32, 256];

/// Exactly one ran, and the refusals of all others have the root's numbers.
fn check(root: &Budget, answers: &[Result<(), RunError<()>>], ran: usize) {
    let short = Shortfall {
        resource: Resource::Cost,
        limit: 1_000_000_000,
        reserve: 0,
        spent: 900_000_000,
        held: 0,
        lent: 0,
        asked: 900_000_000,
    };
    let refused = Err(RunError::Refused(BudgetRefusal::Ceiling { account: root.id().clone(), short }));
    assert_eq!(ran, 1);
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    assert_eq!(answers.iter().filter(|answer| **answer == refused).count(), answers.len() - 1);
    let snapshot = root.snapshot();
    assert_eq!((snapshot.spent, snapshot.held.is_zero()), (usd("0.90"), true));
}

fn within_ceiling(root: &Budget) {
    let snapshot = root.snapshot();
    assert!(snapshot.spent.plus(&snapshot.held).get(Resource::Cost) <= 1_000_000_000);
}

#[test]
fn v3_of_parallel_threads_that_each_want_nine_tenths_exactly_one_runs() {
    for count in COUNTS {
        let root = root("1.00");
        let (ran, barrier) = (AtomicUsize::new(0), Barrier::new(count));
        let call = |_| {
            ran.fetch_add(1, Ordering::SeqCst);
            within_ceiling(&root);
            Ok(())
        };
        let child = || {
            let child = root.child(limit("0.95")).unwrap();
            barrier.wait();
            child.run_blocking(usd("0.90"), call)
        };
        let answers: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..count).map(|_| scope.spawn(child)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        check(&root, &answers, ran.load(Ordering::SeqCst));
    }
}

#[test]
fn v3_of_parallel_tasks_that_each_want_nine_tenths_exactly_one_runs() {
    for count in COUNTS {
        let root = root("1.00");
        let ran = AtomicUsize::new(0);
        let tasks = (0..count)
            .map(|_| {
                let child = root.child(limit("0.95")).unwrap();
                let (root, ran) = (&root, &ran);
                Task::new(async move {
                    let call = |_| async move {
                        ran.fetch_add(1, Ordering::SeqCst);
                        within_ceiling(root);
                        // All others ask while this one holds.
                        pause().await;
                        Ok(())
                    };
                    child.run(usd("0.90"), call).await
                })
            })
            .collect();
        let answers = run_all(tasks);
        check(&root, &answers, ran.into_inner());
    }
}

#[test]
fn threads_that_share_one_account_lose_no_cent() {
    let root = root("1000.00");
    let worker = || {
        let child = root.child(spinney::Limits::none()).unwrap();
        for turn in 0..500 {
            let hold = child.hold_blocking(usd("0.05")).unwrap();
            match turn % 5 {
                0 => drop(hold),
                _ => assert!(hold.settle(usd("0.01")).is_ok()),
            }
            root.charge(usd("0.001")).unwrap();
        }
    };
    thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(worker))));
    let snapshot = root.snapshot();
    assert_eq!((snapshot.spent, snapshot.held.is_zero()), (usd("18.00"), true));
}
