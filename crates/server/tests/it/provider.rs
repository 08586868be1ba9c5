//! A provider for tests: it speaks the formats of the gateway as far as the tests need them, keeps what it was sent, and waits,
//! breaks off or refuses where a test wants it to.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// A request as the provider got it.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Got {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// The formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Messages,
    Chat,
    Responses,
    Gemini,
}

impl Format {
    pub(crate) const ALL: [Self; 4] = [Self::Messages, Self::Chat, Self::Responses, Self::Gemini];

    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Messages => "/v1/messages",
            Self::Chat => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
            Self::Gemini => "/v1beta/models/m:generateContent",
        }
    }

    /// Where a request of [`request`](Self::request) goes, and its bytes. Gemini has the model and the stream in the path.
    pub(crate) fn sent(self, request: &Value) -> (String, String) {
        if self != Self::Gemini {
            return (self.path().to_owned(), request.to_string());
        }
        let mut body = request.clone();
        let fields = body.as_object_mut().unwrap();
        let model = fields.remove("model").unwrap();
        let is_streamed = fields.remove("stream").is_some_and(|stream| stream == true);
        let method = if is_streamed { "streamGenerateContent?alt=sse" } else { "generateContent" };
        (format!("/v1beta/models/{}:{method}", model.as_str().unwrap()), body.to_string())
    }

    fn from_path(path: &str) -> Self {
        match path {
            path if path.ends_with("/messages") => Self::Messages,
            path if path.ends_with("/responses") => Self::Responses,
            path if path.contains("enerateContent") => Self::Gemini,
            _ => Self::Chat,
        }
    }

    /// A request with an output cap.
    pub(crate) fn request(self, cap: u64, text: &str, stream: bool) -> Value {
        match self {
            Self::Messages => json!({
                "model": "m", "max_tokens": cap, "stream": stream,
                "messages": [{ "role": "user", "content": text }],
            }),
            Self::Chat => json!({
                "model": "m", "max_completion_tokens": cap, "stream": stream,
                "messages": [{ "role": "user", "content": text }],
            }),
            Self::Responses => json!({
                "model": "m", "max_output_tokens": cap, "stream": stream, "input": text,
            }),
            Self::Gemini => json!({
                "model": "m", "stream": stream, "generationConfig": { "maxOutputTokens": cap },
                "contents": [{ "role": "user", "parts": [{ "text": text }] }],
            }),
        }
    }

    /// The cap in a request.
    pub(crate) fn cap(self, request: &Value) -> u64 {
        let field = match self {
            Self::Messages => "max_tokens",
            Self::Chat => "max_completion_tokens",
            Self::Responses => "max_output_tokens",
            Self::Gemini => return request["generationConfig"]["maxOutputTokens"].as_u64().unwrap_or(0),
        };
        request[field].as_u64().or_else(|| request["max_tokens"].as_u64()).unwrap_or(0)
    }

    pub(crate) fn whole(self, output: u64) -> Value {
        match self {
            Self::Messages => json!({
                "type": "message", "id": "msg", "role": "assistant", "model": "m",
                "content": [{ "type": "text", "text": "hello" }], "stop_reason": "end_turn", "stop_sequence": null,
                "usage": { "input_tokens": 1, "output_tokens": output },
            }),
            Self::Chat => json!({
                "id": "chat", "object": "chat.completion", "model": "m",
                "choices": [{ "index": 0, "message": { "role": "assistant", "content": "hello" },
                    "finish_reason": "stop" }],
                "usage": { "prompt_tokens": 1, "completion_tokens": output, "total_tokens": output + 1 },
            }),
            Self::Responses => json!({
                "id": "resp", "object": "response", "status": "completed", "model": "m",
                "output": [{ "type": "message", "id": "i", "role": "assistant", "status": "completed",
                    "content": [{ "type": "output_text", "text": "hello", "annotations": [] }] }],
                "usage": { "input_tokens": 1, "output_tokens": output, "total_tokens": output + 1 },
            }),
            Self::Gemini => gemini_chunk("hello", Some("STOP"), output),
        }
    }

    /// The events of a stream.
    pub(crate) fn events(self, output: u64) -> Vec<String> {
        let named = |name: &str, data: Value| format!("event: {name}\ndata: {data}\n\n");
        match self {
            Self::Messages => vec![
                named(
                    "message_start",
                    json!({ "type": "message_start", "message": {
                    "id": "msg", "type": "message", "role": "assistant", "model": "m", "content": [],
                    "stop_reason": null, "usage": { "input_tokens": 1, "output_tokens": 1 } } }),
                ),
                named(
                    "content_block_start",
                    json!({ "type": "content_block_start", "index": 0,
                    "content_block": { "type": "text", "text": "" } }),
                ),
                named(
                    "content_block_delta",
                    json!({ "type": "content_block_delta", "index": 0,
                    "delta": { "type": "text_delta", "text": "hello" } }),
                ),
                named("content_block_stop", json!({ "type": "content_block_stop", "index": 0 })),
                named(
                    "message_delta",
                    json!({ "type": "message_delta",
                    "delta": { "stop_reason": "end_turn", "stop_sequence": null },
                    "usage": { "output_tokens": output } }),
                ),
                named("message_stop", json!({ "type": "message_stop" })),
            ],
            Self::Chat => {
                let chunk = |choices: Value, usage: Value| {
                    let data = json!({ "id": "chat", "object": "chat.completion.chunk", "model": "m",
                        "choices": choices, "usage": usage });
                    format!("data: {data}\n\n")
                };
                vec![
                    chunk(
                        json!([{ "index": 0, "delta": { "role": "assistant", "content": "hello" } }]),
                        Value::Null,
                    ),
                    chunk(json!([{ "index": 0, "delta": {}, "finish_reason": "stop" }]), Value::Null),
                    chunk(
                        json!([]),
                        json!({ "prompt_tokens": 1, "completion_tokens": output,
                        "total_tokens": output + 1 }),
                    ),
                    "data: [DONE]\n\n".to_owned(),
                ]
            }
            Self::Responses => vec![
                named(
                    "response.created",
                    json!({ "type": "response.created", "sequence_number": 0,
                    "response": { "id": "resp", "object": "response", "status": "in_progress", "model": "m",
                        "output": [] } }),
                ),
                named(
                    "response.output_text.delta",
                    json!({ "type": "response.output_text.delta",
                    "sequence_number": 1, "item_id": "i", "output_index": 0, "content_index": 0, "delta": "hello" }),
                ),
                named(
                    "response.completed",
                    json!({ "type": "response.completed", "sequence_number": 2,
                    "response": self.whole(output) }),
                ),
            ],
            Self::Gemini => [("hello", None, 1), (" you", Some("STOP"), output)]
                .map(|(text, end, output)| format!("data: {}\n\n", gemini_chunk(text, end, output)))
                .into(),
        }
    }
}

fn gemini_chunk(text: &str, end: Option<&str>, output: u64) -> Value {
    json!({
        "candidates": [{ "index": 0, "content": { "role": "model", "parts": [{ "text": text }] },
            "finishReason": end }],
        "usageMetadata": { "promptTokenCount": 1, "candidatesTokenCount": output, "totalTokenCount": output + 1 },
        "modelVersion": "m", "responseId": "gemini",
    })
}

/// What the provider does with a request.
pub(crate) type Script =
    Arc<dyn Fn(Got, TcpStream) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

pub(crate) struct Provider {
    pub(crate) address: SocketAddr,
    pub(crate) got: Arc<Mutex<Vec<Got>>>,
}

impl Provider {
    /// A provider that answers every call with its whole cap as output.
    pub(crate) async fn spending_all() -> Self {
        Self::start(script(|got, stream| async move { answer(&got, stream, None).await })).await
    }

    /// The same, each answer after a word from the test.
    pub(crate) async fn waiting(go: Arc<Semaphore>) -> Self {
        Self::start(script(move |got, stream| {
            let go = Arc::clone(&go);
            async move {
                go.acquire().await.unwrap().forget();
                answer(&got, stream, None).await;
            }
        }))
        .await
    }

    pub(crate) async fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let got = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&got);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (script, kept) = (Arc::clone(&script), Arc::clone(&kept));
                tokio::spawn(async move {
                    if let Some((got, stream)) = read(stream).await {
                        kept.lock().unwrap().push(got.clone());
                        script(got, stream).await;
                    }
                });
            }
        });
        Self { address, got }
    }

    pub(crate) fn requests(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }
}

pub(crate) fn script<F, R>(act: F) -> Script
where
    F: Fn(Got, TcpStream) -> R + Send + Sync + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    Arc::new(move |got, stream| Box::pin(act(got, stream)))
}

async fn read(mut stream: TcpStream) -> Option<(Got, TcpStream)> {
    let (mut bytes, mut piece) = (Vec::new(), vec![0; 64 * 1024]);
    loop {
        let count = stream.read(&mut piece).await.ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&piece[..count]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let got = Got { head, body: Vec::new() };
        let length: usize = got.header("content-length").map_or(0, |length| length.parse().unwrap());
        while bytes.len() < end + 4 + length {
            let count = stream.read(&mut piece).await.ok().filter(|count| *count > 0)?;
            bytes.extend_from_slice(&piece[..count]);
        }
        return Some((Got { body: bytes[end + 4..].to_vec(), ..got }, stream));
    }
}

/// Answers with the whole cap as output, or with so many tokens.
pub(crate) async fn answer(got: &Got, mut stream: TcpStream, output: Option<u64>) {
    let (request, format) = (got.json(), Format::from_path(got.path()));
    let output = output.unwrap_or_else(|| format.cap(&request));
    if request["stream"] == true || got.path().contains(":streamGenerateContent") {
        begin_stream(&mut stream).await;
        for event in format.events(output) {
            if stream.write_all(event.as_bytes()).await.is_err() {
                return;
            }
        }
        let _ = stream.shutdown().await;
    } else {
        respond(stream, 200, &format.whole(output).to_string()).await;
    }
}

pub(crate) async fn begin_stream(stream: &mut TcpStream) {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nrequest-id: req_1\r\nconnection: close\r\n\r\n";
    let _ = stream.write_all(head.as_bytes()).await;
}

pub(crate) async fn respond(mut stream: TcpStream, status: u16, body: &str) {
    let head = format!(
        "HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\nrequest-id: req_1\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(body.as_bytes()).await;
    let _ = stream.shutdown().await;
}
