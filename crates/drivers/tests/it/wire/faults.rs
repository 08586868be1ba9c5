//! Errors as providers send them: what they mean, how long to wait, and what people read.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use spinney_drivers::wire::bounds::FAULT_TEXT_BYTES_MAX;
use spinney_drivers::wire::{ErrorResponse, FaultReader, Secrets, WireFault, WireHeader};

use super::KEY;

fn fault(status: u16, headers: &[(&str, &str)], body: &str) -> WireFault {
    let headers: Vec<WireHeader<'_>> =
        headers.iter().map(|(name, value)| WireHeader { name, value }).collect();
    let response = ErrorResponse { status, headers: &headers, body: body.as_bytes() };
    FaultReader::new(Secrets::new([KEY.to_owned()])).response(response)
}

#[test]
fn errors_are_what_their_words_say_and_else_what_their_status_says() {
    let errors = include_str!("../../../corpus/errors.txt").lines().filter(|line| !line.starts_with('#'));
    for error in errors {
        let mut words = error.splitn(3, ' ');
        let (kind, status) = (words.next().unwrap(), words.next().unwrap().parse().unwrap());
        let fault = fault(status, &[], words.next().unwrap_or_default());
        assert_eq!(format!("{:?}", fault.kind), kind, "{error}");
    }
}

/// Headers, and the pause that they ask for.
type PauseCase = (&'static [(&'static str, &'static str)], Option<u64>);

#[test]
fn pauses_are_read_wherever_providers_put_them() {
    const DATE: (&str, &str) = ("date", "Mon, 16 Nov 2026 08:20:32 GMT");
    let table: [PauseCase; 18] = [
        (&[("Retry-After", "7")], Some(7_000)),
        (&[("retry-after", "1.5")], Some(1_500)),
        (&[("retry-after", "0")], Some(0)),
        (&[("retry-after-ms", "350"), ("retry-after", "1")], Some(350)),
        (&[DATE, ("retry-after", "Mon, 16 Nov 2026 08:22:32 GMT")], Some(120_000)),
        // The two older forms.
        (&[DATE, ("retry-after", "Monday, 16-Nov-26 08:22:32 GMT")], Some(120_000)),
        (&[DATE, ("retry-after", "Mon Nov 16 08:22:32 2026")], Some(120_000)),
        (&[DATE, ("retry-after", "Mon, 16 Nov 2026 08:00:00 GMT")], Some(0)),
        // Without a clock of the same machine a point in time says nothing.
        (&[("retry-after", "Mon, 16 Nov 2026 08:22:32 GMT")], None),
        (&[("x-ratelimit-reset-tokens", "6m0s"), ("x-ratelimit-remaining-tokens", "0")], Some(360_000)),
        (
            &[
                ("x-ratelimit-reset-requests", "20ms"),
                ("x-ratelimit-remaining-requests", "0"),
                ("x-ratelimit-reset-tokens", "1m"),
                ("x-ratelimit-remaining-tokens", "17"),
            ],
            Some(20),
        ),
        (
            &[
                DATE,
                ("anthropic-ratelimit-input-tokens-reset", "2026-11-16T08:21:02Z"),
                ("anthropic-ratelimit-input-tokens-remaining", "0"),
            ],
            Some(30_000),
        ),
        (
            &[
                DATE,
                ("anthropic-ratelimit-requests-reset", "2026-11-16T10:21:02.5+02:00"),
                ("anthropic-ratelimit-requests-remaining", "0"),
            ],
            Some(30_000),
        ),
        (&[("x-ratelimit-reset-tokens", "soon"), ("x-ratelimit-remaining-tokens", "0")], None),
        (&[("retry-after", "-5")], None),
        (&[("retry-after", "99999999999999999999")], None),
        (&[("retry-after", "1000000000")], Some(86_400_000)),
        (&[], None),
    ];
    for (headers, expected) in table {
        assert_eq!(fault(429, headers, "").retry_after_ms, expected, "{headers:?}");
    }
    let body = r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"@type":"x","retryDelay":"34.07s"}]}}"#;
    assert_eq!(fault(429, &[], body).retry_after_ms, Some(34_070));
    assert_eq!(fault(401, &[("retry-after", "7")], "").retry_after_ms, None, "waiting does not mend a key");
}

#[test]
fn people_read_one_clean_line() {
    let read = |status, body: &str| fault(status, &[], body).message;
    assert_eq!(
        read(400, "{\"error\":{\"message\":\"bad\\u001b[31m \\r\\n thing\\u202e\"}}"),
        "bad[31m thing (status 400)"
    );
    assert_eq!(read(500, ""), "the provider answered with status 500 and no message");
    assert_eq!(read(307, "x"), "the provider redirects to another address (status 307)");
    let long = read(400, &format!("{{\"error\":\"{}\"}}", "many words ".repeat(1_000)));
    assert!(long.len() < FAULT_TEXT_BYTES_MAX + 40 && long.ends_with("… (status 400)"), "{long}");
}

/// X5 (errors).
#[test]
fn keys_are_hidden_whole_in_part_and_masked() {
    let table = [
        (format!("bad key {KEY}."), "bad key [key]. (status 401)"),
        (format!("bad key \"{KEY}\""), "bad key \"[key]\" (status 401)"),
        (format!("x{KEY}y"), "x[key]y (status 401)"),
        (format!("begins with {}", &KEY[..12]), "begins with [key] (status 401)"),
        (format!("ends with {}", &KEY[12..]), "ends with [key] (status 401)"),
        (
            "Incorrect API key provided: sk-pr****************cdef.".to_owned(),
            "Incorrect API key provided: [key] (status 401)",
        ),
        (format!("{}\u{0}{}", &KEY[..5], &KEY[5..]), "[key] (status 401)"),
        (format!("{} {KEY}", "w ".repeat(250)), ""),
    ];
    for (text, expected) in table {
        let body = serde_json::json!({ "error": { "message": text } }).to_string();
        let message = fault(401, &[], &body).message;
        assert!(!message.contains(&KEY[..8]), "{message}");
        assert!(expected.is_empty() || message == expected, "{message}");
    }
}

/// Secrets (encoded): a key is hidden in base64, wherever it stands in what was encoded, and as URLs and JSON write it.
#[test]
fn keys_are_hidden_in_every_encoding() {
    let secret = "sk-a+b/c=d\"e-0123456789";
    let reader = FaultReader::new(Secrets::new([secret.to_owned()]));
    let read = |text: &str| {
        let body = serde_json::json!({ "error": { "message": text } }).to_string();
        reader.response(ErrorResponse { status: 401, headers: &[], body: body.as_bytes() }).message
    };
    for before in ["", "u", "us", "use", "user:", "Bearer "] {
        for engine in [STANDARD, URL_SAFE_NO_PAD] {
            let encoded = engine.encode(format!("{before}{secret}"));
            let message = read(&format!("you sent {encoded}"));
            assert!(message.contains("[key]"), "{before}: {message}");
            let shown = message.split_whitespace().nth(2).unwrap().replace("[key]", "");
            assert!(shown.len() < 12 + before.len() * 2, "{before}: {message}");
        }
    }
    assert_eq!(read("sk-a%2Bb%2Fc%3Dd%22e-0123456789"), "[key] (status 401)");
    assert_eq!(read("sk-a%2bb%2fc%3dd%22e-0123456789"), "[key] (status 401)");
    assert_eq!(read(r#"sent {"key":"sk-a+b/c=d\"e-0123456789"}"#), r#"sent {"key":"[key]"} (status 401)"#);
    for escaped in [
        r#"sk-a+b\/c=d\"e-0123456789"#,
        r#"sk-a\u002bb\u002fc\u003dd\u0022e-0123456789"#,
        r#"\u0073\u006b-a+b\\\/c=d\\\"e-0123456789"#,
        "%73%6B%2Da%2Bb%2Fc%3Dd%22e%2D0123456789",
        "sk-a%252Bb%252Fc%253Dd%2522e-0123456789",
        r"\x73k-a+b\x2fc=d\x22e-0123456789",
    ] {
        assert_eq!(read(escaped), "[key] (status 401)", "{escaped}");
    }
    // Base64 in a URL and in JSON.
    let encoded = STANDARD.encode(format!("user:{secret}"));
    assert!(encoded.contains('/') || encoded.contains('+') || encoded.contains('='), "{encoded}");
    let in_url = encoded.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    for text in [in_url, encoded.replace('/', "\\/"), encoded.replace('/', "\\u002F")] {
        let message = read(&text);
        assert!(message.contains("[key]") && message.len() < 40, "{text}: {message}");
    }
}

/// Secrets (bytes): keys go, in every shape, and everything else stays as it was.
#[test]
fn a_key_in_bytes_is_hidden_and_nothing_else_changes() {
    let secrets = Secrets::new(["sk-0123456789abcdef".to_owned(), "other/key+0987".to_owned()]);
    let hidden = |text: &[u8]| secrets.hide(text).into_owned();
    assert_eq!(hidden(b"a sk-0123456789abcdef b other%2Fkey%2B0987\xff"), b"a [key] b [key]\xff");
    assert_eq!(hidden(b"\xfe%73k-0123456789abcdefsk-0123456789abcdef"), b"\xfe[key][key]");
    let other: &[u8] = b"{\"text\":\"sk-0123 and 100% of \\\\ other keys\\n\"}\xff\xfe";
    assert!(matches!(secrets.hide(other), std::borrow::Cow::Borrowed(bytes) if bytes == other));
    // A cut key is found if the cut is known.
    assert_eq!(hidden(b"see sk-0123456"), b"see sk-0123456");
    assert_eq!(secrets.hide_cut(b"see sk-0123456").as_ref(), b"see [key]");
    assert_eq!(secrets.hide_cut(b"see sk-01234567\\u00").as_ref(), b"see [key]");
    assert_eq!(secrets.hide_cut(b"see sk-0").as_ref(), b"see sk-0");
    assert_eq!(Secrets::default().hide(b"anything").as_ref(), b"anything");
}

proptest! {
    #[test]
    fn any_response_is_some_fault_without_the_key(
        status in 100_u16..700,
        body in prop::collection::vec(any::<u8>(), 0..200),
        headers in prop::collection::vec(("(retry-after|date|x-ratelimit-reset-tokens|[a-z-]{1,9})", "\\PC{0,30}"), 0..5),
        before in "\\PC{0,20}",
    ) {
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let read = fault(status, &headers, &format!("{before}{KEY}{}", String::from_utf8_lossy(&body)));
        prop_assert!(!read.message.contains(KEY));
        prop_assert!(read.message.chars().all(|letter| !letter.is_control()));
    }
}
