//! Impossible numbers and names are clear errors, and change nothing.

use std::time::Duration;

use spinney::budget::{
    AMOUNT_MAX, AmountError, Amounts, Budget, BudgetRefusal, IdError, Limits, MeterError, OpenError, Options,
    Resource, RunError, TAG_BYTES_MAX, TAGS_MAX, spend,
};

use crate::{limit, root, usd};

const ABSURD: [u64; 4] = [AMOUNT_MAX + 1, 1 << 62, u64::MAX - 1, u64::MAX];

#[test]
fn money_is_read_from_plain_decimals_and_nothing_else() {
    let texts = [
        "NaN",
        "nan",
        "inf",
        "-inf",
        "infinity",
        "Infinity",
        "-1",
        "-0.01",
        "+1",
        "1e3",
        "1E-3",
        "0x10",
        "",
        " ",
        ".",
        "$",
        "1,00",
        "1.0.0",
        "1 ",
        "0.0000000001",
        "one",
        "١",
        "$-1",
        "1_000",
    ];
    for text in texts {
        let expected = Err(AmountError::NotUsd { text: text.to_owned() });
        assert_eq!(spend::usd(text), expected, "{text:?}");
        assert_eq!(Limits::usd(text).map(|_| Amounts::ZERO), expected, "{text:?}");
    }
    for text in ["1000000.000000001", "99999999999", "18446744073709551615"] {
        assert!(matches!(spend::usd(text), Err(AmountError::TooLarge { .. })), "{text:?}");
    }
    assert!(matches!(spend::usd(&"9".repeat(100)), Err(AmountError::NotUsd { .. })));
    assert_eq!(spend::usd("1000000"), Ok(Amounts::cost(AMOUNT_MAX)));
}

#[test]
fn absurd_amounts_are_an_error_everywhere_and_nothing_changes() {
    let root = Budget::root(limit("1.00").tokens(100)).unwrap();
    let hold = root.try_hold(usd("0.10")).unwrap();
    let before = root.snapshot();
    for resource in Resource::ALL {
        for amount in ABSURD {
            let absurd = Amounts::ZERO.with(resource, amount);
            let error = AmountError::TooLarge { what: resource.to_string(), amount };
            let refusal = BudgetRefusal::Amount(error.clone());
            assert_eq!(root.try_hold(absurd).unwrap_err(), refusal);
            assert_eq!(root.hold_blocking(absurd).unwrap_err(), refusal);
            assert_eq!(crate::executor::now(root.hold(absurd)).unwrap_err(), refusal);
            assert_eq!(root.charge(absurd), Err(error.clone()));
            assert_eq!(root.raise(absurd), Err(refusal.clone()));
            assert_eq!(
                root.run_blocking(absurd, |_| -> Result<(), ()> { panic!("the call ran") }),
                Err(RunError::Refused(refusal))
            );
            let ceilings = Limits::none().with(resource, amount);
            let reserved = Options::new().reserve(absurd);
            for opened in [
                Budget::root(ceilings),
                Budget::root_with(Limits::none(), reserved.clone()),
                root.child(ceilings),
                root.child_with(ceilings, Options::new().lend()),
                root.child_with(Limits::none(), reserved),
            ] {
                assert_eq!(opened.unwrap_err(), OpenError::Amount(error.clone()));
            }
            assert_eq!(root.snapshot(), before);
            assert_eq!(root.accounts_open(), 1);
        }
    }
    hold.settle(usd("0.10")).unwrap();
}

#[test]
fn a_hold_settled_at_an_absurd_amount_is_returned_unchanged() {
    let root = root("1.00");
    let mut hold = root.try_hold(usd("0.10")).unwrap();
    let before = root.snapshot();
    for amount in ABSURD {
        let unsettled = hold.settle(spend::tokens(amount)).unwrap_err();
        assert_eq!(unsettled.error, AmountError::TooLarge { what: "tokens".to_owned(), amount });
        assert_eq!(unsettled.to_string(), unsettled.error.to_string());
        assert_eq!(root.snapshot(), before);
        hold = unsettled.hold;
    }
    hold.settle(usd("0.05")).unwrap();
    assert_eq!(root.snapshot().spent, usd("0.05"));
}

#[test]
fn an_absurd_report_leaves_the_one_before_it() {
    let root = root("1.00");
    root.run_blocking(usd("0.30"), |call| {
        call.used(usd("0.10")).unwrap();
        for amount in ABSURD {
            let error = AmountError::TooLarge { what: "cost".to_owned(), amount };
            assert_eq!(call.used(Amounts::cost(amount)), Err(MeterError::Amount(error)));
        }
        Ok::<_, ()>(())
    })
    .unwrap();
    assert_eq!(root.snapshot().spent, usd("0.10"));
}

#[test]
fn a_report_after_the_end_is_an_error_and_changes_nothing() {
    let root = root("1.00");
    let late = root.run_blocking(usd("0.30"), Ok::<_, ()>).unwrap();
    assert_eq!(late.used(usd("0.90")), Err(MeterError::Ended));
    assert_eq!(root.snapshot().spent, usd("0.30"));
}

#[test]
fn ceilings_cannot_be_raised_beyond_the_largest_amount() {
    let root = Budget::root(Limits::none().tokens(AMOUNT_MAX)).unwrap();
    let before = root.snapshot();
    let error = AmountError::TooLarge { what: "tokens".to_owned(), amount: AMOUNT_MAX + 1 };
    assert_eq!(root.raise(spend::tokens(1)), Err(BudgetRefusal::Amount(error)));
    assert_eq!(root.snapshot(), before);
}

#[test]
fn bad_names_timeouts_and_tags_open_nothing() {
    let root = root("1.00");
    let long = "x".repeat(65);
    for name in ["", " ", "../../etc/passwd", "a b", "A", "a/b", "-a", "é", "a\n", "a\0", long.as_str()] {
        let opened = root.child_with(Limits::none(), Options::new().name(name));
        assert!(matches!(opened, Err(OpenError::Name(IdError::Invalid { .. }))), "{name:?}");
    }
    for timeout in [Duration::ZERO, Duration::from_micros(999), Duration::from_secs(1 << 40), Duration::MAX] {
        let opened = root.child(Limits::none().timeout(timeout));
        assert!(matches!(opened, Err(OpenError::Timeout { .. })), "{timeout:?}");
    }
    let many = (0..=TAGS_MAX).fold(Options::new(), |options, n| options.tag(n.to_string(), "x"));
    let long = Options::new().tag("key", "x".repeat(TAG_BYTES_MAX + 1));
    for options in [many, long] {
        assert!(matches!(root.child_with(Limits::none(), options), Err(OpenError::Tags { .. })));
    }
    assert_eq!(root.accounts_open(), 1);
}
