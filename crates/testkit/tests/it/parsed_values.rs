//! Values as people and models write them: parsed exactly, or refused with what to write instead.

use serde_json::json;
use spinney_kernel::budget::{AMOUNT_MAX, Ceilings, Resource};
use spinney_kernel::definition::{BudgetKeys, BudgetSpec, Count, Lend, OnLow, Percent, TimeSpan, Usd};
use spinney_kernel::primitives::limit;

/// Parses JSON text, as the arguments of a tool arrive.
fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| {
        let error = error.to_string();
        error.split(" at line ").next().unwrap_or_default().to_owned()
    })
}

fn spec(text: &str) -> Result<BudgetSpec, String> {
    read::<BudgetKeys>(text).map(|keys| keys.spec())
}

#[test]
fn dollars_are_read_exactly_from_numbers_and_texts() {
    for (text, nanos) in [
        ("0", 0),
        ("10", 10_000_000_000),
        ("0.50", 500_000_000),
        ("0.1", 100_000_000),
        ("0.3", 300_000_000),
        ("0.000000001", 1),
        ("0.0000001", 100),
        ("1e-7", 100),
        ("999999.999999999", 999_999_999_999_999),
        ("123456.123456789", 123_456_123_456_789),
        ("1000000", AMOUNT_MAX),
        ("\"0.50\"", 500_000_000),
        ("\"$1.5\"", 1_500_000_000),
        ("\"10\"", 10_000_000_000),
    ] {
        assert_eq!(read::<Usd>(text).map(Usd::nanos), Ok(nanos), "{text}");
    }
}

#[test]
fn every_amount_of_nanos_survives_being_written_as_a_number() {
    for nanos in (0..AMOUNT_MAX).step_by(7_919_191_919).chain(AMOUNT_MAX - 1_000..=AMOUNT_MAX) {
        let text = format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
        assert_eq!(read::<Usd>(&text).map(Usd::nanos), Ok(nanos), "{text}");
    }
}

#[test]
fn what_is_not_dollars_is_refused_with_the_remedy() {
    for (text, shown) in [
        ("-1", "-1"),
        ("-0.5", "-0.5"),
        ("-0.0", "-0"),
        ("0.0000000001", "0.0000000001"),
        ("\"1e3\"", "1e3"),
        ("\"NaN\"", "NaN"),
        ("\"inf\"", "inf"),
        ("\"-2\"", "-2"),
        ("\" 1\"", " 1"),
        ("\"\"", ""),
        ("\"one dollar\"", "one dollar"),
        ("\"1 USD\"", "1 USD"),
        ("null", "null"),
        ("true", "true"),
        ("[1]", "[1]"),
        ("{\"usd\":1}", "{\"usd\":1}"),
    ] {
        let remedy = "write a plain positive number such as 0.25, at most nine decimals";
        let error = format!("`{shown}` is not an amount in USD: {remedy}");
        assert_eq!(read::<Usd>(text), Err(error), "{text}");
    }
    for text in ["1000001", "\"1000000.000000001\"", "2e6"] {
        let error = read::<Usd>(text).unwrap_err();
        assert!(error.ends_with("USD is above the largest amount, 1000000 USD"), "{text}: {error}");
    }
    for text in ["1e300", "18446744073709551616", "NaN", "Infinity", "1e400"] {
        assert!(read::<Usd>(text).is_err(), "{text}");
    }
}

/// Only possible in formats other than JSON.
#[test]
fn an_invalid_number_is_not_a_dollar_amount() {
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let value = serde_json::Value::from(number);
        assert!(Usd::try_from(value.clone()).is_err(), "{number}");
        assert!(TimeSpan::try_from(value.clone()).is_err(), "{number}");
        assert!(Count::try_from(value.clone()).is_err(), "{number}");
        assert!(Percent::try_from(value).is_err(), "{number}");
    }
}

#[test]
fn times_are_read_with_their_unit_and_seconds_without() {
    for (text, ms) in [
        ("\"5m\"", 300_000),
        ("\"200ms\"", 200),
        ("\"90s\"", 90_000),
        ("\"2h\"", 7_200_000),
        ("\"1d\"", 86_400_000),
        ("\"365d\"", limit::TIMEOUT_MS_MAX),
        ("30", 30_000),
        ("31536000", limit::TIMEOUT_MS_MAX),
    ] {
        assert_eq!(read::<TimeSpan>(text).map(TimeSpan::ms), Ok(ms), "{text}");
    }
}

#[test]
fn what_is_not_a_time_is_refused_with_the_remedy() {
    for (text, shown) in [
        ("\"5 m\"", "5 m"),
        ("\"5min\"", "5min"),
        ("\"5M\"", "5M"),
        ("\"1w\"", "1w"),
        ("\"m\"", "m"),
        ("\"90\"", "90"),
        ("\"\"", ""),
        ("\"-5m\"", "-5m"),
        ("\"1.5h\"", "1.5h"),
        ("\"1h30m\"", "1h30m"),
        ("\"\u{0665}m\"", "\u{0665}m"),
        ("-5", "-5"),
        ("1.5", "1.5"),
        ("true", "true"),
        ("null", "null"),
        ("[5]", "[5]"),
    ] {
        let remedy = "write a whole number and its unit, such as 200ms, 90s, 5m, 2h or 1d; \
                      a number alone is seconds";
        assert_eq!(read::<TimeSpan>(text), Err(format!("`{shown}` is not a time: {remedy}")), "{text}");
    }
    for text in ["\"0s\"", "0", "\"366d\"", "31536001", "\"99999999999999999999d\"", "18446744073709551615"] {
        let error = read::<TimeSpan>(text).unwrap_err();
        assert!(error.ends_with("is out of bounds: write at least 1ms and at most 365d"), "{text}: {error}");
    }
}

#[test]
fn counts_and_percents_are_whole_and_bounded() {
    assert_eq!(read::<Count>("0").map(Count::count), Ok(0));
    assert_eq!(read::<Count>("1000000000000000").map(Count::count), Ok(AMOUNT_MAX));
    for text in ["-1", "1.5", "\"12\"", "1000000000000001", "true", "null", "[]", "1e30"] {
        let error = read::<Count>(text).unwrap_err();
        let remedy = "is not a count: write a whole number from 0 to 1000000000000000, without quotes";
        assert!(error.ends_with(remedy), "{text}: {error}");
    }
    for (text, percent) in [("0", 0), ("10", 10), ("90", 90), ("\"10%\"", 10), ("\"0%\"", 0)] {
        assert_eq!(read::<Percent>(text).map(Percent::percent), Ok(percent), "{text}");
    }
    for text in
        ["91", "256", "-1", "0.1", "\"10\"", "\"%\"", "\"+10%\"", "\"91%\"", "\"10 %\"", "true", "null"]
    {
        let error = read::<Percent>(text).unwrap_err();
        let remedy = "is not a percent: write a whole number from 0 to 90, such as 10 or \"10%\"";
        assert!(error.ends_with(remedy), "{text}: {error}");
    }
}

#[test]
fn every_key_of_a_budget_changes_it() {
    let none = BudgetSpec::default();
    let limit = |resource, amount| BudgetSpec::with_limit(Ceilings::NONE.with(resource, amount));
    let downgrade = OnLow::Downgrade("small".parse().unwrap());
    let read = |value: serde_json::Value| spec(&value.to_string());
    assert_eq!(spec("{}"), Ok(none.clone()));
    assert_eq!(read(json!({ "cost_usd": 0.5 })), Ok(limit(Resource::Cost, 500_000_000)));
    assert_eq!(read(json!({ "tokens": 200 })), Ok(limit(Resource::Tokens, 200)));
    assert_eq!(read(json!({ "steps": 60 })), Ok(limit(Resource::Steps, 60)));
    assert_eq!(read(json!({ "tool_calls": 7 })), Ok(limit(Resource::ToolCalls, 7)));
    assert_eq!(read(json!({ "retries": 0 })), Ok(limit(Resource::Retries, 0)));
    let timeout = BudgetSpec { timeout_ms: Some(300_000), ..none.clone() };
    assert_eq!(read(json!({ "timeout": "5m" })), Ok(timeout));
    for (value, lend) in [(true, Lend::Yes), (false, Lend::No)] {
        let spec = BudgetSpec { lend: Some(lend), ..none.clone() };
        assert_eq!(read(json!({ "lend": value })), Ok(spec));
    }
    let reserve = BudgetSpec { answer_reserve: Some(25), ..none.clone() };
    assert_eq!(read(json!({ "answer_reserve": "25%" })), Ok(reserve));
    for (value, on_low) in [
        (json!("halt"), OnLow::Halt),
        (json!("shrink"), OnLow::Shrink),
        (json!({ "downgrade": "small" }), downgrade),
    ] {
        let spec = BudgetSpec { on_low: Some(on_low), ..none.clone() };
        assert_eq!(read(json!({ "on_low": value })), Ok(spec));
    }
}

#[test]
fn an_unknown_budget_key_is_refused_with_the_known_ones() {
    let recorded = |text: &str| spec(text).unwrap_err();
    insta::assert_snapshot!(recorded(r#"{"cost": 1}"#), @"unknown field `cost`, expected one of `cost_usd`, `tokens`, `steps`, `tool_calls`, `retries`, `timeout`, `lend`, `answer_reserve`, `on_low`, `wrap_up`, `repeats`");
    insta::assert_snapshot!(recorded(r#"{"cost_usd": -1}"#), @"`-1` is not an amount in USD: write a plain positive number such as 0.25, at most nine decimals");
    insta::assert_snapshot!(recorded(r#"{"tokens": "many"}"#), @"`many` is not a count: write a whole number from 0 to 1000000000000000, without quotes");
    insta::assert_snapshot!(recorded(r#"{"timeout": "soon"}"#), @"`soon` is not a time: write a whole number and its unit, such as 200ms, 90s, 5m, 2h or 1d; a number alone is seconds");
    insta::assert_snapshot!(recorded(r#"{"lend": "yes"}"#), @r#"invalid type: string "yes", expected a boolean"#);
    insta::assert_snapshot!(recorded(r#"{"answer_reserve": 100}"#), @r#"`100` is not a percent: write a whole number from 0 to 90, such as 10 or "10%""#);
    insta::assert_snapshot!(recorded(r#"{"on_low": "stop"}"#), @"unknown variant `stop`, expected one of `halt`, `shrink`, `downgrade`");
    insta::assert_snapshot!(recorded(r#"{"on_low": {"downgrade": "no such name!"}}"#), @"`no such name!` is not a valid model name: 1 to 128 characters of A-Z, a-z, 0-9 and `._:/-`, the first a letter or digit");
    insta::assert_snapshot!(recorded(r#"{"cost_usd": 1, "cost_usd": 2}"#), @"duplicate field `cost_usd`");
}
