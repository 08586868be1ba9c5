//! A local server that answers each request with its next reply, and keeps the requests.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use serde_json::{Value, json};

#[derive(Clone)]
pub(crate) enum Reply {
    /// Sent whole; then the connection is closed.
    Sent(String),
    /// The same, but only after [`Upstream::release`].
    Late(String),
    /// Sends only a beginning, and then nothing until the client disconnects.
    Held(String),
    /// The same, but only after [`Upstream::release`].
    HeldLate(String),
    /// The head, and the piece again and again: a gigabyte, unless the other side goes before.
    Gigabyte { head: String, piece: String },
}

#[derive(Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) head: String,
    pub(crate) body: Value,
    /// The body, byte for byte.
    pub(crate) text: String,
}

#[cfg(feature = "peers")]
impl ReceivedRequest {
    pub(crate) fn method(&self) -> &str {
        self.head.split(' ').next().unwrap()
    }

    /// With its query.
    pub(crate) fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        fields.filter(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    }
}

pub(crate) struct Upstream {
    /// The `base_url` for a tree file.
    pub(crate) url: String,
    asked: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    requests: Mutex<Vec<ReceivedRequest>>,
    more: Condvar,
    is_released: Mutex<bool>,
    released: Condvar,
}

impl Upstream {
    /// Answers in this order; the last reply answers all further requests.
    pub(crate) fn new(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked = Arc::<Seen>::default();
        let seen = Arc::clone(&asked);
        thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                let Some(request) = read(&mut connection) else { continue };
                let place = {
                    let mut requests = seen.requests.lock().unwrap();
                    requests.push(request);
                    seen.more.notify_all();
                    (requests.len() - 1).min(replies.len() - 1)
                };
                let (reply, seen) = (replies[place].clone(), Arc::clone(&seen));
                thread::spawn(move || answer(connection, &reply, &seen));
            }
        });
        Self { url, asked }
    }

    pub(crate) fn asked(&self) -> Vec<ReceivedRequest> {
        self.asked.requests.lock().unwrap().clone()
    }

    /// Waits for this many requests.
    pub(crate) fn was_asked(&self, times: usize) {
        let requests = self.asked.requests.lock().unwrap();
        drop(self.asked.more.wait_while(requests, |requests| requests.len() < times).unwrap());
    }

    /// Sends every late reply, now and from now on.
    pub(crate) fn release(&self) {
        *self.asked.is_released.lock().unwrap() = true;
        self.asked.released.notify_all();
    }
}

impl Reply {
    /// A stream of chat completions that says this and calls these tools.
    pub(crate) fn says(text: &str, calls: &[(&str, Value)]) -> Self {
        let calls: Vec<Value> = calls
            .iter()
            .enumerate()
            .map(|(index, (tool, arguments))| {
                let function = json!({ "name": tool, "arguments": arguments.to_string() });
                json!({ "index": index, "id": format!("call-{index}"), "type": "function", "function": function })
            })
            .collect();
        let stop = if calls.is_empty() { "stop" } else { "tool_calls" };
        let delta = match calls.is_empty() {
            true => json!({ "content": text }),
            false => json!({ "content": text, "tool_calls": calls }),
        };
        let usage = json!({ "prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": { "cached_tokens": 40 } });
        Self::stream(&[
            json!({ "id": "c1", "model": "tiny", "choices": [{ "index": 0, "delta": delta }] }),
            json!({ "id": "c1", "choices": [{ "index": 0, "delta": {}, "finish_reason": stop }] }),
            json!({ "id": "c1", "choices": [], "usage": usage }),
        ])
    }

    /// A turn that calls `write_file`.
    pub(crate) fn writes() -> Self {
        let arguments = json!({ "path": "outputs/note.md", "content": "seen" });
        Self::says("I write it down.", &[("write_file", arguments)])
    }

    /// The same reply, sent only after [`Upstream::release`].
    pub(crate) fn late(self) -> Self {
        match self {
            Self::Sent(text) | Self::Late(text) => Self::Late(text),
            Self::Held(text) | Self::HeldLate(text) => Self::HeldLate(text),
            Self::Gigabyte { .. } => panic!("only a reply that is sent at once"),
        }
    }

    /// A stream of events.
    pub(crate) fn stream(events: &[Value]) -> Self {
        let mut body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        body += "data: [DONE]\n\n";
        Self::Sent(format!("{STREAM}{body}"))
    }

    /// A stream as it was recorded.
    pub(crate) fn recorded(stream: &str) -> Self {
        Self::Sent(format!("{STREAM}{stream}"))
    }

    /// A stream that stops in the middle and stays open.
    pub(crate) fn held() -> Self {
        let event = json!({ "id": "c1", "choices": [{ "index": 0, "delta": { "content": "Let me" } }] });
        Self::Held(format!("{STREAM}data: {event}\n\n"))
    }

    /// A stream that breaks off.
    pub(crate) fn cut() -> Self {
        let event = json!({ "id": "c1", "choices": [{ "index": 0, "delta": { "content": "Let me" } }] });
        Self::Sent(format!("{STREAM}data: {event}\n\n"))
    }

    /// A stream of a gigabyte.
    pub(crate) fn gigabyte(piece: &str) -> Self {
        Self::Gigabyte { head: STREAM.to_owned(), piece: piece.repeat((64 * 1024 / piece.len()).max(1)) }
    }

    /// The same reply, with more headers.
    pub(crate) fn with_headers(self, headers: &str) -> Self {
        match self {
            Self::Sent(text) => Self::Sent(text.replacen("\r\n", &format!("\r\n{headers}"), 1)),
            _ => {
                panic!("only a reply that is sent at once")
            }
        }
    }

    pub(crate) fn error(status: &str, headers: &str, message: &str) -> Self {
        let body = json!({ "error": { "message": message } });
        Self::Sent(format!(
            "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-type: application/json\r\n{headers}\r\n{body}"
        ))
    }
}

const GIGABYTE: usize = 1 << 30;

const STREAM: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n";

/// The client may disconnect before the end.
fn answer(mut connection: TcpStream, reply: &Reply, seen: &Seen) {
    if let Reply::Late(_) | Reply::HeldLate(_) = reply {
        let is_released = seen.is_released.lock().unwrap();
        drop(seen.released.wait_while(is_released, |is_released| !*is_released).unwrap());
    }
    match reply {
        Reply::Sent(text) | Reply::Late(text) => {
            let _gone = connection.write_all(text.as_bytes());
        }
        Reply::Held(text) | Reply::HeldLate(text) => {
            let _gone = connection.write_all(text.as_bytes());
            let _gone = connection.read(&mut [0; 64]);
        }
        Reply::Gigabyte { head, piece } => {
            let mut went_well = connection.write_all(head.as_bytes());
            for _ in 0..GIGABYTE / piece.len() {
                if went_well.is_err() {
                    break;
                }
                went_well = connection.write_all(piece.as_bytes());
            }
        }
    }
}

/// Reads a whole request; `None` if the client only connected.
pub(crate) fn read(connection: &mut TcpStream) -> Option<ReceivedRequest> {
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok());
            if body.len() >= length.unwrap_or(0) {
                let json = if body.is_empty() { Value::Null } else { serde_json::from_str(body).unwrap() };
                return Some(ReceivedRequest { head: head.to_owned(), body: json, text: body.to_owned() });
            }
        }
        match connection.read(&mut chunk) {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&chunk[..read]),
        }
    }
}
