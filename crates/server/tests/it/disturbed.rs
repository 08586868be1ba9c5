//! Chaos on both sides: programs and providers that break off, stall, refuse or send nonsense.

use std::sync::Arc;
use std::time::Duration;

use reqwest::StatusCode;
use serde_json::json;
use spinney_drivers::http::HttpLimits;
use spinney_kernel::budget::{Amounts, Resource};
use spinney_kernel::primitives::FaultKind;
use spinney_kernel::record::{Event, Outcome};
use spinney_kernel::rules::request::Raise;
use spinney_server::gateway::Notice;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{sleep, timeout};

use crate::failing_journal::FailingJournal;
use crate::provider::{Format, Provider, begin_stream, respond, script};
use crate::run::{TOKEN, TestRun, USER_KEY, budget, settings};

async fn ended(run: &TestRun) -> Event {
    run.saw(|event| matches!(event, Event::CallEnded { .. })).await;
    run.events().await.into_iter().find(|event| matches!(event, Event::CallEnded { .. })).unwrap()
}

/// A program that disconnects in the middle of a stream: the provider bills on, so its last word is read and booked.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_leaves_in_mid_stream_is_booked_at_the_reported_usage() {
    for format in Format::ALL {
        let go = Arc::new(Notify::new());
        let waits = Arc::clone(&go);
        let provider = Provider::start(script(move |_, mut stream: TcpStream| {
            let waits = Arc::clone(&waits);
            async move {
                begin_stream(&mut stream).await;
                let events = format.events(300);
                stream.write_all(events[0].as_bytes()).await.unwrap();
                waits.notified().await;
                for event in &events[1..] {
                    stream.write_all(event.as_bytes()).await.unwrap();
                }
                stream.shutdown().await.unwrap();
            }
        }))
        .await;
        let run = TestRun::start(&provider, 1_000).await;
        let mut response = run.post(format, &format.request(900, "x", true)).send().await.unwrap();
        response.chunk().await.unwrap().unwrap();
        drop(response);
        go.notify_one();
        let end = ended(&run).await;
        assert!(matches!(&end, Event::CallEnded { outcome: Outcome::Done { .. }, .. }), "{format:?} {end:?}");
        assert_eq!(run.spent().await, 300 * TOKEN, "{format:?}");
    }
}

/// G17 (exec): an address at which no API answers. The program gets what came, nothing is booked, and a person is told once.
#[tokio::test(flavor = "multi_thread")]
async fn g17_what_is_no_answer_of_the_api_costs_nothing_and_is_told_once() {
    for body in ["<html><title>Sign in</title></html>", "{\"status\":\"ok\"}", "[]", "OK", ""] {
        let provider = Provider::start(script(move |_, stream| respond(stream, 200, body))).await;
        let mut run = TestRun::start(&provider, 1_000).await;
        for stream in [true, false] {
            let response =
                run.post(Format::Messages, &Format::Messages.request(900, "x", stream)).send().await;
            assert_eq!(response.unwrap().text().await.unwrap(), body);
        }
        let is_told = |notice: &Notice| matches!(notice, Notice::OtherAnswer { .. });
        run.heard(is_told).await;
        let end = ended(&run).await;
        run.gateway.close(sleep(Duration::from_secs(10))).await;
        assert_eq!(run.notices.borrow().iter().filter(|notice| is_told(notice)).count(), 1, "{body}");
        let Event::CallEnded { outcome: Outcome::Failed { fault }, .. } = &end else { panic!("{end:?}") };
        assert!(fault.message.contains("not an API response"), "{}", fault.message);
        let spent = run.tree.snapshot().await.unwrap().agents[0].spent.get(Resource::Cost);
        assert_eq!((fault.kind, spent), (FaultKind::Invalid, 0), "{body}");
    }
}

/// A provider that breaks off: the program sees it, and the call is booked at its full hold.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_the_provider_breaks_off_is_booked_at_its_full_hold() {
    for format in Format::ALL {
        let provider = Provider::start(script(move |_, mut stream: TcpStream| async move {
            begin_stream(&mut stream).await;
            stream.write_all(format.events(300)[0].as_bytes()).await.unwrap();
            drop(stream);
        }))
        .await;
        let run = TestRun::start(&provider, 1_000).await;
        let response = run.post(format, &format.request(900, "x", true)).send().await.unwrap();
        // A response without a length ends with its connection: the program misses the last event.
        let text = response.text().await.unwrap_or_default();
        assert!(
            !text.contains("[DONE]")
                && !text.contains("message_stop")
                && !text.contains("response.completed")
        );
        assert!(
            matches!(ended(&run).await, Event::CallEnded { outcome: Outcome::Failed { fault }, .. } if fault.kind == FaultKind::Cut)
        );
        assert_eq!(run.spent().await, 900 * TOKEN, "{format:?}");
    }
}

/// An error of ours is its own event, or none: in the middle of another event the stream breaks off.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_breaks_off_inside_an_event_gets_no_event_of_ours() {
    for format in Format::ALL {
        let half = format.events(300)[0].trim_end().to_owned();
        let sent = half.clone();
        let provider = Provider::start(script(move |_, mut stream: TcpStream| {
            let sent = sent.clone();
            async move {
                begin_stream(&mut stream).await;
                stream.write_all(sent.as_bytes()).await.unwrap();
                drop(stream);
            }
        }))
        .await;
        let run = TestRun::start(&provider, 1_000).await;
        let mut response = run.post(format, &format.request(900, "x", true)).send().await.unwrap();
        let mut text = Vec::new();
        while let Ok(Some(piece)) = response.chunk().await {
            text.extend_from_slice(&piece);
        }
        assert_eq!(String::from_utf8(text).unwrap(), half, "{format:?}");
    }
}

/// A provider that stalls in the middle is given up after a while.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_stalls_is_given_up() {
    let format = Format::Messages;
    let provider = Provider::start(script(move |_, mut stream: TcpStream| async move {
        begin_stream(&mut stream).await;
        stream.write_all(format.events(300)[0].as_bytes()).await.unwrap();
        // Until the other side closes.
        let _ = stream.read(&mut [0; 1]).await;
    }))
    .await;
    let mut settings = settings(&provider);
    settings.upstream = HttpLimits { idle: Duration::from_millis(50), ..HttpLimits::default() };
    let run = TestRun::start_with(settings, &budget(1_000)).await;
    let response = run.post(format, &format.request(900, "x", true)).send().await.unwrap();
    let text = response.text().await.unwrap();
    assert!(text.contains("event: error"), "{text}");
    ended(&run).await;
    assert_eq!(run.spent().await, 900 * TOKEN);
}

/// Pieces that arrive together are forwarded together; nothing is lost, and what is cut off stays cut off.
#[tokio::test(flavor = "multi_thread")]
async fn many_small_pieces_arrive_whole_and_in_order() {
    for (format, is_whole) in Format::ALL.into_iter().flat_map(|format| [(format, true), (format, false)]) {
        let mut events = format.events(300);
        let rest = events.split_off(1);
        events.extend((0..3_000).map(|at| format!(": {at}\n\n")));
        if is_whole {
            events.extend(rest);
        }
        let sent = events.clone();
        let provider = Provider::start(script(move |_, mut stream: TcpStream| {
            let sent = sent.clone();
            async move {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
                stream.write_all(head.as_bytes()).await.unwrap();
                for event in sent {
                    let chunk = format!("{:x}\r\n{event}\r\n", event.len());
                    stream.write_all(chunk.as_bytes()).await.unwrap();
                }
                if is_whole {
                    stream.write_all(b"0\r\n\r\n").await.unwrap();
                }
            }
        }))
        .await;
        let run = TestRun::start(&provider, 1_000).await;
        let mut body = format.request(900, "x", true);
        if format == Format::Chat {
            body["stream_options"] = json!({ "include_usage": true });
        }
        let mut response = run.post(format, &body).send().await.unwrap();
        let mut got = Vec::new();
        while let Ok(Some(piece)) = response.chunk().await {
            got.extend_from_slice(&piece);
        }
        let (got, sent) = (String::from_utf8(got).unwrap(), events.concat());
        assert!(got.starts_with(&sent), "{format:?}: {} of {} bytes", got.len(), sent.len());
        // A stream that breaks off between two events ends with one of ours.
        assert_eq!(got.len() == sent.len(), is_whole, "{format:?}");
        ended(&run).await;
        assert_eq!(run.spent().await, if is_whole { 300 } else { 900 } * TOKEN, "{format:?}");
    }
}

/// What a provider refuses reaches the program as it is, costs nothing, and is not tried again by us.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_the_provider_passes_and_costs_nothing() {
    let format = Format::Messages;
    let refusal = r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#;
    let provider =
        Provider::start(script(move |_, stream| async move { respond(stream, 429, refusal).await })).await;
    let run = TestRun::start(&provider, 1_000).await;
    let response = run.post(format, &format.request(900, "x", true)).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(response.headers()["request-id"], "req_1");
    assert_eq!(response.text().await.unwrap(), refusal);
    ended(&run).await;
    assert_eq!((run.spent().await, provider.requests().len()), (0, 1));
}

/// G12: a provider that repeats the user's key in an error does not show it to the program.
#[tokio::test(flavor = "multi_thread")]
async fn g12_an_error_that_repeats_the_users_key_reaches_the_program_without_it() {
    let format = Format::Chat;
    let provider = Provider::start(script(move |_, stream| async move {
        let body = format!(r#"{{"error":{{"message":"wrong key {USER_KEY}","type":"auth"}}}}"#);
        respond(stream, 401, &body).await;
    }))
    .await;
    let run = TestRun::start(&provider, 1_000).await;
    let response = run.post(format, &format.request(900, "x", false)).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    let text = response.text().await.unwrap();
    assert!(text.contains("[key]") && !text.contains(USER_KEY), "{text}");
    let end = format!("{:?}", ended(&run).await);
    assert!(!end.contains(USER_KEY), "{end}");
}

/// G12: nor on the paths that cost nothing, nor in a header, however the error arrives.
#[tokio::test(flavor = "multi_thread")]
async fn g12_no_error_and_no_header_has_the_users_key() {
    let provider = Provider::start(script(move |_, mut stream: TcpStream| async move {
        let (begin, end) = USER_KEY.split_at(9);
        let head = format!(
            "HTTP/1.1 401 Status\r\nx-seen: got {USER_KEY}\r\nx-other: stays\r\nconnection: close\r\n\r\nwrong key {begin}"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        tokio::task::yield_now().await;
        stream.write_all(format!("{end} \u{e9}").as_bytes()).await.unwrap();
        stream.write_all(b"\xff").await.unwrap();
        stream.shutdown().await.unwrap();
    }))
    .await;
    let run = TestRun::start(&provider, 1_000).await;
    let key = run.gateway.key().text();
    let format = Format::Messages;
    for request in [
        run.client.post(run.url("/v1/messages/count_tokens")).header("x-api-key", key).body("{}"),
        run.client.get(run.url("/v1/models")).bearer_auth(key),
        run.post(format, &format.request(900, "x", false)),
    ] {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        assert_eq!(response.headers()["x-other"], "stays");
        assert!(!response.headers().contains_key("x-seen"), "{:?}", response.headers());
        let text = String::from_utf8_lossy(&response.bytes().await.unwrap()).into_owned();
        assert!(text.contains("wrong key [key] ") && !text.contains(USER_KEY), "{text}");
    }
}

/// The server is not listening: nothing was sent, and nothing is booked.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_not_there_costs_nothing() {
    let provider = Provider::spending_all().await;
    let mut settings = settings(&provider);
    settings.servers.open_ai.base_url = Some("http://127.0.0.1:1/v1".to_owned());
    let run = TestRun::start_with(settings, &budget(1_000)).await;
    let response = run.post(Format::Chat, &Format::Chat.request(900, "x", false)).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
    ended(&run).await;
    assert_eq!(run.spent().await, 0);
}

/// A cancelled run ends its calls: the program reads why, and the call is booked at its full hold.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_ends_its_calls() {
    let provider = Provider::waiting(Arc::new(Semaphore::new(0))).await;
    let run = TestRun::start(&provider, 1_000).await;
    let format = Format::Messages;
    let running = tokio::spawn(run.post(format, &format.request(900, "runs", false)).send());
    run.saw(|event| matches!(event, Event::CallStarted { .. })).await;
    let waiting = tokio::spawn(run.post(format, &format.request(900, "waits", false)).send());
    run.saw(|event| matches!(event, Event::CallWaiting { .. })).await;
    while provider.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    run.tree.cancel("main".parse().unwrap(), "enough").await.unwrap();
    for call in [running, waiting] {
        let response = call.await.unwrap().unwrap();
        assert_eq!(response.status(), StatusCode::PAYMENT_REQUIRED);
        assert!(response.text().await.unwrap().contains("was cancelled or has ended"));
    }
    run.tree.ended().await;
    assert_eq!(run.spent().await, 900 * TOKEN);
    let late = run.post(format, &format.request(1, "late", false)).send().await.unwrap();
    assert_eq!(late.status(), StatusCode::PAYMENT_REQUIRED);
}

/// A tree that stops at a full disk records no end of its calls: those that wait end anyway, and so does the run.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_ends_when_its_tree_stops_at_a_fault() {
    let provider = Provider::waiting(Arc::new(Semaphore::new(0))).await;
    let journal = FailingJournal::new();
    let run = TestRun::start_in(journal.clone(), settings(&provider), &budget(1_000)).await;
    let format = Format::Messages;
    let waiting = tokio::spawn(run.post(format, &format.request(2_000, "waits", false)).send());
    run.saw(|event| matches!(event, Event::CallWaiting { .. })).await;
    journal.fill();
    let add = Amounts::cost(TOKEN);
    let raise = Raise { agent: "main".parse().unwrap(), add, add_ms: 0 };
    assert!(run.tree.raise(raise).await.is_err());
    let response = timeout(Duration::from_secs(30), waiting).await.unwrap().unwrap().unwrap();
    assert_eq!(response.status(), StatusCode::PAYMENT_REQUIRED);
    assert!(response.text().await.unwrap().contains("was cancelled or has ended"));
    timeout(Duration::from_secs(30), run.gateway.close(std::future::pending())).await.unwrap();
}

/// A run that is broken off does not wait for a person any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_ends_when_its_run_is_broken_off() {
    let provider = Provider::spending_all().await;
    let run = TestRun::start(&provider, 100).await;
    let format = Format::Messages;
    let _waiting = tokio::spawn(run.post(format, &format.request(900, "waits", false)).send());
    run.saw(|event| matches!(event, Event::CallWaiting { .. })).await;
    timeout(Duration::from_secs(30), run.gateway.close(async {})).await.unwrap();
    assert_eq!(provider.requests().len(), 0);
}

/// Anything that is not a request is refused before anything is held.
#[tokio::test(flavor = "multi_thread")]
async fn malformed_requests_are_refused_and_hold_nothing() {
    let provider = Provider::spending_all().await;
    let run = TestRun::start(&provider, 1_000).await;
    for format in Format::ALL {
        for body in ["", "{", "[]", "null", "{\"model\":1}", "{\"model\":\"m\",\"stream\":\"yes\"}", "\u{0}"]
        {
            let response = run.post_bytes(format, body).send().await.unwrap();
            assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{format:?} {body:?}");
        }
    }
    let huge = vec![b' '; 65 * 1024 * 1024];
    let response = run.post_bytes(Format::Chat, huge).send().await;
    // The server answers before it has read everything, so the client may see its own write fail.
    assert!(response.is_err() || response.unwrap().status() == StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!((provider.requests().len(), run.spent().await), (0, 0));
    assert!(!run.events().await.iter().any(|event| matches!(event, Event::CallAsked { .. })));
}

/// A program that never reads its response holds up nothing else, and its call is settled.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_never_reads_does_not_hold_up_the_others() {
    let format = Format::Messages;
    let provider = Provider::start(script(move |got, mut stream: TcpStream| async move {
        begin_stream(&mut stream).await;
        let events = format.events(format.cap(&got.json()));
        // Far more than all buffers between here and the program hold.
        let filler = format!("event: ping\ndata: {}\n\n", "x".repeat(1024 * 1024));
        stream.write_all(events[0].as_bytes()).await.unwrap();
        if got.json()["messages"][0]["content"] == "much" {
            for _ in 0..64 {
                if stream.write_all(filler.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
        for event in &events[1..] {
            let _ = stream.write_all(event.as_bytes()).await;
        }
        let _ = stream.shutdown().await;
    }))
    .await;
    let run = TestRun::start(&provider, 1_000).await;
    let body = format.request(100, "much", true).to_string();
    let mut silent = TcpStream::connect(run.gateway.address()).await.unwrap();
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\ncontent-length: {}\r\n\r\n{body}",
        run.gateway.key().text(),
        body.len()
    );
    silent.write_all(head.as_bytes()).await.unwrap();
    run.saw(|event| matches!(event, Event::CallStarted { .. })).await;
    for _ in 0..5 {
        let response = run.post(format, &format.request(10, "little", true)).send().await.unwrap();
        assert!(response.text().await.unwrap().contains("message_stop"));
    }
    drop(silent);
    let ends =
        |events: &[Event]| events.iter().filter(|event| matches!(event, Event::CallEnded { .. })).count();
    while ends(&run.events().await) < 6 {
        tokio::task::yield_now().await;
    }
    assert_eq!(run.spent().await, 150 * TOKEN);
}
