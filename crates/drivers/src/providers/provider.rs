//! What we know of each provider: which format it speaks, where it is, and which variable usually has its key.

use spinney_kernel::definition::ModelProvider;

use crate::tokens::Tokenizer;
use crate::wire::{ServedFrom, WireFormat};

const OLLAMA: &str = "http://127.0.0.1:11434/v1";

pub(super) const fn format(provider: ModelProvider) -> WireFormat {
    match provider {
        ModelProvider::OpenAi => WireFormat::OpenAiResponses,
        ModelProvider::OpenAiChat => WireFormat::OpenAiChat,
        ModelProvider::Anthropic => WireFormat::AnthropicMessages,
        ModelProvider::Gemini => WireFormat::Gemini,
        ModelProvider::Ollama | ModelProvider::OpenAiCompatible => WireFormat::CompatibleChat,
    }
}

/// Where it is, unless set otherwise.
pub(super) const fn base_url(provider: ModelProvider) -> Option<&'static str> {
    match provider {
        ModelProvider::Ollama => Some(OLLAMA),
        other => format(other).base_url(),
    }
}

/// Who serves an address. Without an address, it is the provider.
pub(super) fn served_from(provider: ModelProvider, at: Option<&str>) -> ServedFrom {
    let is_own = at.is_none_or(|at| {
        base_url(provider).is_some_and(|own| own.trim_end_matches('/') == at.trim_end_matches('/'))
    });
    if is_own { ServedFrom::Provider } else { ServedFrom::Elsewhere }
}

/// The environment variable that usually has the key of a provider. Without one it needs none.
#[must_use]
pub const fn usual_key_env(provider: ModelProvider) -> Option<&'static str> {
    match provider {
        ModelProvider::OpenAi | ModelProvider::OpenAiChat => Some("OPENAI_API_KEY"),
        ModelProvider::Anthropic => Some("ANTHROPIC_API_KEY"),
        ModelProvider::Gemini => Some("GEMINI_API_KEY"),
        ModelProvider::Ollama | ModelProvider::OpenAiCompatible => None,
    }
}

/// What counts the tokens of its model at its own address. Who answers elsewhere under the same name is unknown, and only
/// bytes bound every tokenizer.
pub(super) fn tokenizer(provider: ModelProvider, model: &str) -> Tokenizer {
    match provider {
        ModelProvider::OpenAi | ModelProvider::OpenAiChat => open_ai_tokenizer(model),
        ModelProvider::Anthropic
        | ModelProvider::Gemini
        | ModelProvider::Ollama
        | ModelProvider::OpenAiCompatible => Tokenizer::Bytes,
    }
}

/// What counts the tokens of a model of OpenAI at its own address: one that is not known has the newest encoding.
#[must_use]
pub fn open_ai_tokenizer(model: &str) -> Tokenizer {
    match Tokenizer::for_model(model) {
        Tokenizer::Bytes => Tokenizer::O200k,
        known @ (Tokenizer::O200k | Tokenizer::Cl100k) => known,
    }
}
