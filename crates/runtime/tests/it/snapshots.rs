//! Snapshots: their content and their cost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use spinney::budget::{AccountState, Amounts, Budget, Options, Snapshot};

use crate::clock::ManualClock;
use crate::{limit, root, spend_at, usd};

#[test]
fn v12_a_snapshot_has_ids_amounts_limits_and_state_however_many_calls_were_made() {
    let clock = ManualClock::at(7_000);
    let root = Budget::root_on(clock, limit("1.00"), Options::new().name("lead")).unwrap();
    let limits = limit("0.50").timeout(Duration::from_secs(3));
    let child = root.child_with(limits, Options::new().tag("team", "search")).unwrap();
    spend_at(&child, "0.10");
    let _running = child.try_hold(usd("0.20")).unwrap();
    let lent = child.child_with(limit("0.05"), Options::new().lend()).unwrap();
    let expected = Snapshot {
        id: child.id().clone(),
        parent: Some(root.id().clone()),
        limits,
        spent: usd("0.10"),
        presumed: Amounts::ZERO,
        held: usd("0.20"),
        lent: usd("0.05"),
        overrun: Amounts::ZERO,
        deadline_ms: Some(10_000),
        state: AccountState::Open,
        tags: Arc::new(BTreeMap::from([("team".to_owned(), "search".to_owned())])),
    };
    assert_eq!(child.snapshot(), expected);
    assert_eq!((root.id().to_string(), root.id().name()), ("lead".to_owned(), Some("lead")));
    assert_eq!((child.id().to_string(), lent.id().to_string()), ("a2".to_owned(), "a3".to_owned()));
    assert_eq!(root.snapshot().parent, None);

    // A snapshot that visited every call ever made would time out; `make bench` has the figures.
    let busy = crate::root("1000.00");
    for _ in 0..100_000 {
        busy.try_hold(Amounts::cost(2)).unwrap().settle(Amounts::cost(1)).unwrap();
        assert!(busy.snapshot().held.is_zero());
    }
    assert_eq!(busy.snapshot().spent, Amounts::cost(100_000));
}

#[test]
fn two_accounts_of_one_name_have_two_ids() {
    let root = root("1.00");
    let twin = || root.child_with(limit("0.10"), Options::new().name("twin")).unwrap();
    let (one, other) = (twin(), twin());
    assert_eq!(one.id().to_string(), other.id().to_string());
    assert_ne!(one.id(), other.id());
    assert_eq!(one.clone().id(), one.id());
}

#[test]
fn handles_and_holds_show_which_account_they_are_of() {
    let root = Budget::root_with(limit("1.00"), Options::new().name("lead")).unwrap();
    assert!(format!("{root:?}").contains("lead"));
    let hold = root.try_hold(usd("0.10")).unwrap();
    assert!(format!("{hold:?}").contains("lead"));
}
