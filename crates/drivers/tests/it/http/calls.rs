//! Calls that come to an end as they should, and errors that say what they are.

use spinney_drivers::http::HttpHeader;
use spinney_drivers::wire::{StreamEnd, WireFaultKind, WireFormat, WireUsage};

use super::super::wire::{KEY, all, read, stream};
use super::upstream::{Step, Upstream};
use super::{SHORT, ask, call, client};

#[tokio::test]
async fn every_recorded_stream_reads_over_the_network_as_it_reads_from_a_file() {
    for recorded in all() {
        let expected = read(&recorded);
        let has_fault = expected.fault.is_some();
        let pieces = recorded.bytes.chunks(97).map(|piece| Step::Send(piece.to_vec())).collect();
        let upstream = Upstream::stream(pieces).await;
        let (answer, streamed) = ask(SHORT, call(recorded.format, &upstream.url)).await;
        let answer = match (answer, expected.fault) {
            (Ok(answer), None) => answer,
            (Err(missed), None) => {
                assert_eq!(missed.fault.kind, WireFaultKind::Cut, "{}", recorded.shape);
                missed.answer
            }
            (Err(missed), Some(fault)) => {
                assert_eq!(missed.fault, fault, "{}", recorded.shape);
                missed.answer
            }
            (Ok(_), Some(fault)) => panic!("{}: an answer, and not {fault}", recorded.shape),
        };
        assert_eq!(streamed, answer.text, "{}", recorded.shape);
        let mut expected = expected.answer;
        if recorded.format == WireFormat::Gemini && has_fault {
            // What was reported may not be the last usage.
            expected.usage = WireUsage::default();
        }
        assert_eq!(answer, expected, "{}", recorded.shape);
    }
}

/// llama.cpp offers to keep a connection and closes it after the stream. The next request sent there is lost.
#[tokio::test]
async fn each_call_to_a_server_on_this_machine_has_its_own_connection() {
    let body = stream(WireFormat::OpenAiChat, "plain_text").bytes;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nkeep-alive: timeout=5\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut sent = format!("{head}{:x}\r\n", body.len()).into_bytes();
    sent.extend(body);
    sent.extend(b"\r\n0\r\n\r\n");
    // Whatever else comes on this connection is never answered.
    let upstream = Upstream::play(vec![Step::Send(sent), Step::Hold]).await;
    let client = client(SHORT);
    for _ in 0..2 {
        let answer = client.ask(call(WireFormat::OpenAiChat, &upstream.url), &mut |_| {}).await;
        assert_eq!(answer.unwrap().end, StreamEnd::Whole);
    }
    assert_eq!(upstream.requests().len(), 2);
}

#[tokio::test]
async fn each_format_is_asked_at_its_place_with_its_headers() {
    let table = [
        (
            WireFormat::OpenAiChat,
            "POST /v1/chat/completions HTTP/1.1",
            format!("authorization: Bearer {KEY}"),
        ),
        (WireFormat::OpenAiResponses, "POST /v1/responses HTTP/1.1", format!("authorization: Bearer {KEY}")),
        (WireFormat::AnthropicMessages, "POST /v1/messages HTTP/1.1", format!("x-api-key: {KEY}")),
        (
            WireFormat::Gemini,
            "POST /v1/models/asked:streamGenerateContent?alt=sse HTTP/1.1",
            format!("x-goog-api-key: {KEY}"),
        ),
    ];
    for (format, first_line, key) in table {
        let upstream = Upstream::stream(vec![Step::Send(stream(format, "plain_text").bytes)]).await;
        let mut call = call(format, &upstream.url);
        call.extra.push(HttpHeader::Secret { name: "x-team".into(), value: "trees".into() });
        assert!(ask(SHORT, call).await.0.is_ok());
        let request = upstream.requests().remove(0);
        assert!(request.starts_with(first_line), "{request}");
        assert!(request.contains(&key) && request.contains("x-team: trees"), "{request}");
        assert_eq!(
            request.contains("anthropic-version: 2023-06-01"),
            format == WireFormat::AnthropicMessages
        );
        assert!(request.ends_with('}'), "{request}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_read_as_well() {
    let body = r#"{"id":"c1","model":"m","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#;
    let upstream =
        Upstream::respond("200 OK", "content-type: application/json\r\n", vec![Step::Send(body.into())])
            .await;
    let (answer, streamed) = ask(SHORT, call(WireFormat::CompatibleChat, &upstream.url)).await;
    let answer = answer.unwrap();
    assert_eq!((answer.end, answer.usage.output, streamed.as_str()), (StreamEnd::Whole, Some(2), "hi"));
}

#[tokio::test]
async fn a_rate_limit_says_how_long_to_wait() {
    let body =
        Step::Send(br#"{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}"#.to_vec());
    let upstream = Upstream::respond("429 Too Many Requests", "retry-after: 3\r\n", vec![body]).await;
    let fault = ask(SHORT, call(WireFormat::AnthropicMessages, &upstream.url)).await.0.unwrap_err().fault;
    assert_eq!((fault.kind, fault.retry_after_ms), (WireFaultKind::RateLimit, Some(3_000)));
}

/// X5 (errors).
#[tokio::test]
async fn a_key_that_a_server_repeats_is_not_shown() {
    let body = Step::Send(format!("who is {KEY}?").into_bytes());
    let upstream = Upstream::respond("401 Unauthorized", "", vec![body]).await;
    let call = call(WireFormat::OpenAiChat, &upstream.url);
    assert!(!format!("{call:?}").contains(KEY));
    let missed = ask(SHORT, call).await.0.unwrap_err();
    assert_eq!(missed.fault.message, "who is [key]? (status 401)");
    assert!(!format!("{missed:?}").contains(KEY));
}
