//! A request on its way out. Keys stand in it as headers that are never printed.

use std::net::IpAddr;

use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use super::announcement::LastAnnouncement;
use crate::wire::{Secrets, WireFault, WireFaultKind};

/// A body to post.
#[derive(Clone, Debug)]
pub struct HttpPost {
    pub url: String,
    pub headers: Vec<HttpHeader>,
    /// JSON.
    pub body: Vec<u8>,
    /// What no fault may show. Every key of the headers belongs here.
    pub secrets: Secrets,
    /// Where the rate limits are kept that the response announces.
    pub announcement: LastAnnouncement,
}

/// A header to send.
#[derive(Clone)]
pub enum HttpHeader {
    Plain {
        name: String,
        value: String,
    },
    /// A key: never printed, and not kept by compression of headers.
    Secret {
        name: String,
        value: String,
    },
}

impl std::fmt::Debug for HttpHeader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Plain { name, value } => write!(f, "{name}: {value}"),
            Self::Secret { name, .. } => write!(f, "{name}: [key]"),
        }
    }
}

impl HttpPost {
    /// Its address. One with a user or a password in it is refused, because it would be printed, and so is plain http that
    /// leaves this machine.
    pub(super) fn address(&self) -> Result<Url, WireFault> {
        let refused =
            |why: &str| WireFault::new(WireFaultKind::BadRequest, format!("the model's base_url {why}"));
        let url = Url::parse(&self.url).map_err(|_| {
            refused(if self.url.is_ascii() {
                "is not a URL: write https://host/path"
            } else {
                "has characters that are not valid in a host name: write its DNS form, such as https://xn--bcher-kva.example"
            })
        })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refused("is neither http nor https: write https://host/path"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("has a password in it: name an environment variable as key_env"));
        }
        // The key and everything that agents say could be read on the way.
        if url.scheme() == "http" && !is_loopback(&url) {
            return Err(refused("is plain http to another machine: write https, or tunnel it to 127.0.0.1"));
        }
        Ok(url)
    }

    pub(super) fn header_map(&self) -> Result<HeaderMap, WireFault> {
        let mut map = HeaderMap::new();
        map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for header in &self.headers {
            let (HttpHeader::Plain { name, value } | HttpHeader::Secret { name, value }) = header;
            let parsed = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(value).ok());
            let Some((key, mut value)) = parsed else {
                let message = format!(
                    "the header `{}` has characters that are not valid in a header",
                    name.escape_debug()
                );
                return Err(WireFault::new(WireFaultKind::BadRequest, message));
            };
            value.set_sensitive(matches!(header, HttpHeader::Secret { .. }));
            map.insert(key, value);
        }
        Ok(map)
    }
}

/// Whether an address is on this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

/// The server of an address: scheme, host and port. The whole text if it is not an address.
pub(crate) fn origin(url: &str) -> String {
    Url::parse(url).map_or_else(|_| url.to_owned(), |url| url.origin().ascii_serialization())
}
