//! A server of tools over HTTP for tests, in as many moods as such servers have. It runs on threads of this process, on
//! 127.0.0.1, and remembers what it was sent.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// How long a test waits for a request.
const WAIT: Duration = Duration::from_secs(30);

/// A running server. Its threads end with the process.
pub struct HttpToolServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// What it was sent.
#[derive(Clone, Debug)]
pub struct SeenRequest {
    /// `POST` and the like.
    pub method: String,
    /// With its query.
    pub path: String,
    /// What it has as its body.
    pub text: String,
    /// With names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Null if it has none.
    pub body: Value,
    /// Whether the client closed the connection before there was an answer.
    pub was_closed: bool,
}

struct Shared {
    mood: String,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    seen: Vec<SeenRequest>,
    sessions: usize,
    /// The last session is not known any more.
    has_forgotten: bool,
    tools_changed: bool,
}

impl HttpToolServer {
    /// Starts one in a mood: `plain` answers with JSON, `stream` with streams of events; `newest` speaks the newest version
    /// alone; `key` wants a key, and `login` a token that it gives after a login; `moved`, `page`, `silent`, `broken` and `endless` never become servers.
    ///
    /// # Panics
    /// If there is no port.
    #[must_use]
    pub fn start(mood: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|error| panic!("{error}"));
        let address = listener.local_addr().unwrap_or_else(|error| panic!("{error}"));
        let shared =
            Arc::new(Shared { mood: mood.to_owned(), state: Mutex::default(), changed: Condvar::new() });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&serving);
                // A client that goes away ends its thread.
                thread::spawn(move || drop(serve(&shared, stream)));
            }
        });
        Self { address, shared }
    }

    /// Where it is.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Its port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.address.port()
    }

    /// Everything that it was sent.
    #[must_use]
    pub fn seen(&self) -> Vec<SeenRequest> {
        self.shared.state().seen.clone()
    }

    /// Waits until what it was sent fulfils this.
    ///
    /// # Panics
    /// If that never happens.
    pub fn wait_until(&self, is_so: impl Fn(&[SeenRequest]) -> bool) {
        let wait =
            self.shared.changed.wait_timeout_while(self.shared.state(), WAIT, |state| !is_so(&state.seen));
        let (state, end) = wait.unwrap_or_else(PoisonError::into_inner);
        assert!(!end.timed_out(), "{:?}", state.seen);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state());
        self.changed.notify_all();
        changed
    }
}

fn serve(shared: &Shared, stream: TcpStream) -> io::Result<()> {
    let mut from = BufReader::new(stream.try_clone()?);
    let mut to = stream;
    loop {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let mut words = line.split(' ').map(str::to_owned);
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            from.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        from.read_exact(&mut body)?;
        let text = String::from_utf8_lossy(&body).into_owned();
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let request = SeenRequest { method, path, text, headers, body, was_closed: false };
        let place = shared.change(|state| {
            state.seen.push(request.clone());
            state.seen.len() - 1
        });
        answer(shared, &request, place, &mut from, &mut to)?;
    }
}

fn answer(
    shared: &Shared,
    request: &SeenRequest,
    place: usize,
    from: &mut BufReader<TcpStream>,
    to: &mut TcpStream,
) -> io::Result<()> {
    let mut wait_for_end = || {
        // The client has nothing more to say on this connection, so this ends when it closes it.
        let end = from.read(&mut [0; 1]);
        shared.change(|state| state.seen[place].was_closed = true);
        Err(end.err().unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into()))
    };
    match shared.mood.as_str() {
        "silent" => return wait_for_end(),
        "moved" => {
            let location = format!("https://elsewhere.example/mcp{}", repeated(request, "?"));
            return send(to, 307, &[("location", &location)], "");
        }
        "page" => {
            let kind = format!("text/html{}", repeated(request, "; "));
            return send(to, 200, &[("content-type", &kind)], "<p>Welcome</p>");
        }
        "broken" => return send(to, 200, &[("content-type", "application/json")], "{\"jsonrpc\": "),
        "endless" => {
            begin_stream(to, &[])?;
            loop {
                to.write_all(b": still here\n\n")?;
            }
        }
        "key" if request.headers.get("authorization").map(String::as_str) != Some("Bearer open-sesame-7") => {
            return send(to, 401, &[("www-authenticate", "Bearer")], "who are you?");
        }
        "login" => {
            let is_let_in =
                request.headers.get("authorization").map(String::as_str) == Some("Bearer renewed-token-8");
            if request.path != "/mcp" || !is_let_in {
                return log_in(request, to);
            }
        }
        _ => {}
    }
    // As the servers of the official SDKs do, also for what has no answer.
    let accepts = request.headers.get("accept").cloned().unwrap_or_default();
    let takes_both = ["application/json", "text/event-stream"].iter().all(|kind| accepts.contains(kind));
    if request.method == "POST" && !takes_both {
        return send(to, 406, &[], "");
    }
    let body = &request.body;
    let (id, method) = (&body["id"], body["method"].as_str().unwrap_or_default());
    let is_newest = shared.mood == "newest";
    match (request.method.as_str(), method) {
        ("DELETE", _) => send(to, 200, &[], ""),
        ("GET", _) if shared.mood == "stream" => {
            begin_stream(to, &[])?;
            wait_for_end()
        }
        ("GET", _) => send(to, 405, &[], ""),
        (_, "server/discover") if !is_newest => {
            let error = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32_000, "message": "Bad Request: no session" } });
            send(to, 400, &[("content-type", "application/json")], &error.to_string())
        }
        (_, "server/discover") => {
            let result = json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
                "serverInfo": { "name": "newest", "version": "1" }, "ttlMs": 3_600_000, "cacheScope": "private",
            });
            reply(shared, to, id, &result, &[])
        }
        (_, "initialize") => {
            let session = shared.change(|state| {
                state.sessions += 1;
                state.has_forgotten = false;
                format!("session-{}", state.sessions)
            });
            let result = json!({
                "protocolVersion": "2025-06-18", "capabilities": { "tools": { "listChanged": true } },
                "serverInfo": { "name": "test", "version": "1" },
            });
            reply(shared, to, id, &result, &[("mcp-session-id", &session)])
        }
        _ if !is_newest && !shared.knows(request) => send(to, 404, &[], "no such session"),
        (_, "tools/list") => {
            let changed = shared.state().tools_changed;
            let names = [
                "echo", "header", "wait", "long", "half", "cut", "forget", "status", "change", "moody", "ask",
            ];
            let tools: Vec<Value> = names.iter().map(|name| tool(name, changed)).collect();
            let result =
                json!({ "resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private" });
            reply(shared, to, id, &result, &[])
        }
        (_, "tools/call") => {
            let params = &body["params"];
            match params["name"].as_str().unwrap_or_default() {
                "wait" => {
                    begin_stream(to, &[])?;
                    wait_for_end()
                }
                name => call(shared, request, name, &params["arguments"], to),
            }
        }
        _ => send(to, 202, &[], ""),
    }
}

/// Gives tokens to whoever comes with the code of its page. The first one ends at once, and can be renewed.
fn log_in(request: &SeenRequest, to: &mut TcpStream) -> io::Result<()> {
    let origin = format!("http://{}", request.headers.get("host").map_or("", String::as_str));
    let json = |to: &mut TcpStream, status, value: &Value| {
        send(to, status, &[("content-type", "application/json")], &value.to_string())
    };
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let field = |text: &str, name: &str| {
        let value = text.split('&').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
        value.unwrap_or_default().replace("%3A", ":").replace("%2F", "/")
    };
    match path {
        "/.well-known/oauth-protected-resource/mcp" => json(
            to,
            200,
            &json!({ "resource": format!("{origin}/mcp"), "authorization_servers": [origin], "scopes_supported": ["tools"] }),
        ),
        "/.well-known/oauth-authorization-server" => json(
            to,
            200,
            &json!({
                "issuer": origin, "authorization_endpoint": format!("{origin}/authorize"),
                "token_endpoint": format!("{origin}/token"), "registration_endpoint": format!("{origin}/register"),
                "code_challenge_methods_supported": ["S256"], "authorization_response_iss_parameter_supported": true,
            }),
        ),
        "/register" => json(to, 201, &json!({ "client_id": "client-1" })),
        "/authorize" => {
            let (back, state) = (field(query, "redirect_uri"), field(query, "state"));
            let place = format!("{back}?code=secret-code-7&state={state}&iss={origin}");
            send(to, 302, &[("location", &place)], "")
        }
        "/token"
            if field(&request.text, "code") == "secret-code-7"
                && !field(&request.text, "code_verifier").is_empty() =>
        {
            let tokens = json!({ "access_token": "first-token-7", "token_type": "Bearer", "refresh_token": "refresh-token-7", "expires_in": 1 });
            json(to, 200, &tokens)
        }
        "/token" if field(&request.text, "refresh_token") == "refresh-token-7" => {
            let tokens =
                json!({ "access_token": "renewed-token-8", "token_type": "bearer", "expires_in": 3_600 });
            json(to, 200, &tokens)
        }
        "/token" => json(to, 400, &json!({ "error": "invalid_grant", "error_description": request.text })),
        _ => {
            let place =
                format!("Bearer resource_metadata=\"{origin}/.well-known/oauth-protected-resource/mcp\"");
            send(to, 401, &[("www-authenticate", &place)], "")
        }
    }
}

/// The key of a request, for a server that repeats it where nobody looks.
fn repeated(request: &SeenRequest, mark: &str) -> String {
    let key = request.headers.get("authorization").and_then(|value| value.strip_prefix("Bearer "));
    key.map(|key| format!("{mark}token={key}")).unwrap_or_default()
}

impl Shared {
    fn knows(&self, request: &SeenRequest) -> bool {
        let state = self.state();
        let session = format!("session-{}", state.sessions);
        !state.has_forgotten && request.headers.get("mcp-session-id") == Some(&session)
    }
}

fn tool(name: &str, has_changed: bool) -> Value {
    let what = if has_changed && name == "moody" { "Does something else." } else { "A tool." };
    json!({
        "name": name, "description": what,
        "inputSchema": { "type": "object", "properties": { "text": { "type": "string" }, "number": { "type": "integer" } } },
    })
}

fn call(
    shared: &Shared,
    request: &SeenRequest,
    name: &str,
    arguments: &Value,
    to: &mut TcpStream,
) -> io::Result<()> {
    let id = &request.body["id"];
    let number = usize::try_from(arguments["number"].as_u64().unwrap_or(0)).unwrap_or(0);
    let text = match name {
        "echo" => arguments["text"].as_str().unwrap_or_default().to_owned(),
        "header" => {
            let name = arguments["text"].as_str().unwrap_or_default();
            request.headers.get(name).map_or("not sent", |value| value).to_owned()
        }
        "long" => "x".repeat(number),
        // The stream ends before the answer.
        "half" => {
            begin_stream(to, &[])?;
            event(to, &json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": {} }))?;
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        // The connection ends before the head.
        "cut" => return Err(io::ErrorKind::ConnectionAborted.into()),
        "forget" => {
            shared.change(|state| state.has_forgotten = true);
            "forgotten".to_owned()
        }
        "status" => {
            let status = u16::try_from(number).unwrap_or(500);
            return send(to, status, &[], "it hurts\u{1b}[2J, says open-sesame-7");
        }
        // The newest version asks in an answer, the others on the way to it.
        "ask" if shared.mood == "newest" => {
            let answered = &request.body["params"]["inputResponses"]["colour"]["content"]["colour"];
            if !answered.is_string() {
                let params = elicitation();
                let asked = json!({ "colour": { "method": "elicitation/create", "params": params } });
                let result =
                    json!({ "resultType": "input_required", "inputRequests": asked, "requestState": "1" });
                return reply(shared, to, id, &result, &[]);
            }
            answered.as_str().unwrap_or_default().to_owned()
        }
        "ask" => {
            let asked = json!({ "jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": elicitation() });
            begin_stream(to, &[])?;
            event(to, &asked)?;
            let is_reply = |seen: &SeenRequest| seen.body["id"] == "q1";
            let replied = |state: &mut State| !state.seen.iter().any(is_reply);
            let waited = shared.changed.wait_timeout_while(shared.state(), WAIT, replied);
            let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            let said =
                state.seen.iter().find(|seen| is_reply(seen)).map(|seen| seen.body["result"].to_string());
            drop(state);
            let content = json!([{ "type": "text", "text": said.unwrap_or_default() }]);
            event(to, &json!({ "jsonrpc": "2.0", "id": id, "result": { "content": content } }))?;
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        "change" => {
            shared.change(|state| state.tools_changed = true);
            begin_stream(to, &[])?;
            event(to, &json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }))?;
            let result = json!({ "content": [{ "type": "text", "text": "changed" }] });
            event(to, &json!({ "jsonrpc": "2.0", "id": id, "result": result }))?;
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        _ => "did it".to_owned(),
    };
    reply(shared, to, id, &json!({ "content": [{ "type": "text", "text": text }] }), &[])
}

fn elicitation() -> Value {
    let colour = json!({ "type": "string", "enum": ["red", "blue"] });
    json!({
        "mode": "form", "message": "Which colour?",
        "requestedSchema": { "type": "object", "properties": { "colour": colour }, "required": ["colour"] },
    })
}

fn reply(
    shared: &Shared,
    to: &mut TcpStream,
    id: &Value,
    result: &Value,
    headers: &[(&str, &str)],
) -> io::Result<()> {
    let message = json!({ "jsonrpc": "2.0", "id": id, "result": result });
    if shared.mood != "stream" {
        let headers = [headers, &[("content-type", "application/json")]].concat();
        return send(to, 200, &headers, &message.to_string());
    }
    begin_stream(to, headers)?;
    event(
        to,
        &json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info" } }),
    )?;
    event(to, &message)?;
    // The end of the connection ends the stream.
    Err(io::ErrorKind::ConnectionAborted.into())
}

fn begin_stream(to: &mut TcpStream, headers: &[(&str, &str)]) -> io::Result<()> {
    let headers = head(&[headers, &[("content-type", "text/event-stream")]].concat());
    to.write_all(format!("HTTP/1.1 200 .\r\nconnection: close\r\n{headers}\r\n").as_bytes())
}

fn event(to: &mut TcpStream, message: &Value) -> io::Result<()> {
    to.write_all(format!("event: message\ndata: {message}\n\n").as_bytes())
}

fn send(to: &mut TcpStream, status: u16, headers: &[(&str, &str)], body: &str) -> io::Result<()> {
    let (headers, length) = (head(headers), body.len());
    to.write_all(format!("HTTP/1.1 {status} .\r\ncontent-length: {length}\r\n{headers}\r\n{body}").as_bytes())
}

fn head(headers: &[(&str, &str)]) -> String {
    headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect()
}
