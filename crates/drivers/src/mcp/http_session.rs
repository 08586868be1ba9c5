//! What is said to one server over HTTP: requests with their responses, each bounded, and the stream on which it may speak
//! unasked. Nothing that it sends is believed here; its lines are for [`Incoming`](super::incoming::Incoming).

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use rmcp::model::{ErrorCode, ProtocolVersion};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::http_client::innermost;
use super::incoming::{LOST, MessageKind, NOT_REACHED};
use super::lines::{LINE_BYTES_MAX, Line};
use super::offered::{cleaned, one_line};
use super::open_calls::OpenCalls;
use crate::wire::{Secrets, SseDecoder, SseFault};

/// How long a server may take for what it does not answer.
const TELL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long it may take to end a session that nobody needs any more.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);
/// The waits before its own stream is opened again; the last one repeats.
const LISTEN_WAITS: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(20), Duration::from_secs(60)];
/// What is read of an error.
const ERROR_BYTES_MAX: usize = 64 << 10;
/// What an error shows.
const ERROR_SHOWN: usize = 600;
/// What is kept of an answer that is too long, to find out what it answers.
const HEAD_BYTES: usize = 512;
/// What a stream may have without an event: more than the longest one.
const SILENT_BYTES_MAX: usize = 32 << 20;
/// The longest session id.
const SESSION_BYTES_MAX: usize = 1 << 10;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";

/// What came over HTTP.
#[derive(Debug)]
pub(super) enum Heard {
    Line(Line),
    /// A request came to nothing.
    Failed {
        id: i64,
        failure: HttpFailure,
    },
}

/// Why a request came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HttpFailure {
    kind: FailureKind,
    pub(super) why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FailureKind {
    /// The server does not know of it.
    NotReached,
    /// What the server did is unknown.
    Lost,
    /// The server said no, or something that is no answer.
    Refused(ErrorCode),
}

impl HttpFailure {
    fn not_reached(why: impl Into<String>) -> Self {
        Self { kind: FailureKind::NotReached, why: why.into() }
    }

    fn lost(why: impl Into<String>) -> Self {
        Self { kind: FailureKind::Lost, why: why.into() }
    }

    fn refused(why: impl Into<String>) -> Self {
        Self { kind: FailureKind::Refused(ErrorCode::INTERNAL_ERROR), why: why.into() }
    }

    pub(super) fn code(&self) -> ErrorCode {
        match self.kind {
            FailureKind::NotReached => NOT_REACHED,
            FailureKind::Lost => LOST,
            FailureKind::Refused(code) => code,
        }
    }
}

/// One session with a server. [`HttpSession::end`] ends what is under way.
pub(super) struct HttpSession {
    client: reqwest::Client,
    url: Url,
    auth: Option<(HeaderName, HeaderValue)>,
    /// Whether that is the token of a login, which ends.
    is_login: bool,
    /// What no text of the server may show.
    secrets: Secrets,
    /// The longest that a request and its response may take, without the time in which a person is asked. Who asks
    /// usually waits less.
    exchange_max: Duration,
    calls: Arc<OpenCalls>,
    heard: mpsc::Sender<Heard>,
    agreed: Mutex<Agreed>,
    is_over: AtomicBool,
    running: Mutex<Running>,
}

/// What the handshake came to.
#[derive(Default)]
struct Agreed {
    session: Option<HeaderValue>,
    /// Of a version with a handshake: the newest says it in each request.
    version: Option<HeaderValue>,
}

#[derive(Default)]
struct Running {
    requests: BTreeMap<i64, AbortHandle>,
    listener: Option<AbortHandle>,
    has_ended: bool,
}

/// A request on its way out.
struct Asked {
    body: Vec<u8>,
    method: Option<HeaderValue>,
    name: Option<HeaderValue>,
    version: Option<HeaderValue>,
    is_handshake: bool,
}

impl HttpSession {
    pub(super) fn new(
        (client, url): (reqwest::Client, Url),
        (auth, is_login): (Option<(HeaderName, HeaderValue)>, bool),
        exchange_max: Duration,
        calls: Arc<OpenCalls>,
    ) -> (Arc<Self>, mpsc::Receiver<Heard>) {
        // What waits here is bounded by what is under way: each response hands over one line at a time.
        let (heard, receiver) = mpsc::channel(1);
        let key = auth.as_ref().and_then(|(_, value)| value.to_str().ok());
        let key = key.map(|value| value.strip_prefix("Bearer ").unwrap_or(value).to_owned());
        let session = Self {
            client,
            url,
            is_login: is_login && auth.is_some(),
            auth,
            secrets: Secrets::new(key),
            exchange_max,
            calls,
            heard,
            agreed: Mutex::default(),
            is_over: AtomicBool::new(false),
            running: Mutex::default(),
        };
        (Arc::new(session), receiver)
    }

    fn agreed(&self) -> MutexGuard<'_, Agreed> {
        self.agreed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the server has forgotten the session: then a new one is needed.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Whether a version with a handshake was agreed on.
    pub(super) fn is_older(&self) -> bool {
        self.agreed().version.is_some()
    }

    /// Sends a request. Its answer, or why there is none, is heard later.
    pub(super) fn ask(self: &Arc<Self>, id: i64, message: &Value) -> io::Result<()> {
        let asked = Asked::new(message)?;
        let mut running = self.running();
        if running.has_ended {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let session = Arc::clone(self);
        let task = tokio::spawn(async move {
            let exchange = session.calls.within(session.exchange_max, session.exchange(id, asked));
            let late = || Err(HttpFailure::lost("there was no answer in time"));
            if let Err(failure) = exchange.await.unwrap_or_else(late) {
                // If nobody hears any more, nobody needs to know.
                let _ = session.heard.send(Heard::Failed { id, failure }).await;
            }
            session.running().requests.remove(&id);
        });
        running.requests.retain(|_, task| !task.is_finished());
        running.requests.insert(id, task.abort_handle());
        Ok(())
    }

    /// Nobody waits for this answer any more: its response is closed.
    pub(super) fn abandon(&self, id: i64) {
        if let Some(task) = self.running().requests.remove(&id) {
            task.abort();
        }
    }

    /// Sends what has no answer.
    pub(super) async fn tell(self: &Arc<Self>, message: &Value) -> io::Result<()> {
        let body = serde_json::to_vec(message)?;
        let version = self.agreed().version.clone();
        let request = self.request(Method::POST, version).header(CONTENT_TYPE, JSON);
        // Servers refuse what does not take both, though nothing comes back here.
        let sent = request.header(ACCEPT, format!("{JSON}, {STREAM}")).body(body).send();
        let sent = timeout(TELL_TIMEOUT, sent).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?;
        let response = sent.map_err(|error| io::Error::other(innermost(&error.without_url())))?;
        if !response.status().is_success() {
            return Err(io::Error::other(format!("HTTP {}", response.status().as_u16())));
        }
        if message["method"] == "notifications/initialized" {
            self.listen();
        }
        Ok(())
    }

    /// Opens the stream on which an older server speaks unasked, for as long as the session lasts.
    fn listen(self: &Arc<Self>) {
        let session = Arc::clone(self);
        let mut running = self.running();
        if running.has_ended {
            return;
        }
        let listener = tokio::spawn(async move {
            for turn in 0_usize.. {
                let version = session.agreed().version.clone();
                let request = session.request(Method::GET, version).header(ACCEPT, STREAM);
                match request.send().await {
                    Ok(response) if response.status().is_success() && is(&response, STREAM) => {
                        // How it ended changes nothing: the next one is opened after a wait.
                        let _ = session.events(response, None).await;
                    }
                    // It has no such stream.
                    Ok(_) => return,
                    Err(_) => {}
                }
                sleep(LISTEN_WAITS[turn.min(LISTEN_WAITS.len() - 1)]).await;
            }
        });
        if let Some(before) = running.listener.replace(listener.abort_handle()) {
            before.abort();
        }
    }

    /// Ends what is under way.
    pub(super) fn end(&self) {
        let mut running = self.running();
        running.has_ended = true;
        let requests = std::mem::take(&mut running.requests);
        for task in requests.into_values().chain(running.listener.take()) {
            task.abort();
        }
    }

    /// Tells the server that the session is not needed any more, if it listens.
    pub(super) async fn leave(&self) {
        let (version, has_session) = {
            let agreed = self.agreed();
            (agreed.version.clone(), agreed.session.is_some())
        };
        if has_session && !self.is_over() {
            // A server may refuse that, and it ends sessions by itself.
            let _ = timeout(LEAVE_TIMEOUT, self.request(Method::DELETE, version).send()).await;
        }
    }

    fn request(&self, method: Method, version: Option<HeaderValue>) -> RequestBuilder {
        let mut request = self.client.request(method, self.url.clone()).header(ACCEPT_ENCODING, "identity");
        if let Some((name, value)) = &self.auth {
            request = request.header(name, value);
        }
        if let Some(session) = &self.agreed().session {
            request = request.header(SESSION, session);
        }
        match version {
            Some(version) => request.header(VERSION, version),
            None => request,
        }
    }

    async fn exchange(&self, id: i64, asked: Asked) -> Result<(), HttpFailure> {
        if asked.is_handshake {
            *self.agreed() = Agreed::default();
        }
        let version = asked.version.or_else(|| self.agreed().version.clone());
        let mut request = self.request(Method::POST, version).header(CONTENT_TYPE, JSON);
        request = request.header(ACCEPT, format!("{JSON}, {STREAM}")).body(asked.body);
        for (header, value) in [(METHOD, asked.method), (NAME, asked.name)] {
            if let Some(value) = value {
                request = request.header(header, value);
            }
        }
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => {
                let is_unsent = error.is_connect() || error.is_builder();
                let why = innermost(&error.without_url());
                return Err(if is_unsent { HttpFailure::not_reached(why) } else { HttpFailure::lost(why) });
            }
        };
        if !response.status().is_success() {
            return Err(self.refusal(id, response).await);
        }
        let session = response.headers().get(SESSION).cloned().filter(|_| asked.is_handshake);
        if let Some(mut session) = session.filter(|session| session.len() <= SESSION_BYTES_MAX) {
            session.set_sensitive(true);
            self.agreed().session = Some(session);
        }
        let of_handshake = asked.is_handshake.then_some(id);
        if is(&response, JSON) {
            let line = self.whole(response).await?;
            self.note_version(of_handshake, &line);
            let is_answer = match &line {
                Line::Whole(line) => matches!(MessageKind::of(line), MessageKind::Answer(to) if to == id),
                Line::TooLong { .. } | Line::Rest => true,
            };
            self.hand_over(line).await?;
            let other = "its answer has another form than the protocol";
            return if is_answer { Ok(()) } else { Err(HttpFailure::refused(other)) };
        }
        if is(&response, STREAM) {
            return match self.events(response, Some((id, of_handshake))).await? {
                true => Ok(()),
                false => Err(HttpFailure::lost("its response ended before the answer")),
            };
        }
        let kind = self.shown_header(&response, &CONTENT_TYPE);
        Err(HttpFailure::refused(format!("it answered with `{kind}`, which is not the protocol")))
    }

    /// A header of a response as errors show it: without the key.
    fn shown_header(&self, response: &Response, name: &HeaderName) -> String {
        let value = response.headers().get(name).map(HeaderValue::as_bytes).unwrap_or_default();
        one_line(&String::from_utf8_lossy(&self.secrets.hide(value)), ERROR_SHOWN)
    }

    /// What an error response says.
    async fn refusal(&self, id: i64, mut response: Response) -> HttpFailure {
        let status = response.status();
        if status.is_redirection() {
            let to = self.shown_header(&response, &LOCATION);
            return HttpFailure::refused(format!(
                "it redirects to {to}, which is not followed: write that as its `url`"
            ));
        }
        if status == StatusCode::NOT_FOUND && self.agreed().session.is_some() {
            self.is_over.store(true, Ordering::Release);
            return HttpFailure::not_reached("it has forgotten the session");
        }
        if status == StatusCode::UNAUTHORIZED && self.is_login {
            // The next session begins with a token that is renewed, if there is one.
            self.is_over.store(true, Ordering::Release);
            return HttpFailure::not_reached("it does not take the token of its login: log in again");
        }
        let mut body = Vec::new();
        while let Ok(Some(chunk)) = response.chunk().await {
            let room = ERROR_BYTES_MAX - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if chunk.len() >= room {
                break;
            }
        }
        let body = self.secrets.hide_cut(&body);
        let said: Option<Value> = serde_json::from_slice(&body).ok();
        let error = said.as_ref().map(|said| &said["error"]).filter(|error| error.is_object());
        let code = error.and_then(|error| i32::try_from(error["code"].as_i64()?).ok());
        let ours = [NOT_REACHED.0, LOST.0];
        let code = code.filter(|code| !ours.contains(code)).map_or(ErrorCode::INTERNAL_ERROR, ErrorCode);
        let text = match error.and_then(|error| error["message"].as_str()) {
            Some(message) => cleaned(message, ERROR_SHOWN),
            None => cleaned(&String::from_utf8_lossy(&body), ERROR_SHOWN),
        };
        let status = status.as_u16();
        let help = match status {
            401 | 403 if self.auth.is_none() => " (it may need a key, `auth`, or a login)",
            401 | 403 => " (it does not take this key)",
            _ => "",
        };
        tracing::debug!("request {id} was answered with HTTP {status}");
        let text = if text.is_empty() { text } else { format!(": {text}") };
        HttpFailure { kind: FailureKind::Refused(code), why: format!("HTTP {status}{help}{text}") }
    }

    /// A whole response, if it is not too long.
    async fn whole(&self, mut response: Response) -> Result<Line, HttpFailure> {
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if body.len() + chunk.len() > LINE_BYTES_MAX => {
                    body.extend_from_slice(&chunk[..chunk.len().min(HEAD_BYTES)]);
                    body.truncate(HEAD_BYTES);
                    return Ok(Line::TooLong { head: body });
                }
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => return Ok(Line::Whole(self.secrets.hide(&body).into_owned())),
                Err(error) => return Err(HttpFailure::lost(innermost(&error.without_url()))),
            }
        }
    }

    /// Hands over the events of a stream as they come. Whether the answer that was waited for came; then the rest of it is
    /// not read.
    async fn events(
        &self,
        mut response: Response,
        awaited: Option<(i64, Option<i64>)>,
    ) -> Result<bool, HttpFailure> {
        let mut decoder = SseDecoder::default();
        let mut silent_bytes = 0;
        loop {
            let chunk = match response.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => return Ok(false),
                Err(error) => return Err(HttpFailure::lost(innermost(&error.without_url()))),
            };
            let mut lines = Vec::new();
            let fed = decoder.feed(&chunk, &mut |event| {
                lines.push(self.line_of(event.data));
                Ok::<(), SseFault>(())
            });
            silent_bytes = if lines.is_empty() { silent_bytes + chunk.len() } else { 0 };
            if silent_bytes > SILENT_BYTES_MAX {
                return Err(HttpFailure::refused("its stream has no events"));
            }
            for line in lines {
                let answers = matches!((&line, awaited), (Line::Whole(line), Some((id, _)))
                    if matches!(MessageKind::of(line), MessageKind::Answer(answered) if answered == id));
                let is_long = matches!(line, Line::TooLong { .. });
                self.note_version(awaited.and_then(|(_, handshake)| handshake), &line);
                self.hand_over(line).await?;
                if answers || (is_long && awaited.is_some()) {
                    return Ok(true);
                }
            }
            fed.map_err(|fault| HttpFailure::refused(fault.to_string()))?;
        }
    }

    fn line_of(&self, data: &str) -> Line {
        if data.len() > LINE_BYTES_MAX {
            return Line::TooLong { head: data.as_bytes()[..HEAD_BYTES].to_vec() };
        }
        Line::Whole(self.secrets.hide(data.as_bytes()).into_owned())
    }

    async fn hand_over(&self, line: Line) -> Result<(), HttpFailure> {
        let gone = |_| HttpFailure::lost("nobody hears it any more");
        self.heard.send(Heard::Line(line)).await.map_err(gone)
    }

    /// Keeps the version that an answer to the handshake agrees on.
    fn note_version(&self, handshake: Option<i64>, line: &Line) {
        let (Some(id), Line::Whole(line)) = (handshake, line) else { return };
        if !matches!(MessageKind::of(line), MessageKind::Answer(answered) if answered == id) {
            return;
        }
        let Ok(answer) = serde_json::from_slice::<Value>(line) else { return };
        let version = answer["result"]["protocolVersion"].as_str();
        self.agreed().version = version.and_then(|version| HeaderValue::from_str(version).ok());
    }
}

impl Asked {
    fn new(message: &Value) -> io::Result<Self> {
        let method = message["method"].as_str().unwrap_or_default();
        let params = &message["params"];
        let version = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
        let is_newest = version.is_some_and(|version| version >= ProtocolVersion::STANDARD_HEADERS.as_str());
        let name = match method {
            "tools/call" | "prompts/get" => params["name"].as_str(),
            "resources/read" => params["uri"].as_str(),
            _ => None,
        };
        let of = |text: Option<&str>| text.filter(|_| is_newest).and_then(header_value);
        Ok(Self {
            body: serde_json::to_vec(message)?,
            method: of(Some(method)),
            name: of(name),
            version: version.and_then(header_value),
            is_handshake: method == "initialize",
        })
    }
}

/// A text in a header: as it is, or in base64, as the protocol has it.
fn header_value(text: &str) -> Option<HeaderValue> {
    let is_plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && text.trim() == text;
    let is_plain = is_plain && !text.starts_with("=?base64?");
    let encoded = || format!("=?base64?{}?=", STANDARD.encode(text));
    HeaderValue::from_str(&if is_plain { text.to_owned() } else { encoded() }).ok()
}

/// Whether a response is of this media type.
fn is(response: &Response, media: &str) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(media))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::super::open_calls::tests::attempt;
    use super::*;

    /// G28: the response of a call that asks a person may take as long as the person, and no longer.
    #[tokio::test]
    async fn g28_a_response_waits_while_a_person_is_asked() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let calls = Arc::new(OpenCalls::default());
        // Another test may have done it.
        let _already = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let no_time = Duration::ZERO;
        let (session, mut heard) =
            HttpSession::new((client, url.parse().unwrap()), (None, false), no_time, Arc::clone(&calls));
        let message = serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {} });
        let entry = calls.enter(&attempt("a"));
        let asking = entry.call.wait();
        session.ask(1, &message).unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        assert!(server.read(&mut [0; 4_096]).await.unwrap() > 0);
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        let response = format!(
            "HTTP/1.1 200 .\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{answer}",
            answer.len()
        );
        server.write_all(response.as_bytes()).await.unwrap();
        assert!(
            matches!(heard.recv().await, Some(Heard::Line(Line::Whole(line))) if line == answer.as_bytes())
        );
        drop(asking);
        session.ask(2, &message).unwrap();
        assert!(
            matches!(heard.recv().await, Some(Heard::Failed { id: 2, failure }) if failure.code() == LOST)
        );
    }
}
