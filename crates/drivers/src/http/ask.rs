//! One attempt at a model: the request is written, sent, and its answer read as it comes.

use std::fmt;
use std::time::Duration;

use spinney_kernel::words::{BlobHash, limit};
use tokio::time::timeout;

use super::announcement::LastAnnouncement;
use super::body::HttpBody;
use super::client::HttpClient;
use super::post::{HttpHeader, HttpPost};
use crate::wire::bounds::EVENT_BYTES_MAX;
use crate::wire::{
    Endpoint, Keep, ReadAs, Secrets, StreamEnd, StreamReader, WireAnswer, WireDelta, WireFault,
    WireFaultKind, WireFormat, WireRequest, read_whole, write,
};

/// One attempt.
#[derive(Clone, Debug)]
pub struct WireCall {
    pub format: WireFormat,
    pub endpoint: Endpoint,
    pub request: WireRequest,
    /// The key; a server of one's own may need none.
    pub key: Option<ModelKey>,
    /// Headers beyond those of the format.
    pub extra: Vec<HttpHeader>,
    pub keep: Keep,
    /// Where the rate limits are kept that the provider announces.
    pub announcement: LastAnnouncement,
}

/// An attempt that came to nothing, and what had come before.
#[derive(Debug)]
pub struct WireMissed {
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

    /// Tells keys apart in memory. Short, so that it says nothing else about the key; it is never printed.
    pub(crate) fn fingerprint(&self) -> String {
        BlobHash::of(self.0.as_bytes()).as_str().chars().take(16).collect()
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
    ) -> Result<WireAnswer, Box<WireMissed>> {
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
    ) -> Result<WireAnswer, Box<WireMissed>> {
        let secrets = call.secrets();
        let post = call.post(secrets.clone()).map_err(|fault| missed(Reached::NotSent, fault))?;
        let read_as = ReadAs { format: call.format, model: call.request.model, keep: call.keep, secrets };
        let body = self.post(post).await.map_err(|fault| missed(without_a_body(&fault), fault))?;
        if body.is_json() {
            let whole = whole(body).await.map_err(|fault| missed(Reached::Sent, fault))?;
            return read_whole(&read_as, &whole, on_delta).map_err(|fault| missed(Reached::Sent, fault));
        }
        let mut reader = StreamReader::new(read_as);
        let read = stream(body, &mut reader, on_delta).await;
        let answer = reader.finish();
        match read {
            Err(fault) => Err(Box::new(WireMissed { fault, reached: Reached::Sent, answer })),
            Ok(()) if answer.end == StreamEnd::Cut => {
                let fault = WireFault::new(WireFaultKind::Cut, "the answer ended before its last event");
                Err(Box::new(WireMissed { fault, reached: Reached::Sent, answer }))
            }
            Ok(()) => Ok(answer),
        }
    }
}

fn missed(reached: Reached, fault: WireFault) -> Box<WireMissed> {
    Box::new(WireMissed { fault, reached, answer: WireAnswer::default() })
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

/// Reads a stream to its last event, and what follows it for a short time.
async fn stream(
    mut body: HttpBody,
    reader: &mut StreamReader,
    on_delta: &mut SendDelta<'_>,
) -> Result<(), WireFault> {
    while !reader.is_whole() {
        match body.next().await? {
            Some(chunk) => reader.feed(&chunk, on_delta)?,
            None => return Ok(()),
        }
    }
    let rest = async {
        // A connection that breaks now takes nothing away.
        while let Ok(Some(chunk)) = body.next().await {
            reader.feed(&chunk, on_delta)?;
        }
        Ok(())
    };
    timeout(AFTER_END, rest).await.unwrap_or(Ok(()))
}

/// Reads a body that is no stream.
async fn whole(mut body: HttpBody) -> Result<String, WireFault> {
    let mut whole = Vec::new();
    while let Some(chunk) = body.next().await? {
        if chunk.len() > EVENT_BYTES_MAX - whole.len() {
            let message = format!("the answer has more than {EVENT_BYTES_MAX} bytes");
            return Err(WireFault::new(WireFaultKind::TooLarge, message));
        }
        whole.extend_from_slice(&chunk);
    }
    String::from_utf8(whole).map_err(|_| WireFault::new(WireFaultKind::Malformed, "the answer is not UTF-8"))
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
