//! G12: what goes up is what the program sent, but for the fields that `docs/gateway.md` names.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use proptest::prelude::*;
use spinney_server::gateway::wire::{
    CallFormat, CallRequest, CallUpstream, CapTooSmall, GatewayError, GatewayErrorKind, OpaqueTexts,
};

use super::json_text::{name, quoted, space, value};
use super::{read, read_at};

/// A body that is written twice: as the program sends it, and as it must go up.
#[derive(Clone, Debug)]
struct Written {
    format: CallFormat,
    before: String,
    after: String,
    members: Vec<Member>,
    tail: String,
    added: Vec<String>,
}

#[derive(Clone, Debug)]
struct Member {
    key: String,
    around: [String; 3],
    sent: String,
    expected: String,
}

impl Written {
    fn sent(&self) -> String {
        self.render(&[], |member| &member.sent)
    }

    fn expected(&self) -> String {
        self.render(&self.added, |member| &member.expected)
    }

    fn render<'m>(&'m self, added: &[String], value: impl Fn(&'m Member) -> &'m str) -> String {
        let members = self.members.iter().map(|member| {
            let [a, b, c] = &member.around;
            format!("{a}{}{b}:{c}{}", member.key, value(member))
        });
        let members: Vec<String> = members.collect();
        format!("{}{{{}{}{}}}{}", self.before, added.concat(), members.join(","), self.tail, self.after)
    }
}

/// Those that have everything among the fields of a body. Gemini has tests of its own.
const FORMATS: [CallFormat; 3] = [CallFormat::Messages, CallFormat::Chat, CallFormat::Responses];

/// Names that the gateway reads or refuses. A random one is none of them.
const NAMES: [&str; 12] = [
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "model",
    "stream",
    "stream_options",
    "thinking",
    "n",
    "tools",
    "speed",
    "prompt",
    "audio",
];

fn is_unknown(key: &str) -> bool {
    let decoded = serde_json::from_str::<String>(key).unwrap_or_default();
    // One that is read in other letters is refused.
    !NAMES.iter().any(|name| decoded.eq_ignore_ascii_case(name))
}

fn member(
    key: impl Strategy<Value = String>,
    sent: String,
    expected: String,
) -> impl Strategy<Value = Member> {
    (key, [space(), space(), space()]).prop_map(move |(key, around)| {
        let (sent, expected) = (sent.clone(), expected.clone());
        Member { key, around, sent, expected }
    })
}

/// Fields that pass at the provider's own address and that the gateway does not read.
const fn unread(format: CallFormat) -> [&'static str; 5] {
    match format {
        CallFormat::Messages => ["metadata", "stop_sequences", "temperature", "top_k", "tool_choice"],
        CallFormat::Chat => ["logit_bias", "metadata", "response_format", "seed", "verbosity"],
        CallFormat::Responses => ["client_metadata", "include", "metadata", "text", "user"],
        CallFormat::Gemini => ["labels", "safetySettings", "safety_settings", "contents", "tools"],
    }
}

/// What the gateway does not read: at a server elsewhere that may be anything.
fn unknown(format: CallFormat, upstream: CallUpstream) -> impl Strategy<Value = Member> {
    let key = match upstream {
        CallUpstream::Provider => prop::sample::select(unread(format).to_vec()).prop_flat_map(name).boxed(),
        CallUpstream::Elsewhere => quoted().prop_filter("a name that is read", |key| is_unknown(key)).boxed(),
    };
    (key, [space(), space(), space()], value()).prop_map(|(key, around, value)| Member {
        key,
        around,
        sent: value.clone(),
        expected: value,
    })
}

const fn cap_name(format: CallFormat) -> &'static str {
    match format {
        CallFormat::Messages => "max_tokens",
        CallFormat::Chat => "max_completion_tokens",
        CallFormat::Responses => "max_output_tokens",
        CallFormat::Gemini => "maxOutputTokens",
    }
}

/// The cap that a program sends.
#[derive(Clone, Copy, Debug)]
enum Cap {
    Missing,
    Null,
    Tokens(u64),
}

/// A number that is often next to the one that decides.
fn near(decides: u64, others: std::ops::Range<u64>) -> impl Strategy<Value = u64> {
    prop_oneof![1 => decides - 1..=decides + 1, 2 => others]
}

fn cap(granted: u64) -> impl Strategy<Value = Cap> {
    prop_oneof![Just(Cap::Missing), Just(Cap::Null), near(granted, 1..100_000).prop_map(Cap::Tokens)]
}

/// `stream_options` as a program sends it, and as it must go up.
const STREAM_OPTIONS: [(&str, &str); 7] = [
    ("null", r#"{"include_usage":true}"#),
    ("{}", r#"{"include_usage":true}"#),
    ("{ }", r#"{"include_usage":true }"#),
    (r#"{"include_usage": false}"#, r#"{"include_usage": true}"#),
    (r#"{ "x":1 , "include_usage" :null}"#, r#"{ "x":1 , "include_usage" :true}"#),
    (r#"{"include_obfuscation":false}"#, r#"{"include_usage":true,"include_obfuscation":false}"#),
    (r#"{"include_usage":true}"#, r#"{"include_usage":true}"#),
];

fn written(format: CallFormat, upstream: CallUpstream, granted: u64) -> impl Strategy<Value = Written> {
    let options = prop_oneof![Just(None), prop::sample::select(STREAM_OPTIONS.to_vec()).prop_map(Some)];
    (cap(granted), any::<bool>(), options, near(granted, 1_024..40_000), any::<bool>()).prop_flat_map(
        move |(cap, is_streamed, options, budget, has_thinking)| {
            let (mut added, mut known) = (Vec::new(), Vec::new());
            let mut put = |name_of: &'static str, sent: String, expected: String| {
                known.push(member(name(name_of), sent, expected).boxed());
            };
            put("model", "\"gpt-5\"".to_owned(), "\"gpt-5\"".to_owned());
            put("stream", is_streamed.to_string(), is_streamed.to_string());
            let is_lowered = match cap {
                Cap::Missing => {
                    added.push(format!("\"{}\":{granted},", cap_name(format)));
                    true
                }
                Cap::Null => {
                    put(cap_name(format), "null".to_owned(), granted.to_string());
                    true
                }
                Cap::Tokens(asked) => {
                    put(cap_name(format), asked.to_string(), asked.min(granted).to_string());
                    asked > granted
                }
            };
            if has_thinking && format == CallFormat::Messages {
                let object =
                    |tokens: u64| format!("{{ \"type\":\"enabled\", \"budget_tokens\" : {tokens} }}");
                let is_changed = is_lowered && budget >= granted;
                let lowered = if is_changed { (granted - granted / 4).max(1_024) } else { budget };
                put("thinking", object(budget), object(lowered));
            }
            let asks = format == CallFormat::Chat && is_streamed;
            match options {
                Some((sent, expected)) if format != CallFormat::Messages => {
                    put("stream_options", sent.to_owned(), if asks { expected } else { sent }.to_owned());
                }
                _ if asks => added.push("\"stream_options\":{\"include_usage\":true},".to_owned()),
                _ => {}
            }
            let members = (known, prop::collection::vec(unknown(format, upstream), 0..6))
                .prop_map(|(known, unknown)| [known, unknown].concat())
                .prop_shuffle();
            (members, space(), space(), space()).prop_map(move |(members, before, after, tail)| Written {
                format,
                before,
                after,
                members,
                tail,
                added: added.clone(),
            })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn g12_a_request_changes_in_nothing_but_the_named_fields(
        (granted, written) in (0_usize..3, 1_100_u64..50_000)
            .prop_flat_map(|(format, granted)| (Just(granted), written(FORMATS[format], CallUpstream::Provider, granted)))
    ) {
        let sent = written.sent();
        let call = read(written.format, &sent).map_err(|error| TestCaseError::fail(format!("{error}: {sent}")))?;
        let body = call.body(granted).unwrap();
        prop_assert_eq!(std::str::from_utf8(&body).unwrap(), written.expected());
    }

    #[test]
    fn g12_a_server_elsewhere_gets_every_field_that_the_gateway_does_not_know(
        (granted, written) in (prop::sample::select(vec![CallFormat::Messages, CallFormat::Responses]), 1_100_u64..50_000)
            .prop_flat_map(|(format, granted)| (Just(granted), written(format, CallUpstream::Elsewhere, granted)))
    ) {
        let sent = written.sent();
        let call = read_elsewhere(written.format, &sent).map_err(|error| TestCaseError::fail(format!("{error}: {sent}")))?;
        let body = call.body(granted).unwrap();
        prop_assert_eq!(std::str::from_utf8(&body).unwrap(), written.expected());
    }

    /// Nothing that a program sends makes the gateway panic, and what is read goes up as JSON again.
    #[test]
    fn whatever_is_read_goes_up_as_json(
        format in 0_usize..3,
        members in prop::collection::vec((prop_oneof![prop::sample::select(NAMES.to_vec()).prop_map(|name| format!("\"{name}\"")), quoted()], value()), 0..8),
        granted in 0_u64..5_000,
    ) {
        let members: Vec<String> = members.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
        let body = format!("{{\"model\":\"m\",{}}}", members.join(",")).replace(",}", "}");
        if let Ok(call) = read(FORMATS[format], &body) {
            let up = call.body(granted.max(call.output_cap_min())).unwrap();
            prop_assert!(serde_json::from_slice::<serde::de::IgnoredAny>(&up).is_ok());
            prop_assert!(call.input_tokens_max(Some(1_000), &[], &OpaqueTexts::default()).unwrap() > 0);
        }
    }

    #[test]
    fn bytes_that_are_no_request_are_refused(format in 0_usize..3, body in prop::collection::vec(any::<u8>(), 0..64)) {
        let body = Bytes::from(body);
        let read = read_at(FORMATS[format], CallUpstream::Provider, &HeaderMap::new(), body);
        prop_assert_eq!(read.unwrap_err().kind, GatewayErrorKind::BadRequest);
    }
}

#[test]
fn a_body_that_needs_no_change_is_not_copied() {
    let body = Bytes::from_static(br#"{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[]}"#);
    let call =
        read_at(CallFormat::Messages, CallUpstream::Provider, &HeaderMap::new(), body.clone()).unwrap();
    assert_eq!(call.output_cap(16_000), 100);
    assert_eq!(call.body(100).unwrap().as_ptr(), body.as_ptr());
    assert_eq!(call.body(u64::MAX).unwrap().as_ptr(), body.as_ptr());
}

#[test]
fn the_cap_of_claude_code_is_lowered_with_its_thinking_budget() {
    let body = r#"{"model":"claude-sonnet-4-5","max_tokens":32000,"thinking":{"budget_tokens":31999,"type":"enabled"}}"#;
    let call = read(CallFormat::Messages, body).unwrap();
    assert_eq!(call.output_cap(1), 32_000);
    let lowered = |cap| String::from_utf8(call.body(cap).unwrap().to_vec()).unwrap();
    assert_eq!(lowered(32_000), body);
    assert_eq!(lowered(8_000), body.replace("32000", "8000").replace("31999", "6000"));
    assert_eq!(lowered(1_025), body.replace("32000", "1025").replace("31999", "1024"));
    assert_eq!(call.body(1_024).unwrap_err(), CapTooSmall { granted: 1_024, min: 1_025 });
}

#[test]
fn a_budget_above_the_cap_is_left_alone_as_long_as_the_cap_is() {
    let body = r#"{"model":"m","max_tokens":4000,"thinking":{"type":"enabled","budget_tokens":10000}}"#;
    let call = read(CallFormat::Messages, body).unwrap();
    assert_eq!(call.body(4_000).unwrap(), body.as_bytes());
}

#[test]
fn both_names_of_the_cap_are_lowered() {
    let call = read(CallFormat::Chat, r#"{"model":"m","max_tokens":50,"max_completion_tokens":90}"#).unwrap();
    assert_eq!(call.output_cap(1), 90);
    assert_eq!(
        call.body(60).unwrap(),
        r#"{"model":"m","max_tokens":50,"max_completion_tokens":60}"#.as_bytes()
    );
    assert_eq!(
        call.body(20).unwrap(),
        r#"{"model":"m","max_tokens":20,"max_completion_tokens":20}"#.as_bytes()
    );
}

#[test]
fn a_server_elsewhere_gets_the_older_name_of_the_cap() {
    let cases = [
        (r#"{"model":"m"}"#, 1, r#"{"max_tokens":60,"model":"m"}"#),
        (
            r#"{"model":"m","max_completion_tokens":90}"#,
            90,
            r#"{"max_tokens":60,"model":"m","max_completion_tokens":60}"#,
        ),
        (
            r#"{"model":"m","max_completion_tokens":50}"#,
            50,
            r#"{"max_tokens":50,"model":"m","max_completion_tokens":50}"#,
        ),
        (
            r#"{"model":"m","max_completion_tokens":90,"max_tokens":null}"#,
            90,
            r#"{"model":"m","max_completion_tokens":60,"max_tokens":60}"#,
        ),
        (
            r#"{"model":"m","max_completion_tokens":null,"max_tokens":null}"#,
            1,
            r#"{"model":"m","max_completion_tokens":60,"max_tokens":60}"#,
        ),
        (
            r#"{"model":"m","max_completion_tokens":null}"#,
            1,
            r#"{"max_tokens":60,"model":"m","max_completion_tokens":60}"#,
        ),
        (
            r#"{"model":"m","max_completion_tokens":null,"max_tokens":40}"#,
            40,
            r#"{"model":"m","max_completion_tokens":null,"max_tokens":40}"#,
        ),
    ];
    for (body, held, up) in cases {
        let call = read_elsewhere(CallFormat::Chat, body).unwrap();
        assert_eq!(call.output_cap(1), held, "{body}");
        assert_eq!(std::str::from_utf8(&call.body(60).unwrap()).unwrap(), up, "{body}");
    }
}

fn read_elsewhere(format: CallFormat, body: &str) -> Result<CallRequest, GatewayError> {
    let body = Bytes::copy_from_slice(body.as_bytes());
    read_at(format, CallUpstream::Elsewhere, &HeaderMap::new(), body)
}

#[test]
fn a_server_elsewhere_gets_no_field_that_it_may_take_for_another() {
    for name in ["Max_Tokens", "MAX_COMPLETION_TOKENS", "max_token\u{17f}", "Model", "Tools", "N"] {
        let body = format!(r#"{{"model":"m","max_tokens":9,"{name}":90000}}"#);
        let error = read_elsewhere(CallFormat::Chat, &body).unwrap_err();
        assert_eq!(error.kind, GatewayErrorKind::BadRequest);
        assert!(error.message.contains("write it in lower case"), "{}", error.message);
        assert!(read(CallFormat::Chat, &body).is_err(), "{name}");
    }
    assert!(read_elsewhere(CallFormat::Chat, r#"{"model":"m","Max_Other":9}"#).is_ok());
    // Nested keys as well.
    for body in [
        r#"{"model":"m","max_tokens":9,"thinking":{"Budget_Tokens":9000}}"#,
        r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"Type":"document"}]}]}"#,
        r#"{"model":"m","max_tokens":9,"tools":[{"Type":"web_search_20250305"}]}"#,
        r#"{"model":"m","max_tokens":9,"context_management":{"Edits":[]}}"#,
    ] {
        let error = read_elsewhere(CallFormat::Messages, body).unwrap_err();
        assert!(error.message.contains("write it in lower case"), "{body}: {}", error.message);
    }
}

/// Some servers prefer another name of the cap, or read 0 as none.
#[test]
fn a_server_elsewhere_gets_no_second_cap() {
    for field in [r#""n_predict":100000"#, r#""max_new_tokens":9"#, r#""options":{"num_predict":-1}"#] {
        let error = read_elsewhere(CallFormat::Chat, &format!(r#"{{"model":"m","max_tokens":9,{field}}}"#))
            .unwrap_err();
        assert_eq!(error.kind, GatewayErrorKind::Refused, "{field}");
        assert!(error.message.contains("output cap"), "{}", error.message);
    }
    let error = read_elsewhere(CallFormat::Chat, r#"{"model":"m","max_tokens":0}"#).unwrap_err();
    assert_eq!(error.message, "`max_tokens` is 0, which some servers read as no cap: send at least 1");
    // Anthropic fills its cache with it.
    assert_eq!(
        read(CallFormat::Messages, r#"{"model":"m","max_tokens":0}"#).unwrap().body(9).unwrap(),
        r#"{"model":"m","max_tokens":0}"#.as_bytes()
    );
}

#[test]
fn another_encoding_than_utf_8_is_refused() {
    for (media, is_read) in [
        ("application/json", true),
        ("application/json; charset=utf-8", true),
        ("application/json;charset=\"UTF-8\"", true),
        ("application/json; charset=utf-7", false),
        ("text/plain; x=y; charset = latin1", false),
        ("application/json; charset=", false),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
        for upstream in [CallUpstream::Provider, CallUpstream::Elsewhere] {
            let read = read_at(CallFormat::Chat, upstream, &headers, Bytes::from_static(br#"{"model":"m"}"#));
            assert_eq!(read.is_ok(), is_read, "{media}");
        }
    }
}

#[test]
fn what_cannot_be_read_for_sure_is_refused() {
    let cases = [
        (r#"{"model":"a","model":"b"}"#, "`model` appears twice in one object: send it once"),
        (
            r#"{"model":"a","max_tokens":1,"max\u005ftokens":9}"#,
            "`max_tokens` appears twice in one object: send it once",
        ),
        (
            r#"{"model":"a","thinking":{"budget_tokens":1,"budget_tokens":2}}"#,
            "`budget_tokens` appears twice in one object: send it once",
        ),
        (r#"{"model":"a","max_tokens":1.5}"#, "`max_tokens` is not a whole number"),
        (r#"{"model":"a","max_tokens":-1}"#, "`max_tokens` is not a whole number"),
        (r#"{"model":"a","max_tokens":"9"}"#, "`max_tokens` is not a whole number"),
        (r#"{"model":"a","stream":1}"#, "`stream` is neither true nor false"),
        (r#"{"model":7}"#, "`model` is missing or is not text"),
        (r#"{"model":""}"#, "`model` is empty, longer than 256 bytes, or not printable"),
        (r#"[]"#, "the body is not a JSON object"),
        (r#"{"model":"a"} x"#, "the body cannot be read: it is not JSON: byte 14 is unexpected"),
    ];
    for (body, message) in cases {
        let error = read(CallFormat::Messages, body).unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (GatewayErrorKind::BadRequest, message), "{body}");
    }
}

#[test]
fn a_compressed_body_is_refused() {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("zstd"));
    let body = Bytes::from_static(b"{}");
    let error = read_at(CallFormat::Responses, CallUpstream::Provider, &headers, body).unwrap_err();
    assert_eq!(
        error.message,
        "the body is compressed, which the gateway does not support: send it uncompressed"
    );
}

#[test]
fn g12_the_page_names_every_field_that_changes() {
    let page = include_str!("../../../../../docs/gateway.md");
    let fields = [
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "thinking.budget_tokens",
        "stream_options.include_usage",
    ];
    for field in fields {
        assert!(page.contains(&format!("`{field}`")), "{field}");
    }
}
