//! Placeholders in the arguments of a program that reads no address from its environment. Other braces stay as they are:
//! arguments have prompts and JSON in them.

use std::ffi::OsString;

const ANTHROPIC: &str = "{anthropic_base_url}";
const OPEN_AI: &str = "{openai_base_url}";
const GEMINI: &str = "{gemini_base_url}";
const KEY: &str = "{key}";

/// What the placeholders stand for.
#[derive(Clone, Copy)]
pub struct GatewayPlace<'g> {
    /// The base URL of Anthropic's API.
    pub anthropic: &'g str,
    /// The base URL of OpenAI's API.
    pub open_ai: &'g str,
    /// The base URL of Gemini's API.
    pub gemini: &'g str,
    /// The key of the run.
    pub key: &'g str,
}

impl GatewayPlace<'_> {
    /// The arguments with their placeholders filled in.
    pub fn fill(self, args: Vec<OsString>) -> Vec<OsString> {
        // Only text has placeholders.
        let filled =
            |arg: OsString| arg.to_str().and_then(|text| self.filled(text)).map_or(arg, OsString::from);
        args.into_iter().map(filled).collect()
    }

    /// None if there is nothing to fill in. The key is filled in only where it is a value on its own or stands beside an
    /// address: a prompt may well speak of `{key}`.
    fn filled(self, text: &str) -> Option<String> {
        let addresses = [(ANTHROPIC, self.anthropic), (OPEN_AI, self.open_ai), (GEMINI, self.gemini)];
        let has_address = addresses.iter().any(|(placeholder, _)| text.contains(placeholder));
        let is_key = text == KEY || text.strip_suffix(KEY).is_some_and(|option| option.ends_with('='));
        if !has_address && !is_key {
            return None;
        }
        let text =
            addresses.iter().fold(text.to_owned(), |text, (placeholder, url)| text.replace(placeholder, url));
        Some(text.replace(KEY, self.key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_values_are_filled_in_and_prompts_are_not() {
        let place =
            GatewayPlace { anthropic: "http://a", open_ai: "http://a/v1", gemini: "http://g", key: "sk-1" };
        for (text, filled) in [
            ("{openai_base_url}", "http://a/v1"),
            ("--base-url={anthropic_base_url}/", "--base-url=http://a/"),
            ("--url={gemini_base_url}/v1beta", "--url=http://g/v1beta"),
            ("{key}", "sk-1"),
            ("--api-key={key}", "--api-key=sk-1"),
            (r#"{"url":"{openai_base_url}","apiKey":"{key}"}"#, r#"{"url":"http://a/v1","apiKey":"sk-1"}"#),
            ("print the {key} of f'{key}={value}'", "print the {key} of f'{key}={value}'"),
            ("{OPENAI_BASE_URL} {}", "{OPENAI_BASE_URL} {}"),
        ] {
            assert_eq!(place.fill(vec![text.into()]), [filled], "{text}");
        }
    }
}
