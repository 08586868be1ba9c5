//! Calls through the budget: their value or error is returned, and their hold always ends.

use std::panic::{AssertUnwindSafe, catch_unwind};

use spinney::budget::{Amounts, Budget, BudgetRefusal, RunError};

use crate::executor::{Task, now, pause};
use crate::{root, usd};

fn books(budget: &Budget) -> (Amounts, Amounts) {
    (budget.snapshot().spent, budget.snapshot().held)
}

#[test]
fn v14_a_calls_value_and_error_come_back_async_works_and_cancelling_releases_the_hold() {
    let root = root("1.00");
    assert_eq!(root.run_blocking(usd("0.10"), |_| Ok::<_, ()>("value")), Ok("value"));
    assert_eq!(root.run_blocking(usd("0.10"), |_| Err::<(), _>("error")), Err(RunError::Failed("error")));

    let asked = now(root.run(usd("0.10"), |call| async move { Ok::<_, ()>(call.attempt()) }));
    assert_eq!(asked, Ok(1));
    let slow = async {
        pause().await;
        Err::<(), _>("slow error")
    };
    let mut slow = Task::started(root.run(usd("0.10"), |_| slow));
    assert_eq!(books(&root), (usd("0.30"), usd("0.10")));
    assert_eq!(slow.poll(), Some(Err(RunError::Failed("slow error"))));
    assert_eq!(books(&root), (usd("0.40"), Amounts::ZERO));

    let cancelled = Task::started(root.run(usd("0.50"), |_| std::future::pending::<Result<(), ()>>()));
    assert_eq!(books(&root), (usd("0.40"), usd("0.50")));
    drop(cancelled);
    assert_eq!(books(&root), (usd("0.40"), Amounts::ZERO));
}

#[test]
fn cancelling_a_call_that_waits_in_line_leaves_the_line() {
    let root = root("1.00");
    let running = root.try_hold(usd("0.60")).unwrap();
    let waiting = Task::started(root.run(usd("0.50"), |_| async { Ok::<_, ()>(()) }));
    assert!(matches!(root.try_hold(usd("0.10")), Err(BudgetRefusal::Busy { .. })));
    drop(waiting);
    drop(root.try_hold(usd("0.10")).unwrap());
    drop(running);
}

#[test]
fn a_panic_settles_the_call_and_continues() {
    let root = root("1.00");
    let panics: [&dyn Fn(); 3] = [
        &|| drop(root.run_blocking(usd("0.10"), |_| -> Result<(), ()> { panic!("in the call") })),
        &|| {
            drop(root.run_blocking(usd("0.30"), |call| -> Result<(), ()> {
                call.used(usd("0.20")).unwrap();
                panic!("after a report")
            }));
        },
        &|| {
            let call = |_| -> std::future::Ready<Result<(), ()>> { panic!("before there is a future") };
            drop(now(root.run(usd("0.10"), call)));
        },
    ];
    for panicking in panics {
        catch_unwind(AssertUnwindSafe(panicking)).unwrap_err();
    }
    assert_eq!(books(&root), (usd("0.40"), Amounts::ZERO));
}

#[test]
fn a_cancelled_panic_free_call_is_not_charged_although_its_thread_unwinds() {
    let root = root("1.00");
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let _cancelled = Task::started(root.run(usd("0.50"), |_| std::future::pending::<Result<(), ()>>()));
        panic!("somewhere else");
    }));
    unwound.unwrap_err();
    assert_eq!(books(&root), (Amounts::ZERO, Amounts::ZERO));
}

#[test]
fn errors_and_refusals_keep_their_text_also_when_they_are_boxed() {
    type Boxed = Box<dyn std::error::Error + Send + Sync>;
    let root = root("1.00");
    let failed = root.run_blocking(usd("0.10"), |_| "x".parse::<u8>()).unwrap_err();
    assert_eq!(failed.to_string(), "the call failed: invalid digit found in string");
    let boxed = || -> Result<u8, Boxed> {
        Ok(root.run_blocking(usd("0.10"), |_| Err::<u8, Boxed>("no answer".into()))?)
    };
    assert_eq!(boxed().unwrap_err().to_string(), "the call failed: no answer");
    let refused = root.run_blocking(usd("2.00"), |_| "1".parse::<u8>()).unwrap_err();
    assert!(refused.to_string().starts_with("cost ceiling of `a1`: limit $1.00"), "{refused}");
}

#[test]
fn the_futures_can_be_sent_to_another_thread() {
    fn sendable<T: Send>(value: T) -> T {
        value
    }
    let root = root("1.00");
    let hold = now(sendable(root.hold(usd("0.10")))).unwrap();
    drop(sendable(hold));
    now(sendable(root.run(usd("0.10"), |_| async { Ok::<_, ()>(()) }))).unwrap();
}
