//! What all writers share: the pieces of an earlier answer in their order, tools' schemas, and parts as text or base64.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use spinney_kernel::definition::Thinking;

use super::WireFormat;
use super::answer::WireToolCall;
use super::continuation::Continuation;
use super::request::{BodyError, WireParams, WirePart};

/// What the user says first where a provider requires that and there is no message yet: the task is in the system text. It is so
/// short that the hold of the system text covers it for every model whose tokens are counted by bytes.
pub(super) const BEGINNING: &str = "Begin.";

/// A piece of an earlier answer as it goes back.
#[derive(Clone, Copy, Debug)]
pub(super) enum TurnPiece<'m> {
    /// The provider's own JSON, byte for byte.
    Raw(&'m RawValue),
    Text(&'m str),
    Call(&'m WireToolCall),
}

/// An earlier answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct EarlierAnswer<'m> {
    pub(super) text: &'m str,
    pub(super) calls: &'m [WireToolCall],
    pub(super) continuation: Option<&'m Continuation>,
}

impl<'m> EarlierAnswer<'m> {
    /// Its pieces for this model, in the order in which they were said. What another model wants back is left out; so
    /// is everything about a call that is not there any more.
    pub(super) fn pieces(&self, format: WireFormat, model: &str) -> Vec<TurnPiece<'m>> {
        let known = self.continuation.filter(|known| known.is_for(format, model));
        let fits = |known: &Continuation| {
            known.pieces.iter().map(|piece| piece.text).sum::<usize>() == self.text.len()
        };
        match known {
            // A responses item counts only with the item that follows it: all of them, or none.
            Some(known) if fits(known) || format != WireFormat::OpenAiResponses => {
                self.ordered(known, format)
            }
            _ => self.plain().collect(),
        }
    }

    fn plain(&self) -> impl Iterator<Item = TurnPiece<'m>> + use<'m> {
        let text = Some(self.text).filter(|text| !text.is_empty());
        text.map(TurnPiece::Text).into_iter().chain(self.calls.iter().map(TurnPiece::Call))
    }

    fn ordered(&self, known: &'m Continuation, format: WireFormat) -> Vec<TurnPiece<'m>> {
        let mut calls: BTreeMap<&str, &WireToolCall> =
            self.calls.iter().map(|call| (call.id.as_str(), call)).collect();
        // A text that was cut or joined meanwhile has other bytes than the pieces say: it goes where the first did.
        let is_same = known.pieces.iter().map(|piece| piece.text).sum::<usize>() == self.text.len();
        let (mut rest, mut pieces) = (self.text, Vec::new());
        for piece in &known.pieces {
            let raw = piece.raw.as_deref().map(TurnPiece::Raw);
            if let Some(id) = &piece.call {
                match calls.remove(id.as_str()) {
                    Some(call) => pieces.push(raw.unwrap_or(TurnPiece::Call(call))),
                    None if format == WireFormat::OpenAiResponses => drop_reasoning(&mut pieces),
                    None => {}
                }
            } else if piece.text > 0 {
                let own = if is_same { rest.split_at_checked(piece.text) } else { None };
                let (text, after) = own.unwrap_or((rest, ""));
                rest = after;
                match raw.filter(|_| own.is_some()) {
                    Some(raw) => pieces.push(raw),
                    None if text.is_empty() => {}
                    None => pieces.push(TurnPiece::Text(text)),
                }
            } else {
                pieces.extend(raw);
            }
        }
        if format == WireFormat::OpenAiResponses {
            drop_reasoning(&mut pieces);
        }
        pieces.extend(Some(rest).filter(|rest| !rest.is_empty()).map(TurnPiece::Text));
        pieces.extend(
            self.calls.iter().filter(|call| calls.contains_key(call.id.as_str())).map(TurnPiece::Call),
        );
        pieces
    }
}

/// Drops the reasoning at the end: OpenAI refuses reasoning that what it led to does not follow.
fn drop_reasoning(pieces: &mut Vec<TurnPiece<'_>>) {
    let is_reasoning = |piece: &TurnPiece<'_>| {
        let TurnPiece::Raw(raw) = piece else { return false };
        serde_json::from_str::<super::json::Kind>(raw.get()).is_ok_and(|item| item.kind == "reasoning")
    };
    while pieces.last().is_some_and(is_reasoning) {
        pieces.pop();
    }
}

/// A schema as JSON; none is any object.
pub(super) fn schema(of: &str, text: &str) -> Result<Box<RawValue>, BodyError> {
    if text.trim().is_empty() {
        return Ok(to_raw_value(&json!({ "type": "object", "properties": {} }))?);
    }
    serde_json::from_str(text).map_err(|source| BodyError::Schema { of: of.to_owned(), source })
}

/// The arguments of an earlier call as a JSON object. What a model wrote that is none goes back as a text in one:
/// providers refuse the whole request otherwise.
pub(super) fn arguments(call: &WireToolCall) -> Result<Cow<'_, str>, BodyError> {
    let is_object = call.arguments.trim_start().starts_with('{')
        && serde_json::from_str::<serde::de::IgnoredAny>(&call.arguments).is_ok();
    match call.arguments.trim() {
        "" => Ok(Cow::Borrowed("{}")),
        _ if is_object => Ok(Cow::Borrowed(&call.arguments)),
        other => Ok(Cow::Owned(serde_json::to_string(&json!({ "not_json": other }))?)),
    }
}

/// The same, as a value of the body.
pub(super) fn arguments_raw(call: &WireToolCall) -> Result<Box<RawValue>, BodyError> {
    Ok(RawValue::from_string(arguments(call)?.into_owned())?)
}

/// An id in as many bytes as a provider takes: its end, which is what sets the calls of one answer apart.
pub(super) fn fitting_id(id: &str, bytes_max: usize) -> &str {
    let begin = id.ceil_char_boundary(id.len().saturating_sub(bytes_max));
    &id[begin..]
}

pub(super) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

pub(super) fn data_url(media: &str, bytes: &[u8]) -> String {
    format!("data:{media};base64,{}", base64(bytes))
}

/// The text of a file that is text.
pub(super) fn file_text<'p>(media: &str, bytes: &'p [u8]) -> Option<&'p str> {
    let is_text = media.starts_with("text/") || media == "application/json";
    is_text.then(|| std::str::from_utf8(bytes).ok())?
}

/// What replaces a file that the provider does not accept.
pub(super) fn unread(name: &str, media: &str, bytes: &[u8]) -> String {
    format!("[file {name} ({media}, {} bytes): it cannot be shown here]", bytes.len())
}

/// The texts of parts, joined.
pub(super) fn only_text(parts: &[WirePart]) -> Option<String> {
    let texts: Option<Vec<&str>> = parts
        .iter()
        .map(|part| match part {
            WirePart::Text(text) => Some(text.as_str()),
            WirePart::Image { .. } | WirePart::File { .. } => None,
        })
        .collect();
    texts.map(|texts| texts.join("\n"))
}

/// Refuses what a format has no word for.
pub(super) struct Unsupported {
    pub(super) provider: &'static str,
}

impl Unsupported {
    pub(super) fn refuse<T>(&self, param: &'static str, value: Option<&T>) -> Result<(), BodyError> {
        match value {
            Some(_) => Err(BodyError::Unsupported { param, provider: self.provider }),
            None => Ok(()),
        }
    }

    pub(super) fn refuse_thinking(&self, params: &WireParams) -> Result<(), BodyError> {
        match params.thinking {
            Some(Thinking::Adaptive) => self.refuse("thinking", params.thinking.as_ref()),
            Some(Thinking::Budget(_)) | None => self.refuse("thinking_budget", params.thinking.as_ref()),
        }
    }

    pub(super) fn refuse_stop(&self, params: &WireParams) -> Result<(), BodyError> {
        self.refuse("stop", params.stop.first())
    }
}
