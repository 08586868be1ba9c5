//! What a window leaves out, as the journal records it.

use serde::{Deserialize, Serialize};

use crate::record::Header;

/// What is left out of a window from now on. Places are those that the messages had in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cut {
    /// Runs of messages that go, in order.
    pub drop: Vec<Span>,
    /// Among those that stay: whose images become placeholders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blank: Vec<Blank>,
    /// The most tokens that tell in short what was left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub folded: u32,
}

/// The oldest images of a message become placeholders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blank {
    /// The place of the message among those that stay.
    pub at: u32,
    /// How many of its images.
    pub images: u8,
}

/// A run of messages: the first of them, and the first behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// The first of them.
    pub from: u32,
    /// The first behind them.
    pub to: u32,
}

/// How much of a category was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    pub messages: u32,
    /// How many tokens they had at most.
    pub tokens: u64,
}

impl LeftOut {
    pub(crate) fn add(&mut self, header: &Header) {
        self.messages = self.messages.saturating_add(1);
        self.tokens = self.tokens.saturating_add(header.tokens.into());
    }
}

impl Cut {
    /// Whether the message at this place goes.
    #[must_use]
    pub fn drops(&self, place: u32) -> bool {
        Span::has(&self.drop, place)
    }
}

impl Span {
    /// Whether one of some runs, which are in order, has this place.
    #[must_use]
    pub fn has(spans: &[Self], place: u32) -> bool {
        let after = spans.partition_point(|span| span.to <= place);
        spans.get(after).is_some_and(|span| span.from <= place)
    }

    /// Every place of some runs.
    pub fn places(spans: &[Self]) -> impl Iterator<Item = usize> {
        spans.iter().flat_map(|span| span.from as usize..span.to as usize)
    }

    /// Adds a run behind some, as part of the last where they meet.
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
