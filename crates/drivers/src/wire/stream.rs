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

/// How an answer is read.
#[derive(Clone, Debug)]
pub struct ReadAs {
    pub format: WireFormat,
    /// The model that was asked. What goes back unchanged goes back to it alone.
    pub model: String,
    pub keep: Keep,
    /// What no fault may show.
    pub secrets: Secrets,
}

/// What is kept of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    Everything,
    /// Usage, stop reason and model. Text, reasoning and calls are handed over as deltas and forgotten, and have no
    /// bound: whoever passes bytes through keeps none of them.
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
}

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
        let reader = Reader::new(read_as.format);
        let (draft, faults) = (AnswerDraft::new(read_as.keep), FaultReader::new(read_as.secrets.clone()));
        Self { read_as, sse: SseDecoder::default(), reader, draft, faults, fault: None }
    }

    /// Reads what arrived.
    ///
    /// # Errors
    /// If the provider sent an error, or something that the format does not allow. It stays with that: more bytes give
    /// the same fault, and [`finish`](Self::finish) gives what came before it.
    pub fn feed(&mut self, bytes: &[u8], on_delta: &mut OnDelta<'_>) -> Result<(), WireFault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let Self { sse, reader, draft, faults, .. } = self;
        let read = sse.feed(bytes, &mut |event| {
            let mut hand_over = |delta: WireDelta<'_>| on_delta(delta);
            reader.event(event, Reading { draft, faults, on_delta: &mut hand_over })
        });
        if let Err(fault) = &read {
            self.draft.answer.end = StreamEnd::Cut;
            self.fault = Some(fault.clone());
        }
        read
    }

    /// Whether nothing is missing but perhaps the usage.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.draft.answer.end == StreamEnd::Whole
    }

    /// The answer, as far as it came. Whether it is whole stands in it.
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
    Reader::new(read_as.format).whole(body, reading)?;
    Ok(draft.finish(read_as))
}

impl Reader {
    fn new(format: WireFormat) -> Self {
        match format {
            WireFormat::OpenAiChat | WireFormat::CompatibleChat => Self::Chat(ChatReader::default()),
            WireFormat::OpenAiResponses => Self::Responses(ResponsesReader::default()),
            WireFormat::AnthropicMessages => Self::Anthropic(AnthropicReader::default()),
            WireFormat::Gemini => Self::Gemini(GeminiReader),
        }
    }

    fn event(&mut self, event: SseEvent<'_>, reading: Reading<'_>) -> Result<(), WireFault> {
        match self {
            Self::Chat(reader) => reader.event(event.data, reading),
            Self::Responses(reader) => reader.event(event.data, reading),
            Self::Anthropic(reader) => reader.event(event.data, reading),
            Self::Gemini(reader) => reader.event(event.data, reading),
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
