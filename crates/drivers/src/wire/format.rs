//! The formats that models speak.

use serde::{Deserialize, Serialize};

/// A wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WireFormat {
    /// OpenAI's chat completions, as OpenAI speaks it.
    OpenAiChat,
    /// Chat completions as others speak it: Ollama, vLLM, llama.cpp, LM Studio, OpenRouter.
    CompatibleChat,
    OpenAiResponses,
    AnthropicMessages,
    /// Gemini's `streamGenerateContent` with `alt=sse`.
    Gemini,
}

impl WireFormat {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::OpenAiChat,
        Self::CompatibleChat,
        Self::OpenAiResponses,
        Self::AnthropicMessages,
        Self::Gemini,
    ];
}
