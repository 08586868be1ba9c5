//! What the gateway answers itself, in the words of the format that the program speaks: whole, or as an event of a stream
//! that has begun. The status follows a table, because programs show our text at some statuses and hide it at others.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use spinney_drivers::wire::RequestName;

use super::bounds::ERROR_TEXT_BYTES_MAX;
use super::caller::AgentProgram;
use super::route::{CallFormat, ProviderApi};

/// Something that the gateway says no to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct GatewayError {
    pub kind: GatewayErrorKind,
    /// For people: what is wrong. The remedy is worded for a program, which does not know our options.
    pub message: String,
    /// The refused name in the request, if the user can allow it.
    pub refused: Option<RefusedName>,
    /// The price that the user can give.
    pub unpriced: Option<Box<MissingPrice>>,
}

/// A model whose price is unknown, or another than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingPrice {
    /// What is wrong, without what helps.
    pub problem: String,
    /// As the program names it.
    pub model: String,
    /// What the user can do about it.
    pub needs: NeededPrice,
}

/// What gives a model a price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NeededPrice {
    /// Its own price, or that of a provider whose server charges the same.
    OfProvider(String),
    /// Its own price, or that of one more provider.
    OfAnotherProvider(String),
    /// Its own price.
    Own,
    /// What it cost when the run began.
    AsBefore,
}

/// A name in a request that is refused unless the user allows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedName {
    pub name: RequestName,
    pub why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GatewayErrorKind {
    /// The run's key is missing or wrong.
    WrongKey,
    /// A path that the gateway does not serve.
    NotFound,
    /// A WebSocket: the gateway speaks HTTP only.
    NeedsHttp,
    /// The body goes beyond a bound.
    TooLarge,
    /// The body cannot be read.
    BadRequest,
    /// The model may not be used, or has no price, or the cost of the call has no bound.
    Refused,
    /// The budget does not allow the call and was not raised.
    Ceiling,
    /// The run ends or has ended.
    Ended,
    /// The provider was not reached; nothing was sent.
    Unreachable,
    /// The provider's answer broke off, or it did not answer in time.
    Broken,
    /// The gateway itself failed.
    Internal,
}

/// Our own response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorReply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl GatewayErrorKind {
    pub const ALL: [Self; 11] = [
        Self::WrongKey,
        Self::NotFound,
        Self::NeedsHttp,
        Self::TooLarge,
        Self::BadRequest,
        Self::Refused,
        Self::Ceiling,
        Self::Ended,
        Self::Unreachable,
        Self::Broken,
        Self::Internal,
    ];

    /// Its name in results.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WrongKey => "wrong_key",
            Self::NotFound => "not_found",
            Self::NeedsHttp => "needs_http",
            Self::TooLarge => "too_large",
            Self::BadRequest => "bad_request",
            Self::Refused => "refused",
            Self::Ceiling => "ceiling",
            Self::Ended => "ended",
            Self::Unreachable => "unreachable",
            Self::Broken => "broken",
            Self::Internal => "internal",
        }
    }

    /// Claude Code stops at 402 and shows our text; Codex shows it at 400 and retries 402.
    #[must_use]
    pub const fn status(self, program: AgentProgram) -> StatusCode {
        match (self, program) {
            (Self::WrongKey, _) => StatusCode::UNAUTHORIZED,
            (Self::NotFound, _) => StatusCode::NOT_FOUND,
            (Self::NeedsHttp, _) => StatusCode::UPGRADE_REQUIRED,
            (Self::TooLarge, AgentProgram::Codex) => StatusCode::BAD_REQUEST,
            (Self::TooLarge, AgentProgram::ClaudeCode | AgentProgram::Other) => StatusCode::PAYLOAD_TOO_LARGE,
            (Self::BadRequest | Self::Refused, _) => StatusCode::BAD_REQUEST,
            (Self::Ceiling | Self::Ended, AgentProgram::Codex) => StatusCode::BAD_REQUEST,
            (Self::Ceiling | Self::Ended, AgentProgram::ClaudeCode | AgentProgram::Other) => {
                StatusCode::PAYMENT_REQUIRED
            }
            (Self::Unreachable | Self::Broken, _) => StatusCode::BAD_GATEWAY,
            (Self::Internal, _) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Whether the same request may succeed later without intervention.
    const fn is_passing(self) -> bool {
        match self {
            Self::Unreachable | Self::Broken | Self::Internal => true,
            Self::WrongKey
            | Self::NotFound
            | Self::NeedsHttp
            | Self::TooLarge
            | Self::BadRequest
            | Self::Refused
            | Self::Ceiling
            | Self::Ended => false,
        }
    }

    /// The kind in Anthropic's words.
    const fn anthropic(self) -> &'static str {
        match self {
            Self::WrongKey => "authentication_error",
            Self::NotFound => "not_found_error",
            Self::TooLarge => "request_too_large",
            Self::NeedsHttp | Self::BadRequest | Self::Refused => "invalid_request_error",
            Self::Ceiling | Self::Ended => "billing_error",
            Self::Unreachable | Self::Broken | Self::Internal => "api_error",
        }
    }

    /// The code in OpenAI's words.
    const fn open_ai_code(self) -> &'static str {
        match self {
            Self::WrongKey => "invalid_api_key",
            Self::NotFound => "not_found",
            Self::NeedsHttp => "upgrade_required",
            Self::TooLarge => "request_too_large",
            Self::BadRequest => "invalid_request",
            Self::Refused => "refused_by_spinney",
            Self::Ceiling => "budget_reached",
            Self::Ended => "run_ended",
            Self::Unreachable => "upstream_unreachable",
            Self::Broken => "upstream_broken",
            Self::Internal => "gateway_error",
        }
    }

    /// The status in Google's words.
    const fn google_status(self) -> &'static str {
        match self {
            Self::WrongKey => "UNAUTHENTICATED",
            Self::NotFound => "NOT_FOUND",
            Self::TooLarge | Self::BadRequest | Self::Refused => "INVALID_ARGUMENT",
            // Programs take RESOURCE_EXHAUSTED for a limit that passes, and try again or use another model.
            Self::NeedsHttp | Self::Ceiling | Self::Ended => "FAILED_PRECONDITION",
            Self::Unreachable | Self::Broken => "UNAVAILABLE",
            Self::Internal => "INTERNAL",
        }
    }

    /// The type in OpenAI's words.
    const fn open_ai_type(self) -> &'static str {
        if self.is_passing() { "server_error" } else { "invalid_request_error" }
    }
}

impl GatewayError {
    #[must_use]
    pub fn new(kind: GatewayErrorKind, message: impl Into<String>) -> Self {
        let mut message = message.into();
        message.truncate(message.floor_char_boundary(ERROR_TEXT_BYTES_MAX));
        Self { kind, message, refused: None, unpriced: None }
    }

    /// As a response.
    #[must_use]
    pub fn reply(&self, api: ProviderApi, program: AgentProgram) -> ErrorReply {
        let status = self.kind.status(program);
        let (body, media) = match (api, program, status) {
            // Codex shows the whole body of this status to a person, so the body is the text alone.
            (_, AgentProgram::Codex, StatusCode::BAD_REQUEST) => {
                (self.message.clone(), "text/plain; charset=utf-8")
            }
            (ProviderApi::Anthropic, _, _) => (self.anthropic().to_string(), "application/json"),
            (ProviderApi::OpenAi, _, _) => (self.open_ai().to_string(), "application/json"),
            (ProviderApi::Gemini, _, status) => (self.google(status).to_string(), "application/json"),
        };
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
        // The providers' own client libraries obey this one.
        let retry = HeaderValue::from_static(if self.kind.is_passing() { "true" } else { "false" });
        headers.insert(HeaderName::from_static("x-should-retry"), retry);
        ErrorReply { status, headers, body: Bytes::from(body) }
    }

    /// As the last event of a stream that has begun.
    #[must_use]
    pub fn event(&self, format: CallFormat) -> Bytes {
        match format {
            CallFormat::Messages => event("error", &self.anthropic()),
            CallFormat::Chat => Bytes::from(format!("data: {}\n\n", self.open_ai())),
            CallFormat::Responses => failed_response(self.responses_code(), &self.message),
            CallFormat::Gemini => google_event(&self.google(self.kind.status(AgentProgram::Other))),
        }
    }

    fn anthropic(&self) -> Value {
        json!({ "type": "error", "error": { "type": self.kind.anthropic(), "message": self.message } })
    }

    fn open_ai(&self) -> Value {
        json!({ "error": {
            "message": self.message,
            "type": self.kind.open_ai_type(),
            "param": null,
            "code": self.kind.open_ai_code(),
        } })
    }

    fn google(&self, status: StatusCode) -> Value {
        json!({ "error": {
            "code": status.as_u16(),
            "message": self.message,
            "status": self.kind.google_status(),
        } })
    }

    /// Codex shows the text of `invalid_prompt` and stops; it retries what it does not know.
    const fn responses_code(&self) -> &'static str {
        if self.kind.is_passing() { "server_error" } else { "invalid_prompt" }
    }
}

/// An error of the provider as the last event of a stream that had begun before the provider answered: we had to send
/// pings while the call waited. `body` is the error as the provider wrote it.
#[must_use]
pub fn stream_error(format: CallFormat, status: u16, body: &[u8]) -> Bytes {
    let text = String::from_utf8_lossy(body);
    let json = serde_json::from_str::<Value>(&text).ok().map(|json| match json {
        // Google wraps it in a list.
        Value::Array(mut list) if list.len() == 1 => list.remove(0),
        json => json,
    });
    let json = json.filter(|json| json.get("error").is_some());
    match (format, json) {
        (CallFormat::Messages, Some(error)) => event("error", &error),
        (CallFormat::Chat, Some(error)) => Bytes::from(format!("data: {error}\n\n")),
        (CallFormat::Gemini, Some(error)) => google_event(&error),
        (CallFormat::Responses, Some(error)) => {
            let word = |key: &str| error["error"][key].as_str().map(str::to_owned);
            let code = word("code").or_else(|| word("type")).unwrap_or_else(|| status.to_string());
            failed_response(&code, &word("message").unwrap_or_default())
        }
        (format, None) => {
            let message = format!("the provider answered with status {status}");
            GatewayError::new(GatewayErrorKind::Broken, message).event(format)
        }
    }
}

/// What keeps a connection open while a call waits, in a form that every client of the format skips.
#[must_use]
pub const fn ping(format: CallFormat) -> &'static [u8] {
    match format {
        CallFormat::Messages => b"event: ping\ndata: {\"type\": \"ping\"}\n\n",
        CallFormat::Chat => b": ping\n\n",
        // Google's Python SDK reads a comment as JSON.
        CallFormat::Gemini => b"\n\n",
        // A comment does not reset the idle time of Codex; an event of any type does.
        CallFormat::Responses => {
            b"event: keepalive\ndata: {\"type\":\"keepalive\",\"sequence_number\":0}\n\n"
        }
    }
}

/// Google's SDKs look for an error in a piece of a stream that is JSON and no event.
fn google_event(error: &Value) -> Bytes {
    Bytes::from(format!("{error}\n\n"))
}

fn event(name: &str, data: &Value) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

fn failed_response(code: &str, message: &str) -> Bytes {
    let data = json!({ "type": "response.failed", "sequence_number": 0, "response": {
        "id": "resp_spinney",
        "object": "response",
        "status": "failed",
        "error": { "code": code, "message": message },
        "output": [],
    } });
    event("response.failed", &data)
}
