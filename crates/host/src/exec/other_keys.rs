//! Keys of providers that the gateway does not serve. A program that finds one in its environment can call that provider,
//! and no budget of ours sees it.

/// How the variables of other providers begin.
const PROVIDERS: [&str; 42] = [
    "AI21",
    "AI_GATEWAY",
    "ANYSCALE",
    "AZURE_AI",
    "AZURE_OPENAI",
    "BASETEN",
    "CEREBRAS",
    "CLINE",
    "COHERE",
    "DASHSCOPE",
    "DEEPINFRA",
    "DEEPSEEK",
    "FIREWORKS",
    "GOOGLE_GENERATIVE_AI",
    "GROQ",
    "HUGGINGFACE",
    "HYPERBOLIC",
    "KILO",
    "KILOCODE",
    "KIMI",
    "LITELLM",
    "MINIMAX",
    "MISTRAL",
    "MOONSHOT",
    "NEBIUS",
    "NOVITA",
    "NVIDIA",
    "OLLAMA",
    "OPENCODE",
    "OPENROUTER",
    "PERPLEXITY",
    "PORTKEY",
    "REPLICATE",
    "REQUESTY",
    "SAMBANOVA",
    "TOGETHER",
    "TOGETHERAI",
    "VENICE",
    "WATSONX",
    "XAI",
    "ZAI",
    "ZHIPUAI",
];

/// Names that begin otherwise.
const OTHERS: [&str; 4] = ["AWS_BEARER_TOKEN_BEDROCK", "AZURE_API_KEY", "CO_API_KEY", "HF_TOKEN"];

/// The variables of the environment that have such a key, in order.
pub fn in_environment() -> Vec<String> {
    let has_key = |(name, value): (String, String)| (!value.is_empty() && is_key(&name)).then_some(name);
    // A name or a value that is not text is not a key.
    let text = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut names: Vec<String> = text.filter_map(has_key).collect();
    names.sort_unstable();
    names
}

/// Whether a variable of this name has one.
pub(super) fn is_key(name: &str) -> bool {
    let is_of = |provider: &str| name.strip_prefix(provider).is_some_and(|rest| rest.starts_with('_'));
    let is_named = name.ends_with("_KEY") || name.ends_with("_TOKEN");
    OTHERS.contains(&name) || (is_named && PROVIDERS.into_iter().any(is_of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_from_other_variables() {
        for key in ["GROQ_API_KEY", "AZURE_OPENAI_AD_TOKEN", "HF_TOKEN", "XAI_API_KEY", "TOGETHER_API_KEY"] {
            assert!(is_key(key), "{key}");
        }
        for other in [
            "AZURE_OPENAI_ENDPOINT",
            "GITHUB_TOKEN",
            "XAIR_KEY",
            "MY_GEMINI_API_KEY",
            "OPENAI_API_KEY",
            "GEMINI_API_KEY",
        ] {
            assert!(!is_key(other), "{other}");
        }
    }
}
