//! What a model is asked, the same for all providers, and the body that asks it.

use serde_json::Number;
use spinney_kernel::definition::{CacheTime, Thinking};

use super::answer::WireToolCall;
use super::continuation::Continuation;
use super::{WireFormat, anthropic, chat, gemini, responses};

/// One request. It is always streamed, and it wants one answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WireRequest {
    /// The model, by the provider's name.
    pub model: String,
    /// What comes before all messages; may be empty.
    pub system: String,
    /// How many bytes of `system` other requests also begin with. Where a provider has to be told what to cache, that
    /// is a separate piece.
    pub system_shared_bytes: usize,
    pub messages: Vec<WireMessage>,
    pub tools: Vec<WireTool>,
    /// The most tokens that the model may write, reasoning included.
    pub output_cap: u64,
    pub params: WireParams,
}

/// A message of the dialog.
#[derive(Clone, Debug, PartialEq)]
pub enum WireMessage {
    User(Vec<WirePart>),
    /// What a model said.
    Assistant {
        text: String,
        calls: Vec<WireToolCall>,
        /// What its provider wants back. Another model is not sent it.
        continuation: Option<Continuation>,
    },
    /// What a tool returned.
    Result {
        /// The id of the call.
        id: String,
        tool: String,
        text: String,
        is_error: bool,
        /// Images and files that came with it.
        parts: Vec<WirePart>,
    },
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WirePart {
    Text(String),
    Image { media: String, bytes: Vec<u8> },
    File { name: String, media: String, bytes: Vec<u8> },
}

/// A tool that may be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireTool {
    pub name: String,
    pub description: String,
    /// A JSON Schema, as text; empty if not given.
    pub schema: String,
}

/// How the model is to answer. What a format has no word for is refused, never left out in silence.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WireParams {
    pub temperature: Option<Number>,
    pub top_p: Option<Number>,
    /// Texts at which the model stops.
    pub stop: Vec<String>,
    pub seed: Option<i64>,
    /// How much the model thinks, in the provider's word.
    pub effort: Option<String>,
    pub thinking: Option<Thinking>,
    pub structured: Option<StructuredOutput>,
    /// How long the beginning of the request is cached, where the provider has to be asked.
    pub cache: Option<CacheTime>,
    /// Where the provider has several, which one answers; that of the account if absent.
    pub tier: Option<ServiceTier>,
}

/// A form that the answer must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructuredOutput {
    pub name: String,
    /// A JSON Schema, as text.
    pub schema: String,
    /// Whether the provider is to guarantee it. OpenAI takes only a part of JSON Schema for that.
    pub is_strict: bool,
}

/// How urgent a request is to its provider, which has a price for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceTier {
    /// The one that price tables mean.
    Standard,
}

/// Why a request cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    #[error("`{param}` is not known to {provider}: leave it out, or use another model")]
    Unsupported { param: &'static str, provider: &'static str },
    #[error("the schema of `{of}` is not JSON")]
    Schema { of: String, source: serde_json::Error },
    #[error("the request cannot be written as JSON")]
    Json(#[from] serde_json::Error),
}

/// The body of a request, as JSON.
///
/// # Errors
/// If a parameter has no word in this format, or a schema is not JSON.
pub fn write(format: WireFormat, request: &WireRequest) -> Result<Vec<u8>, BodyError> {
    match format {
        WireFormat::OpenAiChat => chat::write(request, chat::ChatDialect::OpenAi),
        WireFormat::CompatibleChat => chat::write(request, chat::ChatDialect::Compatible),
        WireFormat::OpenAiResponses => responses::write(request),
        WireFormat::AnthropicMessages => anthropic::write(request),
        WireFormat::Gemini => gemini::write(request),
    }
}
