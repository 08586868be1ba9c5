//! Programs that send slowly, or nothing: each is cut in bounded time, and holds up nothing. The time is virtual.

use std::time::Duration;

use spinney::clock::instant;
use spinney_kernel::record::Event;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::provider::{Format, Provider};
use crate::run::TestRun;

/// Sends the beginning at once, and then the rest piece by piece until the other side answers or closes. Returns what it
/// answered, and after how long.
async fn trickle(run: &TestRun, beginning: &str, piece: &str, pause: Duration) -> (String, Duration) {
    let mut stream = TcpStream::connect(run.gateway.address()).await.unwrap();
    let since = instant();
    stream.write_all(beginning.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let (mut reads, mut writes) = stream.split();
    let writing = async {
        loop {
            sleep(pause).await;
            if writes.write_all(piece.as_bytes()).await.is_err() {
                return std::future::pending::<()>().await;
            }
        }
    };
    tokio::select! {
        // A reset connection is closed as well.
        _ = reads.read_to_end(&mut answer) => {}
        () = writing => {}
    }
    (String::from_utf8(answer).unwrap(), since.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_head_that_comes_slowly_or_never_is_cut() {
    let provider = Provider::spending_all().await;
    let run = TestRun::start(&provider, 1_000).await;
    let head = format!("POST /v1/messages HTTP/1.1\r\nx-api-key: {}\r\n", run.gateway.key().text());
    for (beginning, piece) in [(head.as_str(), "x-more: 1\r\n"), ("", ""), ("POST", "T")] {
        let (answer, after) = trickle(&run, beginning, piece, Duration::from_secs(7)).await;
        assert!(after <= Duration::from_secs(31), "{beginning:?}: {after:?}");
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    assert_eq!(run.gateway.requests(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_comes_slowly_is_refused_and_holds_nothing() {
    let provider = Provider::spending_all().await;
    let run = TestRun::start(&provider, 1_000).await;
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\ncontent-length: 10000\r\n\r\n{{",
        run.gateway.key().text()
    );
    for (pause, most, words) in [(20, 121, "did not arrive within 120 s"), (60, 31, "nothing came for 30 s")]
    {
        let (answer, after) = trickle(&run, &head, " ", Duration::from_secs(pause)).await;
        assert!(after <= Duration::from_secs(most), "{pause}: {after:?}");
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains(words), "{answer}");
    }
    assert!(!run.events().await.iter().any(|event| matches!(event, Event::CallAsked { .. })));
    // Others are served meanwhile and afterwards.
    let format = Format::Messages;
    let response = run.post(format, &format.request(10, "x", false)).send().await.unwrap();
    assert!(response.status().is_success());
}

/// A program may keep its connection for its next call, but not forever.
#[tokio::test(start_paused = true)]
async fn a_connection_without_a_next_request_is_closed() {
    let provider = Provider::spending_all().await;
    let run = TestRun::start(&provider, 1_000).await;
    let body = Format::Messages.request(10, "x", false).to_string();
    let request = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\ncontent-length: {}\r\n\r\n{body}",
        run.gateway.key().text(),
        body.len()
    );
    let mut stream = TcpStream::connect(run.gateway.address()).await.unwrap();
    let mut answer = Vec::new();
    for _ in 0..2 {
        stream.write_all(request.as_bytes()).await.unwrap();
        answer.clear();
        while !answer.ends_with(b"0\r\n\r\n") {
            assert!(stream.read_buf(&mut answer).await.unwrap() > 0, "{}", String::from_utf8_lossy(&answer));
        }
        assert!(answer.starts_with(b"HTTP/1.1 200"));
    }
    let since = instant();
    assert_eq!(stream.read(&mut [0; 64]).await.unwrap(), 0);
    assert!(since.elapsed() <= Duration::from_secs(31), "{:?}", since.elapsed());
}
