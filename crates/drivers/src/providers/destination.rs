//! Where the requests of a model go.

use reqwest::Url;
use spinney_kernel::definition::ModelProvider;

use super::provider;
use crate::http::HostName;

/// The server of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    pub host: HostName,
    /// Whether it is the provider's own server.
    pub is_own: bool,
    /// The address that is called.
    url: Url,
}

impl Destination {
    /// Where a model of a provider is asked. `None` if it has no valid address, which the model itself reports.
    #[must_use]
    pub fn new(by: ModelProvider, base_url: Option<&str>) -> Option<Self> {
        let own = provider::base_url(by);
        // The address that is called says where it goes.
        let called = |at: &str| Url::parse(&provider::format(by).endpoint(at, "").url).ok();
        let url = called(base_url.or(own)?)?;
        let is_own = own.and_then(called).is_some_and(|own| own.origin() == url.origin());
        Some(Self { host: HostName::of_url(url.as_str())?, is_own, url })
    }

    /// Whether it is below an address: the same scheme, host and port, and a path that begins with the same parts. A
    /// gateway of many users has one path for each.
    #[must_use]
    pub fn is_below(&self, base_url: &str) -> bool {
        let Ok(base) = Url::parse(base_url) else { return false };
        let parts = |url: &Url| -> Vec<String> {
            let parts = url.path_segments().into_iter().flatten();
            parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
        };
        // Some servers take an encoded slash for a slash.
        let path = self.url.path().to_ascii_lowercase();
        let is_plain = !path.contains("%2f") && !path.contains("%5c");
        is_plain && base.origin() == self.url.origin() && parts(&self.url).starts_with(&parts(&base))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_has_one_server_of_its_own() {
        let of = |by, url| Destination::new(by, url).map(|to| (to.host.to_string(), to.is_own));
        let own = |host: &str| Some((host.to_owned(), true));
        let other = |host: &str| Some((host.to_owned(), false));
        assert_eq!(of(ModelProvider::Anthropic, None), own("api.anthropic.com"));
        assert_eq!(of(ModelProvider::OpenAi, None), own("api.openai.com"));
        assert_eq!(of(ModelProvider::Ollama, None), own("127.0.0.1:11434"));
        assert_eq!(of(ModelProvider::OpenAiCompatible, None), None);
        assert_eq!(of(ModelProvider::OpenAi, Some("https://API.openai.com/v1/")), own("api.openai.com"));
        assert_eq!(of(ModelProvider::OpenAi, Some("http://api.openai.com/v1")), other("api.openai.com"));
        assert_eq!(
            of(ModelProvider::OpenAi, Some("https://api.openai.com:444")),
            other("api.openai.com:444")
        );
        assert_eq!(of(ModelProvider::OpenAi, Some("https://api.anthropic.com")), other("api.anthropic.com"));
        assert_eq!(of(ModelProvider::OpenAi, Some("nothing")), None);
    }

    #[test]
    fn an_address_is_below_another_by_whole_parts() {
        let to = Destination::new(ModelProvider::OpenAiChat, Some("https://gateway.example/v1/me/openai"))
            .unwrap();
        for base in [
            "https://gateway.example",
            "https://gateway.example/v1/me",
            "https://GATEWAY.example:443/v1/me/openai/",
        ] {
            assert!(to.is_below(base), "{base}");
        }
        for base in [
            "https://gateway.example/v1/m",
            "https://gateway.example/v1/you",
            "http://gateway.example/v1/me",
            "https://gateway.example:8443/v1/me",
            "https://other.example/v1/me",
            "https://gateway.example/v1/me/openai/chat/completions/more",
            "nothing",
        ] {
            assert!(!to.is_below(base), "{base}");
        }
        for up in ["%2e%2e/you", "..%2Fyou", "..%5cyou"] {
            let up = format!("https://gateway.example/v1/me/{up}");
            let to = Destination::new(ModelProvider::OpenAiChat, Some(&up)).unwrap();
            assert!(!to.is_below("https://gateway.example/v1/me"), "{up}");
        }
    }
}
