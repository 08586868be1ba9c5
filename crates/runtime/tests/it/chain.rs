//! Spending counts at every ancestor's account, and every ancestor's ceiling binds.

use spinney::budget::{Amounts, BudgetRefusal, Resource, RunError, Shortfall};

use crate::{limit, root, spend_at, usd};

#[test]
fn v1_what_the_leaf_spends_shows_once_at_every_ancestor() {
    let a = root("1.00");
    let b = a.child(limit("0.60")).unwrap();
    let c = b.child(limit("0.30")).unwrap();
    c.run_blocking(usd("0.20"), |_| Ok::<_, ()>(())).unwrap();
    for budget in [&c, &b, &a] {
        let snapshot = budget.snapshot();
        assert_eq!(
            (snapshot.spent, snapshot.held, snapshot.lent),
            (usd("0.20"), Amounts::ZERO, Amounts::ZERO)
        );
    }
}

#[test]
fn v2_a_ceiling_reached_anywhere_above_refuses_before_the_call_runs() {
    // Spending reaches the ceiling in the middle; a request at any depth below names it.
    let a = root("1.00");
    let b = a.child(limit("0.50")).unwrap();
    let c = b.child(limit("0.40")).unwrap();
    let d = c.child(limit("0.30")).unwrap();
    spend_at(&b, "0.40");
    for below in [&b, &c, &d] {
        let refused = below.run_blocking(usd("0.20"), |_| -> Result<(), ()> { panic!("the call ran") });
        let Err(RunError::Refused(BudgetRefusal::Ceiling { account, short })) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!(&account, b.id());
        assert_eq!((short.spent, short.limit), (400_000_000, 500_000_000));
    }
    // Parallel calls also count: spent + held reaches the ceiling, so nothing else starts now.
    let _held = c.try_hold(usd("0.10")).unwrap();
    let busy = d.try_hold(usd("0.10")).unwrap_err();
    let short = Shortfall {
        resource: Resource::Cost,
        limit: 500_000_000,
        reserve: 0,
        spent: 400_000_000,
        held: 100_000_000,
        lent: 0,
        asked: 100_000_000,
    };
    assert_eq!(busy, BudgetRefusal::Busy { account: b.id().clone(), short });
    // The sibling of the exhausted branch still works.
    spend_at(&a, "0.50");
}

#[test]
fn v4_a_child_without_a_ceiling_gets_what_is_left_and_a_larger_one_changes_nothing() {
    let parent = root("1.00");
    spend_at(&parent, "0.30");
    let heir = parent.child(spinney::Limits::none()).unwrap();
    assert_eq!(heir.snapshot().limits, limit("0.70"));
    // Later spending of the parent does not change the child's ceiling, only what the child can use of it.
    spend_at(&parent, "0.20");
    assert_eq!(heir.snapshot().limits, limit("0.70"));
    assert_eq!(heir.remaining(), limit("0.50"));

    let greedy = parent.child(limit("5.00")).unwrap();
    assert_eq!(greedy.snapshot().limits, limit("5.00"));
    let refused = greedy.try_hold(usd("0.60")).unwrap_err();
    let BudgetRefusal::Ceiling { account, short } = refused else { panic!("{refused:?}") };
    assert_eq!((&account, short.limit, short.asked), (parent.id(), 1_000_000_000, 600_000_000));
    spend_at(&greedy, "0.50");
    assert_eq!(parent.snapshot().spent, usd("1.00"));
}

#[test]
fn v9_ten_times_ten_cents_is_exactly_a_dollar() {
    let budget = root("1.00");
    for _ in 0..10 {
        spend_at(&budget, "0.10");
    }
    assert_eq!(budget.snapshot().spent, usd("1.00"));
    assert_eq!(
        budget.try_hold(usd("0.10")).unwrap_err().to_string(),
        "cost ceiling of `a1`: limit $1.00, spent $1.00, held $0.00, asked $0.10: ask for less, or raise the ceiling"
    );
}
