//! The user's key in what a provider repeats and in what the journal keeps: in every encoding, and in pieces.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::json;
use spinney_journal::blobs_of;
use spinney_kernel::record::{Event, Outcome};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::provider::{Format, Provider, respond, script};
use crate::run::{TestRun, USER_KEY};

/// The key as programs and providers may write it, each with the part of it that says nothing.
fn shapes() -> Vec<String> {
    let mut shapes = vec![
        USER_KEY.to_owned(),
        USER_KEY.bytes().map(|byte| format!("%{byte:02X}")).collect(),
        USER_KEY.bytes().map(|byte| format!("%25{byte:02x}")).collect(),
        USER_KEY.bytes().map(|byte| format!("\\u00{byte:02x}")).collect(),
        USER_KEY.bytes().map(|byte| format!("\\\\u00{byte:02x}")).collect(),
        USER_KEY.replace('-', "\\x2d"),
        USER_KEY.replace('-', "\\-"),
    ];
    for before in ["", "u", "us", "user:", "Bearer "] {
        for after in ["", "\n", "\"}"] {
            let text = format!("{before}{USER_KEY}{after}");
            shapes.extend([STANDARD.encode(&text), STANDARD_NO_PAD.encode(&text)]);
            shapes.extend([URL_SAFE.encode(&text), URL_SAFE_NO_PAD.encode(&text)]);
        }
    }
    shapes
}

/// Whether bytes have so much of a shape that the key could be read.
fn has_key(bytes: &[u8], shape: &str) -> bool {
    let middle = &shape.as_bytes()[shape.len() / 3..shape.len() * 2 / 3];
    bytes.windows(middle.len()).any(|window| window == middle)
}

/// Sends a body in two pieces, cut in the middle of the key.
async fn in_pieces(mut stream: TcpStream, status: u16, body: &str, shape: &str) {
    let cut = body.find(shape).unwrap() + shape.len() / 2;
    let head = format!(
        "HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let (first, second) = body.split_at(cut);
    stream.set_nodelay(true).unwrap();
    for piece in [&head, first, second] {
        stream.write_all(piece.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        tokio::task::yield_now().await;
    }
    let _ = stream.shutdown().await;
}

/// G12: a provider's error that repeats the key in any encoding comes without it, also if the key is in two pieces.
#[tokio::test(flavor = "multi_thread")]
async fn g12_a_key_in_a_providers_error_is_hidden_in_every_encoding() {
    for shape in shapes() {
        let body = format!(r#"{{"error":{{"message":"no such key: {shape} (see the docs)"}}}}"#);
        let (sent, part) = (body.clone(), shape.clone());
        let provider = Provider::start(script(move |_, stream| {
            let (sent, part) = (sent.clone(), part.clone());
            async move { in_pieces(stream, 401, &sent, &part).await }
        }))
        .await;
        let run = TestRun::start(&provider, 1_000).await;
        let format = Format::Messages;
        let response = run.post(format, &format.request(10, "x", false)).send().await.unwrap();
        assert_eq!(response.status(), 401);
        let text = response.text().await.unwrap();
        assert!(!has_key(text.as_bytes(), &shape) && text.contains("[key]"), "{shape}: {text}");
        assert!(text.contains("no such key: ") && text.contains("(see the docs)"), "{text}");
        run.saw(|event| matches!(event, Event::CallEnded { .. })).await;
        let events = serde_json::to_string(&run.events().await).unwrap();
        assert!(!has_key(events.as_bytes(), &shape), "{shape}: {events}");
    }
}

/// G12: what goes up and down is not changed, and what the journal keeps of it has no key.
#[tokio::test(flavor = "multi_thread")]
async fn g12_a_key_in_a_body_that_is_kept_is_hidden_in_every_encoding() {
    for shape in shapes() {
        let format = Format::Messages;
        let request = format.request(10, "SECRET", false).to_string().replace("SECRET", &shape);
        let mut answer = format.whole(10);
        answer["content"] = json!([{ "type": "text", "text": "SECRET" }]);
        let answer = answer.to_string().replace("SECRET", &shape);
        // Not every shape is JSON; the gateway reads what it passes.
        if serde_json::from_str::<serde_json::Value>(&request).is_err() {
            continue;
        }
        let (sent, part) = (answer.clone(), shape.clone());
        let provider = Provider::start(script(move |_, stream| {
            let (sent, part) = (sent.clone(), part.clone());
            async move { in_pieces(stream, 200, &sent, &part).await }
        }))
        .await;
        let run = TestRun::start(&provider, 1_000).await;
        let response = run.post_bytes(format, request.clone()).send().await.unwrap().text().await.unwrap();
        assert_eq!(response, answer);
        assert_eq!(provider.requests()[0].body, request.as_bytes());
        run.saw(|event| matches!(event, Event::CallEnded { .. })).await;
        let events = run.events().await;
        let asked = events.iter().find(|event| matches!(event, Event::CallAsked { .. })).unwrap();
        let kept = run.home.journal().blob(blobs_of(asked)[0]).await.unwrap().unwrap();
        let ended = events.iter().find(|event| matches!(event, Event::CallEnded { .. })).unwrap();
        let Event::CallEnded { outcome: Outcome::Done { body: said, .. }, .. } = ended else {
            panic!("{ended:?}")
        };
        for kept in [kept.as_slice(), said.text.as_bytes()] {
            let text = String::from_utf8_lossy(kept);
            assert!(!has_key(kept, &shape) && text.contains("[key]"), "{shape}: {text}");
        }
    }
}

/// The key of the run is not kept either, and a word that is too short for a key stays.
#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_the_run_is_not_kept() {
    let provider = Provider::start(script(|_, stream| async move {
        respond(stream, 200, &Format::Messages.whole(10).to_string()).await;
    }))
    .await;
    let run = TestRun::start(&provider, 1_000).await;
    let key = run.gateway.key().text().to_owned();
    let request = Format::Messages.request(10, &format!("my environment has {key}"), false);
    run.post(Format::Messages, &request).send().await.unwrap().text().await.unwrap();
    let events = run.events().await;
    let asked = events.iter().find(|event| matches!(event, Event::CallAsked { .. })).unwrap();
    let kept = run.home.journal().blob(blobs_of(asked)[0]).await.unwrap().unwrap();
    let kept = String::from_utf8(kept).unwrap();
    assert_eq!(kept, request.to_string().replace(&key, "[key]"));
}
