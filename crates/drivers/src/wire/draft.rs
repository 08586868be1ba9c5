//! An answer while it is read: every piece passes its bounds here, whichever provider sends it.

use serde::de::IgnoredAny;

use super::answer::{OnDelta, OpaqueHash, StreamEnd, WireAnswer, WireDelta, WireStop, WireToolCall};
use super::bounds::{
    ANSWER_TEXT_BYTES_MAX, ARGUMENTS_BYTES_MAX, BLOCKS_MAX, CALLS_MAX, RAW_BYTES_MAX, REASONING_BYTES_MAX,
    WIRE_NAME_BYTES_MAX,
};
use super::continuation::{Continuation, Piece};
use super::fault::{WireFault, WireFaultKind};
use super::usage_report::{UndividedWrites, UsageReport};
use super::{Keep, ReadAs, ServedFrom, WireFormat};

/// What is known of an answer so far.
#[derive(Debug)]
pub(super) struct AnswerDraft {
    pub(super) answer: WireAnswer,
    keep: Keep,
    pieces: Vec<Piece>,
    raw_bytes: usize,
    arguments_bytes: usize,
    /// The calls that began, kept or not.
    calls: usize,
    /// Whether a piece is opaque. Without one nothing has to go back unchanged.
    is_opaque: bool,
    /// The combined usage of all events so far.
    usage: UsageReport,
    /// Whether the last output count includes all output so far. A count that output follows is not final.
    is_counted: bool,
    /// Whether its last event has come.
    is_over: bool,
}

impl AnswerDraft {
    pub(super) fn new(keep: Keep) -> Self {
        Self {
            answer: WireAnswer::default(),
            keep,
            pieces: Vec::new(),
            raw_bytes: 0,
            arguments_bytes: 0,
            calls: 0,
            is_opaque: false,
            usage: UsageReport::default(),
            is_counted: false,
            is_over: false,
        }
    }

    /// The provider's id of the answer, and the model that gives it.
    pub(super) fn named(&mut self, id: Option<String>, model: Option<String>) {
        let short = |name: &String| (1..=WIRE_NAME_BYTES_MAX).contains(&name.len());
        self.answer.id = self.answer.id.take().or(id.filter(short));
        self.answer.model = model.filter(short).or(self.answer.model.take());
    }

    pub(super) fn text(&mut self, text: &str, on_delta: &mut OnDelta<'_>) -> Result<(), WireFault> {
        if text.is_empty() {
            return Ok(());
        }
        self.more_output();
        if self.keep == Keep::Everything {
            bounded("text", self.answer.text.len(), text.len(), ANSWER_TEXT_BYTES_MAX)?;
            self.answer.text.push_str(text);
        }
        on_delta(WireDelta::Text(text));
        Ok(())
    }

    pub(super) fn reasoning(&mut self, text: &str, on_delta: &mut OnDelta<'_>) -> Result<(), WireFault> {
        if text.is_empty() {
            return Ok(());
        }
        self.more_output();
        if self.keep == Keep::Everything {
            bounded("reasoning", self.answer.reasoning.len(), text.len(), REASONING_BYTES_MAX)?;
            self.answer.reasoning.push_str(text);
        }
        on_delta(WireDelta::Reasoning(text));
        Ok(())
    }

    /// A call begins. One without an id gets one that no other answer has, as far as the provider names its answers.
    pub(super) fn start_call(
        &mut self,
        id: Option<&str>,
        name: &str,
        on_delta: &mut OnDelta<'_>,
    ) -> Result<usize, WireFault> {
        let call = self.calls;
        self.more_output();
        bounded("number of tool calls", call, 1, CALLS_MAX)?;
        bounded("tool name", 0, name.len(), WIRE_NAME_BYTES_MAX)?;
        let id = match id {
            Some(id) => id.to_owned(),
            None => format!("call_{}_{}", self.answer.id.as_deref().unwrap_or("0"), call + 1),
        };
        bounded("tool call's id", 0, id.len(), 2 * WIRE_NAME_BYTES_MAX)?;
        on_delta(WireDelta::CallStarted { call, id: &id, name });
        self.calls += 1;
        if self.keep == Keep::Everything {
            let (arguments, is_whole) = (String::new(), false);
            self.answer.calls.push(WireToolCall { id, name: name.to_owned(), arguments, is_whole });
        }
        Ok(call)
    }

    pub(super) fn arguments(
        &mut self,
        call: usize,
        text: &str,
        on_delta: &mut OnDelta<'_>,
    ) -> Result<(), WireFault> {
        if text.is_empty() {
            return Ok(());
        }
        self.more_output();
        if let Some(known) = self.answer.calls.get_mut(call) {
            bounded("tool arguments", self.arguments_bytes, text.len(), ARGUMENTS_BYTES_MAX)?;
            self.arguments_bytes += text.len();
            known.arguments.push_str(text);
        }
        on_delta(WireDelta::CallArguments { call, text });
        Ok(())
    }

    /// The id of a call.
    pub(super) fn call_id(&self, call: usize) -> Option<String> {
        self.answer.calls.get(call).map(|known| known.id.clone())
    }

    /// The next piece of the answer, if it is kept. Plain text that follows plain text is one piece.
    pub(super) fn piece(&mut self, piece: Piece) -> Result<(), WireFault> {
        let is_nothing = piece.raw.is_none() && piece.text == 0 && piece.call.is_none();
        if self.keep != Keep::Everything || is_nothing {
            return Ok(());
        }
        let is_text = |piece: &Piece| piece.raw.is_none() && piece.call.is_none();
        if let Some(last) = self.pieces.last_mut().filter(|last| is_text(last) && is_text(&piece)) {
            last.text += piece.text;
            return Ok(());
        }
        bounded("number of content blocks", self.pieces.len(), 1, BLOCKS_MAX)?;
        let bytes = piece.raw.as_ref().map_or(0, |raw| raw.get().len());
        bounded("continuation data", self.raw_bytes, bytes, RAW_BYTES_MAX)?;
        self.raw_bytes += bytes;
        self.pieces.push(piece);
        Ok(())
    }

    /// Adds a text that only its provider can read.
    pub(super) fn opaque_text(&mut self, text: &str) {
        if !text.is_empty() {
            self.opaque(OpaqueHash::new(text));
        }
    }

    pub(super) fn opaque(&mut self, text: OpaqueHash) {
        if self.answer.opaque.len() < BLOCKS_MAX {
            self.answer.opaque.push(text);
        }
    }

    /// A piece that only its provider understands.
    pub(super) fn opaque_piece(&mut self, piece: Piece) -> Result<(), WireFault> {
        self.is_opaque = true;
        self.piece(piece)
    }

    /// Why the model stopped, and that nothing is missing but perhaps the usage.
    pub(super) fn stopped(&mut self, stop: WireStop) {
        self.answer.stop = Some(stop);
        self.answer.end = StreamEnd::Whole;
    }

    /// The last event has come: by the format, nothing of the answer follows.
    pub(super) const fn over(&mut self) {
        self.is_over = true;
    }

    pub(super) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether the answer has ended and its usage is known: nothing but its last event may be missing.
    pub(super) fn is_known(&self) -> bool {
        self.answer.end == StreamEnd::Whole && self.is_counted
    }

    /// The provider ended the answer with an error, or the rest cannot be read.
    pub(super) fn failed(&mut self) {
        if self.answer.end != StreamEnd::Refused {
            self.answer.end = StreamEnd::Cut;
        }
    }

    /// The provider sent an error before anything else.
    pub(super) fn refused(&mut self) {
        self.answer.end = StreamEnd::Refused;
    }

    /// Adds the usage of an event. If it counts output, the count includes all output so far.
    pub(super) fn usage(&mut self, report: UsageReport) {
        self.early_usage(report);
        self.is_counted |= report.output.is_some();
    }

    /// Adds the usage of an event before the answer begins. Its output count is not final.
    pub(super) fn early_usage(&mut self, report: UsageReport) {
        self.usage = self.usage.combined(report);
    }

    /// Adds the usage of an event after the last one.
    pub(super) fn late_usage(&mut self, late: &Self) {
        self.usage = self.usage.combined(late.usage);
        self.is_counted |= late.is_counted;
    }

    /// Records that the call used something of unknown price.
    pub(super) fn unknown_price(&mut self) {
        self.usage.has_unknown_price = true;
    }

    pub(super) const fn is_counted(&self) -> bool {
        self.is_counted
    }

    /// Records output that no count includes yet.
    pub(super) fn more_output(&mut self) {
        self.is_counted = false;
    }

    pub(super) fn keeps_everything(&self) -> bool {
        self.keep == Keep::Everything
    }

    /// Whether a tool was called.
    pub(super) const fn has_calls(&self) -> bool {
        self.calls > 0
    }

    /// The answer as far as it came.
    pub(super) fn finish(mut self, read_as: &ReadAs) -> WireAnswer {
        for call in &mut self.answer.calls {
            if call.arguments.trim().is_empty() && self.answer.end == StreamEnd::Whole {
                "{}".clone_into(&mut call.arguments);
            }
            call.is_whole = is_object(&call.arguments);
        }
        let undivided = match (read_as.format, read_as.served_from) {
            // A server elsewhere may hand a chat on to Anthropic, and counts writes as Anthropic does.
            (WireFormat::AnthropicMessages, _) | (_, ServedFrom::Elsewhere) => read_as.undivided_writes,
            (
                WireFormat::OpenAiChat
                | WireFormat::CompatibleChat
                | WireFormat::OpenAiResponses
                | WireFormat::Gemini,
                ServedFrom::Provider,
            ) => UndividedWrites::Minutes,
        };
        self.answer.usage = self.usage.usage(undivided);
        // Counts that arrive before the last output are not final: settling at them would book too little.
        if self.answer.end != StreamEnd::Whole || !self.is_counted {
            (self.answer.usage.output, self.answer.usage.reasoning) = (None, None);
        }
        if self.calls > 0 && self.answer.stop == Some(WireStop::End) {
            self.answer.stop = Some(WireStop::ToolCalls);
        }
        if self.is_opaque && self.keep == Keep::Everything {
            let pieces = std::mem::take(&mut self.pieces);
            self.answer.continuation = Some(Continuation::new(read_as.format, &read_as.model, pieces));
        }
        self.answer
    }
}

fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

fn bounded(what: &str, known: usize, more: usize, most: usize) -> Result<(), WireFault> {
    if more > most.saturating_sub(known) {
        let message = format!("the {what} of the answer is more than {most}");
        return Err(WireFault::new(WireFaultKind::TooLarge, message));
    }
    Ok(())
}
