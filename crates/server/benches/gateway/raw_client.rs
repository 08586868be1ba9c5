//! A client that does as little as it can, so what is measured is not its own: it writes bytes, and looks for bytes.

use std::net::SocketAddr;
use std::time::Instant;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::format::Format;

/// The end of a response in chunks.
const END: &[u8] = b"0\r\n\r\n";

/// Where requests go.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    /// Before the path of the format.
    pub(crate) way: &'static str,
    pub(crate) key: String,
}

impl Target {
    pub(crate) fn request(&self, format: Format, body: &str) -> Vec<u8> {
        let Self { way, key, .. } = self;
        let path = format.path();
        let length = body.len();
        format!(
            "POST {way}{path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }
}

/// Sends a request and reads the whole response. Returns the nanoseconds until the first text was here.
pub(crate) async fn first_token(stream: &mut TcpStream, request: &[u8], format: Format) -> f64 {
    let mut bytes = Vec::with_capacity(16 * 1024);
    let start = Instant::now();
    stream.write_all(request).await.unwrap();
    let mut first = None;
    while !bytes.ends_with(END) {
        assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "{}", String::from_utf8_lossy(&bytes));
        if first.is_none() && has(&bytes, format.first_text()) {
            first = Some(start.elapsed());
        }
    }
    first.unwrap().as_nanos() as f64
}

/// Sends a request and reads the whole response.
pub(crate) async fn read_all(stream: &mut TcpStream, request: &[u8]) {
    stream.write_all(request).await.unwrap();
    let (mut buffer, mut last) = (vec![0; 16 * 1024], Vec::new());
    while !last.ends_with(END) {
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(read > 0, "the response was cut off");
        last.extend_from_slice(&buffer[read.saturating_sub(END.len())..read]);
        last.drain(..last.len().saturating_sub(END.len()));
    }
}

/// Sends a request and reads until some bytes were here.
pub(crate) async fn read_until(stream: &mut TcpStream, request: &[u8], wanted: &[u8]) {
    stream.write_all(request).await.unwrap();
    let mut bytes = Vec::new();
    while !has(&bytes, wanted) {
        assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "{}", String::from_utf8_lossy(&bytes));
    }
}

fn has(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}
