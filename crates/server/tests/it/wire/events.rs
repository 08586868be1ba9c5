//! G12: what comes down is what the provider sent, but for the usage that we asked for.

use proptest::prelude::*;
use spinney_server::gateway::wire::{CallFormat, CallRequest};

use super::json_text::value;
use super::{passed, read, reader};

/// A call whose stream of chat completions would not report its usage.
fn hiding() -> CallRequest {
    read(CallFormat::Chat, r#"{"model":"gpt-5","stream":true}"#).unwrap()
}

/// A call whose program asked for the usage itself.
fn asking() -> CallRequest {
    let body = r#"{"model":"gpt-5","stream":true,"stream_options":{"include_usage":true}}"#;
    read(CallFormat::Chat, body).unwrap()
}

const USAGE: [&str; 4] = [
    r#"{"id":"x","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":7}}"#,
    r#"{"choices": [ ], "usage": {"prompt_tokens": 5}, "new": [1]}"#,
    r#"{"usage":{},"choices":null}"#,
    r#"{"choi\u0063es":[],"usage":{"a":{}}}"#,
];

/// Events that look like usage and are not.
const NEARLY: [&str; 6] = [
    r#"{"choices":[],"usage":null,"prompt_filter_results":[]}"#,
    r#"{"choices":[{"index":0,"delta":{"content":"x"}}],"usage":{"prompt_tokens":5}}"#,
    r#"{"choices":[],"usage":{},"error":{"message":"no"}}"#,
    r#"{"choices":[]}"#,
    r#"{"choices":[],"usage":{}} x"#,
    "[DONE]",
];

/// An event as lines without their ends, and as what must pass of it.
#[derive(Clone, Debug)]
struct Event {
    sent: Vec<String>,
    expected: Vec<String>,
}

fn other_line() -> impl Strategy<Value = String> {
    prop_oneof![
        ": [ -~]{0,12}",
        "event: [a-z.]{0,12}",
        "id: [0-9]{1,4}",
        "retry: [0-9]{1,4}",
        "[a-z]{1,8}(: ?[ -~]{0,8})?".prop_filter("data is no other line", |line| !line.starts_with("data")),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let data = prop_oneof![
        // Values have line breaks where events must not.
        value().prop_map(|json| json.replace(['\r', '\n'], " ")),
        prop::sample::select(NEARLY.to_vec()).prop_map(str::to_owned),
        "[ -~]{0,20}",
    ];
    let plain = (prop::collection::vec(other_line(), 0..3), prop::collection::vec(data, 0..3)).prop_map(
        |(mut lines, data)| {
            lines.extend(data.iter().map(|data| format!("data: {data}")));
            lines.push(String::new());
            Event { sent: lines.clone(), expected: lines }
        },
    );
    let usage =
        (prop::sample::select(USAGE.to_vec()), prop::collection::vec(other_line(), 0..2), any::<bool>())
            .prop_map(|(usage, others, has_space)| {
                let data = format!("data:{}{usage}", if has_space { " " } else { "" });
                let sent = [others.clone(), vec![data, String::new()]].concat();
                let expected =
                    if others.is_empty() { others } else { [others, vec![String::new()]].concat() };
                Event { sent, expected }
            });
    // The usage in two lines, as the format of events allows.
    let split = Just(Event {
        sent: vec!["data: {\"choices\":[],".to_owned(), "data: \"usage\":{}}".to_owned(), String::new()],
        expected: Vec::new(),
    });
    prop_oneof![6 => plain, 2 => usage, 1 => split]
}

/// A stream with one kind of line ends, or with two that can be told apart.
fn stream() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let ends = prop_oneof![
        Just(vec!["\n"]),
        Just(vec!["\r\n"]),
        Just(vec!["\r"]),
        Just(vec!["\n", "\r\n", "\r\n", "\n", "\n"]),
    ];
    (prop::collection::vec(event(), 0..8), ends, prop_oneof![Just(String::new()), "data: [a-z{]{0,9}"])
        .prop_map(|(events, ends, tail)| {
            let (mut sent, mut expected) = (String::new(), String::new());
            for event in &events {
                let end = |line: usize| ends[line % ends.len()];
                let render = |lines: &[String], all: &[String]| {
                    // A line keeps the end that it had among all lines.
                    let mut from = 0;
                    let rendered = lines.iter().map(|line| {
                        let at =
                            all[from..].iter().position(|other| other == line).map_or(from, |at| from + at);
                        from = at + 1;
                        format!("{line}{}", end(at))
                    });
                    rendered.collect::<String>()
                };
                sent += &render(&event.sent, &event.sent);
                expected += &render(&event.expected, &event.sent);
            }
            ((sent + &tail).into_bytes(), (expected + &tail).into_bytes())
        })
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![Just(vec![1]), Just(vec![usize::MAX]), prop::collection::vec(1_usize..40, 1..12)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn g12_a_stream_changes_in_nothing_but_the_usage_that_we_asked_for((sent, expected) in stream(), sizes in sizes()) {
        let (passed, _) = passed(reader(&hiding()), &sent, &sizes);
        prop_assert_eq!(String::from_utf8(passed).unwrap(), String::from_utf8(expected).unwrap());
    }

    #[test]
    fn g12_a_stream_changes_in_nothing_if_the_program_asked_for_usage((sent, _) in stream(), sizes in sizes()) {
        let (passed, _) = passed(reader(&asking()), &sent, &sizes);
        prop_assert_eq!(passed, sent);
    }

    #[test]
    fn g12_bytes_that_are_no_events_pass(sent in prop::collection::vec(any::<u8>(), 0..400), sizes in sizes()) {
        let (passed, _) = passed(reader(&hiding()), &sent, &sizes);
        prop_assert_eq!(passed, sent);
    }
}

#[test]
fn an_event_that_is_too_large_to_be_usage_is_not_held_back() {
    let large = format!("data: {{\"choices\":[],\"usage\":{{\"a\":\"{}\"}}}}\n\n", "x".repeat(70_000));
    let stream = format!("{large}data: {}\n\ndata: [DONE]\n\n", USAGE[0]);
    for sizes in [vec![1], vec![1_000], vec![usize::MAX]] {
        let (passed, _) = passed(reader(&hiding()), stream.as_bytes(), &sizes);
        assert_eq!(passed, format!("{large}data: [DONE]\n\n").as_bytes());
    }
}

#[test]
fn a_list_is_not_the_usage() {
    let stream = b"data: [[],{\"a\":0},null]\n\n";
    let (passed, _) = passed(reader(&hiding()), stream, &[usize::MAX]);
    assert_eq!(passed, stream);
}
