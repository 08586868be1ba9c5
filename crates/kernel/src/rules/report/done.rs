//! An effect did its work: its hold is settled at the true usage.

use serde::{Deserialize, Serialize};

use super::{Failed, running};
use crate::budget::Used;
use crate::definition::Mismatch;
use crate::record::{Outcome, StopReason, ToolAsk, Work};
use crate::rules::agent::end_if_drained;
use crate::rules::turn::Said;
use crate::rules::{Draft, Receipt, call, turn};
use crate::words::{Body, CallId, Fault};

/// An effect did its work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Done {
    pub call: CallId,
    pub attempt: u32,
    pub used: Used,
    /// What it returned; the rest of a large one by reference.
    #[serde(default, skip_serializing_if = "Body::is_empty")]
    pub body: Body,
    /// The tools that a model wants called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<ToolAsk>,
    /// Whether a tool says that it could not do what it was asked.
    #[serde(default, skip_serializing_if = "crate::words::is_false")]
    pub is_error: bool,
    /// How the answer of an agent with an `output_schema` does not fit that. None if it does, or has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mismatch: Option<Box<Mismatch>>,
    /// Why a model stopped there.
    #[serde(default, skip_serializing_if = "StopReason::is_end")]
    pub stop: StopReason,
}

impl Done {
    pub(super) fn decide(&self, draft: &mut Draft<'_>) -> Receipt {
        let Some(call) = running(draft, self.call, self.attempt) else { return Receipt::Stale };
        let ix = call.agent;
        // An answer that was held back is none: another model may do better.
        if let (Work::Model(_), Some(kind)) = (&call.work, self.stop.fault_kind()) {
            let fault = Fault { message: self.body.text.clone(), ..Fault::of(kind) };
            return Failed { call: self.call, attempt: self.attempt, fault, used: self.used }.decide(draft);
        }
        let spent = call::used(draft.definition(), call, self.used);
        let (is_model, is_void) = (matches!(call.work, Work::Model(_)), call.is_void);
        let is_turn = call.work.is_turn() && !is_void;
        let stop = if is_model { self.stop } else { StopReason::End };
        let cut_at = call.work.output_cap().filter(|_| stop == StopReason::OutputCap && draft.rules() >= 3);
        let continued = matches!(&call.work, Work::Model(model) if model.continues);
        let wrap_up = call.work.wrap_up().cloned();
        // Of an answer that was cut the last tool call may be half of one.
        let is_whole = |ask: &&ToolAsk| cut_at.is_none() || draft.rules() < 4 || ask.is_whole();
        let asked: Vec<ToolAsk> = self.asks.iter().filter(is_whole).cloned().collect();
        // Whoever is asked for the last time can have no tools called.
        let asks = if is_model && wrap_up.is_none() { turn::bounded(&asked) } else { Vec::new() };
        let body = self.body.bounded();
        // A model says words, and nothing else; a tool does not think.
        let body = match &call.work {
            Work::Model(model) => {
                let thought = body.thought().map(|thought| thought.of(&model.model));
                body.only_text().with_thought(thought)
            }
            _ => body.with_thought(None),
        };
        // Only an answer is checked: who asks for tools has not answered yet.
        let mismatch = self.mismatch.as_deref().filter(|_| is_turn && asks.is_empty() && wrap_up.is_none());
        let mismatch = mismatch.map(|mismatch| Box::new(mismatch.bounded()));
        let outcome = Outcome::Done { body, asks, is_error: self.is_error, mismatch: mismatch.clone(), stop };
        call::end_running(draft, self.call, outcome, spent);
        if is_turn {
            let mismatch = mismatch.as_deref();
            turn::said(draft, ix, &Said { asks: &asked, mismatch, cut_at, continued, wrap_up });
        }
        end_if_drained(draft, ix);
        Receipt::Applied
    }
}
