//! One attempt at a model: the request is written, sent, and its answer read as it comes.

use std::fmt;
use std::time::Duration;

use spinney_kernel::primitives::{BlobHash, limit};
use tokio::time::timeout;

use super::announcement::LastAnnouncement;
use super::answer_body::{AnswerBody, AnswerHead, BodyEnd};
use super::body::HttpBody;
use super::client::HttpClient;
use super::post::{HttpHeader, HttpPost};
use crate::wire::bounds::EVENT_BYTES_MAX;
use crate::wire::{
    CacheTime, Endpoint, Keep, ReadAs, Secrets, ServedFrom, StreamEnd, UndividedWrites, WireAnswer,
    WireDelta, WireFault, WireFaultKind, WireFormat, WireRequest, write,
};

/// One attempt.
#[derive(Clone, Debug)]
pub struct WireCall {
    pub format: WireFormat,
    pub endpoint: Endpoint,
    pub request: WireRequest,
    /// The key; one's own server may need none.
    pub key: Option<ModelKey>,
    /// Headers beyond those of the format.
    pub extra: Vec<HttpHeader>,
    pub keep: Keep,
    pub served_from: ServedFrom,
    /// Where the rate limits are kept that the provider announces.
    pub announcement: LastAnnouncement,
}

/// An attempt that came to nothing, and what had come before.
#[derive(Debug)]
pub struct WireAttemptError {
    pub fault: WireFault,
    pub reached: Reached,
    /// As far as it came: what it used may be known in part.
    pub answer: WireAnswer,
}

/// How far an attempt came. What it can have cost follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// Nothing of the request left this machine.
    NotSent,
    /// The provider answered with an error in place of an answer.
    Refused,
    /// The request went out, and how it ended at the provider is unknown.
    Sent,
}

/// The key of a provider. It is never printed.
#[derive(Clone)]
pub struct ModelKey(String);

impl ModelKey {
    #[must_use]
    pub const fn new(key: String) -> Self {
        Self(key)
    }

    /// Tells keys apart in memory. Short, so it says nothing else about the key; it is never printed.
    pub(crate) fn fingerprint(&self) -> String {
        BlobHash::digest(self.0.as_bytes()).as_str().chars().take(16).collect()
    }
}

impl fmt::Debug for ModelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ModelKey")
    }
}

/// Takes pieces of an answer, from whatever thread reads it.
pub type SendDelta<'f> = dyn FnMut(WireDelta<'_>) + Send + 'f;

/// How long is waited for more after the last event: usage can follow it, and a connection that ends can be used again.
const AFTER_END: Duration = Duration::from_secs(5);

/// The longest that any attempt may take, whatever its limits say: a hold covers the rates that are active within it.
const CALL_MAX: Duration = Duration::from_millis(limit::MODEL_CALL_MS_MAX);

impl HttpClient {
    /// Makes one attempt.
    ///
    /// # Errors
    /// If there is no whole answer.
    pub async fn ask(
        &self,
        call: WireCall,
        on_delta: &mut SendDelta<'_>,
    ) -> Result<WireAnswer, Box<WireAttemptError>> {
        let total = self.limits().total.min(CALL_MAX);
        let Ok(answered) = timeout(total, self.attempt(call, on_delta)).await else {
            let message = format!("the answer did not end within {} s", total.as_secs());
            return Err(missed(Reached::Sent, WireFault::new(WireFaultKind::Timeout, message)));
        };
        answered
    }

    async fn attempt(
        &self,
        call: WireCall,
        on_delta: &mut SendDelta<'_>,
    ) -> Result<WireAnswer, Box<WireAttemptError>> {
        let secrets = call.secrets();
        let post = call.post(secrets.clone()).map_err(|fault| missed(Reached::NotSent, fault))?;
        let read_as = ReadAs {
            format: call.format,
            model: call.request.model,
            keep: call.keep,
            secrets,
            served_from: call.served_from,
            undivided_writes: undivided_writes(call.request.params.cache),
        };
        let mut body = self.post(post).await.map_err(|fault| missed(without_a_body(&fault), fault))?;
        let head = AnswerHead::new(body.status().as_u16(), body.headers());
        let mut answer = AnswerBody::new(read_as, head, EVENT_BYTES_MAX);
        let end = read(&mut body, &mut answer, on_delta).await;
        answer.finish(end, on_delta)
    }
}

impl Reached {
    /// How far an attempt came whose stream failed.
    #[must_use]
    pub const fn after(end: StreamEnd) -> Self {
        match end {
            StreamEnd::Refused => Self::Refused,
            StreamEnd::Whole | StreamEnd::Cut => Self::Sent,
        }
    }
}

/// The lifetime of cache writes that the server does not divide, by the markers of the request.
const fn undivided_writes(marks: Option<CacheTime>) -> UndividedWrites {
    match marks {
        Some(CacheTime::FiveMinutes) => UndividedWrites::Minutes,
        // The request asked for no cache writes, so the lifetime is unknown if the server reports some.
        Some(CacheTime::Hour | CacheTime::Off) | None => UndividedWrites::Hour,
    }
}

fn missed(reached: Reached, fault: WireFault) -> Box<WireAttemptError> {
    Box::new(WireAttemptError { fault, reached, answer: WireAnswer::default() })
}

/// How far a post came that brought no body.
const fn without_a_body(fault: &WireFault) -> Reached {
    match (fault.status, fault.kind) {
        (Some(_), _) => Reached::Refused,
        // Without a status these are ours: an address or a header that cannot be, and no connection.
        (None, WireFaultKind::BadRequest | WireFaultKind::Unreachable | WireFaultKind::Insecure) => {
            Reached::NotSent
        }
        (None, _) => Reached::Sent,
    }
}

/// Reads a body until it is known what it comes to. After the last event of a stream, reads for a short time what follows.
async fn read(body: &mut HttpBody, answer: &mut AnswerBody, on_delta: &mut SendDelta<'_>) -> BodyEnd {
    while !answer.is_decided() {
        match body.next().await {
            Ok(Some(chunk)) => answer.feed(&chunk, on_delta),
            Ok(None) => return BodyEnd::Clean,
            Err(fault) => return BodyEnd::Broken(fault),
        }
    }
    let rest = async {
        // A connection that breaks now takes nothing away.
        while answer.may_count_more()
            && let Ok(Some(chunk)) = body.next().await
        {
            answer.feed(&chunk, on_delta);
        }
    };
    // A server may keep the connection open.
    let _ = timeout(AFTER_END, rest).await;
    BodyEnd::Clean
}

impl WireCall {
    /// Whether it can be sent: the address, the headers and the parameters, before anything depends on it.
    ///
    /// # Errors
    /// Names what is wrong with it.
    pub fn check(&self) -> Result<(), WireFault> {
        let post = self.post(self.secrets())?;
        post.address()?;
        post.header_map().map(|_| ())
    }

    fn secrets(&self) -> Secrets {
        let extra = self.extra.iter().filter_map(|header| match header {
            HttpHeader::Secret { value, .. } => Some(value.clone()),
            HttpHeader::Plain { .. } => None,
        });
        Secrets::new(self.key.iter().map(|key| key.0.clone()).chain(extra))
    }

    fn post(&self, secrets: Secrets) -> Result<HttpPost, WireFault> {
        let body = write(self.format, &self.request)
            .map_err(|error| WireFault::new(WireFaultKind::BadRequest, error.to_string()))?;
        let version = self.endpoint.version.map(|version| HttpHeader::Plain {
            name: version.name.to_owned(),
            value: version.value.to_owned(),
        });
        let key = self.key.as_ref().map(|key| HttpHeader::Secret {
            name: self.endpoint.key_header.to_owned(),
            value: format!("{}{}", self.endpoint.key_prefix, key.0),
        });
        let headers = version.into_iter().chain(key).chain(self.extra.iter().cloned()).collect();
        let (url, announcement) = (self.endpoint.url.clone(), self.announcement.clone());
        Ok(HttpPost { url, headers, body, secrets, announcement })
    }
}
