//! A request on its way out. Keys stand in it as headers that are never printed.

use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

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
    /// Its address. One with a user or a password in it is refused: it would be printed.
    pub(super) fn address(&self) -> Result<Url, WireFault> {
        let refused =
            |why: &str| WireFault::new(WireFaultKind::BadRequest, format!("the model's base_url {why}"));
        let url = Url::parse(&self.url).map_err(|_| refused("is no address: write https://host/path"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refused("is neither http nor https"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("has a password in it: name an environment variable as key_env"));
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
                let message =
                    format!("the header `{}` has letters that no header can have", name.escape_debug());
                return Err(WireFault::new(WireFaultKind::BadRequest, message));
            };
            value.set_sensitive(matches!(header, HttpHeader::Secret { .. }));
            map.insert(key, value);
        }
        Ok(map)
    }
}
