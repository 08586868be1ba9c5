//! Servers that misbehave: each call ends, is bounded, and says what happened.

use std::time::Duration;

use spinney_drivers::http::{HttpLimits, Reached};
use spinney_drivers::wire::{StreamEnd, WireDelta, WireFault, WireFaultKind, WireFormat};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use super::super::wire::stream;
use super::upstream::{Step, Upstream};
use super::{SHORT, ask, call, client};

const CHAT: WireFormat = WireFormat::OpenAiChat;
const SOON: Duration = Duration::from_millis(50);

async fn fault(limits: HttpLimits, upstream: &Upstream) -> WireFault {
    ask(limits, call(CHAT, &upstream.url)).await.0.unwrap_err().fault
}

fn begun() -> Step {
    Step::Send(b"data: {\"choices\":[{\"delta\":{\"content\":\"so far\"}}]}\n\n".to_vec())
}

#[tokio::test]
async fn a_connection_that_breaks_is_a_cut_with_what_came_before() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let event = "data: {\"choices\":[{\"delta\":{\"content\":\"so far\"}}]}\n\n";
    let broken = format!("{head}{:x}\r\n{event}\r\n", event.len());
    for bytes in [broken.clone(), format!("{broken}ff\r\nhalf"), format!("{broken}no number\r\n")] {
        let upstream = Upstream::play(vec![Step::Send(bytes.into_bytes())]).await;
        let (answer, streamed) = ask(SHORT, call(CHAT, &upstream.url)).await;
        let missed = answer.unwrap_err();
        assert_eq!(missed.fault.kind, WireFaultKind::Cut, "{}", missed.fault);
        assert_eq!((missed.answer.text.as_str(), missed.answer.end), ("so far", StreamEnd::Cut));
        assert_eq!(streamed, "so far");
    }
}

#[tokio::test]
async fn silence_is_a_timeout_before_the_head_and_in_the_body() {
    let silent = Upstream::play(vec![Step::Hold]).await;
    let no_head = fault(HttpLimits { head: SOON, ..SHORT }, &silent).await;
    assert_eq!(no_head.kind, WireFaultKind::Timeout);
    silent.closed().await;
    let stuck = Upstream::stream(vec![begun(), Step::Hold]).await;
    let no_more = fault(HttpLimits { idle: SOON, ..SHORT }, &stuck).await;
    assert_eq!(no_more.kind, WireFaultKind::Timeout);
    stuck.closed().await;
}

#[tokio::test]
async fn a_server_that_stays_connected_after_the_last_event_is_left() {
    let whole = Step::Send(stream(WireFormat::AnthropicMessages, "plain_text").bytes);
    let upstream = Upstream::stream(vec![whole, Step::Hold]).await;
    let limits = HttpLimits { idle: SOON, ..SHORT };
    let answer = ask(limits, call(WireFormat::AnthropicMessages, &upstream.url)).await.0.unwrap();
    assert_eq!(answer.end, StreamEnd::Whole);
    upstream.closed().await;
}

#[tokio::test]
async fn bodies_without_end_are_stopped() {
    let text =
        Step::Endless(format!("data: {{\"choices\":[]}}\n: {}\n\n", "x".repeat(64 * 1024)).into_bytes());
    let line = Step::Endless(vec![b'x'; 64 * 1024]);
    for endless in [text, line] {
        let upstream = Upstream::stream(vec![endless]).await;
        assert_eq!(fault(SHORT, &upstream).await.kind, WireFaultKind::TooLarge);
        upstream.closed().await;
    }
    let one_line = Upstream::stream(vec![Step::Endless(vec![b'x'; 64 * 1024])]).await;
    let wide = HttpLimits { body_bytes_max: u64::MAX, ..SHORT };
    assert_eq!(fault(wide, &one_line).await.kind, WireFaultKind::TooLarge);
    let json = Upstream::respond(
        "200 OK",
        "content-type: application/json\r\n",
        vec![Step::Endless(vec![b' '; 64 * 1024])],
    )
    .await;
    assert_eq!(fault(wide, &json).await.kind, WireFaultKind::TooLarge);
}

#[tokio::test]
async fn a_stream_of_pings_without_end_is_a_timeout() {
    let upstream = Upstream::stream(vec![Step::Endless(b": ping\n\n".to_vec())]).await;
    let limits = HttpLimits { total: Duration::from_millis(200), body_bytes_max: u64::MAX, ..SHORT };
    assert_eq!(fault(limits, &upstream).await.kind, WireFaultKind::Timeout);
    upstream.closed().await;
}

#[tokio::test]
async fn an_error_without_end_still_has_its_status() {
    let upstream =
        Upstream::respond("503 Service Unavailable", "", vec![Step::Endless(vec![b'e'; 64 * 1024])]).await;
    let endless = fault(SHORT, &upstream).await;
    assert_eq!((endless.kind, endless.status), (WireFaultKind::Overload, Some(503)));
    let stuck = Upstream::respond("429 Too Many Requests", "retry-after: 1\r\n", vec![Step::Hold]).await;
    let stuck = fault(HttpLimits { idle: SOON, ..SHORT }, &stuck).await;
    assert_eq!((stuck.kind, stuck.retry_after_ms), (WireFaultKind::RateLimit, Some(1_000)));
}

#[tokio::test]
async fn a_redirect_is_a_fault_and_the_key_goes_nowhere() {
    let elsewhere = Upstream::stream(vec![]).await;
    for status in ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let upstream = Upstream::respond(status, &format!("location: {}\r\n", elsewhere.url), vec![]).await;
        assert_eq!(fault(SHORT, &upstream).await.kind, WireFaultKind::BadRequest);
    }
    assert_eq!(elsewhere.requests(), Vec::<String>::new());
}

/// Nothing was sent, so nothing can be billed.
const NO_CONNECTION: (WireFaultKind, Reached) = (WireFaultKind::Unreachable, Reached::NotSent);

#[tokio::test]
async fn what_is_no_http_and_no_tls_is_a_fault_of_the_server() {
    let noise = Upstream::play(vec![Step::Send(b"220 mail ready\r\n".to_vec())]).await;
    assert_eq!(fault(SHORT, &noise).await.kind, WireFaultKind::Server);
    let mail = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = mail.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut connection, _) = mail.accept().await.unwrap();
        connection.write_all(b"220 mail ready\r\n").await.unwrap();
    });
    let missed = ask(SHORT, call(CHAT, &format!("https://{address}"))).await.0.unwrap_err();
    let insecure = (WireFaultKind::Insecure, Reached::NotSent);
    assert_eq!((missed.fault.kind, missed.reached), insecure, "{}", missed.fault);
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for address in [format!("http://{nobody}"), "https://no-such-host.invalid".to_owned()] {
        let missed = ask(SHORT, call(CHAT, &address)).await.0.unwrap_err();
        assert_eq!((missed.fault.kind, missed.reached), NO_CONNECTION, "{}", missed.fault);
    }
}

/// A server that closes before the first byte may have read the request, and may bill it.
#[tokio::test]
async fn a_connection_that_closes_before_the_first_byte_is_a_fault_of_the_server() {
    let after_reading = Upstream::play(vec![]).await;
    let missed = ask(SHORT, call(CHAT, &after_reading.url)).await.0.unwrap_err();
    assert_eq!(
        (missed.fault.kind, missed.reached),
        (WireFaultKind::Server, Reached::Sent),
        "{}",
        missed.fault
    );
    let at_once = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = at_once.local_addr().unwrap();
    tokio::spawn(async move { while at_once.accept().await.is_ok() {} });
    let missed = ask(SHORT, call(CHAT, &format!("http://{address}"))).await.0.unwrap_err();
    assert_eq!(
        (missed.fault.kind, missed.reached),
        (WireFaultKind::Server, Reached::Sent),
        "{}",
        missed.fault
    );
}

/// Headers, interim responses, chunk extensions and trailers cannot hide an endless answer either.
#[tokio::test]
async fn heads_and_frames_without_end_are_stopped() {
    let chunked = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let endless =
        |before: &[u8], piece: &[u8]| vec![Step::Send(before.to_vec()), Step::Endless(piece.to_vec())];
    let scripts = [
        endless(b"HTTP/1.1 200 OK\r\n", b"x-more: headers\r\n"),
        endless(b"HTTP/1.1 200 OK\r\nx-one: ", &[b'x'; 4096]),
        endless(b"HTTP/1.1 200 ", &[b'x'; 4096]),
        endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        endless(&[chunked.as_slice(), b"5;"].concat(), &[b'x'; 4096]),
        endless(&[chunked.as_slice(), b"0\r\n"].concat(), b"x-more: trailers\r\n"),
    ];
    let limits = HttpLimits { head: Duration::from_millis(500), total: Duration::from_secs(2), ..SHORT };
    for (place, script) in scripts.into_iter().enumerate() {
        let upstream = Upstream::play(script).await;
        let fault = fault(limits, &upstream).await;
        let expected = [WireFaultKind::Server, WireFaultKind::Cut, WireFaultKind::Timeout];
        assert!(expected.contains(&fault.kind), "{place}: {fault:?}");
        upstream.closed().await;
    }
}

/// We ask for no compression and undo none, so a small body cannot become a large one.
#[tokio::test]
async fn a_compressed_body_is_not_unpacked() {
    let bomb = [0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0, 0, 0xff].repeat(100);
    let headers = "content-type: text/event-stream\r\ncontent-encoding: gzip\r\n";
    let upstream =
        Upstream::respond("200 OK", headers, vec![Step::Send(bomb), Step::Send(b"\n\n".to_vec())]).await;
    let fault = fault(SHORT, &upstream).await;
    assert!(matches!(fault.kind, WireFaultKind::Malformed | WireFaultKind::Cut), "{fault:?}");
    assert!(!upstream.requests()[0].to_lowercase().contains("accept-encoding"));
}

#[tokio::test]
async fn a_stream_that_comes_byte_by_byte_is_read_whole() {
    let recorded = stream(CHAT, "parallel_tools").bytes;
    let upstream = Upstream::stream(recorded.iter().map(|byte| Step::Send(vec![*byte])).collect()).await;
    let answer = ask(SHORT, call(CHAT, &upstream.url)).await.0.unwrap();
    assert_eq!((answer.end, answer.calls.len()), (StreamEnd::Whole, 3));
}

/// A hold covers the prices of one day, so no call outlives it, whatever its limits are.
#[tokio::test(start_paused = true)]
async fn no_attempt_takes_longer_than_a_hold_covers() {
    let month = Duration::from_secs(30 * 24 * 60 * 60);
    let limits = HttpLimits { connect: month, head: month, idle: month, total: month, ..SHORT };
    let upstream = Upstream::play(vec![Step::Hold]).await;
    let fault = fault(limits, &upstream).await;
    assert_eq!(
        (fault.kind, fault.message.as_str()),
        (WireFaultKind::Timeout, "the answer did not end within 86400 s")
    );
}

#[tokio::test]
async fn an_address_or_a_key_that_cannot_be_sent_is_refused_before_anything_is() {
    for address in ["not an address", "file:///etc/passwd", "http://me:secret@127.0.0.1:1/v1"] {
        let missed = ask(SHORT, call(CHAT, address)).await.0.unwrap_err();
        assert_eq!(missed.fault.kind, WireFaultKind::BadRequest, "{}", missed.fault);
        assert!(!missed.fault.message.contains("secret"));
    }
    let mut broken = call(CHAT, "http://127.0.0.1:1");
    broken.key = Some(spinney_drivers::http::ModelKey::new("two\nlines".to_owned()));
    let missed = ask(SHORT, broken).await.0.unwrap_err();
    assert_eq!(
        missed.fault.message,
        "the header `authorization` has characters that are not valid in a header"
    );
}

#[tokio::test]
async fn dropping_a_call_closes_its_connection() {
    let upstream = Upstream::stream(vec![begun(), Step::Hold]).await;
    let (began, seen) = tokio::sync::oneshot::channel();
    let (url, mut began) = (upstream.url.clone(), Some(began));
    let running = tokio::spawn(async move {
        let mut on_delta = |_: WireDelta<'_>| {
            if let Some(began) = began.take() {
                began.send(()).unwrap();
            }
        };
        client(SHORT).ask(call(CHAT, &url), &mut on_delta).await.map(|_| ())
    });
    seen.await.unwrap();
    running.abort();
    upstream.closed().await;
}
