//! A provider that streams as fast as it can, each event in a separate write. The path of a request says what it does.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::format::Format;

/// Says that this process is the mock.
pub(crate) const WORD: &str = "mock";
/// Twenty events.
pub(crate) const SHORT: &str = "/short";
/// As many events as an answer of about a thousand tokens has.
pub(crate) const LONG: &str = "/long";
/// Twenty events and no end.
pub(crate) const ENDLESS: &str = "/endless";
/// The number of the last text event of one that does not end.
pub(crate) const ENDLESS_EVENTS: usize = 20;
const LONG_EVENTS: usize = 300;
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

    pub(crate) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// The base URL of requests that it answers in one of its ways.
    pub(crate) fn base_url(&self, way: &str) -> String {
        format!("http://{}{way}/v1", self.address())
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
    loop {
        let (connection, _) = listener.accept().await.unwrap();
        connection.set_nodelay(true).unwrap();
        tokio::spawn(answer(connection));
    }
}

/// Answers until the other side goes.
async fn answer(mut connection: TcpStream) -> Option<()> {
    let mut bytes = Vec::new();
    loop {
        let path = request(&mut connection, &mut bytes).await?;
        let format = Format::from_path(&path);
        let events = if path.starts_with(LONG) { LONG_EVENTS } else { ENDLESS_EVENTS };
        connection.write_all(format!("{HEAD}{}", chunk(&format.first_events())).as_bytes()).await.ok()?;
        for number in 1..=events {
            connection.write_all(chunk(&format.text_event(number)).as_bytes()).await.ok()?;
        }
        if path.starts_with(ENDLESS) {
            let _closed = connection.read(&mut [0; 64]).await;
            return None;
        }
        let end = chunk(&format.last_events(3 * events));
        connection.write_all(format!("{end}0\r\n\r\n").as_bytes()).await.ok()?;
    }
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

/// Reads a whole request and gives its path.
async fn request(connection: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<String> {
    bytes.clear();
    let head = loop {
        connection.read_buf(bytes).await.ok().filter(|read| *read > 0)?;
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
    let length =
        text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok())?;
    let path = text.split(' ').nth(1)?.to_owned();
    while bytes.len() < head + 4 + length {
        connection.read_buf(bytes).await.ok().filter(|read| *read > 0)?;
    }
    Some(path)
}
