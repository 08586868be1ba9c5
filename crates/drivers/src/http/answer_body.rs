//! The body of a successful response, read as it arrives: a stream of events, one JSON text, or not an API response. Its
//! first character decides, because servers and proxies send wrong content types.
//!
//! What cannot be an answer of the API was never worked on by a model: it is refused and costs nothing. Everything that
//! may be the beginning of an answer counts as one that was cut. At the provider's own address nothing else listens, so
//! anything that comes from there may be billed.

use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, TRANSFER_ENCODING};

use super::ask::{Reached, WireAttemptError};
use super::other_answer;
use crate::wire::{
    OnDelta, ReadAs, ServedFrom, StreamEnd, StreamReader, WireAnswer, WireFault, WireFaultKind, WireUsage,
    read_whole,
};

/// Takes a body piece by piece.
#[derive(Debug)]
pub struct AnswerBody {
    read_as: ReadAs,
    head: AnswerHead,
    /// Most bytes of a body that is one JSON text.
    whole_bytes_max: usize,
    form: Form,
}

/// What the head of a response says about its body.
#[derive(Clone, Copy, Debug)]
pub struct AnswerHead {
    status: u16,
    is_event_stream: bool,
    /// Whether a body that is cut is noticed.
    is_framed: bool,
}

/// How a body ended.
#[derive(Clone, Debug)]
pub enum BodyEnd {
    Clean,
    Broken(WireFault),
}

/// What a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    Stream,
    /// One JSON text.
    Whole,
    /// A web page.
    Page,
}

#[derive(Debug)]
enum Form {
    /// Nothing has come that shows what it is, only so many bytes of white space.
    Unknown {
        bytes: usize,
    },
    Stream {
        reader: Box<StreamReader>,
        fault: Option<WireFault>,
        /// Its first bytes.
        start: Vec<u8>,
    },
    Whole {
        body: Vec<u8>,
        fault: Option<WireFault>,
    },
    Page {
        start: Vec<u8>,
    },
}

/// A text may begin with these bytes, which no JSON and no event has.
const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// The bytes of a body that are kept to say what it is.
const START_BYTES_MAX: usize = 4 * 1024;

impl AnswerHead {
    #[must_use]
    pub fn new(status: u16, headers: &HeaderMap) -> Self {
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        Self {
            status,
            is_event_stream: kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream"),
            is_framed: headers.contains_key(CONTENT_LENGTH) || headers.contains_key(TRANSFER_ENCODING),
        }
    }
}

impl AnswerBody {
    #[must_use]
    pub const fn new(read_as: ReadAs, head: AnswerHead, whole_bytes_max: usize) -> Self {
        Self { read_as, head, whole_bytes_max, form: Form::Unknown { bytes: 0 } }
    }

    /// None as long as nothing has come that shows it.
    #[must_use]
    pub const fn kind(&self) -> Option<BodyKind> {
        match self.form {
            Form::Unknown { .. } => None,
            Form::Stream { .. } => Some(BodyKind::Stream),
            Form::Whole { .. } => Some(BodyKind::Whole),
            Form::Page { .. } => Some(BodyKind::Page),
        }
    }

    /// Whether usage may follow the last event of a stream.
    #[must_use]
    pub fn may_count_more(&self) -> bool {
        matches!(&self.form, Form::Stream { reader, fault: None, .. } if reader.is_whole())
    }

    /// Whether more of the body could only change the usage, if anything.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        match &self.form {
            Form::Unknown { .. } => false,
            Form::Stream { reader, fault, .. } => fault.is_some() || reader.is_whole(),
            Form::Whole { fault, .. } => fault.is_some(),
            Form::Page { .. } => true,
        }
    }

    /// Takes what arrived. What cannot be read stays in the end.
    pub fn feed(&mut self, bytes: &[u8], on_delta: &mut OnDelta<'_>) {
        let bytes = match self.form {
            Form::Unknown { bytes: before } => self.begin(before, bytes),
            Form::Stream { .. } | Form::Whole { .. } | Form::Page { .. } => bytes,
        };
        match &mut self.form {
            Form::Unknown { .. } => {}
            Form::Stream { reader, fault, start } => {
                add(start, bytes, START_BYTES_MAX);
                if fault.is_none() {
                    *fault = reader.feed(bytes, on_delta).err();
                }
            }
            Form::Whole { body, fault } => {
                if bytes.len() > self.whole_bytes_max.saturating_sub(body.len()) {
                    *fault = Some(too_large(self.whole_bytes_max));
                    *body = Vec::new();
                } else if fault.is_none() {
                    body.extend_from_slice(bytes);
                }
            }
            Form::Page { start } => add(start, bytes, START_BYTES_MAX),
        }
    }

    /// Decides by the first character, and returns the bytes from there on. What servers send before it, to keep the
    /// connection, belongs to no body.
    fn begin<'b>(&mut self, before: usize, bytes: &'b [u8]) -> &'b [u8] {
        let is_before = |byte: &u8| byte.is_ascii_whitespace() || BYTE_ORDER_MARK.contains(byte);
        let Some(first) = bytes.iter().position(|byte| !is_before(byte)) else {
            let (bytes, most) = (before.saturating_add(bytes.len()), self.whole_bytes_max);
            self.form = if bytes > most {
                Form::Whole { body: Vec::new(), fault: Some(too_large(most)) }
            } else {
                Form::Unknown { bytes }
            };
            return &[];
        };
        self.form = match bytes[first] {
            b'<' => Form::Page { start: Vec::new() },
            b'{' | b'[' => Form::Whole { body: Vec::new(), fault: None },
            _ => {
                let reader = Box::new(StreamReader::new(self.read_as.clone()));
                Form::Stream { reader, fault: None, start: Vec::new() }
            }
        };
        &bytes[first..]
    }

    /// What the body came to.
    ///
    /// # Errors
    /// If it is not a whole answer.
    pub fn finish(
        self,
        end: BodyEnd,
        on_delta: &mut OnDelta<'_>,
    ) -> Result<WireAnswer, Box<WireAttemptError>> {
        let Self { read_as, head, form, .. } = self;
        let may_be_billed = read_as.served_from == ServedFrom::Provider;
        let reached = if may_be_billed { Reached::Sent } else { Reached::Refused };
        let other = |what: String| missed(reached, other_answer::fault(head.status, &what));
        match form {
            Form::Page { start } => Err(other(other_answer::page(&start, &read_as.secrets))),
            Form::Whole { fault: Some(fault), .. } => Err(missed(Reached::Sent, fault)),
            Form::Whole { body, fault: None } => {
                let text = std::str::from_utf8(&body);
                let malformed = |_| WireFault::new(WireFaultKind::Malformed, "the answer is not UTF-8");
                if let Some(what) = text.ok().and_then(|text| other_answer::json(text, &read_as.secrets)) {
                    return Err(other(what));
                }
                let read = text.map_err(malformed).and_then(|text| read_whole(&read_as, text, on_delta));
                read.map_err(|fault| match end {
                    BodyEnd::Clean => missed(Reached::Sent, fault),
                    BodyEnd::Broken(broken) => missed(Reached::Sent, broken),
                })
            }
            Form::Unknown { .. } => Err(match end {
                BodyEnd::Broken(fault) => missed(Reached::Sent, fault),
                BodyEnd::Clean if head.is_event_stream || !head.is_framed || may_be_billed => {
                    missed(Reached::Sent, WireFault::new(WireFaultKind::Cut, "the answer is empty"))
                }
                BodyEnd::Clean => other("an empty body".to_owned()),
            }),
            Form::Stream { mut reader, mut fault, start } => {
                let is_other = !reader.is_stream() && !head.is_event_stream && !may_be_billed;
                let ends_with_body = reader.ends_with_body();
                if fault.is_none() && matches!(end, BodyEnd::Clean) {
                    fault = reader.end_body(on_delta).err();
                }
                let mut answer = reader.finish();
                let is_broken = fault.is_some() || matches!(end, BodyEnd::Broken(_));
                if ends_with_body && is_broken && answer.end != StreamEnd::Refused {
                    // What was reported may not be the last usage.
                    answer.usage = WireUsage::default();
                }
                match (fault, answer.end, end) {
                    (None, StreamEnd::Whole, BodyEnd::Broken(fault)) if ends_with_body => {
                        Err(Box::new(WireAttemptError { fault, reached: Reached::Sent, answer }))
                    }
                    (None, StreamEnd::Whole, _) => Ok(answer),
                    (Some(fault), end, _) => {
                        Err(Box::new(WireAttemptError { fault, reached: Reached::after(end), answer }))
                    }
                    (None, _, BodyEnd::Clean) if is_other => {
                        Err(other(other_answer::text(&start, &read_as.secrets)))
                    }
                    (None, _, BodyEnd::Broken(fault)) => {
                        Err(Box::new(WireAttemptError { fault, reached: Reached::Sent, answer }))
                    }
                    (None, _, BodyEnd::Clean) => {
                        let message = "the answer ended before its last event";
                        let fault = WireFault::new(WireFaultKind::Cut, message);
                        Err(Box::new(WireAttemptError { fault, reached: Reached::Sent, answer }))
                    }
                }
            }
        }
    }
}

fn missed(reached: Reached, fault: WireFault) -> Box<WireAttemptError> {
    Box::new(WireAttemptError { fault, reached, answer: WireAnswer::default() })
}

fn too_large(bytes_max: usize) -> WireFault {
    WireFault::new(WireFaultKind::TooLarge, format!("the answer has more than {bytes_max} bytes"))
}

fn add(start: &mut Vec<u8>, bytes: &[u8], most: usize) {
    let room = most.saturating_sub(start.len());
    start.extend_from_slice(&bytes[..bytes.len().min(room)]);
}
