//! An upstream on the loopback that plays raw bytes: what it sends, and where it stops, holds or never ends.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// One step of what is played on a connection.
#[derive(Clone)]
pub(super) enum Step {
    Send(Vec<u8>),
    /// Again and again, until it has no reader.
    Endless(Vec<u8>),
    /// Until the other side closes.
    Hold,
}

/// A server that plays one script on every connection, and closes it at the end.
pub(super) struct Upstream {
    pub(super) url: String,
    requests: Arc<Mutex<Vec<String>>>,
    closed: tokio::sync::watch::Receiver<usize>,
}

impl Upstream {
    pub(super) async fn play(script: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let (count, closed) = tokio::sync::watch::channel(0);
        let seen = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((mut connection, _)) = listener.accept().await {
                let request = read_request(&mut connection).await;
                seen.lock().unwrap().push(request);
                for step in &script {
                    if play(&mut connection, step).await.is_err() {
                        break;
                    }
                }
                let _gone = connection.shutdown().await;
                count.send_modify(|count| *count += 1);
            }
        });
        Self { url, requests, closed }
    }

    /// A response with its own head and a body that the end of the connection ends.
    pub(super) async fn respond(status: &str, headers: &str, body: Vec<Step>) -> Self {
        let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n");
        Self::play(std::iter::once(Step::Send(head.into_bytes())).chain(body).collect()).await
    }

    /// A stream of events.
    pub(super) async fn stream(body: Vec<Step>) -> Self {
        Self::respond("200 OK", "content-type: text/event-stream\r\n", body).await
    }

    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits until a connection is closed.
    pub(super) async fn closed(&self) {
        let mut closed = self.closed.clone();
        closed.wait_for(|count| *count > 0).await.unwrap();
    }
}

async fn play(connection: &mut TcpStream, step: &Step) -> std::io::Result<()> {
    match step {
        Step::Send(bytes) => connection.write_all(bytes).await,
        Step::Endless(bytes) => loop {
            connection.write_all(bytes).await?;
        },
        Step::Hold => {
            let mut rest = [0; 64];
            while connection.read(&mut rest).await? > 0 {}
            Ok(())
        }
    }
}

/// The whole request, as text.
async fn read_request(connection: &mut TcpStream) -> String {
    let mut request = Vec::new();
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return text;
            }
        }
        match connection.read(&mut chunk).await {
            Ok(0) | Err(_) => return text,
            Ok(read) => request.extend_from_slice(&chunk[..read]),
        }
    }
}
