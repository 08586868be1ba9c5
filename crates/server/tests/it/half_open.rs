//! Connections without the run's key, in numbers: the program is served anyway.

use std::io::ErrorKind;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::provider::{Format, Provider};
use crate::run::TestRun;

/// More than the gateway serves at the same time.
const FLOOD: usize = 2_100;
/// Less than the time after which any silent connection is closed, which would make room.
const PATIENCE: Duration = Duration::from_secs(4);

/// Opens connections that say nothing, or only the beginning of a request.
async fn half_open(run: &TestRun, count: usize) -> Vec<TcpStream> {
    let mut held = Vec::with_capacity(count);
    for number in 0..count {
        let mut stream = TcpStream::connect(run.gateway.address()).await.unwrap();
        if number % 2 == 0 {
            // It may be closed already.
            let _ = stream.write_all(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\n").await;
        }
        held.push(stream);
    }
    held
}

async fn is_closed(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 1]).await {
        Ok(read) => read == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

/// A request on a separate connection that stays open, and the beginning of its response.
async fn ask(stream: &mut TcpStream, key: &str) -> String {
    let body = Format::Messages.request(1, "hi", false).to_string();
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // Until its JSON, in one piece or in chunks, has ended.
    while !(answer.ends_with(b"}") || answer.ends_with(b"\r\n0\r\n\r\n")) {
        let Ok(read) = timeout(PATIENCE, stream.read_buf(&mut answer)).await else {
            panic!("it is not served")
        };
        assert_ne!(read.unwrap(), 0, "{}", String::from_utf8_lossy(&answer));
    }
    String::from_utf8(answer).unwrap()
}

/// A program is served while thousands of connections without its key are open, on a new connection and on one that it had
/// before. The oldest of the others are closed.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_served_beside_thousands_of_half_open_connections() {
    let provider = Provider::spending_all().await;
    let run = TestRun::start(&provider, 1_000).await;
    let key = run.gateway.key().text().to_owned();
    let mut own = TcpStream::connect(run.gateway.address()).await.unwrap();
    assert!(ask(&mut own, &key).await.starts_with("HTTP/1.1 200"));
    let mut held = half_open(&run, FLOOD).await;
    let mut fresh = TcpStream::connect(run.gateway.address()).await.unwrap();
    assert!(ask(&mut fresh, &key).await.starts_with("HTTP/1.1 200"));
    // None of them was closed by the program's side.
    assert!(is_closed(&mut held[0]).await);
    assert!(ask(&mut own, &key).await.starts_with("HTTP/1.1 200"));
    assert!(ask(&mut fresh, &key).await.starts_with("HTTP/1.1 200"));
    assert_eq!(provider.requests().len(), 4);
}

/// A wrong key does not make a connection the program's.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_gets_its_answer_and_no_place() {
    let provider = Provider::spending_all().await;
    let run = TestRun::start(&provider, 1_000).await;
    let mut stranger = TcpStream::connect(run.gateway.address()).await.unwrap();
    assert!(ask(&mut stranger, "sk-wrong").await.starts_with("HTTP/1.1 401"));
    assert!(is_closed(&mut stranger).await);
    assert_eq!(provider.requests().len(), 0);
}
