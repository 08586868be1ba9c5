//! The two clients that all models share: servers on this machine are reached without a proxy.

use reqwest::Url;

use crate::http::{HttpClient, HttpLimits, HttpSetupError, Proxies, is_loopback};

/// Connections to providers. Cheap to clone; clones share them.
#[derive(Clone, Debug)]
pub struct ProviderClients {
    direct: HttpClient,
    proxied: HttpClient,
}

impl ProviderClients {
    /// Clients with these bounds.
    ///
    /// # Errors
    /// If TLS or the proxies cannot be set up.
    pub fn new(limits: HttpLimits) -> Result<Self, HttpSetupError> {
        let direct = HttpClient::new(limits, Proxies::None)?;
        Ok(Self { direct, proxied: HttpClient::new(limits, Proxies::System)? })
    }

    /// The one for an address. What a person says to a server on their own machine goes to no other.
    pub(super) fn client(&self, url: &str) -> &HttpClient {
        let is_here = Url::parse(url).is_ok_and(|url| is_loopback(&url));
        if is_here { &self.direct } else { &self.proxied }
    }
}
