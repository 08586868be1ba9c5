//! The request to the provider's token counter, with the input fields of a call in the same bytes, and the bound that its
//! response gives.

use std::borrow::Cow;
use std::ops::Range;

use bytes::{BufMut as _, Bytes, BytesMut};
use serde::Deserialize;

use super::bounds::{COUNT_MARGIN_PART, COUNT_MARGIN_TOKENS, OPEN_AI_COUNT_MARGIN_TOKENS};
use super::json_tape::JsonNode;
use super::route::CallFormat;

/// The positions of the fields of a body that a counter accepts.
#[derive(Clone, Debug)]
pub(super) struct CountedFields {
    fields: Vec<Range<usize>>,
    /// What is before and behind them.
    around: (String, &'static str),
}

#[derive(Deserialize)]
struct Counted {
    #[serde(alias = "totalTokens")]
    input_tokens: u64,
}

impl CountedFields {
    /// None if the format has no counter.
    pub(super) fn new(format: CallFormat, root: JsonNode<'_>) -> Option<Self> {
        let fields = fields(format)?;
        let counted = root
            .members()
            .filter(|member| member.key.text().is_some_and(|name| fields.contains(&name.as_ref())));
        Some(Self::within(("{".to_owned(), "}"), counted.map(|member| (member.key, member.value))))
    }

    /// These fields, between what the counter wants around them.
    pub(super) fn within<'t>(
        around: (String, &'static str),
        fields: impl Iterator<Item = (JsonNode<'t>, JsonNode<'t>)>,
    ) -> Self {
        Self { fields: fields.map(|(key, value)| key.span().start..value.span().end).collect(), around }
    }

    pub(super) fn body(&self, whole: &Bytes) -> Bytes {
        let (before, after) = &self.around;
        let bytes: usize = self.fields.iter().map(|field| field.len() + 1).sum();
        let mut body = BytesMut::with_capacity(before.len() + bytes + after.len());
        body.put_slice(before.as_bytes());
        for (at, field) in self.fields.iter().enumerate() {
            if at > 0 {
                body.put_u8(b',');
            }
            body.put_slice(&whole[field.clone()]);
        }
        body.put_slice(after.as_bytes());
        body.freeze()
    }
}

/// The fields of a body that a counter accepts. The other fields are not input.
const fn fields(format: CallFormat) -> Option<&'static [&'static str]> {
    match format {
        CallFormat::Messages => Some(&[
            "cache_control",
            "context_management",
            "messages",
            "model",
            "output_config",
            "output_format",
            "system",
            "thinking",
            "tool_choice",
            "tools",
        ]),
        CallFormat::Responses => Some(&[
            "input",
            "instructions",
            "model",
            "parallel_tool_calls",
            "reasoning",
            "text",
            "tool_choice",
            "tools",
            "truncation",
        ]),
        // Its fields have two spellings, so they are found by its own reader.
        CallFormat::Chat | CallFormat::Gemini => None,
    }
}

/// The path of the counter of a format, relative to the address of its provider.
pub(super) fn path(format: CallFormat, model: &str) -> Option<Cow<'static, str>> {
    match format {
        CallFormat::Messages => Some(Cow::Borrowed("/messages/count_tokens")),
        CallFormat::Responses => Some(Cow::Borrowed("/responses/input_tokens")),
        CallFormat::Gemini => Some(Cow::Owned(format!("/models/{model}:countTokens"))),
        CallFormat::Chat => None,
    }
}

/// The bound according to a counter's response; `None` if the response has no count.
pub(super) fn bound(format: CallFormat, answer: &[u8]) -> Option<u64> {
    let Counted { input_tokens } = serde_json::from_slice(answer).ok()?;
    let margin = match format {
        CallFormat::Messages | CallFormat::Gemini => {
            input_tokens.div_ceil(COUNT_MARGIN_PART).max(COUNT_MARGIN_TOKENS)
        }
        CallFormat::Chat | CallFormat::Responses => OPEN_AI_COUNT_MARGIN_TOKENS,
    };
    // A count of zero is not credible.
    (input_tokens > 0).then(|| input_tokens.saturating_add(margin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_has_a_margin() {
        let bound = |format, tokens: u64| bound(format, format!("{{\"input_tokens\":{tokens}}}").as_bytes());
        assert_eq!(bound(CallFormat::Messages, 100), Some(612));
        assert_eq!(bound(CallFormat::Messages, 100_000), Some(102_000));
        assert_eq!(bound(CallFormat::Responses, 100_000), Some(100_064));
        assert_eq!(bound(CallFormat::Messages, 0), None);
        assert_eq!(super::bound(CallFormat::Messages, b"{}"), None);
        assert_eq!(super::bound(CallFormat::Gemini, b"{\"totalTokens\":100}"), Some(612));
        assert_eq!(super::bound(CallFormat::Messages, b"{\"input_tokens\":-1}"), None);
    }
}
