//! The example of a tree inside a web handler.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::web;

#[tokio::test]
async fn each_request_is_answered_by_its_own_tree() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let home = web::home().unwrap();
    let serving =
        tokio::spawn(async move { web::serve(listener, home).await.map_err(|error| error.to_string()) });
    let ask = |question: String| async move {
        let mut stream = TcpStream::connect(at).await.unwrap();
        let length = question.len();
        let head = format!(
            "POST / HTTP/1.1\r\nhost: example\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(format!("{head}{question}").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let answer = ask("What is a spinney?".to_owned()).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("What is a spinney?\n"), "{answer}");
    let too_long = ask("x".repeat(5_000)).await;
    assert!(too_long.starts_with("HTTP/1.1 400"), "{too_long}");
    serving.abort();
}
