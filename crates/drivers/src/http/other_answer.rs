//! Answers that no API gives: where `base_url` leads is a web page, or some other server. Nothing was worked on, and
//! asking again would bring the same.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::wire::{Secrets, WireFault, WireFaultKind};

/// What each format has in an answer or an error; some servers leave out the rest.
const API_KEYS: [&str; 7] = ["candidates", "choices", "content", "error", "output", "usage", "usageMetadata"];
/// Those that nothing else has. Some servers put the whole answer into an object or their own list.
const INNER_KEYS: [&str; 4] = ["candidates", "choices", "usage", "usageMetadata"];
/// Longest title, text or name of a key that is shown.
const SHOWN_CHARS_MAX: usize = 60;
/// Most names that are shown.
const NAMES_MAX: usize = 5;

/// The fault of an answer that is this.
pub(super) fn fault(status: u16, what: &str) -> WireFault {
    let message = format!("the server sent {what}, not an API response");
    WireFault { status: Some(status), ..WireFault::new(WireFaultKind::NotFound, message) }
}

/// Describes a web page by its start.
pub(super) fn page(start: &[u8], secrets: &Secrets) -> String {
    let text = String::from_utf8_lossy(&secrets.hide_cut(start)).into_owned();
    let title = inner(&text, "<title>", "</title>").map(shown).filter(|title| !title.is_empty());
    title.map_or_else(|| "a web page".to_owned(), |title| format!("a web page (`{title}`)"))
}

/// Describes a text by its start.
pub(super) fn text(start: &[u8], secrets: &Secrets) -> String {
    format!("the text `{}`", shown(&String::from_utf8_lossy(&secrets.hide_cut(start))))
}

/// Describes a JSON text that has nothing of an answer. None if it has, or if it is not JSON.
pub(super) fn json(text: &str, secrets: &Secrets) -> Option<String> {
    let members: Option<BTreeMap<String, &RawValue>> = serde_json::from_str(text).ok();
    // Most answers are recognised here, without parsing the rest of them.
    if members.iter().flatten().any(|(key, _)| API_KEYS.contains(&key.as_str())) {
        return None;
    }
    let value: Value = serde_json::from_str(text).ok()?;
    if has_inner_key(&value) {
        return None;
    }
    let Some(members) = members else { return Some("a JSON list".to_owned()) };
    let names: Vec<String> = members
        .keys()
        .take(NAMES_MAX)
        .map(|key| format!("`{}`", shown(&String::from_utf8_lossy(&secrets.hide(key.as_bytes())))))
        .collect();
    Some(match names.as_slice() {
        [] => "an empty JSON object".to_owned(),
        names => format!("JSON with {}", names.join(", ")),
    })
}

/// The parser bounds how deep values nest.
fn has_inner_key(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(key, inner)| {
            let is_structured = inner.is_object() || inner.is_array();
            is_structured && (INNER_KEYS.contains(&key.as_str()) || has_inner_key(inner))
        }),
        Value::Array(items) => items.iter().any(has_inner_key),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn inner<'t>(text: &'t str, start: &str, end: &str) -> Option<&'t str> {
    let lower = text.to_ascii_lowercase();
    let from = lower.find(start)? + start.len();
    let to = from + lower[from..].find(end)?;
    Some(&text[from..to])
}

fn shown(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.trim().chars().map(plain).take(SHOWN_CHARS_MAX).collect()
}
