//! Hooks, breaker and tags of one account.

use std::fmt;
use std::sync::{Arc, Mutex};

use spinney::budget::{
    AccountId, AccountState, Amounts, Budget, BudgetRefusal, Hooks, Limits, Options, Resource, RunError,
    spend,
};

use crate::clock::ManualClock;
use crate::executor::Task;
use crate::{limit, spend_at, usd};

/// Records what it sees; refuses calls above $0.50 and charges above $0.40.
#[derive(Clone, Default)]
struct Watcher(Arc<Mutex<Vec<String>>>);

impl Watcher {
    fn note(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }

    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

fn cents(amounts: &Amounts) -> u64 {
    amounts.get(Resource::Cost) / 10_000_000
}

impl Hooks for Watcher {
    fn before_call(&self, account: &AccountId, estimate: &Amounts) -> Result<(), String> {
        self.note(format!("call {account} {}", cents(estimate)));
        if cents(estimate) > 50 { Err("too dear".to_owned()) } else { Ok(()) }
    }

    fn before_charge(&self, account: &AccountId, actual: &Amounts) -> Result<(), String> {
        self.note(format!("charge {account} {}", cents(actual)));
        if cents(actual) > 40 { Err("somebody must look".to_owned()) } else { Ok(()) }
    }

    fn on_error(&self, account: &AccountId, error: &dyn fmt::Debug) {
        self.note(format!("error {account} {error:?}"));
    }
}

/// V15, with the two tests below.
#[test]
fn v15_hooks_act_before_the_call_before_the_charge_and_on_error_and_tags_are_shown() {
    let watcher = Watcher::default();
    let options = Options::new().hooks(watcher.clone()).tag("customer", "42").name("watched");
    let root = Budget::root_with(limit("3.00"), options).unwrap();
    assert_eq!(root.snapshot().tags.get("customer").map(String::as_str), Some("42"));

    root.run_blocking(usd("0.20"), |call| call.used(usd("0.10"))).unwrap();
    assert_eq!(watcher.seen(), ["call watched 20", "charge watched 10"]);
    let failed = root.run_blocking(usd("0.20"), |_| Err::<(), _>("boom"));
    assert_eq!(failed, Err(RunError::Failed("boom")));
    assert_eq!(watcher.seen(), ["call watched 20", "charge watched 20", "error watched \"boom\""]);
    root.charge(usd("0.05")).unwrap();
    assert_eq!(watcher.seen(), ["charge watched 5"]);

    // A refused call does not run, and holds and charges nothing.
    let refused = root.run_blocking(usd("0.60"), |_| -> Result<(), ()> { panic!("the call ran") });
    let vetoed = BudgetRefusal::Vetoed { account: root.id().clone(), reason: "too dear".to_owned() };
    assert_eq!(refused, Err(RunError::Refused(vetoed)));
    assert_eq!(watcher.seen(), ["call watched 60"]);
    assert_eq!((root.snapshot().spent, root.snapshot().held), (usd("0.35"), Amounts::ZERO));
    drop(root.try_hold(usd("0.20")).unwrap());
    assert_eq!(watcher.seen(), ["call watched 20"]);

    // A charge cannot be undone: it is booked, its value is returned, and the account is stopped.
    let value = root.run_blocking(usd("0.50"), |_| Ok::<_, ()>("value"));
    assert_eq!((value, root.snapshot().spent), (Ok("value"), usd("0.85")));
    assert_eq!(root.snapshot().state, AccountState::Aborted { reason: "somebody must look".to_owned() });
    assert!(matches!(root.try_hold(usd("0.01")), Err(BudgetRefusal::Aborted { .. })));
}

/// V15, with the tests above and below.
#[test]
fn v15_five_errors_in_a_row_open_the_breaker_for_a_minute_and_one_probe_decides() {
    let clock = ManualClock::at(1_000);
    let root = Budget::root_on(clock.clone(), limit("9.00"), Options::new().breaker()).unwrap();
    let fail = || root.run_blocking(usd("0.01"), |_| Err::<(), _>("down"));
    let work = || root.run_blocking(usd("0.01"), |_| Ok::<_, &str>(()));
    let open = |until_ms, left_ms| {
        Err(RunError::Refused(BudgetRefusal::BreakerOpen { account: root.id().clone(), until_ms, left_ms }))
    };
    // A success resets the count.
    (0..4).for_each(|_| assert_eq!(fail(), Err(RunError::Failed("down"))));
    work().unwrap();
    (0..5).for_each(|_| assert_eq!(fail(), Err(RunError::Failed("down"))));
    let spent = root.snapshot().spent;
    assert_eq!(work(), open(61_000, 60_000));
    clock.advance(59_999);
    assert_eq!(work(), open(61_000, 1));
    assert_eq!(root.snapshot().spent, spent, "what is refused costs nothing");

    // The probe fails: open for another minute. The next one succeeds: closed.
    clock.advance(1);
    assert_eq!(fail(), Err(RunError::Failed("down")));
    assert_eq!(work(), open(121_000, 60_000));
    clock.advance(60_000);
    let mut probe = Task::started(root.run(usd("0.01"), |_| async {
        crate::executor::pause().await;
        Ok::<_, &str>(())
    }));
    assert_eq!(work(), Err(RunError::Refused(BudgetRefusal::BreakerProbing { account: root.id().clone() })));
    assert_eq!(probe.poll(), Some(Ok(())));
    (0..4).for_each(|_| assert_eq!(fail(), Err(RunError::Failed("down"))));
    work().unwrap();
}

/// V15, with the two tests above.
#[test]
fn v15_a_probe_that_is_halted_refused_or_dropped_gives_its_slot_back() {
    let clock = ManualClock::at(0);
    let options = Options::new().breaker().hooks(Watcher::default());
    let root = Budget::root_on(clock.clone(), limit("2.00").steps(9), Options::new()).unwrap();
    let guarded = root.child_with(Limits::none(), options).unwrap();
    for _ in 0..5 {
        guarded.run_blocking(usd("0.01"), |_| Err::<(), _>(())).unwrap_err();
    }
    clock.advance(60_000);
    let call = |_| async { Ok::<_, ()>(()) };

    // Refused by a hook and by a ceiling, and dropped while running, while waiting and in a panic.
    let refused = crate::executor::now(guarded.run(usd("0.60"), call));
    assert!(matches!(refused, Err(RunError::Refused(BudgetRefusal::Vetoed { .. }))), "{refused:?}");
    let refused = crate::executor::now(guarded.run(spend::steps(10), call));
    assert!(matches!(refused, Err(RunError::Refused(BudgetRefusal::Ceiling { .. }))), "{refused:?}");
    drop(Task::started(guarded.run(usd("0.01"), |_| std::future::pending::<Result<(), ()>>())));
    let running = root.try_hold(usd("1.80")).unwrap();
    drop(Task::started(guarded.run(usd("0.40"), call)));
    drop(running);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        guarded.run_blocking(usd("0.01"), |_| -> Result<(), ()> { panic!("in the probe") })
    }));
    panicked.unwrap_err();

    // The slot is free, and the breaker still waits for a probe: a failure opens it again at once.
    guarded.run_blocking(usd("0.01"), |_| Err::<(), _>(())).unwrap_err();
    let refused = guarded.run_blocking(usd("0.01"), |_| Ok::<_, ()>(()));
    assert!(matches!(refused, Err(RunError::Refused(BudgetRefusal::BreakerOpen { until_ms: 120_000, .. }))));
    // Aborted from above: the slot is freed too, and further calls are refused because of the abort.
    clock.advance(60_000);
    root.abort("enough");
    for _ in 0..2 {
        let refused = crate::executor::now(guarded.run(usd("0.01"), call));
        assert!(matches!(refused, Err(RunError::Refused(BudgetRefusal::Aborted { .. }))), "{refused:?}");
    }
}

#[test]
fn the_breaker_of_a_parent_does_not_guard_its_children() {
    let root = Budget::root_with(limit("1.00"), Options::new().breaker()).unwrap();
    let child = root.child(Limits::none()).unwrap();
    for _ in 0..5 {
        root.run_blocking(usd("0.01"), |_| Err::<(), _>(())).unwrap_err();
    }
    assert!(root.run_blocking(usd("0.01"), |_| Ok::<_, ()>(())).is_err());
    child.run_blocking(usd("0.01"), |_| Ok::<_, ()>(())).unwrap();
}

/// Uses the budget from inside a hook, which works only outside the lock.
struct Curious(Arc<Mutex<Option<Budget>>>);

impl Curious {
    fn look(&self) {
        if let Some(budget) = &*self.0.lock().unwrap() {
            let _ = (budget.snapshot(), budget.remaining(), budget.try_hold(usd("0.01")));
        }
    }
}

impl Hooks for Curious {
    fn before_call(&self, _: &AccountId, _: &Amounts) -> Result<(), String> {
        self.look();
        Ok(())
    }

    fn before_charge(&self, _: &AccountId, _: &Amounts) -> Result<(), String> {
        self.look();
        Ok(())
    }

    fn on_error(&self, _: &AccountId, _: &dyn fmt::Debug) {
        self.look();
    }
}

#[test]
fn hooks_run_outside_the_lock_and_may_use_the_budget() {
    let parent = Arc::new(Mutex::new(None));
    let root = Budget::root(limit("1.00")).unwrap();
    *parent.lock().unwrap() = Some(root.clone());
    let child = root.child_with(Limits::none(), Options::new().hooks(Curious(parent))).unwrap();
    child.run_blocking(usd("0.10"), |_| Err::<(), _>(())).unwrap_err();
    child.charge(usd("0.10")).unwrap();
    assert_eq!(root.snapshot().spent, usd("0.20"));
}

/// Panics before every charge.
struct Clumsy;

impl Hooks for Clumsy {
    fn before_charge(&self, _: &AccountId, _: &Amounts) -> Result<(), String> {
        panic!("clumsy")
    }
}

#[test]
fn a_hook_that_panics_loses_no_money_and_stops_the_account() {
    let root = Budget::root(limit("1.00")).unwrap();
    let child = root.child_with(Limits::none(), Options::new().hooks(Clumsy)).unwrap();
    child.run_blocking(usd("0.10"), |_| Ok::<_, ()>(())).unwrap();
    assert_eq!((root.snapshot().spent, root.snapshot().held), (usd("0.10"), Amounts::ZERO));
    let reason = "the hook before_charge panicked".to_owned();
    assert_eq!(child.snapshot().state, AccountState::Aborted { reason });
    spend_at(&root, "0.10");
}
