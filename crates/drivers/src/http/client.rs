//! The client: connections, TLS and proxies. It follows no redirect, because a key would go along.

use reqwest::redirect::Policy;
use tokio::time::timeout;

use super::announcement::wire_headers;
use super::body::HttpBody;
use super::limits::HttpLimits;
use super::post::HttpPost;
use crate::wire::bounds::ERROR_BODY_BYTES_MAX;
use crate::wire::{ErrorResponse, FaultReader, WireFault, WireFaultKind};

/// What we call ourselves. Some gateways refuse clients that do not.
const USER_AGENT: &str = concat!("spinney/", env!("CARGO_PKG_VERSION"));

/// Posts requests. Cheap to clone; clones share connections.
#[derive(Clone, Debug)]
pub struct HttpClient {
    client: reqwest::Client,
    limits: HttpLimits,
}

/// Whether requests pass through the proxies that the system names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxies {
    System,
    None,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[error("the HTTP client cannot be set up: {0}")]
pub struct HttpSetupError(#[source] reqwest::Error);

impl HttpClient {
    /// A client with these bounds.
    ///
    /// # Errors
    /// If TLS or the proxies cannot be set up.
    pub fn new(limits: HttpLimits, proxies: Proxies) -> Result<Self, HttpSetupError> {
        // Building a client panics without a provider. If one is installed already, that one is used.
        let _already = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder().redirect(Policy::none()).connect_timeout(limits.connect);
        let builder = match proxies {
            Proxies::System => builder,
            // Servers on this machine: a connection costs nothing, and llama.cpp closes each one after a stream although
            // it offers to keep it. A request that meets the close is lost, and its whole hold with it.
            Proxies::None => builder.no_proxy().pool_max_idle_per_host(0),
        };
        let client = builder.referer(false).user_agent(USER_AGENT).build().map_err(HttpSetupError)?;
        Ok(Self { client, limits })
    }

    pub(super) const fn limits(&self) -> &HttpLimits {
        &self.limits
    }

    /// Posts a body and gives the body of the answer, as it comes. Dropping the future or the body ends the call.
    ///
    /// # Errors
    /// If there is no answer in time, or one that is not a success: its error is read and named.
    pub async fn post(&self, post: HttpPost) -> Result<HttpBody, WireFault> {
        let (url, headers) = (post.address()?, post.header_map()?);
        let faults = FaultReader::new(post.secrets);
        let sent = self.client.post(url).headers(headers).body(post.body).send();
        let response = match timeout(self.limits.head, sent).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(failed(&faults, error, "the request failed")),
            Err(_) => {
                let seconds = self.limits.head.as_secs();
                let message = format!("the provider did not answer within {seconds} s");
                return Err(WireFault::new(WireFaultKind::Timeout, message));
            }
        };
        post.announcement.hear(&wire_headers(response.headers()));
        let body = HttpBody::new(response, self.limits, faults.clone());
        if body.status().is_success() { Ok(body) } else { Err(refused(body, &faults).await) }
    }
}

impl HttpClient {
    /// Finds out whether a server answers, by asking for its root, without a key. Any response will do.
    ///
    /// # Errors
    /// If there is no connection, or no response in time.
    pub async fn reach(&self, server: &str) -> Result<(), WireFault> {
        let bound = self.limits.total.min(self.limits.head);
        let faults = FaultReader::default();
        match timeout(bound, self.client.head(server).send()).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(failed(&faults, error, "the request failed")),
            Err(_) => {
                let message = format!("the server did not answer within {:?}", bound);
                Err(WireFault::new(WireFaultKind::Timeout, message))
            }
        }
    }
}

/// What an error response says. An error whose body does not arrive still has its status.
async fn refused(mut body: HttpBody, faults: &FaultReader) -> WireFault {
    let (status, headers) = (body.status().as_u16(), body.headers().clone());
    let mut read = Vec::new();
    while read.len() < ERROR_BODY_BYTES_MAX {
        match body.next().await {
            Ok(Some(chunk)) => {
                let room = ERROR_BODY_BYTES_MAX - read.len();
                read.extend_from_slice(&chunk[..chunk.len().min(room)]);
            }
            Ok(None) | Err(_) => break,
        }
    }
    faults.response(ErrorResponse { status, headers: &wire_headers(&headers), body: &read })
}

/// A failure of the connection. Addresses are left out of it: they can contain secrets.
pub(super) fn failed(faults: &FaultReader, error: reqwest::Error, what: &str) -> WireFault {
    let kind = match () {
        () if error.is_connect() && is_insecure(&error) => WireFaultKind::Insecure,
        () if error.is_connect() => WireFaultKind::Unreachable,
        () if error.is_timeout() => WireFaultKind::Timeout,
        () if error.is_body() || error.is_decode() => WireFaultKind::Cut,
        () if error.is_builder() => WireFaultKind::BadRequest,
        () => WireFaultKind::Server,
    };
    let error = error.without_url();
    // The outermost text is the library's own; the innermost says what happened.
    let mut cause: &dyn std::error::Error = &error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    faults.local(kind, &format!("{what}: {cause}"))
}

/// Whether TLS failed in a way that another attempt will not mend.
fn is_insecure(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        // An IO error shows what it carries, and not that as its source.
        let carried = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        let carried = carried.map(|inner| inner as &(dyn std::error::Error + 'static));
        let tls = carried.unwrap_or(error).downcast_ref::<rustls::Error>();
        if matches!(tls, Some(rustls::Error::InvalidCertificate(_) | rustls::Error::InvalidMessage(_))) {
            return true;
        }
        cause = carried.or_else(|| error.source());
    }
    false
}
