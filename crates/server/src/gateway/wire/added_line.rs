//! Where a line at the end of a request's system prompt goes. Everything before it stays as the program sent it, so what a
//! provider has cached of that is found again.

use std::ops::Range;

use super::gemini;
use super::json_tape::{JsonKind, JsonNode};
use super::route::CallFormat;
use super::splice::Splice;

/// Most bytes of a line that is added.
pub const TOLD_LINE_BYTES_MAX: usize = 160;
/// Most tokens that a provider counts for what is around the line.
const FRAME_TOKENS_MAX: u64 = 16;

/// The most input tokens that an added line can have: no token is shorter than a byte, and no more bytes are added than
/// the line and a blank line.
pub const TOLD_LINE_TOKENS_MAX: u64 = TOLD_LINE_BYTES_MAX as u64 + 4 + FRAME_TOKENS_MAX;

/// The end of the system prompt of a request.
#[derive(Clone, Debug)]
pub(super) enum LinePlace {
    /// In a text, before its closing quote.
    Text { at: usize },
    /// In a list of parts of this type, before its closing bracket.
    Parts { at: usize, is_empty: bool },
    /// There is none: a field of the root.
    NewField { inside: usize, name: &'static str },
    /// There is null in its place.
    Null { span: Range<usize> },
    /// There is none: a message before all others. `inside` is the place behind the bracket.
    NewMessage { inside: usize },
    /// Between these texts, which replace what is there.
    Around { at: Range<usize>, before: String, after: &'static str },
    /// The request has a form that takes none.
    Nowhere,
}

impl LinePlace {
    pub(super) fn new(format: CallFormat, root: JsonNode<'_>, inside: usize) -> Self {
        match format {
            CallFormat::Messages => Self::field(root, inside, "system"),
            CallFormat::Responses => Self::field(root, inside, "instructions"),
            CallFormat::Chat => Self::of_chat(root),
            CallFormat::Gemini => gemini::line_place(root),
        }
    }

    fn field(root: JsonNode<'_>, inside: usize, name: &'static str) -> Self {
        match root.member(name) {
            Ok(value) => value.map_or(Self::NewField { inside, name }, Self::value),
            Err(_) => Self::Nowhere,
        }
    }

    fn value(value: JsonNode<'_>) -> Self {
        let end = value.span().end.saturating_sub(1);
        match value.kind() {
            JsonKind::Text => Self::Text { at: end },
            JsonKind::Array => Self::Parts { at: end, is_empty: value.is_nothing() },
            JsonKind::Null => Self::Null { span: value.span() },
            JsonKind::Object | JsonKind::Number | JsonKind::True | JsonKind::False => Self::Nowhere,
        }
    }

    /// The last of the system messages at the beginning. A server may take only one.
    fn of_chat(root: JsonNode<'_>) -> Self {
        let Ok(Some(messages)) = root.member("messages") else { return Self::Nowhere };
        if messages.kind() != JsonKind::Array || messages.is_nothing() {
            return Self::Nowhere;
        }
        let is_system = |message: &JsonNode<'_>| {
            let role = message.member("role").ok().flatten();
            role.is_some_and(|role| role.is_text("system") || role.is_text("developer"))
        };
        let Some(last) = messages.items().take_while(is_system).last() else {
            return Self::NewMessage { inside: messages.span().start + 1 };
        };
        match last.member("content").ok().flatten().map(Self::value) {
            Some(place @ (Self::Text { .. } | Self::Parts { .. })) => place,
            Some(_) | None => Self::Nowhere,
        }
    }

    /// The change that adds a line.
    pub(super) fn splice(&self, line: &str) -> Option<Splice> {
        let line = &line[..line.floor_char_boundary(TOLD_LINE_BYTES_MAX)];
        let quoted = serde_json::Value::from(line).to_string();
        let written = &quoted[1..quoted.len() - 1];
        let part = format!("{{\"type\":\"text\",\"text\":{quoted}}}");
        Some(match self {
            Self::Text { at } => Splice::new(*at..*at, format!("\\n\\n{written}")),
            Self::Parts { at, is_empty: true } => Splice::new(*at..*at, part),
            Self::Parts { at, is_empty: false } => Splice::new(*at..*at, format!(",{part}")),
            Self::NewField { inside, name } => Splice::field(*inside, name, quoted),
            Self::Null { span } => Splice::new(span.clone(), quoted),
            Self::NewMessage { inside } => {
                let message = format!("{{\"role\":\"system\",\"content\":{quoted}}},");
                Splice::new(*inside..*inside, message)
            }
            Self::Around { at, before, after } => Splice::new(at.clone(), format!("{before}{quoted}{after}")),
            Self::Nowhere => return None,
        })
    }
}
