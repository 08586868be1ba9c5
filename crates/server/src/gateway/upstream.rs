//! The providers: one request up, one response down, with the user's own key. It follows no redirect, because the key
//! would go along, and every wait has a bound.

use std::borrow::Cow;
use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use reqwest::redirect::Policy;
use spinney::clock::instant;
use spinney_drivers::http::HttpLimits;
use spinney_drivers::wire::Secrets;
use tokio::task::yield_now;
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use super::wire::{CallUpstream, GatewayError, GatewayErrorKind, ProviderApi, headers_down};

/// Most bytes of pieces that are forwarded together.
const PIECES_BYTES_MAX: usize = 16 * 1024;

/// Where requests of one format go, and with which key.
#[derive(Clone)]
pub struct UpstreamServer {
    /// The user's own base URL; the provider's if absent.
    pub base_url: Option<String>,
    pub key: Option<UpstreamKey>,
    /// How the user sets the key, for an error.
    pub key_variable: &'static str,
    /// Who serves it; by default, its address decides. Tests use this to put a local server in the provider's place.
    pub kind: Option<CallUpstream>,
}

/// The user's key, as the provider wants it. It is never printed.
#[derive(Clone)]
pub enum UpstreamKey {
    /// In the header `x-api-key`.
    ApiKey(String),
    /// In the header `authorization`.
    Bearer(String),
    /// In the header `x-goog-api-key`.
    Google(String),
}

impl UpstreamServer {
    pub(super) fn key_text(&self) -> Option<&str> {
        self.key.as_ref().map(UpstreamKey::text)
    }
}

impl UpstreamKey {
    fn text(&self) -> &str {
        match self {
            Self::ApiKey(text) | Self::Bearer(text) | Self::Google(text) => text,
        }
    }
}

impl fmt::Debug for UpstreamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UpstreamKey(hidden)")
    }
}

impl fmt::Debug for UpstreamServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamServer").field("has_key", &self.key.is_some()).finish_non_exhaustive()
    }
}

/// Where requests go, by the API that they speak.
#[derive(Clone, Debug)]
pub struct UpstreamServers {
    pub anthropic: UpstreamServer,
    pub open_ai: UpstreamServer,
    pub gemini: UpstreamServer,
}

impl UpstreamServers {
    /// The server of an API.
    #[must_use]
    pub const fn of(&self, api: ProviderApi) -> &UpstreamServer {
        match api {
            ProviderApi::Anthropic => &self.anthropic,
            ProviderApi::OpenAi => &self.open_ai,
            ProviderApi::Gemini => &self.gemini,
        }
    }

    /// The user's keys.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        ProviderApi::ALL.into_iter().filter_map(|api| self.of(api).key_text())
    }
}

/// The providers of a run.
pub(super) struct Upstream {
    direct: reqwest::Client,
    proxied: reqwest::Client,
    servers: UpstreamServers,
    /// The user's keys.
    secrets: Secrets,
    limits: HttpLimits,
}

/// The response of a provider, as it arrives.
#[derive(Debug)]
pub(super) struct UpstreamResponse {
    response: reqwest::Response,
    idle: Duration,
    end: Instant,
    last_piece: Instant,
    /// Reset when it fires, not with each piece: timers are shared by all calls.
    timer: Pin<Box<Sleep>>,
    /// What came after the pieces that were returned: the end of the body, or a fault.
    next: Option<Result<Option<Bytes>, UpstreamFault>>,
    /// What was read before anything was passed on.
    ahead: Bytes,
}

/// Why a response did not arrive, or only in part.
#[derive(Debug)]
pub(super) struct UpstreamFault {
    pub(super) message: String,
    /// Whether the provider may have taken the request.
    pub(super) may_be_billed: bool,
}

impl Upstream {
    pub(super) fn new(servers: UpstreamServers, limits: HttpLimits) -> Result<Self, reqwest::Error> {
        // Building a client panics without a provider. If one is installed already, that one is used.
        let _already = rustls::crypto::ring::default_provider().install_default();
        let builder = || {
            let builder = reqwest::Client::builder().redirect(Policy::none()).referer(false);
            builder.connect_timeout(limits.connect)
        };
        // Servers on this machine may close a connection that they offered to keep.
        let direct = builder().no_proxy().pool_max_idle_per_host(0).build()?;
        let secrets = Secrets::new(servers.keys().map(str::to_owned));
        Ok(Self { direct, proxied: builder().build()?, servers, secrets, limits })
    }

    pub(super) const fn server(&self, api: ProviderApi) -> &UpstreamServer {
        self.servers.of(api)
    }

    pub(super) fn base_url(&self, api: ProviderApi) -> &str {
        self.server(api).base_url.as_deref().unwrap_or_else(|| api.base_url())
    }

    /// The server that answers.
    pub(super) fn kind(&self, api: ProviderApi) -> CallUpstream {
        if let Some(kind) = self.server(api).kind {
            return kind;
        }
        let own = self.server(api).base_url.as_deref();
        let is_provider = own.is_none_or(|own| api.is_own_address(own));
        if is_provider { CallUpstream::Provider } else { CallUpstream::Elsewhere }
    }

    /// What must not appear in a message, and in what a provider repeats.
    pub(super) const fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// The headers of a response that go to the program: none that has the user's key.
    pub(super) fn headers_down(&self, from: &HeaderMap) -> HeaderMap {
        let mut down = headers_down(from);
        let has_key = |value: &HeaderValue| matches!(self.secrets.hide(value.as_bytes()), Cow::Owned(_));
        if down.values().any(has_key) {
            let clean = down.iter().filter(|(_, value)| !has_key(value));
            let clean: Vec<_> = clean.map(|(name, value)| (name.clone(), value.clone())).collect();
            down.clear();
            for (name, value) in clean {
                down.append(name, value);
            }
        }
        down
    }

    /// Refuses a call that the provider would refuse because there is no key.
    pub(super) fn check_key(&self, api: ProviderApi) -> Result<(), GatewayError> {
        let server = self.server(api);
        if server.key.is_some() || self.kind(api) == CallUpstream::Elsewhere {
            return Ok(());
        }
        let message = format!(
            "spinney: there is no key for {}: set {} in your environment and start the run again",
            api.base_url(),
            server.key_variable
        );
        Err(GatewayError::new(GatewayErrorKind::Refused, message))
    }

    /// Sends a request and waits for the head of its response.
    pub(super) async fn send(
        &self,
        api: ProviderApi,
        method: Method,
        url: &str,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<UpstreamResponse, UpstreamFault> {
        let unsent = |message: String| UpstreamFault { message, may_be_billed: false };
        let server = self.server(api);
        if let Some(key) = &server.key {
            let (name, value) = match key {
                UpstreamKey::ApiKey(text) => (HeaderName::from_static("x-api-key"), text.clone()),
                UpstreamKey::Google(text) => (HeaderName::from_static("x-goog-api-key"), text.clone()),
                UpstreamKey::Bearer(text) => (header::AUTHORIZATION, format!("Bearer {text}")),
            };
            let value = HeaderValue::from_str(&value);
            let mut value =
                value.map_err(|_| unsent(format!("{} is not a valid key", server.key_variable)))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let client = if is_local(url) { &self.direct } else { &self.proxied };
        let end = instant() + self.limits.total;
        let sent = client.request(method, url).headers(headers).body(body).send();
        match timeout(self.limits.head, sent).await {
            Ok(Ok(response)) => Ok(UpstreamResponse::new(response, self.limits.idle, end)),
            Ok(Err(error)) => {
                let may_be_billed = !error.is_connect() && !error.is_builder();
                Err(UpstreamFault { message: reason(error), may_be_billed })
            }
            Err(_) => {
                let message = format!("no response within {} s", self.limits.head.as_secs());
                Err(UpstreamFault { message, may_be_billed: true })
            }
        }
    }
}

impl UpstreamResponse {
    fn new(response: reqwest::Response, idle: Duration, end: Instant) -> Self {
        let last_piece = instant();
        let timer = Box::pin(sleep_until(end.min(last_piece + idle)));
        Self { response, idle, end, last_piece, timer, next: None, ahead: Bytes::new() }
    }

    pub(super) fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub(super) fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// The next piece of the body, with what arrives while other tasks run: a program gets all of it in one write.
    /// `None` at the end of the body.
    pub(super) async fn pieces(&mut self) -> Result<Option<Bytes>, UpstreamFault> {
        if !self.ahead.is_empty() {
            return Ok(Some(std::mem::take(&mut self.ahead)));
        }
        if let Some(next) = self.next.take() {
            return next;
        }
        let Some(first) = self.piece().await? else { return Ok(None) };
        let mut more = BytesMut::new();
        while first.len().max(more.len()) < PIECES_BYTES_MAX {
            // On an idle machine this returns at once, so a single word is forwarded immediately.
            yield_now().await;
            match self.piece_now().await {
                Some(Ok(Some(piece))) => {
                    if more.is_empty() {
                        more.extend_from_slice(&first);
                    }
                    more.extend_from_slice(&piece);
                }
                None => break,
                end => {
                    self.next = end;
                    break;
                }
            }
        }
        Ok(Some(if more.is_empty() { first } else { more.freeze() }))
    }

    /// The beginning of the body, which [`pieces`](Self::pieces) returns again.
    pub(super) async fn read_ahead(&mut self, bytes_max: usize) -> Bytes {
        let mut ahead = BytesMut::new();
        while ahead.len() < bytes_max && self.next.is_none() {
            match self.piece().await {
                Ok(Some(piece)) => ahead.extend_from_slice(&piece),
                end => self.next = Some(end),
            }
        }
        self.ahead = ahead.freeze();
        self.ahead.clone()
    }

    /// A piece that has already arrived.
    async fn piece_now(&mut self) -> Option<Result<Option<Bytes>, UpstreamFault>> {
        let mut piece = pin!(self.piece());
        poll_fn(|context| match piece.as_mut().poll(context) {
            Poll::Ready(piece) => Poll::Ready(Some(piece)),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }

    /// The next piece of the body; `None` at its end.
    pub(super) async fn piece(&mut self) -> Result<Option<Bytes>, UpstreamFault> {
        loop {
            let Self { response, timer, .. } = self;
            tokio::select! {
                biased;
                piece = response.chunk() => {
                    self.last_piece = instant();
                    return piece.map_err(|error| UpstreamFault { message: reason(error), may_be_billed: true });
                }
                () = timer => {}
            }
            let until = self.end.min(self.last_piece + self.idle);
            if instant() >= until {
                let message = "the provider stopped sending in the middle of its response".to_owned();
                return Err(UpstreamFault { message, may_be_billed: true });
            }
            self.timer.as_mut().reset(until);
        }
    }
}

/// Whether an address is on this machine, where no proxy is used.
fn is_local(url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(url) else { return false };
    match url.host_str() {
        Some(host) => host == "localhost" || host == "[::1]" || host.starts_with("127."),
        None => false,
    }
}

/// What happened, without the address.
fn reason(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
