//! Every interleaving of two or three threads on one budget, by shuttle's depth-first scheduler: a test that explores
//! runs until no schedule is left, and fails if it is cut off. Two tests have too many schedules for that and try some.
//! A thread that waits forever is a deadlock for shuttle, and fails.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use shuttle::scheduler::{DfsScheduler, RandomScheduler};
use shuttle::thread::{self, JoinHandle};
use spinney::budget::{Amounts, Budget, BudgetHold, BudgetRefusal, Limits, Options, Resource, spend};

/// More than any test here needs. A test that needs more should be smaller.
const SCHEDULES_MAX: usize = 100_000;

const SAMPLES: usize = 10_000;
const SEED: u64 = 1;

fn explore(test: impl Fn() + Send + Sync + 'static) {
    let scheduler = DfsScheduler::new(Some(SCHEDULES_MAX), false);
    let schedules = shuttle::Runner::new(scheduler, shuttle::Config::default()).run(test);
    assert!(schedules > 1, "nothing was interleaved");
    assert!(schedules < SCHEDULES_MAX, "there are schedules that were not tried");
}

/// For tests with too many schedules: tries some of them, the same ones in every run.
fn sample(test: impl Fn() + Send + Sync + 'static) {
    let scheduler = RandomScheduler::new_from_seed(SEED, SAMPLES);
    shuttle::Runner::new(scheduler, shuttle::Config::default()).run(test);
}

fn usd(text: &str) -> Amounts {
    spend::usd(text).unwrap()
}

fn root() -> Budget {
    Budget::root(Limits::usd("1.00").unwrap()).unwrap()
}

fn cents(amounts: &Amounts) -> u64 {
    amounts.get(Resource::Cost) / 10_000_000
}

/// Invariants at every moment.
fn within_ceiling(budget: &Budget) {
    let snapshot = budget.snapshot();
    let limit = snapshot.limits.get(Resource::Cost).unwrap() / 10_000_000;
    assert!(cents(&snapshot.spent) + cents(&snapshot.held) <= limit, "{snapshot:?}");
}

/// Invariants at the end.
fn settled_at(budget: &Budget, expected_cents: u64) {
    let snapshot = budget.snapshot();
    assert_eq!((cents(&snapshot.spent), snapshot.held), (expected_cents, Amounts::ZERO));
    assert_eq!(budget.accounts_open(), 1);
}

/// Settles what it was given, and returns the cents.
fn use_up(answer: Result<BudgetHold, BudgetRefusal>) -> u64 {
    answer.map_or(0, |hold| {
        let held = *hold.amounts();
        hold.settle(held).unwrap();
        cents(&held)
    })
}

/// Waits for its turn, then settles for the next one.
fn in_turn(root: &Budget, text: &'static str) -> JoinHandle<()> {
    let root = root.clone();
    thread::spawn(move || root.hold_blocking(usd(text)).map(drop).unwrap())
}

/// Joins the line if needed, and is dropped without another poll.
fn fickle(root: &Budget) -> JoinHandle<()> {
    let root = root.clone();
    thread::spawn(move || {
        let mut waiting = pin!(root.hold(usd("0.60")));
        if let Poll::Ready(answer) = waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            drop(answer.unwrap());
        }
    })
}

#[test]
fn of_two_holders_of_nine_tenths_exactly_one_runs() {
    explore(|| {
        let root = root();
        let child = root.child(Limits::none()).unwrap();
        let other = {
            let root = root.clone();
            thread::spawn(move || use_up(root.hold_blocking(usd("0.90"))))
        };
        let mine = use_up(child.hold_blocking(usd("0.90")));
        drop(child);
        assert_eq!(mine + other.join().unwrap(), 90);
        settled_at(&root, 90);
    });
}

#[test]
fn a_third_thread_never_sees_more_than_the_ceiling() {
    explore(|| {
        let root = root();
        let holders: Vec<_> = (0..2)
            .map(|_| {
                let root = root.clone();
                thread::spawn(move || use_up(root.try_hold(usd("0.60"))))
            })
            .collect();
        within_ceiling(&root);
        let used: u64 = holders.into_iter().map(|holder| holder.join().unwrap()).sum();
        assert_eq!(used, 60);
        settled_at(&root, 60);
    });
}

#[test]
fn a_hold_and_an_abort_meet_and_the_hold_still_ends_once() {
    explore(|| {
        let root = root();
        let child = root.child(Limits::none()).unwrap();
        let caller = thread::spawn(move || {
            let answer = child.hold_blocking(usd("0.50"));
            if let Err(refusal) = &answer {
                assert!(matches!(refusal, BudgetRefusal::Aborted { .. }), "{refusal:?}");
            }
            use_up(answer)
        });
        root.abort("enough");
        assert!(matches!(root.try_hold(usd("0.10")), Err(BudgetRefusal::Aborted { .. })));
        let used = caller.join().unwrap();
        settled_at(&root, used);
    });
}

#[test]
fn an_abort_reaches_a_thread_that_waits_or_is_about_to() {
    explore(|| {
        let root = root();
        let running = root.try_hold(usd("0.90")).unwrap();
        let waiter = {
            let root = root.clone();
            thread::spawn(move || root.hold_blocking(usd("0.50")).map(drop))
        };
        root.abort("enough");
        assert!(matches!(waiter.join().unwrap(), Err(BudgetRefusal::Aborted { .. })));
        drop(running);
        settled_at(&root, 0);
    });
}

#[test]
fn a_settlement_wakes_the_thread_that_waits_for_it() {
    explore(|| {
        let root = root();
        let running = root.try_hold(usd("0.90")).unwrap();
        let waiter = {
            let root = root.clone();
            thread::spawn(move || use_up(root.hold_blocking(usd("0.50"))))
        };
        running.settle(usd("0.10")).unwrap();
        assert_eq!(waiter.join().unwrap(), 50);
        settled_at(&root, 60);
    });
}

#[test]
fn two_who_want_the_same_room_both_get_their_turn() {
    explore(|| {
        let root = root();
        let running = root.try_hold(usd("0.90")).unwrap();
        let other = in_turn(&root, "0.60");
        drop(running);
        root.hold_blocking(usd("0.60")).map(drop).unwrap();
        other.join().unwrap();
        settled_at(&root, 0);
    });
}

#[test]
fn three_who_want_the_same_room_all_get_their_turn() {
    sample(|| {
        let root = root();
        let running = root.try_hold(usd("0.90")).unwrap();
        let others = [in_turn(&root, "0.60"), in_turn(&root, "0.70")];
        drop(running);
        root.hold_blocking(usd("0.60")).map(drop).unwrap();
        others.into_iter().for_each(|other| other.join().unwrap());
        settled_at(&root, 0);
    });
}

#[test]
fn a_future_dropped_in_line_blocks_no_other() {
    explore(|| {
        let root = root();
        let running = root.try_hold(usd("0.90")).unwrap();
        let fickle = fickle(&root);
        drop(running);
        root.hold_blocking(usd("0.60")).map(drop).unwrap();
        fickle.join().unwrap();
        settled_at(&root, 0);
    });
}

#[test]
fn a_future_dropped_in_line_blocks_no_third() {
    sample(|| {
        let root = root();
        let running = root.try_hold(usd("0.90")).unwrap();
        let threads = [fickle(&root), in_turn(&root, "0.50")];
        drop(running);
        root.hold_blocking(usd("0.60")).map(drop).unwrap();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        settled_at(&root, 0);
    });
}

#[test]
fn a_settlement_and_a_raise_meet_and_the_one_who_waits_gets_an_answer() {
    explore(|| {
        let root = root();
        let running = root.try_hold(usd("0.80")).unwrap();
        let waiter = {
            let root = root.clone();
            thread::spawn(move || {
                let answer = root.hold_blocking(usd("0.60"));
                within_ceiling(&root);
                use_up(answer)
            })
        };
        let raiser = {
            let root = root.clone();
            thread::spawn(move || root.raise(usd("0.50")).unwrap())
        };
        running.settle(usd("0.80")).unwrap();
        raiser.join().unwrap();
        // Refused if the settlement came first, served if the raise did; never left in the line.
        let used = waiter.join().unwrap();
        assert!(used == 0 || used == 60, "{used}");
        settled_at(&root, 80 + used);
    });
}

#[test]
fn what_a_closing_account_was_lent_reaches_the_one_who_waits() {
    explore(|| {
        let root = root();
        let borrower = root.child_with(Limits::usd("0.50").unwrap(), Options::new().lend()).unwrap();
        let running = root.try_hold(usd("0.50")).unwrap();
        let waiter = {
            let root = root.clone();
            thread::spawn(move || use_up(root.hold_blocking(usd("0.50"))))
        };
        let closer = thread::spawn(move || drop(borrower));
        drop(running);
        closer.join().unwrap();
        assert_eq!(waiter.join().unwrap(), 50);
        settled_at(&root, 50);
    });
}

#[test]
fn handles_dropped_at_the_same_time_close_every_account_once() {
    explore(|| {
        let root = root();
        let middle = Arc::new(root.child(Limits::none()).unwrap());
        let leaves: Vec<_> = (0..2).map(|_| middle.child(Limits::none()).unwrap()).collect();
        drop(middle);
        let droppers: Vec<_> = leaves
            .into_iter()
            .map(|leaf| thread::spawn(move || use_up(leaf.try_hold(usd("0.10")))))
            .collect();
        let used: u64 = droppers.into_iter().map(|dropper| dropper.join().unwrap()).sum();
        settled_at(&root, used);
    });
}
