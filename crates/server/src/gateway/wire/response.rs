//! The response to a call, as it arrives: the bytes that go down, and at the end what the call used. A response that
//! cannot be read passes anyway; its call is settled at the full hold.

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use spinney_drivers::http::{AnswerBody, AnswerHead, BodyEnd, BodyKind, Reached, WireAttemptError};
use spinney_drivers::providers::{answered, missed};
use spinney_drivers::wire::bounds::ERROR_BODY_BYTES_MAX;
use spinney_drivers::wire::{
    ErrorResponse, FaultReader, OpaqueHash, ReadAs, ServedFrom, WireAnswer, WireFault, WireFaultKind,
    WireHeader,
};
use spinney_kernel::port::model::{AttemptError, ModelAnswer};

use super::bounds::WHOLE_RESPONSE_BYTES_MAX;
use super::usage_chunk::UsageChunkFilter;

/// Takes a response piece by piece.
#[derive(Debug)]
pub struct ResponseReader {
    reading: Reading,
    served_from: ServedFrom,
    /// Whether the usage of a stream is for us alone.
    hides_usage: bool,
    filter: Option<UsageChunkFilter>,
    has_begun: bool,
}

/// What to do with a piece of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The bytes that go to the program now. There may be none.
    pub bytes: Bytes,
    /// Whether the model says its first word in it. True at most once for a response.
    pub is_first_output: bool,
}

/// The outcome of a response.
#[derive(Debug)]
pub struct CallEnd {
    /// What was held back and goes to the program as well. There is some only if a stream ends in the middle of an event.
    pub rest: Bytes,
    /// The end of the call for the kernel: usage and stop reason. The texts in it are empty: they are in the bytes.
    pub result: Result<ModelAnswer, AttemptError>,
    /// Texts in it that only the provider can read.
    pub opaque: Vec<OpaqueHash>,
    /// What was received, if it is not an API response. The call costs nothing.
    pub other: Option<String>,
}

#[derive(Debug)]
enum Reading {
    Answer(Box<AnswerBody>),
    /// An error of the provider.
    Refused {
        status: u16,
        headers: HeaderMap,
        body: Vec<u8>,
        faults: FaultReader,
    },
    /// It cannot be read, for this reason.
    Unread(WireFault),
}

impl ResponseReader {
    pub(super) fn new(read_as: ReadAs, hides_usage: bool, status: StatusCode, headers: &HeaderMap) -> Self {
        let encoding = headers.get(header::CONTENT_ENCODING);
        let is_plain = encoding.is_none_or(|encoding| {
            encoding.to_str().is_ok_and(|word| word.trim().eq_ignore_ascii_case("identity"))
        });
        let served_from = read_as.served_from;
        let reading = if !status.is_success() {
            let (headers, faults) = (headers.clone(), FaultReader::new(read_as.secrets));
            Reading::Refused { status: status.as_u16(), headers, body: Vec::new(), faults }
        } else if !is_plain {
            let message = "the provider compressed its answer although it was asked not to";
            Reading::Unread(WireFault::new(WireFaultKind::Malformed, message))
        } else {
            let head = AnswerHead::new(status.as_u16(), headers);
            Reading::Answer(Box::new(AnswerBody::new(read_as, head, WHOLE_RESPONSE_BYTES_MAX)))
        };
        Self { reading, served_from, hides_usage, filter: None, has_begun: false }
    }

    /// Takes a piece of the body, and says what goes down.
    pub fn feed(&mut self, bytes: Bytes) -> Forward {
        let was_known = self.reading.kind().is_some();
        let has_output = self.reading.feed(&bytes);
        if !was_known && self.reading.kind() == Some(BodyKind::Stream) && self.hides_usage {
            self.filter = Some(UsageChunkFilter::default());
        }
        let is_first_output = has_output && !std::mem::replace(&mut self.has_begun, true);
        let bytes = match &mut self.filter {
            None => bytes,
            Some(filter) => {
                let mut pass = Vec::with_capacity(bytes.len());
                filter.feed(&bytes, &mut pass);
                Bytes::from(pass)
            }
        };
        Forward { bytes, is_first_output }
    }

    /// The end of the response, or of what there is of it.
    #[must_use]
    pub fn finish(self, end: BodyEnd) -> CallEnd {
        let rest = Bytes::from(self.filter.map(UsageChunkFilter::finish).unwrap_or_default());
        match self.reading.finish(end) {
            Ok(mut answer) => {
                let opaque = std::mem::take(&mut answer.opaque);
                CallEnd { rest, result: answered(answer), opaque, other: None }
            }
            Err(mut failed) => {
                let opaque = std::mem::take(&mut failed.answer.opaque);
                // Every other refusal has a status of failure.
                let is_success = failed.fault.status.is_some_and(|status| (200..300).contains(&status));
                let is_other = failed.reached == Reached::Refused && is_success;
                let other = is_other.then(|| failed.fault.message.clone());
                CallEnd { rest, result: Err(missed(*failed, self.served_from)), opaque, other }
            }
        }
    }
}

impl Reading {
    fn kind(&self) -> Option<BodyKind> {
        match self {
            Self::Answer(body) => body.kind(),
            Self::Refused { .. } | Self::Unread(_) => None,
        }
    }

    /// Whether the model says something in these bytes.
    fn feed(&mut self, bytes: &Bytes) -> bool {
        match self {
            Self::Unread(_) => false,
            Self::Answer(body) => {
                let mut has_output = false;
                body.feed(bytes, &mut |_| has_output = true);
                has_output || (body.kind() == Some(BodyKind::Whole) && !bytes.is_empty())
            }
            Self::Refused { body, .. } => {
                let room = ERROR_BODY_BYTES_MAX.saturating_sub(body.len());
                body.extend_from_slice(&bytes[..bytes.len().min(room)]);
                false
            }
        }
    }

    fn finish(self, end: BodyEnd) -> Result<WireAnswer, Box<WireAttemptError>> {
        let (fault, reached) = match self {
            Self::Answer(body) => return body.finish(end, &mut |_| {}),
            Self::Refused { status, headers, body, faults } => {
                let named =
                    |name: &str| Some((name.to_owned(), headers.get(name)?.to_str().ok()?.to_owned()));
                let known: Vec<(String, String)> =
                    RETRY_HEADERS.iter().filter_map(|name| named(name)).collect();
                let headers: Vec<WireHeader<'_>> =
                    known.iter().map(|(name, value)| WireHeader { name, value }).collect();
                let fault = faults.response(ErrorResponse { status, headers: &headers, body: &body });
                (fault, Reached::Refused)
            }
            Self::Unread(fault) => (fault, Reached::Sent),
        };
        Err(Box::new(WireAttemptError { fault, reached, answer: WireAnswer::default() }))
    }
}

/// Headers that say when to try again.
const RETRY_HEADERS: [&str; 2] = ["retry-after-ms", "retry-after"];
