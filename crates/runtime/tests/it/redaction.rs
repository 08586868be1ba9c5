//! What is redacted of a text, however it is cut into pieces.

use std::iter;

use proptest::prelude::*;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use spinney::redaction::{HELD_BYTES_MAX, Redactor};
use spinney_kernel::primitives::{Actor, AgentId, Body, Envelope};
use spinney_kernel::record::Event;

const PASSWORD: &str = "correct horse battery";
const KEY: &str = "sk-ant-api03-AbCdEfGhIjKlMnOp12";
const TOKEN: &str = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1g";
const PRIVATE_KEY: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA\nAAAABG5vbmU=\n-----END OPENSSH PRIVATE KEY-----";

fn redactor() -> Redactor {
    let values = [
        ("PASSWORD", PASSWORD),
        ("QUOTED", "a \"quoted\"\nvalue"),
        ("SHORT", "secret"),
        ("LONG", &long()),
        ("UMLAUTS", "päss/wörd"),
    ];
    Redactor::new(values.map(|(name, value)| (name.to_owned(), value.to_owned())))
}

/// Longer than what is held back, with letters of several bytes where it is divided.
fn long() -> String {
    let letters = (0..700_u32).map(|at| char::from_u32(0xe0 + (at * 7) % 300).unwrap_or('x'));
    letters.collect()
}

#[test]
fn secrets_are_replaced_by_what_they_are() {
    for (text, shown) in [
        ("the password is correct horse battery.", "the password is [redacted: PASSWORD]."),
        ("correct horse batter", "correct horse batter"),
        ("correct correct horse battery", "correct [redacted: PASSWORD]"),
        ("{\"a\":\"a \\\"quoted\\\"\\nvalue\"}", "{\"a\":\"[redacted: QUOTED]\"}"),
        (
            r"{'a': 'p\u00e4ss/w\u00f6rd'} {'b':'p\u00E4ss/w\u00F6rd'}",
            "{'a': '[redacted: UMLAUTS]'} {'b':'[redacted: UMLAUTS]'}",
        ),
        (r"pass/word päss\/wörd p\u00e4ss\/w\u00f6rd", "pass/word [redacted: UMLAUTS] [redacted: UMLAUTS]"),
        (r#"{"a":"{\"b\":\"p\\u00e4ss/w\\u00f6rd\"}"}"#, r#"{"a":"{\"b\":\"[redacted: UMLAUTS]\"}"}"#),
        ("a secret of six letters", "a secret of six letters"),
        ("key=sk-ant-api03-AbCdEfGhIjKlMnOp12;", "key=[redacted: key];"),
        ("AKIAIOSFODNN7EXAMPLE ghp_0123456789abcdefghij", "[redacted: key] [redacted: key]"),
        ("line\\nsk-ant-api03-AbCdEfGhIjKlMnOp12\\n", "line\\n[redacted: key]\\n"),
        ("\u{1b}[32mxoxb-123456789012-abc\u{1b}[0m", "\u{1b}[32m[redacted: key]\u{1b}[0m"),
        ("\\u001b[1;32mxoxb-123456789012-abc\\u001b[0m", "\\u001b[1;32m[redacted: key]\\u001b[0m"),
        (
            "sk-first-second-third-fourth, task-12345678901234",
            "sk-first-second-third-fourth, task-12345678901234",
        ),
        ("Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjft.", "Bearer [redacted: token]"),
        ("eyJhbGciOiJIUzI1NiJ9.other", "eyJhbGciOiJIUzI1NiJ9.other"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\\nMIIEpA\\n-----END RSA PRIVATE KEY-----\", next",
            "[redacted: private key]\", next",
        ),
        ("------BEGIN PRIVATE KEY-----\nMIIE", "-[redacted: private key]"),
        ("-----BEGIN CERTIFICATE-----\nMIIE", "-----BEGIN CERTIFICATE-----\nMIIE"),
        ("", ""),
    ] {
        assert_eq!(redactor().redact(text), shown);
    }
    assert_eq!(
        redactor().redact(&format!("{PRIVATE_KEY}\nÜ {TOKEN}")),
        "[redacted: private key]\nÜ [redacted: token]"
    );
    assert_eq!(redactor().redact(&format!("<{}>", long())), "<[redacted: LONG]>");
    assert!(long().len() > 2 * HELD_BYTES_MAX);
}

fn any_text() -> impl Strategy<Value = String> {
    let long = long();
    let part = prop_oneof![
        Just(PASSWORD.repeat(2)),
        Just(format!("{PASSWORD}{}", &PASSWORD[..9])),
        Just(KEY.to_owned()),
        Just(TOKEN.to_owned()),
        Just(PRIVATE_KEY.to_owned()),
        Just(long.clone()),
        (0..long.chars().count()).prop_map(move |end| long.chars().take(end).collect()),
        (0..PASSWORD.len()).prop_map(|end| PASSWORD[..end].to_owned()),
        (0..KEY.len()).prop_map(|end| KEY[..end].to_owned()),
        (0..TOKEN.len()).prop_map(|end| TOKEN[..end].to_owned()),
        (0..PRIVATE_KEY.len()).prop_map(|end| PRIVATE_KEY[..end].to_owned()),
        "[-a-zA-Z0-9 .\\\\\"\u{1b}\nü]{0,40}",
        "[a-z]{600}",
    ];
    prop::collection::vec(part, 0..8).prop_map(|parts| parts.join(" "))
}

proptest! {
    /// However a text is cut, what is shown is the redaction of all of it, and never has a secret; little is held back.
    #[test]
    fn pieces_show_what_the_whole_text_shows(
        text in any_text(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let redactor = redactor();
        let whole = redactor.redact(&text).into_owned();
        let mut ends: Vec<usize> = cuts.iter().map(|cut| text.floor_char_boundary(cut.index(text.len() + 1))).collect();
        ends.sort_unstable();
        ends.push(text.len());
        let (mut stream, mut shown, mut start) = (redactor.stream(), String::new(), 0);
        for end in ends {
            shown += &stream.push(&text[start..end]);
            prop_assert!(stream.held_bytes() <= HELD_BYTES_MAX);
            start = end;
        }
        shown += &stream.finish();
        prop_assert_eq!(&shown, &whole);
        for secret in [PASSWORD, KEY, PRIVATE_KEY, &long()] {
            prop_assert!(!shown.contains(secret));
        }
        prop_assert_eq!(redactor.redact(&whole), whole.as_str());
    }

    /// The same letter by letter.
    #[test]
    fn letters_show_what_the_whole_text_shows(text in any_text()) {
        let redactor = redactor();
        let mut stream = redactor.stream();
        let shown: String = text.chars().map(|letter| stream.push(letter.encode_utf8(&mut [0; 4]))).collect();
        prop_assert_eq!(shown + &stream.finish(), redactor.redact(&text).into_owned());
    }
}

/// Ids and names stay: they could not have a mark, and what is folded from an event needs them.
#[test]
fn the_texts_of_an_event_are_redacted_and_its_ids_stay() {
    let agent: AgentId = "ghp_0123456789abcdefghij".parse().unwrap();
    let body = |text: &str| Body::text(text.to_owned());
    let event = |text: &str| Event::MessageSent {
        from: Actor::PERSON,
        to: agent.clone(),
        body: body(text),
        envelope: Envelope::default(),
    };
    assert_eq!(redactor().redact_typed(&event(KEY)).unwrap().into_owned(), event("[redacted: key]"));
    assert_eq!(
        redactor().redact_typed(&event("a \"quoted\"\nvalue")).unwrap().into_owned(),
        event("[redacted: QUOTED]")
    );
    let mut value = json!({ "a": [KEY, 1, null], "b": { "c": PASSWORD } });
    redactor().redact_json(&mut value);
    assert_eq!(value, json!({ "a": ["[redacted: key]", 1, null], "b": { "c": "[redacted: PASSWORD]" } }));
}

/// What a hostile text costs grows with its length alone: 16 times as much text costs less than 48 times as much work.
#[test]
fn hostile_texts_take_linear_time() {
    let beginnings = [
        "aaaaaaaaaaaaaaab",
        "correct ",
        "sk-",
        "-----BEGIN ",
        "eyJ",
        "-",
        "sk-a",
        "-----BEGIN A PRIVATE KEY-----",
    ];
    let repeated = iter::once(("A".to_owned(), "a".repeat(500) + "b"));
    let redactor = Redactor::new(repeated.chain([("PASSWORD".to_owned(), PASSWORD.to_owned())]));
    let now = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
    };
    for beginning in beginnings {
        let nanos = |bytes: usize| {
            let text = beginning.repeat(bytes / beginning.len());
            let tries = (0..3).map(|_| {
                let before = now();
                assert!(redactor.redact(&text).len() <= 2 * text.len());
                now() - before
            });
            tries.min().unwrap_or_default()
        };
        let (short, long) = (nanos(1 << 15), nanos(1 << 19));
        assert!(long < short * 48, "{beginning}: {short} ns, {long} ns");
    }
}
