//! The output caps of a request: what is held for them, and the bytes that lower or add one.

use std::ops::Range;

use super::call_request::{CallUpstream, bad};
use super::error::GatewayError;
use super::json_tape::JsonNode;
use super::route::CallFormat;
use super::splice::Splice;

/// The caps that a request has: one, unless a program writes both names of chat completions.
#[derive(Clone, Debug)]
pub(super) struct OutputCaps {
    asked: Vec<AskedCap>,
    /// Where one is added, if none is there that is read.
    place: CapPlace,
    /// How many answers have this cap, each of them.
    answers: u64,
}

#[derive(Clone, Debug)]
struct AskedCap {
    span: Range<usize>,
    /// None for null.
    tokens: Option<u64>,
    /// Whether the server knows this name.
    is_enough: bool,
}

/// A place for a cap, and what is written around it.
#[derive(Clone, Debug)]
pub(super) struct CapPlace {
    pub(super) at: Range<usize>,
    pub(super) before: String,
    pub(super) after: &'static str,
}

impl CapPlace {
    /// The first field of an object that has others. `inside` is the place behind its brace.
    pub(super) fn field(inside: usize, name: &str) -> Self {
        Self { at: inside..inside, before: format!("\"{name}\":"), after: "," }
    }
}

impl OutputCaps {
    /// One cap, or a place for it. `asked` is where it is, and what it says.
    pub(super) fn one(asked: Option<(Range<usize>, Option<u64>)>, place: CapPlace, answers: u64) -> Self {
        let asked = asked.map(|(span, tokens)| AskedCap { span, tokens, is_enough: true });
        Self { asked: asked.into_iter().collect(), place, answers: answers.max(1) }
    }

    /// The caps among the fields of a body.
    pub(super) fn of_fields(
        format: CallFormat,
        upstream: CallUpstream,
        root: JsonNode<'_>,
    ) -> Result<Self, GatewayError> {
        // Anthropic fills its cache with such a request.
        let takes_zero = (format, upstream) == (CallFormat::Messages, CallUpstream::Provider);
        let mut asked = Vec::new();
        for name in cap_names(format) {
            let Some(cap) = root.member(name)? else { continue };
            let tokens = cap.whole_number();
            if tokens.is_none() && !cap.is_null() {
                return Err(bad(format!("`{name}` is not a whole number")));
            }
            if tokens == Some(0) && !takes_zero {
                return Err(zero(name));
            }
            // Some servers pass over the newer name.
            let is_enough = upstream == CallUpstream::Provider || *name != "max_completion_tokens";
            asked.push(AskedCap { span: cap.span(), tokens, is_enough });
        }
        // Null means that there is none. One place for the cap is enough, if it is one that is read.
        let has_cap = asked.iter().any(|cap| cap.tokens.is_some() && cap.is_enough);
        match (has_cap, upstream) {
            (true, _) => asked.retain(|cap| cap.tokens.is_some()),
            (false, CallUpstream::Provider) => asked.truncate(1),
            (false, CallUpstream::Elsewhere) => {}
        }
        let place = CapPlace::field(root.span().start + 1, added_name(format, upstream));
        Ok(Self { asked, place, answers: 1 })
    }

    /// The output to hold: what the program asks for, or `default` for an answer if it asks for none.
    pub(super) fn total(&self, default: u64) -> u64 {
        self.each(default).saturating_mul(self.answers)
    }

    /// The smallest output that can be granted, if an answer needs this much.
    pub(super) const fn total_min(&self, each_min: u64) -> u64 {
        each_min.saturating_mul(self.answers)
    }

    /// The cap of each answer, if this much is granted for all.
    pub(super) const fn share(&self, granted: u64) -> u64 {
        granted / self.answers
    }

    fn each(&self, default: u64) -> u64 {
        let asked = self.asked.iter().filter_map(|cap| cap.tokens).max();
        asked.unwrap_or(default).max(1)
    }

    /// The changes that keep each answer below a cap.
    pub(super) fn lowered(&self, each: u64) -> Vec<Splice> {
        let mut splices: Vec<Splice> = self
            .asked
            .iter()
            .filter(|cap| cap.tokens.is_none_or(|asked| asked > each))
            .map(|cap| Splice::new(cap.span.clone(), each.to_string()))
            .collect();
        if !self.asked.iter().any(|cap| cap.is_enough) {
            let cap = self.each(each).min(each);
            let CapPlace { at, before, after } = &self.place;
            splices.push(Splice::new(at.clone(), format!("{before}{cap}{after}")));
        }
        splices
    }
}

/// The names of the output cap among the fields of a body.
pub(super) const fn cap_names(format: CallFormat) -> &'static [&'static str] {
    match format {
        CallFormat::Messages => &["max_tokens"],
        CallFormat::Chat => &["max_completion_tokens", "max_tokens"],
        CallFormat::Responses => &["max_output_tokens"],
        // It is deeper in the body.
        CallFormat::Gemini => &[],
    }
}

/// The cap that is added where the program sends none.
const fn added_name(format: CallFormat, upstream: CallUpstream) -> &'static str {
    match (format, upstream) {
        (CallFormat::Messages, _) | (CallFormat::Chat, CallUpstream::Elsewhere) => "max_tokens",
        (CallFormat::Chat, CallUpstream::Provider) => "max_completion_tokens",
        (CallFormat::Responses, _) => "max_output_tokens",
        (CallFormat::Gemini, _) => "maxOutputTokens",
    }
}

pub(super) fn zero(name: &str) -> GatewayError {
    bad(format!("`{name}` is 0, which some servers read as no cap: send at least 1"))
}
