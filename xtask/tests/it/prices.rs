//! The price table: the committed one is what the committed source says, and each kind of price becomes what it should.

use std::fs;
use std::path::Path;

use xtask::prices::{TABLE, convert, table};

const ORIGIN: &str = "package = \"p\"\nversion = \"1\"\ndate = \"2026-01-02\"";

/// The line of a model with these keys, or the error.
fn line(keys: &str) -> String {
    let source = format!(r#"[{{"id":"p","models":[{{"id":"m","match":{{"equals":"M"}},{keys}}}]}}]"#);
    match convert(ORIGIN, &source) {
        Ok(table) => table.lines().nth(2).unwrap_or_default().to_owned(),
        Err(error) => format!("{error:#}"),
    }
}

#[test]
fn the_committed_table_is_what_the_committed_source_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let committed = fs::read_to_string(root.join(TABLE)).unwrap();
    // Not `assert_eq`, which would print both: hundreds of kilobytes each.
    let is_same = table(&root).unwrap() == committed;
    assert!(is_same, "{TABLE} is not what the source says: run `cargo xtask prices`");
}

#[test]
fn flat_prices_are_rounded_up_to_nano_dollars() {
    let keys =
        r#""context_window":8000,"prices":{"input_mtok":0.0000000001,"output_mtok":2,"cache_read_mtok":0.5}"#;
    assert_eq!(
        line(keys),
        r#"{"model":"m","context":8000,"price":{"input_per_mtok":1,"output_per_mtok":2000000000,"cached_input_per_mtok":500000000}}"#
    );
}

#[test]
fn a_model_that_the_source_calls_deprecated_is_marked() {
    let keys = r#""deprecated":true,"prices":{"input_mtok":1,"output_mtok":2}"#;
    assert_eq!(
        line(keys),
        r#"{"model":"m","deprecated":true,"price":{"input_per_mtok":1000000000,"output_per_mtok":2000000000}}"#
    );
    assert!(!line(&keys.replace("true", "false")).contains("deprecated"));
}

#[test]
fn tiers_of_single_prices_become_whole_sets_of_rates() {
    let keys = r#""prices":{"input_mtok":{"base":1,"tiers":[{"start":100,"price":3}]},"output_mtok":{"base":2,"tiers":[{"start":200,"price":4}]}}"#;
    assert_eq!(
        line(keys),
        r#"{"model":"m","price":{"input_per_mtok":1000000000,"output_per_mtok":2000000000,"tiers":[{"input_above":100,"rates":{"input_per_mtok":3000000000,"output_per_mtok":2000000000}},{"input_above":200,"rates":{"input_per_mtok":3000000000,"output_per_mtok":4000000000}}]}}"#
    );
}

#[test]
fn dated_and_daily_prices_become_changes_in_their_order() {
    let keys = r#""prices":[{"prices":{"input_mtok":1,"output_mtok":1}},
        {"constraint":{"start_date":"2026-01-01"},"prices":{"input_mtok":2,"output_mtok":2}},
        {"constraint":{"start_time":"01:00:00Z","end_time":"04:00:00Z"},"prices":{"input_mtok":3,"output_mtok":3}}]"#;
    assert_eq!(
        line(keys),
        r#"{"model":"m","price":{"input_per_mtok":1000000000,"output_per_mtok":1000000000,"changes":[{"active":{"from":1767225600000},"rates":{"input_per_mtok":2000000000,"output_per_mtok":2000000000}},{"active":{"daily":{"start_s":3600,"end_s":14400}},"rates":{"input_per_mtok":3000000000,"output_per_mtok":3000000000}}]}}"#
    );
}

#[test]
fn units_that_no_hold_bounds_make_a_model_unpriced() {
    let priced = |more: &str| line(&format!(r#""prices":{{"input_mtok":1,"output_mtok":2{more}}}"#));
    let unpriced = |reason: &str| format!(r#"{{"model":"m","unpriced":"{reason}"}}"#);
    assert_eq!(priced(r#","requests_kcount":5"#), unpriced("it is also billed by requests_kcount"));
    assert_eq!(priced(r#","output_image_mtok":30"#), unpriced("it is also billed by output_image_mtok"));
    assert_eq!(priced(r#","output_audio_mtok":1"#), unpriced("it is also billed by output_audio_mtok"));
    assert_eq!(priced(r#","a_new_unit":1"#), unpriced("it is also billed by a_new_unit"));
    assert_eq!(
        priced(r#","input_image_mtok":3"#),
        unpriced("images are dearer than text (input_image_mtok)")
    );
    assert_eq!(line(r#""prices":{}"#), unpriced("the source has no price"));
    let half = unpriced("the source has no price for both input and output tokens");
    assert_eq!(line(r#""prices":{"input_mtok":1}"#), half);
    let later = r#""prices":[{"prices":{"input_mtok":1,"output_mtok":1}},{"constraint":{"start_date":"2026-01-01"},"prices":{"input_mtok":1}}]"#;
    assert_eq!(line(later), half);
}

#[test]
fn prices_that_the_source_does_not_call_a_bound_are_none() {
    let source = r#"[{"id":"zhipuai","models":[{"id":"m","match":{"equals":"m"},"prices":{"input_mtok":1,"output_mtok":2}}]}]"#;
    let table = convert(ORIGIN, source).unwrap();
    let reason = "the source has the cheapest tier only, converted from another currency";
    let lines = format!("{{\"provider\":\"zhipuai\",\"unpriced\":\"{reason}\"}}\n{{\"model\":\"m\"}}\n");
    assert!(table.ends_with(&lines), "{table}");
}

#[test]
fn units_that_a_call_of_ours_cannot_have_leave_a_model_priced() {
    let plain = line(r#""prices":{"input_mtok":1,"output_mtok":2}"#);
    for more in ["web_searches_kcount", "storage_searches_kcount", "input_audio_mtok", "input_image_mtok"] {
        assert_eq!(
            line(&format!(r#""prices":{{"input_mtok":1,"output_mtok":2,"{more}":1}}"#)),
            plain,
            "{more}"
        );
    }
    let batch = r#","price_variants":[{"when":{"processing":"batch"},"prices":{"input_mtok":0.5}}]"#;
    assert_eq!(line(&format!(r#""prices":{{"input_mtok":1,"output_mtok":2}}{batch}"#)), plain);
}

#[test]
fn what_is_not_understood_is_an_error_and_no_price() {
    let prices = r#""prices":{"input_mtok":1,"output_mtok":2}"#;
    insta::assert_snapshot!(line(&format!(r#"{prices},"minimum_charge":1"#)), @"bad source.json: unknown field `minimum_charge`, expected one of `id`, `match`, `context_window`, `prices`, `price_variants`, `name`, `description`, `price_comments`, `deprecated` at line 1 column 112");
    insta::assert_snapshot!(line(&format!(r#"{prices},"price_variants":[{{"when":{{"moon":"full"}}}}]"#)), @"p / m: prices that depend on `moon` of a request: decide what drivers do about it");
    insta::assert_snapshot!(line(r#""prices":{"input_mtok":-1,"output_mtok":2}"#), @"p / m: `-1` is no amount of dollars");
    insta::assert_snapshot!(line(r#""prices":[{"constraint":{"start_date":"2026-01-01"},"prices":{}}]"#), @"p / m: the first price is not the one that holds without a condition");
    insta::assert_snapshot!(line(r#""prices":[{"prices":{"input_mtok":1,"output_mtok":1}},{"constraint":{"weekday":"Monday"},"prices":{}}]"#), @"p / m: bad prices: unknown field `weekday`, expected one of `start_date`, `start_time`, `end_time` at line 1 column 69");
}
