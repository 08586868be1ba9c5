//! A provider of models, played: it answers in the wire format that it was asked in, by a script and with exact usage, and
//! keeps what it was asked. It knows no client and no gateway.

mod answer;
mod anthropic;
mod chat;
mod gemini;
mod question;
mod responses;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::json;

pub(crate) use self::answer::{Answer, Pace};
pub(crate) use self::question::{Question, WireFormat};
use crate::upstream::{self, ReceivedRequest};

/// How long a test waits for a request. Programs take seconds to start on a busy machine.
const ASKED_MAX: Duration = Duration::from_secs(120);

/// What answers a question: a pure function of it.
type Script = dyn Fn(&Question) -> Answer + Send + Sync;

/// A request, and what came of it.
#[derive(Clone)]
pub(crate) struct Exchange {
    pub(crate) asked: ReceivedRequest,
    /// The question and its answer, if a model was asked and the script answered.
    pub(crate) answered: Option<(Question, Answer)>,
    /// The first line of the response.
    pub(crate) status: String,
}

pub(crate) struct Provider {
    /// Where it listens, without a path.
    pub(crate) url: String,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    exchanges: Mutex<Vec<Exchange>>,
    more: Condvar,
    is_released: Mutex<bool>,
    released: Condvar,
}

impl Provider {
    pub(crate) fn new(script: impl Fn(&Question) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (seen, script) = (Arc::<Seen>::default(), Arc::new(script));
        let kept = Arc::clone(&seen);
        thread::spawn(move || {
            for connection in listener.incoming() {
                let (connection, seen, script) =
                    (connection.unwrap(), Arc::clone(&kept), Arc::clone(&script));
                thread::spawn(move || serve(connection, &seen, &*script));
            }
        });
        Self { url, seen }
    }

    /// Everything that was asked so far, in the order in which it was read.
    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        self.seen.exchanges.lock().unwrap().clone()
    }

    /// The questions to models so far, with their answers.
    pub(crate) fn answered(&self) -> Vec<(Question, Answer)> {
        self.exchanges().into_iter().filter_map(|exchange| exchange.answered).collect()
    }

    /// Waits until this holds for what was asked.
    pub(crate) fn until(&self, what: &str, holds: impl Fn(&[Exchange]) -> bool) {
        let exchanges = self.seen.exchanges.lock().unwrap();
        let waited = self.seen.more.wait_timeout_while(exchanges, ASKED_MAX, |exchanges| !holds(exchanges));
        let (exchanges, waited) = waited.unwrap();
        assert!(
            !waited.timed_out(),
            "{what} did not come within {ASKED_MAX:?}, after {} requests",
            exchanges.len()
        );
    }

    /// Sends every late answer, now and from now on.
    pub(crate) fn release(&self) {
        *self.seen.is_released.lock().unwrap() = true;
        self.seen.released.notify_all();
    }
}

/// The client may disconnect at any time.
fn serve(mut connection: TcpStream, seen: &Seen, script: &Script) {
    let Some(asked) = upstream::read(&mut connection) else { return };
    let Reply { head, body, pace, answered } = reply(&asked, script);
    {
        let status = head.lines().next().unwrap().to_owned();
        seen.exchanges.lock().unwrap().push(Exchange { asked, answered, status });
        seen.more.notify_all();
    }
    if pace == Pace::Late {
        let is_released = seen.is_released.lock().unwrap();
        drop(seen.released.wait_while(is_released, |is_released| !*is_released).unwrap());
    }
    let body = body.as_bytes();
    let first = if pace == Pace::Open { body.len() / 2 } else { body.len() };
    let _gone = connection.write_all(head.as_bytes()).and_then(|()| connection.write_all(&body[..first]));
    if pace == Pace::Open {
        let _gone = connection.read(&mut [0; 64]);
    }
}

struct Reply {
    head: String,
    body: String,
    pace: Pace,
    answered: Option<(Question, Answer)>,
}

impl Reply {
    fn new(status: &str, content_type: &str, body: String) -> Self {
        let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-type: {content_type}\r\n\r\n");
        Self { head, body, pace: Pace::AtOnce, answered: None }
    }

    fn json(status: &str, body: &serde_json::Value) -> Self {
        Self::new(status, "application/json", body.to_string())
    }
}

fn reply(asked: &ReceivedRequest, script: &Script) -> Reply {
    let path = asked.path().split('?').next().unwrap();
    match (asked.method(), path) {
        // Codex tries this first; it switches to HTTP at once only if it is told to.
        ("GET", "/v1/responses") => {
            Reply::json("426 Upgrade Required", &json!({ "error": { "message": "no WebSocket here" } }))
        }
        ("GET", "/v1/models") => {
            Reply::json("200 OK", &json!({ "object": "list", "data": [], "has_more": false }))
        }
        ("POST", "/v1/messages/count_tokens") => {
            Reply::json("200 OK", &json!({ "input_tokens": asked.text.len() / 4 }))
        }
        ("POST", "/v1/responses/input_tokens") => Reply::json(
            "200 OK",
            &json!({ "object": "response.input_tokens", "input_tokens": asked.text.len() / 4 }),
        ),
        ("POST", "/v1/messages") => answer(asked, WireFormat::Messages, script),
        ("POST", "/v1/responses") => answer(asked, WireFormat::Responses, script),
        ("POST", "/v1/chat/completions") => answer(asked, WireFormat::Chat, script),
        ("POST", path) if is_of_gemini(path) && path.ends_with(":countTokens") => {
            Reply::json("200 OK", &json!({ "totalTokens": asked.text.len() / 4 }))
        }
        ("POST", path) if is_of_gemini(path) && path.ends_with("enerateContent") => {
            answer(asked, WireFormat::Gemini, script)
        }
        _ => Reply::json(
            "404 Not Found",
            &json!({ "error": { "type": "not_found_error", "message": "no such path" } }),
        ),
    }
}

/// The SDKs of Google use different versions of its API.
fn is_of_gemini(path: &str) -> bool {
    ["/v1beta/models/", "/v1/models/"].iter().any(|start| path.starts_with(start))
}

fn answer(asked: &ReceivedRequest, format: WireFormat, script: &Script) -> Reply {
    let question = Question::read(asked, format);
    let answer = script(&question);
    let (body, content_type) = match (format, question.is_streamed) {
        (WireFormat::Messages, true) => (anthropic::stream(&question, &answer), "text/event-stream"),
        (WireFormat::Messages, false) => {
            (anthropic::whole(&question, &answer).to_string(), "application/json")
        }
        (WireFormat::Responses, true) => (responses::stream(&question, &answer), "text/event-stream"),
        (WireFormat::Responses, false) => {
            (responses::whole(&question, &answer).to_string(), "application/json")
        }
        (WireFormat::Chat, true) => (chat::stream(&question, &answer), "text/event-stream"),
        (WireFormat::Chat, false) => (chat::whole(&question, &answer).to_string(), "application/json"),
        (WireFormat::Gemini, true) => (gemini::stream(&question, &answer), "text/event-stream"),
        (WireFormat::Gemini, false) => (gemini::whole(&question, &answer).to_string(), "application/json"),
    };
    let pace = answer.pace;
    Reply { pace, answered: Some((question, answer)), ..Reply::new("200 OK", content_type, body) }
}
