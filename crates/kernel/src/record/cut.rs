//! What a window leaves out, as the journal records it.

use serde::{Deserialize, Serialize};

use crate::primitives::CallId;
use crate::record::Header;

/// What a window leaves out from now on. Positions are those before the cut.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cut {
    /// Runs of messages to drop, in order.
    pub drop: Vec<Span>,
    /// Messages that stay, but whose images become placeholders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blank: Vec<ImageCut>,
    /// The most tokens of the digest of left-out messages.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub folded: u32,
}

/// A model call whose packet was cut after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shortened {
    pub call: CallId,
    /// Upper bound on the tokens of the packet that is left.
    pub input_tokens: u64,
}

/// Turns the oldest images of a message into placeholders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageCut {
    /// The message's position among those that stay.
    pub at: u32,
    pub images: u8,
}

/// A half-open range of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    pub from: u32,
    pub to: u32,
}

/// How much of a category was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    pub messages: u32,
    /// Their tokens, as the window counted them.
    pub tokens: u64,
}

impl LeftOut {
    pub(crate) fn add(&mut self, header: &Header) {
        self.messages = self.messages.saturating_add(1);
        self.tokens = self.tokens.saturating_add(header.estimate.into());
    }
}

impl Cut {
    #[must_use]
    pub fn drops(&self, place: u32) -> bool {
        Span::has(&self.drop, place)
    }
}

impl Span {
    /// Whether one of these sorted spans contains `place`.
    #[must_use]
    pub fn has(spans: &[Self], place: u32) -> bool {
        let after = spans.partition_point(|span| span.to <= place);
        spans.get(after).is_some_and(|span| span.from <= place)
    }

    /// Every position in these spans.
    pub fn places(spans: &[Self]) -> impl Iterator<Item = usize> {
        spans.iter().flat_map(|span| span.from as usize..span.to as usize)
    }

    /// Appends a span, merged with the last one if they touch.
    pub(crate) fn join(spans: &mut Vec<Self>, from: u32, to: u32) {
        match spans.last_mut() {
            Some(span) if span.to == from => span.to = to,
            Some(_) | None => spans.push(Self { from, to }),
        }
    }
}

const fn is_zero(amount: &u32) -> bool {
    *amount == 0
}
