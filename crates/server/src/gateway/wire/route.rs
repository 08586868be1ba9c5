//! What a request asks the gateway for, by its method, path and headers. It knows no bodies.

use http::{HeaderMap, Method, Uri, header};
use spinney_drivers::wire::WireFormat;

use super::bounds::PATH_BYTES_MAX;

/// Whose formats a program speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderApi {
    Anthropic,
    OpenAi,
}

/// The format of a call that is billed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallFormat {
    /// Anthropic's messages.
    Messages,
    /// OpenAI's chat completions.
    Chat,
    /// OpenAI's responses.
    Responses,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewayRoute {
    /// A model call: it is held, sent and settled.
    Call(CallFormat),
    /// Anthropic's `count_tokens`. It costs nothing and passes without a hold.
    CountTokens,
    /// The list of models, or one of them. It passes without a hold.
    Models(ProviderApi),
    /// A try to open a WebSocket, which the gateway does not speak. Its error makes clients use HTTP.
    WebSocket,
    /// Anything else. Nothing is sent.
    Unknown(ProviderApi),
}

impl CallFormat {
    pub const ALL: [Self; 3] = [Self::Messages, Self::Chat, Self::Responses];

    #[must_use]
    pub const fn api(self) -> ProviderApi {
        match self {
            Self::Messages => ProviderApi::Anthropic,
            Self::Chat | Self::Responses => ProviderApi::OpenAi,
        }
    }

    /// The reader of its responses.
    pub(super) const fn wire(self) -> WireFormat {
        match self {
            Self::Messages => WireFormat::AnthropicMessages,
            Self::Chat => WireFormat::OpenAiChat,
            Self::Responses => WireFormat::OpenAiResponses,
        }
    }
}

impl ProviderApi {
    /// Where the provider itself is.
    #[must_use]
    pub const fn base_url(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenAi => "https://api.openai.com/v1",
        }
    }

    /// Its name in the price table.
    #[must_use]
    pub const fn price_name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
        }
    }

    /// The provider of a model of a run, whose name begins with it.
    #[must_use]
    pub fn of_model(model: &str) -> Option<Self> {
        let (provider, _) = model.split_once('/')?;
        [Self::Anthropic, Self::OpenAi].into_iter().find(|api| api.price_name() == provider)
    }

    /// The URL of a path under a base URL.
    pub(super) fn url(self, base_url: &str, path: &str, query: Option<&str>) -> String {
        let base = base_url.trim_end_matches('/');
        // Anthropic's base URL is written both with and without the version.
        let (base, version) = match self {
            Self::Anthropic => (base.trim_end_matches("/v1"), "/v1"),
            Self::OpenAi => (base, ""),
        };
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        format!("{base}{version}{path}{query}")
    }

    /// Who is meant by a request whose path does not say it.
    fn from_headers(headers: &HeaderMap) -> Self {
        let is_anthropic = headers.contains_key("anthropic-version") || headers.contains_key("x-api-key");
        if is_anthropic { Self::Anthropic } else { Self::OpenAi }
    }
}

impl GatewayRoute {
    #[must_use]
    pub fn new(method: &Method, uri: &Uri, headers: &HeaderMap) -> Self {
        let upgrade = headers.get(header::UPGRADE).and_then(|value| value.to_str().ok());
        if upgrade.is_some_and(|to| to.to_ascii_lowercase().contains("websocket")) {
            return Self::WebSocket;
        }
        let unknown = Self::Unknown(ProviderApi::from_headers(headers));
        let Some(path) = below_version(uri) else { return unknown };
        match (method, path) {
            (&Method::POST, "/messages") => Self::Call(CallFormat::Messages),
            (&Method::POST, "/messages/count_tokens") => Self::CountTokens,
            (&Method::POST, "/chat/completions") => Self::Call(CallFormat::Chat),
            (&Method::POST, "/responses") => Self::Call(CallFormat::Responses),
            (&Method::GET, path) if is_models(path) => Self::Models(ProviderApi::from_headers(headers)),
            _ => unknown,
        }
    }

    /// Whose formats the answer is written in.
    #[must_use]
    pub const fn api(self) -> ProviderApi {
        match self {
            Self::Call(format) => format.api(),
            Self::CountTokens => ProviderApi::Anthropic,
            Self::Models(api) | Self::Unknown(api) => api,
            Self::WebSocket => ProviderApi::OpenAi,
        }
    }

    /// Where the request goes, below the address of the provider; none if nothing is sent. The query passes unchanged.
    #[must_use]
    pub fn upstream_url(self, uri: &Uri, base_url: &str) -> Option<String> {
        let path = match self {
            Self::Call(_) | Self::CountTokens | Self::Models(_) => below_version(uri)?,
            Self::WebSocket | Self::Unknown(_) => return None,
        };
        Some(self.api().url(base_url, path, uri.query()))
    }
}

/// The path without its version: programs append to a base URL that has it or has it not.
fn below_version(uri: &Uri) -> Option<&str> {
    let path = uri.path();
    let rest = path.strip_prefix("/v1").filter(|rest| rest.starts_with('/')).unwrap_or(path);
    (rest.len() <= PATH_BYTES_MAX).then_some(rest)
}

/// A name in the path reaches the provider, so it is a plain one: nothing that could lead to another path.
fn is_models(path: &str) -> bool {
    let Some(rest) = path.strip_prefix("/models") else { return false };
    let is_letter =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':' | b'@');
    let is_name = |part: &str| !part.is_empty() && part.bytes().all(is_letter) && !matches!(part, "." | "..");
    rest.is_empty() || rest.strip_prefix('/').is_some_and(|names| names.split('/').all(is_name))
}
