//! An effect completed: its hold is settled at the actual usage.

use serde::{Deserialize, Serialize};

use super::{Failed, running};
use crate::budget::Used;
use crate::definition::{Mismatch, Role};
use crate::primitives::{Body, CallId, CommandExit, Fault, FaultKind, OutputPath, StoredFile, cut, limit};
use crate::record::{Outcome, RefusedAsk, StopReason, ToolAsk, Work};
use crate::rules::agent::end_if_drained;
use crate::rules::turn::Said;
use crate::rules::{Draft, Receipt, call, turn};
use crate::world::Wrote;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Done {
    pub call: CallId,
    pub attempt: u32,
    pub used: Used,
    /// What it returned; the rest of a large text by reference.
    #[serde(default, skip_serializing_if = "Body::is_empty")]
    pub body: Body,
    /// The tools that a model asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<ToolAsk>,
    /// Those of them that cannot be made, and why: what only the reporter can check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedAsk>,
    /// Whether a tool reported an error.
    #[serde(default, skip_serializing_if = "crate::primitives::is_false")]
    pub is_error: bool,
    /// How the answer fails to match its agent's `output_schema`. `None` if it matches or there is no schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mismatch: Option<Box<Mismatch>>,
    #[serde(default, skip_serializing_if = "StopReason::is_end")]
    pub stop: StopReason,
    /// The files that a tool wrote for its agent, by reference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<StoredFile>,
    /// The files of its agent that a tool removed, and wrote none of in the same call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<OutputPath>,
    /// How the command of a tool ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<CommandExit>,
}

impl Done {
    /// A result without tool calls, errors or a mismatch. Other results change single fields of it.
    #[must_use]
    pub fn new(call: CallId, attempt: u32, used: Used, body: Body) -> Self {
        let (asks, is_error, mismatch, stop) = (Vec::new(), false, None, StopReason::End);
        let (files, removed) = (Vec::new(), Vec::new());
        let refused = Vec::new();
        Self {
            call,
            attempt,
            used,
            body,
            asks,
            refused,
            is_error,
            mismatch,
            stop,
            files,
            removed,
            exit: None,
        }
    }

    pub(super) fn decide(&self, draft: &mut Draft<'_>) -> Receipt {
        let Some(call) = running(draft, self.call, self.attempt) else { return Receipt::Stale };
        let ix = call.agent;
        // A withheld answer is a failure: another model may succeed.
        if let (Work::Model(_), Some(kind)) = (&call.work, self.stop.fault_kind()) {
            let fault = Fault { message: self.body.text.clone(), ..Fault::new(kind) };
            return Failed { call: self.call, attempt: self.attempt, fault, used: self.used }.decide(draft);
        }
        if let Some(message) = self.beyond(draft) {
            let fault = Fault { message, ..Fault::new(FaultKind::Invalid) };
            return Failed { call: self.call, attempt: self.attempt, fault, used: self.used }.decide(draft);
        }
        let spent = call::used(draft.definition(), call, self.used);
        let (is_model, is_void) = (matches!(call.work, Work::Model(_)), call.is_void);
        let is_of_tool = call.work.of_tool().is_some();
        let is_turn = call.work.is_turn() && !is_void && !is_of_tool;
        let stop = if is_model { self.stop } else { StopReason::End };
        let cut_at = call.work.output_cap().filter(|_| stop == StopReason::OutputCap && draft.rules() >= 3);
        let continued = matches!(&call.work, Work::Model(model) if model.continues);
        let wrap_up = call.work.wrap_up().cloned();
        // The last tool call of a cut answer may be incomplete.
        let is_whole = |ask: &ToolAsk| cut_at.is_none() || draft.rules() < 4 || ask.is_whole();
        let whole = self.asks.iter().enumerate().filter(|(_, ask)| is_whole(ask));
        let (places, asked): (Vec<usize>, Vec<ToolAsk>) = whole.map(|(at, ask)| (at, ask.clone())).unzip();
        // An agent's last call cannot use tools, and a tool's call has none.
        let asks =
            if is_model && wrap_up.is_none() && !is_of_tool { turn::bounded(&asked) } else { Vec::new() };
        let body = self.body.bounded();
        // A model returns only text; a tool has no reasoning.
        let body = match &call.work {
            Work::Model(model) => {
                let thought = body.thought().map(|thought| thought.for_model(&model.model));
                body.only_text().with_thought(thought)
            }
            _ => body.with_thought(None),
        };
        // Only answers are checked; a turn with tool calls is not an answer.
        let mismatch = self.mismatch.as_deref().filter(|_| is_turn && asks.is_empty() && wrap_up.is_none());
        // A model that only thought has answered nothing that could be repaired.
        let is_silent = draft.rules() >= 5 && stop.is_silent(&body, &asks);
        let mismatch = mismatch.filter(|_| !is_silent).map(|mismatch| Box::new(mismatch.bounded()));
        let (files, removed) =
            if is_model { (Vec::new(), Vec::new()) } else { (self.files.clone(), self.removed.clone()) };
        let (is_error, copy) = (self.is_error, mismatch.clone());
        let exit = self.exit.filter(|_| !is_model);
        let outcome = Outcome::Done { body, asks, is_error, mismatch: copy, stop, files, removed, exit };
        call::end_running(draft, self.call, outcome, spent, self.used);
        if is_turn {
            let mismatch = mismatch.as_deref();
            let refused = self.refused_of(&places);
            let refused = refused.as_slice();
            let said = Said { asks: &asked, refused, mismatch, cut_at, is_silent, continued, wrap_up };
            turn::said(draft, ix, &said);
        }
        end_if_drained(draft, ix);
        Receipt::Applied
    }

    /// The refused calls, by their places among those that are made.
    fn refused_of(&self, places: &[usize]) -> Vec<RefusedAsk> {
        let refused = self.refused.iter().filter_map(|refused| {
            let place = places.iter().position(|place| *place == refused.place as usize)?;
            let reason = cut(&refused.reason, limit::NOTICE_BYTES_MAX);
            Some(RefusedAsk { place: u32::try_from(place).ok()?, reason })
        });
        refused.take(limit::ASKS_MAX).collect()
    }

    /// The limit of its agent's files that these would pass, if any. A tool keeps to it itself, so this is its bug.
    fn beyond(&self, draft: &Draft<'_>) -> Option<String> {
        let is_any = !self.files.is_empty() || !self.removed.is_empty();
        let call = draft.call(self.call).filter(|_| is_any)?;
        let agent = draft.agent(call.agent);
        let limits = draft.definition().roles.get(&agent.terms.role).map(Role::outputs).unwrap_or_default();
        let Wrote { files, bytes, removed } = draft.outputs().with(call.agent, &self.files, &self.removed);
        if removed > limit::REMOVED_FILES_MAX {
            return Some(format!(
                "the agent would have removed more than {} files",
                limit::REMOVED_FILES_MAX
            ));
        }
        if files > limits.files_max {
            return Some(format!("the tool wrote more files than `max_output_files`, {}", limits.files_max));
        }
        let message =
            || format!("the tool wrote more bytes than `max_output_size_bytes`, {}", limits.bytes_max);
        (bytes > limits.bytes_max).then(message)
    }
}
