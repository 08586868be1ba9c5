//! Where each format is spoken, and which headers it wants. No key passes through here.

use super::WireFormat;

/// Where a request goes, and how its key travels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub url: String,
    /// The header that carries the key.
    pub key_header: &'static str,
    /// What comes before the key in it.
    pub key_prefix: &'static str,
    /// A header that goes along always.
    pub version: Option<VersionHeader>,
}

/// A header that says which version of the format is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionHeader {
    pub name: &'static str,
    pub value: &'static str,
}

const ANTHROPIC_VERSION: VersionHeader = VersionHeader { name: "anthropic-version", value: "2023-06-01" };

impl WireFormat {
    /// Where the format's own provider is. The format of other servers has no such place.
    #[must_use]
    pub const fn base_url(self) -> Option<&'static str> {
        match self {
            Self::OpenAiChat | Self::OpenAiResponses => Some("https://api.openai.com/v1"),
            Self::AnthropicMessages => Some("https://api.anthropic.com"),
            Self::Gemini => Some("https://generativelanguage.googleapis.com/v1beta"),
            Self::CompatibleChat => None,
        }
    }

    /// Where a streamed request goes, below an address.
    #[must_use]
    pub fn endpoint(self, base_url: &str, model: &str) -> Endpoint {
        let base = base_url.trim_end_matches('/');
        let bearer =
            |url| Endpoint { url, key_header: "authorization", key_prefix: "Bearer ", version: None };
        match self {
            Self::OpenAiChat | Self::CompatibleChat => bearer(format!("{base}/chat/completions")),
            Self::OpenAiResponses => bearer(format!("{base}/responses")),
            Self::AnthropicMessages => Endpoint {
                // People write the address with the version of the path and without it.
                url: format!("{}/v1/messages", base.trim_end_matches("/v1")),
                key_header: "x-api-key",
                key_prefix: "",
                version: Some(ANTHROPIC_VERSION),
            },
            Self::Gemini => {
                let model = path_segment(model.trim_start_matches("models/"));
                Endpoint {
                    url: format!("{base}/models/{model}:streamGenerateContent?alt=sse"),
                    key_header: "x-goog-api-key",
                    key_prefix: "",
                    version: None,
                }
            }
        }
    }
}

/// A name as one part of a path, whatever it is made of.
fn path_segment(name: &str) -> String {
    let mut segment = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~') {
            segment.push(char::from(byte));
        } else if byte == b'.' && !matches!(name, "." | "..") {
            segment.push('.');
        } else {
            segment.push_str(&format!("%{byte:02X}"));
        }
    }
    segment
}
