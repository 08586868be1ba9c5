//! Inputs whose tokens could be more than what is counted for their text.

use serde_json::{Value, json};

use super::row::{Row, input};
use crate::provider::Format;

pub(super) fn rows() -> Vec<Row> {
    let mut rows = tokenizers();
    rows.extend(shapes());
    rows
}

fn tokenizers() -> Vec<Row> {
    let texts = [
        // One token for each byte, at the dearest.
        ("letters that no vocabulary has", "\u{10ffff}\u{e000}".repeat(500), 3_500),
        ("special tokens as text", "<|endoftext|><|im_start|>".repeat(200), 200 * 14),
        ("control characters", "\u{1}\u{2}\u{7f}".repeat(400), 1_200),
        ("marks on one letter", format!("a{}", "\u{301}\u{302}".repeat(500)), 2_001),
        ("zeros without width", "\u{200b}\u{200d}\u{2060}".repeat(300), 900),
        ("digits in a row", "0123456789".repeat(300), 1_000),
        ("white space of many kinds", " \t\n\u{a0}\u{2003}".repeat(300), 1_500),
    ];
    let mut rows = Vec::new();
    for (name, text, tokens) in texts {
        rows.push(Row::new(Format::Chat, name).sent(
            json!({ "messages": [{ "role": "user", "content": text }] }),
            input(tokens.min(text.len() as u64)),
        ));
        rows.push(
            Row::new(Format::Responses, name)
                .model("gpt-6.1-sol")
                .sent(json!({ "input": text }), input(tokens.min(text.len() as u64))),
        );
        let bytes = text.len() as u64;
        rows.push(
            Row::new(Format::Messages, name)
                .sent(json!({ "messages": [{ "role": "user", "content": text }] }), input(bytes)),
        );
    }
    rows
}

fn shapes() -> Vec<Row> {
    // OpenAI writes a choice as a type: quotation marks and a bar are three tokens for each.
    let letters: Vec<String> =
        ('!'..='~').flat_map(|a| ('a'..='z').map(move |b| format!("{a}{b}"))).take(2_000).collect();
    let schema = json!({ "type": "object", "properties": { "x": { "type": "string", "enum": letters } } });
    let tool = json!([{ "type": "function", "function": { "name": "f", "parameters": schema } }]);
    let empty = |role: &str| json!({ "role": role, "content": [] });
    let format =
        json!({ "type": "json_schema", "name": "x", "schema": { "description": "a b ".repeat(1_000) } });
    let sentences = "a. ".repeat(5_000);
    let cited: Value = json!([{ "type": "document", "citations": { "enabled": true },
        "source": { "type": "text", "media_type": "text/plain", "data": sentences } }]);
    vec![
        Row::new(Format::Chat, "a tool with a choice of very many words")
            .sent(json!({ "tools": tool }), input(9_000)),
        Row::new(Format::Messages, "very many messages with nothing in them")
            .elsewhere()
            .sent(json!({ "messages": vec![empty("user"); 3_000] }), input(3_000 * 4)),
        Row::new(Format::Chat, "very many messages with nothing in them, chat")
            .sent(json!({ "messages": vec![empty("user"); 3_000] }), input(3_000 * 4)),
        Row::new(Format::Responses, "a schema of the answer that is shown twice")
            .sent(json!({ "text": { "format": format } }), input(2 * 2_000)),
        // Each sentence gets a number, and marks around it.
        Row::new(Format::Messages, "a document of short sentences with citations")
            .sent(json!({ "messages": [{ "role": "user", "content": cited }] }), input(5_000 * 12)),
        Row::new(Format::Messages, "a long role").sent(
            json!({ "messages": [{ "role": "user", "content": "a", "name": "n".repeat(5_000) }] }),
            input(5_000),
        ),
        Row::new(Format::Messages, "text in fields that a model may be shown").sent(
            json!({ "stop_sequences": ["s".repeat(5_000)], "metadata": { "user_id": "u" } }),
            input(5_000),
        ),
        Row::new(Format::Chat, "text in a field that nobody knows, elsewhere")
            .elsewhere()
            .sent(json!({ "documents": ["d".repeat(5_000)] }), input(5_000)),
    ]
}
