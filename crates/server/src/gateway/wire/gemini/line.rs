//! The end of the system instruction.

use super::super::added_line::LinePlace;
use super::super::json_tape::{JsonKind, JsonNode};
use super::names::field;

/// Where a line goes that its agent reads.
pub(in crate::gateway::wire) fn place(root: JsonNode<'_>) -> LinePlace {
    let inside = root.span().start + 1;
    let around = |at: std::ops::Range<usize>, before: &str, after| LinePlace::Around {
        at,
        before: before.to_owned(),
        after,
    };
    let Ok(instruction) = field(root, "systemInstruction") else { return LinePlace::Nowhere };
    let Some(instruction) = instruction else {
        return around(inside..inside, "\"systemInstruction\":{\"parts\":[{\"text\":", "}]},");
    };
    if instruction.is_null() {
        return around(instruction.span(), "{\"parts\":[{\"text\":", "}]}");
    }
    if instruction.kind() != JsonKind::Object {
        return LinePlace::Nowhere;
    }
    let inside = instruction.span().start + 1;
    let Ok(parts) = field(instruction, "parts") else { return LinePlace::Nowhere };
    let Some(parts) = parts else {
        let after = if instruction.is_nothing() { "}]" } else { "}]," };
        return around(inside..inside, "\"parts\":[{\"text\":", after);
    };
    let end = parts.span().end.saturating_sub(1);
    match parts.kind() {
        JsonKind::Null => around(parts.span(), "[{\"text\":", "}]"),
        JsonKind::Array if parts.is_nothing() => around(end..end, "{\"text\":", "}"),
        JsonKind::Array => around(end..end, ",{\"text\":", "}"),
        // The API takes one part that is not in a list.
        JsonKind::Object => around(parts.span(), &format!("[{},{{\"text\":", parts.raw()), "}]"),
        JsonKind::Text | JsonKind::Number | JsonKind::True | JsonKind::False => LinePlace::Nowhere,
    }
}
