//! The providers that we can talk to: which format each speaks, where it is, and which variable usually has its key.

use crate::tokens::Tokenizer;
use crate::wire::WireFormat;

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// OpenAI, by its responses.
    OpenAi,
    /// OpenAI, by its chat completions.
    OpenAiChat,
    Anthropic,
    Gemini,
    Ollama,
    /// Any server that speaks chat completions.
    OpenAiCompatible,
}

const OLLAMA: &str = "http://127.0.0.1:11434/v1";

impl Provider {
    pub(super) const fn format(self) -> WireFormat {
        match self {
            Self::OpenAi => WireFormat::OpenAiResponses,
            Self::OpenAiChat => WireFormat::OpenAiChat,
            Self::Anthropic => WireFormat::AnthropicMessages,
            Self::Gemini => WireFormat::Gemini,
            Self::Ollama | Self::OpenAiCompatible => WireFormat::CompatibleChat,
        }
    }

    /// Where it is, unless somebody says otherwise.
    #[must_use]
    pub const fn base_url(self) -> Option<&'static str> {
        match self {
            Self::Ollama => Some(OLLAMA),
            other => other.format().base_url(),
        }
    }

    /// The environment variable that usually has its key. Without one it needs none.
    #[must_use]
    pub const fn key_env(self) -> Option<&'static str> {
        match self {
            Self::OpenAi | Self::OpenAiChat => Some("OPENAI_API_KEY"),
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::Gemini => Some("GEMINI_API_KEY"),
            Self::Ollama | Self::OpenAiCompatible => None,
        }
    }

    /// What counts the tokens of its model at its own address. Who answers elsewhere under the same name is unknown, and
    /// only bytes bound every tokenizer.
    pub(super) fn tokenizer(self, model: &str) -> Tokenizer {
        match self {
            Self::OpenAi | Self::OpenAiChat => Tokenizer::of(model),
            Self::Anthropic | Self::Gemini | Self::Ollama | Self::OpenAiCompatible => Tokenizer::Bytes,
        }
    }
}
