//! The providers whose models a tree can name. Which format each speaks and where it is, drivers know.

/// Who answers for a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelProvider {
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

impl ModelProvider {
    pub const ALL: [Self; 6] =
        [Self::OpenAi, Self::OpenAiChat, Self::Anthropic, Self::Gemini, Self::Ollama, Self::OpenAiCompatible];

    /// Its name in a tree file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiChat => "openai_chat",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
            Self::OpenAiCompatible => "openai_compatible",
        }
    }
}
