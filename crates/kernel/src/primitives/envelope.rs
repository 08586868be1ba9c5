//! A message's metadata: topic, kind, correlation id, time to live and category.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::primitives::{Category, Correlation, MessageKind, Topic};

/// A message's metadata. Most messages have none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<Topic>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<MessageKind>,
    /// A reply has the correlation id of its request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation: Option<Correlation>,
    /// How many more times it may be forwarded. A message with 0 is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u32>,
    #[serde(default, skip_serializing_if = "is_dialog")]
    pub category: Category,
}

fn is_dialog(category: &Category) -> bool {
    *category == Category::Dialog
}

impl Envelope {
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// The line above the text, as a model reads it. Empty without metadata.
    #[must_use]
    pub(crate) fn line(&self) -> String {
        let Self { topic, kind, correlation, ttl: _, category: _ } = self;
        let mut line = String::new();
        let words = [
            ("topic", topic.as_ref().map(Topic::as_str)),
            ("type", kind.as_ref().map(MessageKind::as_str)),
            ("correlation", correlation.as_ref().map(Correlation::as_str)),
        ];
        for (name, word) in words.iter().filter_map(|(name, word)| Some((name, (*word)?))) {
            let before = if line.is_empty() { "[" } else { ", " };
            // Writing to a string cannot fail.
            let _ = write!(line, "{before}{name} {word}");
        }
        if !line.is_empty() {
            line.push_str("]\n");
        }
        line
    }
}
