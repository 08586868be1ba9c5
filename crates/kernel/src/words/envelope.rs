//! What stands on a message beside its text: the topic it is for, of which kind it is, and what it belongs to.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::words::{Category, Correlation, MessageKind, Topic};

/// What stands on a message. Most messages have nothing of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// Who may be interested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<Topic>,
    /// What sort of message it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<MessageKind>,
    /// What it belongs to: a reply carries the one of its request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation: Option<Correlation>,
    /// How often it may still be handled. Whoever forwards it passes on one less; with 0 it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u32>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "is_dialog")]
    pub category: Category,
}

fn is_dialog(category: &Category) -> bool {
    *category == Category::Dialog
}

impl Envelope {
    /// Whether nothing stands on it.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// The line above the text, as a model reads it; nothing if nothing stands on it.
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
            // Writing to a string does not fail.
            let _ = write!(line, "{before}{name} {word}");
        }
        if !line.is_empty() {
            line.push_str("]\n");
        }
        line
    }
}
