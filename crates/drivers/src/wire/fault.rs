//! What an error of a provider means. The words of its body decide first, because providers use one status for many
//! things; the status decides where the words say nothing.

use serde_json::Value;

use super::bounds::{ERROR_BODY_BYTES_MAX, PAUSE_MS_MAX};
use super::pause::{asked_pause, duration_ms};
use super::secrets::Secrets;
use super::sse::SseFault;

/// A call that failed, as its provider reports it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct WireFault {
    pub kind: WireFaultKind,
    /// For people: one bounded line without control characters and keys.
    pub message: String,
    /// How long the provider asks us to stay away.
    pub retry_after_ms: Option<u64>,
    /// The status of the response, unless the stream had begun.
    pub status: Option<u16>,
}

/// The kinds of failure that matter for what comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireFaultKind {
    RateLimit,
    /// The provider is busy, for everyone.
    Overload,
    /// The provider failed.
    Server,
    /// There is no connection to it, so nothing was sent.
    Unreachable,
    /// Its certificate is not to be trusted, or it does not speak TLS: nothing was sent, and later it is the same.
    Insecure,
    Timeout,
    /// The answer broke off.
    Cut,
    /// The answer is not what the format allows.
    Malformed,
    /// The answer exceeds one of our bounds.
    TooLarge,
    /// Wrong or missing key, or a key that may not do this.
    Auth,
    /// The account has no money left.
    OutOfCredit,
    BadRequest,
    /// The provider's filter refuses the request.
    ContentFilter,
    /// The request has more tokens than the model takes.
    ContextTooLong,
    /// No such model, or no such address.
    NotFound,
}

/// A response that is an error.
#[derive(Clone, Copy, Debug)]
pub struct ErrorResponse<'r> {
    pub status: u16,
    pub headers: &'r [WireHeader<'r>],
    /// As much of the body as was read.
    pub body: &'r [u8],
}

/// A header of a response.
#[derive(Clone, Copy, Debug)]
pub struct WireHeader<'r> {
    pub name: &'r str,
    pub value: &'r str,
}

impl WireFault {
    /// A fault that we found ourselves.
    #[must_use]
    pub fn new(kind: WireFaultKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after_ms: None, status: None }
    }

    /// An event that is not what its format allows. The event itself is not shown: it can hold anything.
    pub(super) fn malformed(event: &str, error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let message = format!("the provider sent {event} that cannot be read (line {line}, column {column})");
        Self::new(WireFaultKind::Malformed, message)
    }
}

impl From<SseFault> for WireFault {
    fn from(fault: SseFault) -> Self {
        let kind = match fault {
            SseFault::LineTooLong | SseFault::EventTooLarge => WireFaultKind::TooLarge,
            SseFault::NotUtf8 => WireFaultKind::Malformed,
        };
        Self::new(kind, fault.to_string())
    }
}

/// Reads errors, and hides keys in them.
#[derive(Clone, Debug, Default)]
pub struct FaultReader {
    secrets: Secrets,
}

impl FaultReader {
    #[must_use]
    pub const fn new(secrets: Secrets) -> Self {
        Self { secrets }
    }

    /// What an error response means.
    #[must_use]
    pub fn response(&self, response: ErrorResponse<'_>) -> WireFault {
        let body = &response.body[..response.body.len().min(ERROR_BODY_BYTES_MAX)];
        let said = serde_json::from_slice(body).map_or_else(|_| Said::text(body), |json| Said::json(&json));
        let kind = match response.status {
            300..=399 => WireFaultKind::BadRequest,
            // `invalid_request_error` comes with a wrong key, and `api_error` with a missing model.
            status => said
                .kind()
                .filter(|kind| !matches!(kind, WireFaultKind::BadRequest | WireFaultKind::Server))
                .unwrap_or_else(|| status_kind(status)),
        };
        let pause = asked_pause(response.headers).or(said.retry_after_ms);
        let said = self.secrets.clean(&said.message);
        let status = response.status;
        let message = match (status, said.is_empty()) {
            (300..=399, _) => format!("the provider redirects to another address (status {status})"),
            (_, true) => format!("the provider answered with status {status} and no message"),
            (_, false) => format!("{said} (status {status})"),
        };
        let retry_after_ms = pause.filter(|_| kind.is_passing()).map(|pause| pause.min(PAUSE_MS_MAX));
        WireFault { kind, message, retry_after_ms, status: Some(status) }
    }

    /// A failure on our side of the wire, with words that may come from outside.
    #[cfg(feature = "http")]
    pub(crate) fn local(&self, kind: WireFaultKind, words: &str) -> WireFault {
        WireFault::new(kind, self.secrets.clean(words))
    }

    /// What an error in the middle of a stream means. `error` is the object that the provider sent for it.
    #[must_use]
    pub fn event(&self, error: &Value) -> WireFault {
        let said = Said::json(error);
        let kind = said.kind().unwrap_or_else(|| {
            let status = said.codes.iter().find_map(|code| code.parse().ok());
            status.filter(|status| (400..600).contains(status)).map_or(WireFaultKind::Server, status_kind)
        });
        let message = match self.secrets.clean(&said.message) {
            empty if empty.is_empty() => {
                "the provider ended the stream with an error and no message".to_owned()
            }
            message => message,
        };
        let retry_after_ms =
            said.retry_after_ms.filter(|_| kind.is_passing()).map(|pause| pause.min(PAUSE_MS_MAX));
        WireFault { kind, message, retry_after_ms, status: None }
    }
}

impl WireFaultKind {
    /// Whether the same call may go better later, so a pause means something.
    const fn is_passing(self) -> bool {
        match self {
            Self::RateLimit
            | Self::Overload
            | Self::Server
            | Self::Unreachable
            | Self::Timeout
            | Self::Cut
            | Self::Malformed => true,
            Self::TooLarge
            | Self::Insecure
            | Self::Auth
            | Self::OutOfCredit
            | Self::BadRequest
            | Self::ContentFilter
            | Self::ContextTooLong
            | Self::NotFound => false,
        }
    }
}

/// What an error says.
#[derive(Debug, Default)]
struct Said {
    /// Its codes, types and statuses, in lower case.
    codes: Vec<String>,
    message: String,
    retry_after_ms: Option<u64>,
}

impl Said {
    fn text(body: &[u8]) -> Self {
        Self { message: String::from_utf8_lossy(body).into_owned(), ..Self::default() }
    }

    /// Providers wrap it in `error`, in a list, or in nothing; the error itself is an object or a text.
    fn json(json: &Value) -> Self {
        let json = json.as_array().and_then(|list| list.first()).unwrap_or(json);
        let error = json.get("error").filter(|error| !error.is_null()).unwrap_or(json);
        let mut said = Self::default();
        for key in ["code", "type", "status", "reason"] {
            match error.get(key) {
                Some(Value::String(word)) => said.codes.push(word.to_lowercase()),
                Some(Value::Number(number)) => said.codes.push(number.to_string()),
                _ => {}
            }
        }
        let texts = [error.get("message"), error.get("detail"), json.get("message"), Some(error)];
        let text = texts.into_iter().flatten().find_map(Value::as_str);
        said.message = text.unwrap_or_default().to_owned();
        for detail in error.get("details").and_then(Value::as_array).into_iter().flatten() {
            if let Some(reason) = detail.get("reason").and_then(Value::as_str) {
                said.codes.push(reason.to_lowercase());
            }
            if let Some(delay) = detail.get("retryDelay").and_then(Value::as_str) {
                said.retry_after_ms = duration_ms(delay);
            }
        }
        said
    }

    fn kind(&self) -> Option<WireFaultKind> {
        let message = self.message.to_lowercase();
        // A bad request has one code for many causes, so its words are asked before the code.
        let by_words = MESSAGES.iter().find(|(words, _)| message.contains(words)).map(|(_, kind)| *kind);
        let by_code = self.codes.iter().find_map(|code| code_kind(code));
        match by_code {
            None
            | Some(
                WireFaultKind::BadRequest
                | WireFaultKind::RateLimit
                | WireFaultKind::Auth
                | WireFaultKind::Server,
            ) => by_words.or(by_code),
            Some(kind) => Some(kind),
        }
    }
}

/// Words that say more than a code.
const MESSAGES: [(&str, WireFaultKind); 20] = [
    ("credit balance is too low", WireFaultKind::OutOfCredit),
    ("insufficient credits", WireFaultKind::OutOfCredit),
    ("insufficient balance", WireFaultKind::OutOfCredit),
    ("billing hard limit", WireFaultKind::OutOfCredit),
    ("prompt is too long", WireFaultKind::ContextTooLong),
    ("exceed context limit", WireFaultKind::ContextTooLong),
    ("exceeds the maximum number of tokens", WireFaultKind::ContextTooLong),
    ("maximum context length", WireFaultKind::ContextTooLong),
    ("exceeds the context window", WireFaultKind::ContextTooLong),
    ("exceeds the available context size", WireFaultKind::ContextTooLong),
    ("context size has been exceeded", WireFaultKind::ContextTooLong),
    ("content filtering policy", WireFaultKind::ContentFilter),
    ("content management policy", WireFaultKind::ContentFilter),
    ("flagged by moderation", WireFaultKind::ContentFilter),
    ("input was flagged", WireFaultKind::ContentFilter),
    ("usage policy", WireFaultKind::ContentFilter),
    ("api key not valid", WireFaultKind::Auth),
    ("api key expired", WireFaultKind::Auth),
    ("incorrect api key", WireFaultKind::Auth),
    ("overloaded", WireFaultKind::Overload),
];

/// What a code, a type or a status in words means.
fn code_kind(code: &str) -> Option<WireFaultKind> {
    Some(match code {
        "rate_limit_exceeded"
        | "rate_limit_error"
        | "rate_limit_reached"
        | "too_many_requests"
        | "resource_exhausted"
        | "requests"
        | "tokens" => WireFaultKind::RateLimit,
        "overloaded_error" | "overloaded" | "unavailable" | "slow_down" | "engine_overloaded" => {
            WireFaultKind::Overload
        }
        "server_error"
        | "api_error"
        | "internal_error"
        | "internal_server_error"
        | "internal"
        | "vector_store_timeout" => WireFaultKind::Server,
        "timeout" | "timeout_error" | "deadline_exceeded" | "request_timeout" => WireFaultKind::Timeout,
        "invalid_api_key"
        | "authentication_error"
        | "permission_error"
        | "permission_denied"
        | "unauthenticated"
        | "api_key_invalid"
        | "unauthorized" => WireFaultKind::Auth,
        "insufficient_quota"
        | "billing_error"
        | "billing_hard_limit_reached"
        | "billing_not_active"
        | "insufficient_credits"
        | "payment_required" => WireFaultKind::OutOfCredit,
        "context_length_exceeded"
        | "exceed_context_size_error"
        | "request_too_large"
        | "string_above_max_length" => WireFaultKind::ContextTooLong,
        "content_filter" | "content_policy_violation" | "responsibleaipolicyviolation" | "cyber_policy" => {
            WireFaultKind::ContentFilter
        }
        "model_not_found" | "not_found_error" | "not_found" | "notfounderror" => WireFaultKind::NotFound,
        "invalid_request_error"
        | "invalid_argument"
        | "failed_precondition"
        | "invalid_prompt"
        | "badrequesterror" => WireFaultKind::BadRequest,
        _ => return None,
    })
}

const fn status_kind(status: u16) -> WireFaultKind {
    match status {
        401 | 403 => WireFaultKind::Auth,
        402 => WireFaultKind::OutOfCredit,
        404 | 410 => WireFaultKind::NotFound,
        408 | 504 | 522 | 524 => WireFaultKind::Timeout,
        413 => WireFaultKind::ContextTooLong,
        429 => WireFaultKind::RateLimit,
        503 | 529 => WireFaultKind::Overload,
        400..=499 => WireFaultKind::BadRequest,
        _ => WireFaultKind::Server,
    }
}
