//! A provider that streams chat completions as fast as it can. The path of a request says what it does.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Says that this process is the mock.
pub(crate) const WORD: &str = "mock";
/// How long a provider takes to its first token in these measurements: far less than any real one.
pub(crate) const THINKS: Duration = Duration::from_millis(20);
const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// The mock in a separate process.
pub(crate) struct Mock {
    child: Child,
    port: u16,
}

impl Mock {
    pub(crate) fn start() -> Self {
        let mut child =
            Command::new(std::env::current_exe().unwrap()).arg(WORD).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, port: line.trim().parse().unwrap() }
    }

    /// Answers at once.
    pub(crate) fn at_once(&self) -> String {
        format!("http://127.0.0.1:{}/at-once", self.port)
    }

    /// Answers after a while.
    pub(crate) fn thinking(&self) -> String {
        format!("http://127.0.0.1:{}/thinking", self.port)
    }

    /// Begins to answer and does not end.
    pub(crate) fn endless(&self) -> String {
        format!("http://127.0.0.1:{}/endless", self.port)
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

pub(crate) async fn serve() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    while let Ok((connection, _)) = listener.accept().await {
        connection.set_nodelay(true).unwrap();
        tokio::spawn(answer(connection));
    }
}

/// Answers until the other side goes.
async fn answer(mut connection: TcpStream) -> Option<()> {
    loop {
        let path = request(&mut connection).await?;
        if path.starts_with("/thinking") {
            tokio::time::sleep(THINKS).await;
        }
        connection.write_all(HEAD.as_bytes()).await.ok()?;
        for word in 0..20 {
            let event = format!(
                "data: {{\"id\":\"c\",\"model\":\"mock\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"word {word} \"}}}}]}}\n\n"
            );
            connection.write_all(chunk(&event).as_bytes()).await.ok()?;
        }
        if path.starts_with("/endless") {
            let _closed = connection.read(&mut [0; 64]).await;
            return None;
        }
        let end = "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
                   data: {\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":60}}\n\n\
                   data: [DONE]\n\n";
        connection.write_all(format!("{}0\r\n\r\n", chunk(end)).as_bytes()).await.ok()?;
    }
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

/// Reads a whole request and gives its path.
async fn request(connection: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let read = connection.read(&mut piece).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok())?;
        if body.len() >= length {
            return head.split(' ').nth(1).map(str::to_owned);
        }
    }
}
