//! The outcome of a response: usage, stop reason, faults, and what is settled at the full hold. The streams are those of
//! the drivers' corpus.

use std::path::Path;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use spinney_drivers::http::BodyEnd;
use spinney_drivers::wire::Secrets;
use spinney_kernel::budget::{Usage, Used};
use spinney_kernel::port::model::StopReason;
use spinney_kernel::primitives::FaultKind;
use spinney_server::gateway::wire::{CallFormat, CallRequest, CallUpstream};

use super::{passed, read, read_at, reader, stream_headers};

const CORPUS: [(CallFormat, &str); 5] = [
    (CallFormat::Messages, "anthropic_messages"),
    (CallFormat::Chat, "open_ai_chat"),
    (CallFormat::Chat, "compatible_chat"),
    (CallFormat::Responses, "open_ai_responses"),
    (CallFormat::Gemini, "gemini"),
];

fn corpus() -> Vec<(CallFormat, String, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../drivers/corpus");
    let streams = CORPUS.into_iter().flat_map(|(format, folder)| {
        let files = std::fs::read_dir(root.join(folder)).unwrap();
        files.map(move |file| {
            let path = file.unwrap().path();
            (format, path.display().to_string(), std::fs::read(&path).unwrap())
        })
    });
    streams.collect()
}

fn call(format: CallFormat) -> CallRequest {
    let body = match format {
        CallFormat::Chat => r#"{"model":"gpt-5","stream":true,"stream_options":{"include_usage":true}}"#,
        CallFormat::Messages | CallFormat::Responses => r#"{"model":"gpt-5","stream":true}"#,
        CallFormat::Gemini => r#"{"contents":[{"parts":[{"text":"hi"}]}]}"#,
    };
    read(format, body).unwrap()
}

fn json_headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers
}

#[test]
fn g12_every_stream_of_the_corpus_passes_unchanged_and_is_read_alike_in_any_chunks() {
    let streams = corpus();
    assert!(streams.len() > 30);
    for (format, name, bytes) in streams {
        let (whole, end) = passed(reader(&call(format)), &bytes, &[usize::MAX]);
        assert_eq!(whole, bytes, "{name}");
        for sizes in [[1].as_slice(), &[7, 1, 90]] {
            let (pieces, other) = passed(reader(&call(format)), &bytes, sizes);
            assert_eq!(pieces, bytes, "{name}");
            assert_eq!(format!("{:?}", other.result), format!("{:?}", end.result), "{name}");
        }
    }
}

#[test]
fn a_stream_that_is_cut_is_settled_at_its_full_hold() {
    for (format, name, bytes) in corpus() {
        for end in (0..bytes.len().saturating_sub(1)).step_by(23) {
            let (_, end) = passed(reader(&call(format)), &bytes[..end], &[usize::MAX]);
            if let Err(missed) = end.result {
                assert_eq!(missed.used, Used::Unknown, "{name}");
            }
        }
    }
}

#[test]
fn usage_and_the_stop_reason_are_read_from_each_format() {
    let cases = [
        (
            CallFormat::Messages,
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3,\"cache_read_input_tokens\":20,\"cache_creation_input_tokens\":100,\"output_tokens\":1}}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\"},\"usage\":{\"output_tokens\":9}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
            Usage { input: 3, cached_input: 20, cache_write: 100, output: 9, ..Usage::default() },
            StopReason::OutputCap,
        ),
        (
            CallFormat::Chat,
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":30,\"completion_tokens\":9,\"prompt_tokens_details\":{\"cached_tokens\":20},\"completion_tokens_details\":{\"reasoning_tokens\":4}}}\n\ndata: [DONE]\n\n",
            Usage { input: 10, cached_input: 20, output: 5, reasoning: 4, ..Usage::default() },
            StopReason::End,
        ),
        (
            CallFormat::Responses,
            "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"Hi\"}\n\nevent: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":30,\"output_tokens\":9,\"input_tokens_details\":{\"cached_tokens\":20},\"output_tokens_details\":{\"reasoning_tokens\":4}}}}\n\n",
            Usage { input: 10, cached_input: 20, output: 5, reasoning: 4, ..Usage::default() },
            StopReason::End,
        ),
        (
            CallFormat::Gemini,
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hi\"}]}}],\"usageMetadata\":{\"promptTokenCount\":30,\"candidatesTokenCount\":1}}\n\ndata: {\"candidates\":[{\"content\":{\"parts\":[]},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":30,\"cachedContentTokenCount\":20,\"candidatesTokenCount\":5,\"thoughtsTokenCount\":4,\"totalTokenCount\":39}}\n\n",
            Usage { input: 10, cached_input: 20, output: 5, reasoning: 4, ..Usage::default() },
            StopReason::End,
        ),
    ];
    for (format, stream, usage, stop) in cases {
        let mut reader = reader(&call(format));
        // The first word is noticed once, in the piece that has it.
        let firsts: Vec<bool> = stream
            .split_inclusive("\n\n")
            .map(|event| reader.feed(Bytes::copy_from_slice(event.as_bytes())).is_first_output)
            .collect();
        let first = stream.split_inclusive("\n\n").position(|event| event.contains("Hi")).unwrap();
        assert_eq!(firsts.iter().position(|is_first| *is_first), Some(first));
        assert_eq!(firsts.iter().filter(|is_first| **is_first).count(), 1);
        let answer = reader.finish(BodyEnd::Clean).result.unwrap();
        assert_eq!((answer.used, answer.stop), (Used::Tokens(usage), stop), "{format:?}");
    }
}

/// Writes that the provider does not divide are for an hour only if the request asks for that.
#[test]
fn undivided_cache_writes_last_as_long_as_the_request_asks() {
    let stream = "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3,\"output_tokens\":1,\"cache_creation_input_tokens\":100}}}\n\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":9}}\n\ndata: {\"type\":\"message_stop\"}\n\n";
    let written = |mark: &str| {
        let body = format!("{{\"model\":\"m\",\"system\":[{{\"type\":\"text\",\"text\":\"x\"{mark}}}]}}");
        let mut reader = reader(&read(CallFormat::Messages, &body).unwrap());
        reader.feed(Bytes::from_static(stream.as_bytes()));
        let Used::Tokens(usage) = reader.finish(BodyEnd::Clean).result.unwrap().used else { panic!() };
        (usage.cache_write, usage.cache_write_1h)
    };
    assert_eq!(written(""), (100, 0));
    assert_eq!(written(r#","cache_control":{"type":"ephemeral"}"#), (100, 0));
    assert_eq!(written(r#","cache_control":{"type":"ephemeral","ttl":"1h"}"#), (0, 100));
}

#[test]
fn a_whole_answer_passes_and_is_read() {
    let body = br#"{"id":"m","type":"message","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":{"input_tokens":12,"output_tokens":3}}"#;
    let call = read(CallFormat::Messages, r#"{"model":"m","max_tokens":9}"#).unwrap();
    let reader = || call.reader(StatusCode::OK, &json_headers(), Secrets::default());
    let (bytes, end) = passed(reader(), body, &[5]);
    assert_eq!(bytes, body);
    assert_eq!(end.result.unwrap().used, Used::Tokens(Usage { input: 12, output: 3, ..Usage::default() }));
    let (bytes, end) = passed(reader(), &body[..50], &[5]);
    assert_eq!(bytes, &body[..50]);
    assert_eq!(end.result.unwrap_err().used, Used::Unknown);
}

/// Proxies name the wrong type. What a body is shows in its first letter.
#[test]
fn g22_a_stream_and_a_whole_answer_are_told_apart_whatever_their_type() {
    let stream = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n";
    let shown = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let whole = r#"{"choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":12,"completion_tokens":3}}"#;
    let call = read(CallFormat::Chat, r#"{"model":"gpt-5","stream":true}"#).unwrap();
    let types = ["text/event-stream", "text/plain; charset=utf-8", "application/json", ""];
    for (name, before) in types.iter().flat_map(|name| ["", "\n\n", "\u{feff}"].map(|before| (*name, before)))
    {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(name));
        for (body, expected) in [(stream, shown), (whole, whole)] {
            for sizes in [[1].as_slice(), &[usize::MAX]] {
                let reader = call.reader(StatusCode::OK, &headers, Secrets::default());
                let (bytes, end) = passed(reader, format!("{before}{body}").as_bytes(), sizes);
                let case = format!("{name} {before:?} {body}");
                assert_eq!(String::from_utf8(bytes).unwrap(), format!("{before}{expected}"), "{case}");
                let used = Used::Tokens(Usage { input: 12, output: 3, ..Usage::default() });
                assert_eq!(end.result.unwrap().used, used, "{case}");
            }
        }
    }
}

#[test]
fn g22_done_after_the_last_event_of_any_format_takes_no_usage_back() {
    for (format, name, mut bytes) in corpus() {
        let (_, end) = passed(reader(&call(format)), &bytes, &[usize::MAX]);
        let Ok(answer) = end.result else { continue };
        bytes.extend_from_slice(b"data: [DONE]\n\n");
        let (_, end) = passed(reader(&call(format)), &bytes, &[usize::MAX]);
        assert_eq!(end.result.unwrap().used, answer.used, "{name}");
    }
}

#[test]
fn errors_of_a_provider_pass_and_cost_what_they_can_cost() {
    let cases = [
        (400, Used::NOTHING, FaultKind::Invalid),
        (401, Used::NOTHING, FaultKind::Auth),
        (429, Used::NOTHING, FaultKind::RateLimit),
        (408, Used::NOTHING, FaultKind::Timeout),
        (500, Used::NOTHING, FaultKind::Server),
        (502, Used::NOTHING, FaultKind::Server),
        (504, Used::NOTHING, FaultKind::Timeout),
        (529, Used::NOTHING, FaultKind::Overloaded),
    ];
    let body = br#"{"type":"error","error":{"type":"x","message":"no"}}"#;
    for (status, used, kind) in cases {
        let mut headers = json_headers();
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("7"));
        let reader = call(CallFormat::Messages).reader(
            StatusCode::from_u16(status).unwrap(),
            &headers,
            Secrets::default(),
        );
        let (bytes, end) = passed(reader, body, &[9]);
        assert_eq!(bytes, body);
        let missed = end.result.unwrap_err();
        assert_eq!((missed.used, missed.fault.kind), (used, kind), "{status}");
        assert_eq!(missed.fault.retry_after_ms.is_some(), status == 408 || status >= 429, "{status}");
    }
}

#[test]
fn errors_of_a_proxy_are_settled_at_the_full_hold() {
    for (status, used) in [
        (400, Used::NOTHING),
        (429, Used::NOTHING),
        (500, Used::NOTHING),
        (503, Used::NOTHING),
        (408, Used::Unknown),
        (502, Used::Unknown),
        (504, Used::Unknown),
        (524, Used::Unknown),
    ] {
        let body = r#"{"model":"gpt-5","stream":true,"stream_options":{"include_usage":true}}"#;
        let call = read_at(CallFormat::Chat, CallUpstream::Elsewhere, &HeaderMap::new(), body.into());
        let status = StatusCode::from_u16(status).unwrap();
        let reader = call.unwrap().reader(status, &json_headers(), Secrets::default());
        let (_, end) = passed(reader, b"no", &[9]);
        assert_eq!(end.result.unwrap_err().used, used, "{status}");
    }
}

#[test]
fn a_stream_that_begins_with_an_overload_costs_nothing_at_the_provider() {
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let start = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3}}}\n\n";
    for (stream, used) in [(error.to_owned(), Used::NOTHING), (start.to_owned() + error, Used::Unknown)] {
        let (bytes, end) = passed(reader(&call(CallFormat::Messages)), stream.as_bytes(), &[7]);
        assert_eq!(bytes, stream.as_bytes());
        let missed = end.result.unwrap_err();
        assert_eq!((missed.used, missed.fault.kind), (used, FaultKind::Overloaded));
    }
}

#[test]
fn g12_a_key_in_an_error_is_not_in_the_fault() {
    let key = "sk-ant-0123456789abcdef";
    let body = format!(r#"{{"error":{{"message":"wrong key {key}"}}}}"#);
    let secrets = Secrets::new([key.to_owned()]);
    let reader = call(CallFormat::Chat).reader(StatusCode::UNAUTHORIZED, &json_headers(), secrets);
    let (_, end) = passed(reader, body.as_bytes(), &[usize::MAX]);
    assert_eq!(end.result.unwrap_err().fault.message, "wrong key [key] (status 401)");
}

#[test]
fn a_response_that_cannot_be_read_passes_and_is_settled_at_its_full_hold() {
    let mut headers = stream_headers();
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    let reader = call(CallFormat::Responses).reader(StatusCode::OK, &headers, Secrets::default());
    let (bytes, end) = passed(reader, b"\x1f\x8b\x00", &[1]);
    assert_eq!(bytes, b"\x1f\x8b\x00");
    assert_eq!(end.result.unwrap_err().used, Used::Unknown);
}
