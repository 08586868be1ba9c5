//! Prices by length, by date and by name.

use serde_json::json;

use super::row::{Row, input};
use crate::provider::Format;

pub(super) fn rows() -> Vec<Row> {
    let letters = |count: usize| json!({ "messages": [{ "role": "user", "content": "a".repeat(count) }] });
    let messages = |name: &'static str, model: &'static str| Row::new(Format::Messages, name).model(model);
    let long = |name: &'static str, model: &'static str| {
        messages(name, model).header("anthropic-beta", "context-1m-2025-08-07")
    };
    let stored = json!({ "previous_response_id": "r" });
    let named = |format: Format, model: &'static str| {
        Row::new(format, format!("a name that is matched by its beginning: {model}")).model(model)
    };
    vec![
        messages("just below a dearer length", "claude-sonnet-4-5").sent(letters(200_000), input(200_000)),
        long("just above a dearer length", "claude-sonnet-4-5").sent(letters(200_001), input(200_001)),
        long("a length that is dearer than its bytes say", "claude-sonnet-4-5")
            .sent(letters(199_000), input(199_000))
            .sent(letters(199_000), input(200_000)),
        messages("a dearer length on a cheap model", "claude-haiku-5-5")
            .sent(letters(100_001), input(100_001)),
        messages("a price that has changed", "claude-opus-4-6").sent(letters(1_000), input(1_000)),
        messages("a long input at a price that has changed", "claude-opus-4-6")
            .sent(letters(250_000), input(250_000)),
        Row::new(Format::Responses, "a stored answer above a dearer length")
            .model("gpt-6.1-sol")
            .sent(stored.clone(), input(272_001))
            .sent(stored.clone(), input(1_049_000)),
        Row::new(Format::Responses, "a stored answer below a dearer length")
            .model("gpt-5.5")
            .sent(stored.clone(), input(272_000)),
        Row::new(Format::Responses, "a context that is rounded in lists")
            .model("gpt-5.5")
            .sent(stored, input(1_049_000)),
        Row::new(Format::Chat, "a price that has changed, chat").model("o3").sent(json!({}), input(20)),
        named(Format::Messages, "claude-sonnet-4-5-20250929").sent(json!({}), input(20)),
        named(Format::Messages, "claude-opus-4-1-20250805").sent(json!({}), input(20)),
        named(Format::Chat, "gpt-5-nano-2025-08-07").sent(json!({}), input(20)),
        Row::new(Format::Chat, "a model that searches by itself")
            .model("gpt-4o-mini-search-preview")
            .refused(json!({})),
        Row::new(Format::Chat, "a model that searches by itself, by its date")
            .model("gpt-4o-search-preview-2025-03-11")
            .refused(json!({})),
        Row::new(Format::Chat, "a model that was trained further")
            .model("ft:gpt-4o-mini-2024-07-18:org::1")
            .sent(json!({}), input(20)),
        Row::new(Format::Chat, "a model with its context in its name")
            .model("gpt-4o:extended")
            .sent(json!({}), input(20)),
        Row::new(Format::Messages, "a model that nobody knows").model("claude-mirror-9").refused(json!({})),
        Row::new(Format::Chat, "a model of another provider").model("claude-sonnet-4-5").refused(json!({})),
    ]
}
