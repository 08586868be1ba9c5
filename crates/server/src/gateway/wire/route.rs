//! What a request asks the gateway for, by its method, path and headers. It knows no bodies.

use http::{HeaderMap, Method, Uri, header};
use spinney_drivers::wire::WireFormat;

use super::bounds::PATH_BYTES_MAX;
use super::gemini::path::{GeminiMethod, GeminiPath, without_key};

/// Whose formats a program speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderApi {
    Anthropic,
    OpenAi,
    Gemini,
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
    /// Gemini's `generateContent` and `streamGenerateContent`.
    Gemini,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewayRoute {
    /// A model call: it is held, sent and settled.
    Call(CallFormat),
    /// Anthropic's `count_tokens` or Gemini's `countTokens`. It costs nothing and passes without a hold.
    CountTokens(ProviderApi),
    /// The list of models, or one of them. It passes without a hold.
    Models(ProviderApi),
    /// A try to open a WebSocket, which the gateway does not speak. Its error makes clients use HTTP.
    WebSocket,
    /// Anything else. Nothing is sent.
    Unknown(ProviderApi),
}

impl CallFormat {
    pub const ALL: [Self; 4] = [Self::Messages, Self::Chat, Self::Responses, Self::Gemini];

    #[must_use]
    pub const fn api(self) -> ProviderApi {
        match self {
            Self::Messages => ProviderApi::Anthropic,
            Self::Chat | Self::Responses => ProviderApi::OpenAi,
            Self::Gemini => ProviderApi::Gemini,
        }
    }

    /// The reader of its responses.
    pub(super) const fn wire(self) -> WireFormat {
        match self {
            Self::Messages => WireFormat::AnthropicMessages,
            Self::Chat => WireFormat::OpenAiChat,
            Self::Responses => WireFormat::OpenAiResponses,
            Self::Gemini => WireFormat::Gemini,
        }
    }
}

impl ProviderApi {
    pub const ALL: [Self; 3] = [Self::Anthropic, Self::OpenAi, Self::Gemini];

    /// Where the provider itself is.
    #[must_use]
    pub const fn base_url(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com",
        }
    }

    /// Its name in the price table.
    #[must_use]
    pub const fn price_name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::Gemini => "gemini",
        }
    }

    /// The provider of a model of a run, whose name begins with it.
    #[must_use]
    pub fn of_model(model: &str) -> Option<Self> {
        let (provider, _) = model.split_once('/')?;
        Self::ALL.into_iter().find(|api| api.price_name() == provider)
    }

    /// Whether an address is the provider's own, however its version is written.
    pub(in crate::gateway) fn is_own_address(self, base_url: &str) -> bool {
        let plain = |url: &'_ str| without_version(url).to_owned();
        plain(base_url) == plain(self.base_url())
    }

    /// The URL of a path under a base URL. `version` is what the program wrote before it.
    pub(super) fn url(self, base_url: &str, version: &str, path: &str, query: Option<&str>) -> String {
        let base = base_url.trim_end_matches('/');
        // Base URLs are written both with and without the version.
        let (base, version) = match self {
            Self::Anthropic => (without_version(base), "/v1"),
            Self::OpenAi => (base, ""),
            Self::Gemini if version.is_empty() => (without_version(base), "/v1beta"),
            Self::Gemini => (without_version(base), version),
        };
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        format!("{base}{version}{path}{query}")
    }

    /// Who is meant by a request whose path does not say it.
    fn from_head(uri: &Uri, headers: &HeaderMap) -> Self {
        let is_anthropic = headers.contains_key("anthropic-version") || headers.contains_key("x-api-key");
        let has_google_headers =
            headers.contains_key("x-goog-api-key") || headers.contains_key("x-goog-api-client");
        let has_key = uri.query().is_some_and(|query| without_key(query).as_deref() != Some(query));
        let path = uri.path();
        let has_google_path = ["/v1beta", "/v1alpha", "/upload/"].iter().any(|start| path.starts_with(start));
        match (has_google_headers || has_google_path || has_key, is_anthropic) {
            (true, _) => Self::Gemini,
            (false, true) => Self::Anthropic,
            (false, false) => Self::OpenAi,
        }
    }
}

impl GatewayRoute {
    #[must_use]
    pub fn new(method: &Method, uri: &Uri, headers: &HeaderMap) -> Self {
        let upgrade = headers.get(header::UPGRADE).and_then(|value| value.to_str().ok());
        if upgrade.is_some_and(|to| to.to_ascii_lowercase().contains("websocket")) {
            return Self::WebSocket;
        }
        let api = ProviderApi::from_head(uri, headers);
        let Some((version, path)) = versioned(uri) else { return Self::Unknown(api) };
        if let Some(asked) = GeminiPath::new(path) {
            return match (method, asked.method) {
                (&Method::POST, GeminiMethod::Generate | GeminiMethod::Stream) => {
                    Self::Call(CallFormat::Gemini)
                }
                (&Method::POST, GeminiMethod::Count) => Self::CountTokens(ProviderApi::Gemini),
                (
                    _,
                    GeminiMethod::Generate | GeminiMethod::Stream | GeminiMethod::Count | GeminiMethod::Other,
                ) => Self::Unknown(ProviderApi::Gemini),
            };
        }
        match (method, path) {
            (&Method::GET, path) if is_models(path) => Self::Models(api),
            // The other formats have one version.
            _ if version == "/v1beta" => Self::Unknown(api),
            (&Method::POST, "/messages") => Self::Call(CallFormat::Messages),
            (&Method::POST, "/messages/count_tokens") => Self::CountTokens(ProviderApi::Anthropic),
            (&Method::POST, "/chat/completions") => Self::Call(CallFormat::Chat),
            (&Method::POST, "/responses") => Self::Call(CallFormat::Responses),
            _ => Self::Unknown(api),
        }
    }

    /// Whose formats the answer is written in.
    #[must_use]
    pub const fn api(self) -> ProviderApi {
        match self {
            Self::Call(format) => format.api(),
            Self::CountTokens(api) | Self::Models(api) | Self::Unknown(api) => api,
            Self::WebSocket => ProviderApi::OpenAi,
        }
    }

    /// Where the request goes, below the address of the provider; none if nothing is sent. The query passes unchanged, but
    /// for a key in it.
    #[must_use]
    pub fn upstream_url(self, uri: &Uri, base_url: &str) -> Option<String> {
        let (version, path) = match self {
            Self::Call(_) | Self::CountTokens(_) | Self::Models(_) => versioned(uri)?,
            Self::WebSocket | Self::Unknown(_) => return None,
        };
        let query = uri.query().map(without_key);
        let query = match (self.api(), uri.query()) {
            (ProviderApi::Gemini, _) => query.flatten(),
            (ProviderApi::Anthropic | ProviderApi::OpenAi, query) => query.map(str::to_owned),
        };
        Some(self.api().url(base_url, version, path, query.as_deref()))
    }
}

/// A base URL without the version of a path.
fn without_version(base_url: &str) -> &str {
    let base = base_url.trim_end_matches('/');
    base.strip_suffix("/v1beta").or_else(|| base.strip_suffix("/v1")).unwrap_or(base)
}

/// The version of a path, and the rest of it: programs append to a base URL that has it or has it not.
fn versioned(uri: &Uri) -> Option<(&str, &str)> {
    let path = uri.path();
    let is_version = |version: &&str| path.strip_prefix(*version).is_some_and(|rest| rest.starts_with('/'));
    let version = ["/v1", "/v1beta"].into_iter().find(is_version).unwrap_or_default();
    let rest = &path[version.len()..];
    (rest.len() <= PATH_BYTES_MAX).then_some((version, rest))
}

/// A name in the path reaches the provider, so it is a plain one: nothing that could lead to another path.
fn is_models(path: &str) -> bool {
    let Some(rest) = path.strip_prefix("/models") else { return false };
    rest.is_empty() || rest.strip_prefix('/').is_some_and(|names| names.split('/').all(is_plain_name))
}

/// Whether a part of a path is a plain name.
pub(super) fn is_plain_name(part: &str) -> bool {
    let is_letter =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':' | b'@');
    !part.is_empty() && part.bytes().all(is_letter) && !matches!(part, "." | "..")
}
