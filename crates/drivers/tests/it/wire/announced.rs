//! Rate limits in headers: as providers write them, and malformed.

use proptest::prelude::*;
use spinney_drivers::wire::bounds::{ALLOWANCE_MAX, PAUSE_MS_MAX};
use spinney_drivers::wire::{WireHeader, announced};
use spinney_kernel::port::model::{Allowance, Announced};

const DATE: (&str, &str) = ("date", "Mon, 16 Nov 2026 08:20:32 GMT");

fn read(headers: &[(&str, &str)]) -> Announced {
    let headers: Vec<WireHeader<'_>> =
        headers.iter().map(|(name, value)| WireHeader { name, value }).collect();
    announced(&headers)
}

const fn allowance(limit: u64, remaining: u64, reset_ms: u64) -> Option<Allowance> {
    Some(Allowance { limit, remaining, reset_ms })
}

#[test]
fn openai_announces_requests_and_tokens_with_times() {
    let headers = [
        ("x-ratelimit-limit-requests", "60"),
        ("x-ratelimit-limit-tokens", "150000"),
        ("X-RateLimit-Remaining-Requests", "59"),
        ("x-ratelimit-remaining-tokens", "149984"),
        ("x-ratelimit-reset-requests", "1s"),
        ("x-ratelimit-reset-tokens", "6m0s"),
    ];
    let expected = Announced {
        requests: allowance(60, 59, 1_000),
        tokens: allowance(150_000, 149_984, 360_000),
        ..Announced::default()
    };
    assert_eq!(read(&headers), expected);
}

#[test]
fn anthropic_announces_four_limits_with_instants() {
    let headers = [
        DATE,
        ("anthropic-ratelimit-requests-limit", "50"),
        ("anthropic-ratelimit-requests-remaining", "49"),
        ("anthropic-ratelimit-requests-reset", "2026-11-16T08:20:33Z"),
        ("anthropic-ratelimit-tokens-limit", "48000"),
        ("anthropic-ratelimit-tokens-remaining", "48000"),
        ("anthropic-ratelimit-tokens-reset", "2026-11-16T08:20:32Z"),
        ("anthropic-ratelimit-input-tokens-limit", "40000"),
        ("anthropic-ratelimit-input-tokens-remaining", "0"),
        ("anthropic-ratelimit-input-tokens-reset", "2026-11-16T09:21:32+01:00"),
        ("anthropic-ratelimit-output-tokens-limit", "8000"),
        ("anthropic-ratelimit-output-tokens-remaining", "7000"),
        ("anthropic-ratelimit-output-tokens-reset", "2026-11-16T08:20:00Z"),
    ];
    let expected = Announced {
        requests: allowance(50, 49, 1_000),
        tokens: allowance(48_000, 48_000, 0),
        input_tokens: allowance(40_000, 0, 60_000),
        output_tokens: allowance(8_000, 7_000, 0),
    };
    assert_eq!(read(&headers), expected);
}

/// One limit of requests as OpenAI writes it.
fn requests(limit: &str, remaining: &str, reset: &str) -> Option<Allowance> {
    let headers = [
        ("x-ratelimit-limit-requests", limit),
        ("x-ratelimit-remaining-requests", remaining),
        ("x-ratelimit-reset-requests", reset),
    ];
    read(&headers).requests
}

#[test]
fn what_cannot_be_is_ignored() {
    assert_eq!(requests("60", "60", "20ms"), allowance(60, 60, 20));
    let table = [
        ("60", "61", "1s"),
        ("0", "0", "1s"),
        ("-60", "1", "1s"),
        ("+60", "1", "1s"),
        ("", "1", "1s"),
        ("60", "", "1s"),
        ("60", "1", ""),
        ("60", "1", "soon"),
        ("60", "1", "-1s"),
        ("60.5", "1", "1s"),
        ("1000000000001", "1", "1s"),
        ("99999999999999999999", "1", "1s"),
    ];
    for (limit, remaining, reset) in table {
        assert_eq!(requests(limit, remaining, reset), None, "{limit} {remaining} {reset}");
    }
    assert_eq!(requests("60", "1", &"9".repeat(1_000)), None);
    assert_eq!(requests("60", "1", "400d"), allowance(60, 1, PAUSE_MS_MAX));
    // A limit with a part missing says nothing; the others still count.
    let headers = [
        ("x-ratelimit-limit-requests", "60"),
        ("x-ratelimit-limit-tokens", "9"),
        ("x-ratelimit-remaining-tokens", "8"),
        ("x-ratelimit-reset-tokens", "7s"),
    ];
    assert_eq!(read(&headers), Announced { tokens: allowance(9, 8, 7_000), ..Announced::default() });
    assert_eq!(read(&[]), Announced::default());
}

#[test]
fn an_instant_without_a_date_to_measure_from_is_ignored() {
    let limit = [
        ("anthropic-ratelimit-requests-limit", "50"),
        ("anthropic-ratelimit-requests-remaining", "49"),
        ("anthropic-ratelimit-requests-reset", "2026-12-16T08:20:33Z"),
    ];
    assert_eq!(read(&limit), Announced::default());
    let dated: Vec<(&str, &str)> = std::iter::once(DATE).chain(limit).collect();
    assert_eq!(read(&dated).requests, allowance(50, 49, PAUSE_MS_MAX), "a month is cut to a day");
    let wrong: Vec<(&str, &str)> = std::iter::once(("date", "yesterday")).chain(limit).collect();
    assert_eq!(read(&wrong), Announced::default());
}

proptest! {
    /// Whatever the values are, what is read is within its bounds.
    #[test]
    fn no_header_announces_what_cannot_be(limit in ".{0,24}", remaining in "[0-9]{0,24}", reset in ".{0,24}") {
        if let Some(read) = requests(&limit, &remaining, &reset) {
            prop_assert!(read.remaining <= read.limit && read.limit <= ALLOWANCE_MAX);
            prop_assert!(read.reset_ms <= PAUSE_MS_MAX);
        }
    }
}
