//! What a format's reader works with. Text, reasoning and tool calls are handled here once for all formats: each piece
//! is checked, kept and handed over as a delta.

use super::answer::{OnDelta, WireDelta};
use super::continuation::Piece;
use super::draft::AnswerDraft;
use super::fault::{FaultReader, WireFault};
use super::json::read;

pub(super) struct Reading<'r> {
    pub(super) draft: &'r mut AnswerDraft,
    pub(super) faults: &'r FaultReader,
    pub(super) on_delta: &'r mut OnDelta<'r>,
}

impl Reading<'_> {
    pub(super) fn text(&mut self, text: &str) -> Result<(), WireFault> {
        self.draft.text(text, self.on_delta)
    }

    pub(super) fn reasoning(&mut self, text: &str) -> Result<(), WireFault> {
        self.draft.reasoning(text, self.on_delta)
    }

    /// A call begins; an id that is empty counts as missing.
    pub(super) fn start_call(&mut self, id: Option<&str>, name: &str) -> Result<usize, WireFault> {
        self.draft.start_call(id.filter(|id| !id.is_empty()), name, self.on_delta)
    }

    /// More of a call's arguments.
    pub(super) fn arguments(&mut self, call: usize, text: &str) -> Result<(), WireFault> {
        self.draft.arguments(call, text, self.on_delta)
    }

    /// The provider sends no more of a call.
    pub(super) fn finish_call(&mut self, call: usize) {
        (self.on_delta)(WireDelta::CallFinished { call });
    }

    /// A call ends, and this is its piece of the answer, with what goes back unchanged in `piece.raw`.
    pub(super) fn end_call(&mut self, call: usize, piece: Piece) -> Piece {
        self.finish_call(call);
        Piece { call: self.draft.call_id(call), ..piece }
    }

    /// The fault in an event or body that is an error.
    pub(super) fn error(&self, data: &str) -> WireFault {
        read("an error", data).map_or_else(|malformed| malformed, |error| self.faults.event(&error))
    }
}
