//! Reads one answer: a stream as it arrives, or a whole body.

use super::WireFormat;
use super::answer::{OnDelta, StreamEnd, WireAnswer, WireDelta};
use super::anthropic::AnthropicReader;
use super::chat::ChatReader;
use super::draft::AnswerDraft;
use super::fault::{FaultReader, WireFault};
use super::gemini::GeminiReader;
use super::reading::Reading;
use super::responses::ResponsesReader;
use super::secrets::Secrets;
use super::sse::{SseDecoder, SseEvent};
use super::usage_report::UndividedWrites;

/// How an answer is read.
#[derive(Clone, Debug)]
pub struct ReadAs {
    pub format: WireFormat,
    /// The model that was asked. What goes back unchanged goes back to it alone.
    pub model: String,
    pub keep: Keep,
    /// What no fault may show.
    pub secrets: Secrets,
    pub served_from: ServedFrom,
    pub undivided_writes: UndividedWrites,
}

/// Who serves the API of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedFrom {
    /// The provider, at its own address.
    Provider,
    /// A server at another address, perhaps a proxy, with its own prices.
    Elsewhere,
}

/// What is kept of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    Everything,
    /// Usage, stop reason and model. Text, reasoning and calls are handed over as deltas and forgotten, and have no
    /// bound: a proxy keeps none of the bytes.
    Facts,
}

/// Reads the bytes of one streamed answer.
#[derive(Debug)]
pub struct StreamReader {
    read_as: ReadAs,
    sse: SseDecoder,
    reader: Reader,
    draft: AnswerDraft,
    faults: FaultReader,
    fault: Option<WireFault>,
    /// Whether what follows the last event cannot be read. Then it is not.
    is_unreadable: bool,
}

/// What some servers send after the last event, in whatever format.
pub(super) const DONE: &str = "[DONE]";

#[derive(Debug)]
enum Reader {
    Chat(ChatReader),
    Responses(ResponsesReader),
    Anthropic(AnthropicReader),
    Gemini(GeminiReader),
}

impl StreamReader {
    #[must_use]
    pub fn new(read_as: ReadAs) -> Self {
        let reader = Reader::new(&read_as);
        let (draft, faults) = (AnswerDraft::new(read_as.keep), FaultReader::new(read_as.secrets.clone()));
        Self { read_as, sse: SseDecoder::default(), reader, draft, faults, fault: None, is_unreadable: false }
    }

    /// Reads what arrived.
    ///
    /// # Errors
    /// If the provider sent an error, or something that the format does not allow. It stays with that: more bytes give
    /// the same fault, and [`finish`](Self::finish) gives what came before it. What follows the last event
    /// is not an error, and neither is what follows the usage of an answer that has ended, if the format has a last event.
    pub fn feed(&mut self, bytes: &[u8], on_delta: &mut OnDelta<'_>) -> Result<(), WireFault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        if self.is_unreadable {
            return Ok(());
        }
        let ends_with_body = self.ends_with_body();
        let Self { sse, reader, draft, faults, .. } = self;
        let read = sse.feed(bytes, &mut |event| {
            if draft.is_over() {
                reader.late_event(event, draft, faults);
                return Ok(());
            }
            let is_known = draft.is_known();
            let mut hand_over = |delta: WireDelta<'_>| on_delta(delta);
            let read = reader.event(event, Reading { draft, faults, on_delta: &mut hand_over });
            if is_known && !ends_with_body && read.is_err() {
                // In place of the last event, which says nothing more.
                draft.over();
                return Ok(());
            }
            read
        });
        if read.is_err() && !ends_with_body && (self.draft.is_over() || self.draft.is_known()) {
            self.is_unreadable = true;
            return Ok(());
        }
        if let Err(fault) = &read {
            self.draft.failed();
            self.fault = Some(fault.clone());
        }
        read
    }

    /// Whether what came is a stream of events, or may be the beginning of one.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        self.sse.is_stream()
    }

    /// Whether nothing is missing but perhaps the usage.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.draft.answer.end == StreamEnd::Whole && !self.ends_with_body()
    }

    /// Whether only the end of the body ends the stream, because no event of the format does.
    #[must_use]
    pub const fn ends_with_body(&self) -> bool {
        matches!(self.read_as.format, WireFormat::Gemini)
    }

    /// Reads an event that the body ended in, where no other event can be the last one.
    ///
    /// # Errors
    /// As [`feed`](Self::feed).
    pub fn end_body(&mut self, on_delta: &mut OnDelta<'_>) -> Result<(), WireFault> {
        match self.ends_with_body() && self.sse.is_pending() {
            true => self.feed(b"\n\n", on_delta),
            false => Ok(()),
        }
    }

    /// The answer, as far as it arrived. It says whether it is complete.
    #[must_use]
    pub fn finish(self) -> WireAnswer {
        self.draft.finish(&self.read_as)
    }
}

/// Reads an answer that came as one body and not as a stream.
///
/// # Errors
/// If it is an error, or nothing that the format allows.
pub fn read_whole(read_as: &ReadAs, body: &str, on_delta: &mut OnDelta<'_>) -> Result<WireAnswer, WireFault> {
    let mut draft = AnswerDraft::new(read_as.keep);
    let faults = FaultReader::new(read_as.secrets.clone());
    let mut hand_over = |delta: WireDelta<'_>| on_delta(delta);
    let reading = Reading { draft: &mut draft, faults: &faults, on_delta: &mut hand_over };
    Reader::new(read_as).whole(body, reading)?;
    Ok(draft.finish(read_as))
}

impl Reader {
    fn new(read_as: &ReadAs) -> Self {
        match read_as.format {
            WireFormat::OpenAiChat | WireFormat::CompatibleChat => Self::Chat(ChatReader::default()),
            WireFormat::OpenAiResponses => Self::Responses(ResponsesReader::default()),
            WireFormat::AnthropicMessages => Self::Anthropic(AnthropicReader::new(read_as.served_from)),
            WireFormat::Gemini => Self::Gemini(GeminiReader::default()),
        }
    }

    fn event(&mut self, event: SseEvent<'_>, reading: Reading<'_>) -> Result<(), WireFault> {
        match self {
            Self::Chat(reader) => reader.event(event.data, reading),
            // Only chat completions end with it; elsewhere a proxy adds it.
            Self::Responses(_) | Self::Anthropic(_) | Self::Gemini(_) if event.data.trim() == DONE => Ok(()),
            Self::Responses(reader) => reader.event(event.data, reading),
            Self::Anthropic(reader) => reader.event(event.data, reading),
            Self::Gemini(reader) => reader.event(event.data, reading),
        }
    }

    /// An event after the last one: it may only raise the usage. Proxies repeat output there, or send what cannot be read.
    fn late_event(&mut self, event: SseEvent<'_>, draft: &mut AnswerDraft, faults: &FaultReader) {
        let mut late = AnswerDraft::new(Keep::Facts);
        let reading = Reading { draft: &mut late, faults, on_delta: &mut |_| {} };
        if self.event(event, reading).is_ok() {
            draft.late_usage(&late);
        }
    }

    /// In two formats a whole body looks like an event.
    fn whole(&mut self, body: &str, reading: Reading<'_>) -> Result<(), WireFault> {
        match self {
            Self::Chat(reader) => reader.event(body, reading),
            Self::Responses(reader) => reader.whole(body, reading),
            Self::Anthropic(reader) => reader.whole(body, reading),
            Self::Gemini(reader) => reader.event(body, reading),
        }
    }
}
