//! The response to a call, as it arrives: the bytes that go down, and at the end what the call used. A response that
//! cannot be read passes all the same; its call is settled at the full hold.

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use spinney_drivers::http::{Reached, WireMissed};
use spinney_drivers::providers::{answered, missed};
use spinney_drivers::wire::bounds::ERROR_BODY_BYTES_MAX;
use spinney_drivers::wire::{
    ErrorResponse, FaultReader, Keep, ReadAs, Secrets, StreamEnd, StreamReader, WireAnswer, WireFault,
    WireFaultKind, WireHeader, read_whole,
};
use spinney_kernel::port::model::{Missed, ModelAnswer};

use super::bounds::WHOLE_RESPONSE_BYTES_MAX;
use super::route::CallFormat;
use super::usage_chunk::UsageChunkFilter;

/// Takes a response piece by piece.
#[derive(Debug)]
pub struct ResponseReader {
    reading: Reading,
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

/// What a response came to.
#[derive(Debug)]
pub struct CallEnd {
    /// What was held back and goes to the program as well. There is some only if a stream ends in the middle of an event.
    pub rest: Bytes,
    /// The end of the call for the kernel: usage and stop reason. The texts in it are empty: they are in the bytes.
    pub result: Result<ModelAnswer, Missed>,
}

#[derive(Debug)]
enum Reading {
    Stream {
        reader: Box<StreamReader>,
        fault: Option<WireFault>,
    },
    Whole {
        read_as: ReadAs,
        body: Vec<u8>,
    },
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
    pub(super) fn new(
        format: CallFormat,
        model: &str,
        hides_usage: bool,
        status: StatusCode,
        headers: &HeaderMap,
        secrets: Secrets,
    ) -> Self {
        let is = |name, start: &str| {
            let value = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
            value.trim_start().to_ascii_lowercase().starts_with(start)
        };
        let is_plain =
            !headers.contains_key(header::CONTENT_ENCODING) || is(header::CONTENT_ENCODING, "identity");
        let is_stream = is(header::CONTENT_TYPE, "text/event-stream");
        let read_as = ReadAs {
            format: format.wire(),
            model: model.to_owned(),
            keep: Keep::Facts,
            secrets: secrets.clone(),
        };
        let reading = if !status.is_success() {
            let (headers, faults) = (headers.clone(), FaultReader::new(secrets));
            Reading::Refused { status: status.as_u16(), headers, body: Vec::new(), faults }
        } else if !is_plain {
            let message = "the provider compressed its answer although it was asked not to";
            Reading::Unread(WireFault::new(WireFaultKind::Malformed, message))
        } else if is_stream {
            Reading::Stream { reader: Box::new(StreamReader::new(read_as)), fault: None }
        } else {
            Reading::Whole { read_as, body: Vec::new() }
        };
        let is_filtered = hides_usage && matches!(reading, Reading::Stream { .. });
        Self { reading, filter: is_filtered.then(UsageChunkFilter::default), has_begun: false }
    }

    /// Takes a piece of the body, and says what goes down.
    pub fn feed(&mut self, bytes: Bytes) -> Forward {
        let has_output = self.reading.feed(&bytes);
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
    pub fn finish(self) -> CallEnd {
        let rest = self.filter.map(UsageChunkFilter::finish).unwrap_or_default();
        CallEnd { rest: Bytes::from(rest), result: self.reading.finish() }
    }
}

impl Reading {
    /// Whether the model says something in these bytes.
    fn feed(&mut self, bytes: &Bytes) -> bool {
        match self {
            Self::Stream { fault: Some(_), .. } | Self::Unread(_) => false,
            Self::Stream { reader, fault } => {
                let mut has_output = false;
                *fault = reader.feed(bytes, &mut |_| has_output = true).err();
                has_output
            }
            Self::Whole { body, .. } => {
                if bytes.len() > WHOLE_RESPONSE_BYTES_MAX.saturating_sub(body.len()) {
                    let message = format!("the answer has more than {WHOLE_RESPONSE_BYTES_MAX} bytes");
                    *self = Self::Unread(WireFault::new(WireFaultKind::TooLarge, message));
                } else {
                    body.extend_from_slice(bytes);
                }
                !bytes.is_empty()
            }
            Self::Refused { body, .. } => {
                let room = ERROR_BODY_BYTES_MAX.saturating_sub(body.len());
                body.extend_from_slice(&bytes[..bytes.len().min(room)]);
                false
            }
        }
    }

    fn finish(self) -> Result<ModelAnswer, Missed> {
        let (fault, reached, answer) = match self {
            Self::Stream { reader, fault } => {
                let answer = reader.finish();
                match (fault, answer.end) {
                    (None, StreamEnd::Whole) => return answered(answer),
                    (None, StreamEnd::Cut) => {
                        let message = "the answer ended before its last event";
                        (WireFault::new(WireFaultKind::Cut, message), Reached::Sent, answer)
                    }
                    (Some(fault), _) => (fault, Reached::Sent, answer),
                }
            }
            Self::Whole { read_as, body } => match whole(&read_as, &body) {
                Ok(answer) => return answered(answer),
                Err(fault) => (fault, Reached::Sent, WireAnswer::default()),
            },
            Self::Refused { status, headers, body, faults } => {
                let named =
                    |name: &str| Some((name.to_owned(), headers.get(name)?.to_str().ok()?.to_owned()));
                let known: Vec<(String, String)> =
                    RETRY_HEADERS.iter().filter_map(|name| named(name)).collect();
                let headers: Vec<WireHeader<'_>> =
                    known.iter().map(|(name, value)| WireHeader { name, value }).collect();
                let fault = faults.response(ErrorResponse { status, headers: &headers, body: &body });
                (fault, Reached::Refused, WireAnswer::default())
            }
            Self::Unread(fault) => (fault, Reached::Sent, WireAnswer::default()),
        };
        Err(missed(WireMissed { fault, reached, answer }))
    }
}

/// Headers that say when to try again.
const RETRY_HEADERS: [&str; 2] = ["retry-after-ms", "retry-after"];

fn whole(read_as: &ReadAs, body: &[u8]) -> Result<WireAnswer, WireFault> {
    let malformed = |_| WireFault::new(WireFaultKind::Malformed, "the answer is not UTF-8");
    let body = std::str::from_utf8(body).map_err(malformed)?;
    read_whole(read_as, body, &mut |_| {})
}
