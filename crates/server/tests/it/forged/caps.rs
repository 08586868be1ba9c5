//! The output cap, under all the names and in all the forms in which a server may read it.

use serde_json::{Value, json};

use super::bill::Billed;
use super::row::{Row, input};
use crate::provider::Format;

pub(super) fn rows() -> Vec<Row> {
    let mut rows = names();
    rows.extend(values());
    rows
}

fn names() -> Vec<Row> {
    let chat = |name: &'static str| Row::new(Format::Chat, name);
    let elsewhere = |name: &'static str| Row::new(Format::Chat, name).elsewhere();
    let mut rows = vec![
        chat("no cap at all").sent(json!({ "max_completion_tokens": null }), input(20)),
        chat("both names, one of them large")
            .reads_cap(&["max_tokens"])
            .sent(json!({ "max_completion_tokens": 10, "max_tokens": 90_000 }), input(20)),
        elsewhere("a server that passes over the newer name")
            .reads_cap(&["max_tokens"])
            .sent(json!({ "max_completion_tokens": 90 }), input(20)),
        elsewhere("a server that passes over the newer name, and no cap")
            .reads_cap(&["max_tokens"])
            .sent(json!({ "max_completion_tokens": null }), input(20)),
        Row::new(Format::Messages, "no cap at all, of messages")
            .sent(json!({ "max_tokens": null }), input(20)),
        Row::new(Format::Responses, "no cap at all, of responses")
            .sent(json!({ "max_output_tokens": null }), input(20)),
        Row::new(Format::Responses, "the cap of another format, of responses")
            .elsewhere()
            .refused(json!({ "max_tokens": 100_000 })),
        Row::new(Format::Responses, "the newer cap of another format, of responses")
            .elsewhere()
            .refused(json!({ "max_completion_tokens": 100_000 })),
        Row::new(Format::Messages, "the cap of another format, of messages")
            .elsewhere()
            .refused(json!({ "max_completion_tokens": 100_000 })),
        Row::new(Format::Messages, "the cap of another format at the provider")
            .refused(json!({ "max_output_tokens": 100_000 })),
        elsewhere("the cap of another format, of a chat").refused(json!({ "max_output_tokens": 100_000 })),
    ];
    let others = [
        json!({ "n_predict": 100_000 }),
        json!({ "num_predict": -1 }),
        json!({ "max_new_tokens": 100_000 }),
        json!({ "max_length": 100_000 }),
        json!({ "max_tokens_to_sample": 100_000 }),
        json!({ "maxOutputTokens": 100_000 }),
        json!({ "options": { "num_predict": 100_000 } }),
        json!({ "MAX_TOKENS": 100_000 }),
        json!({ "max_token\u{17f}": 100_000 }),
    ];
    rows.extend(others.iter().map(|fields: &Value| {
        Row::new(Format::Chat, format!("another cap: {fields}")).elsewhere().refused(fields.clone())
    }));
    rows
}

fn values() -> Vec<Row> {
    let body = |cap: &str| {
        format!(r#"{{"model":"claude-sonnet-4-5",{cap},"messages":[{{"role":"user","content":"hi"}}]}}"#)
    };
    let messages = |name: &str, cap: &str| Row::new(Format::Messages, name).refused_bytes(body(cap));
    let zero = |format: Format, field: &str| {
        Row::new(format, format!("a cap of zero: {field}")).refused(json!({ field: 0 }))
    };
    let nothing = Billed { output: 0, ..input(20) };
    vec![
        messages("a cap with a fraction", r#""max_tokens":64.5"#),
        messages("a cap with an exponent", r#""max_tokens":1e6"#),
        messages("a cap below zero", r#""max_tokens":-1"#),
        messages("a cap in a text", r#""max_tokens":"64""#),
        messages("a cap in a list", r#""max_tokens":[64]"#),
        messages("two caps", r#""max_tokens":64,"max_tokens":100000"#),
        messages("two caps, one of them escaped", r#""max_tokens":64,"max\u005ftokens":100000"#),
        messages("a cap in other letters", r#""max_tokens":64,"Max_Tokens":100000"#),
        Row::new(Format::Messages, "a cap beyond all numbers")
            .refused_bytes(body(r#""max_tokens":99999999999999999999999"#)),
        Row::new(Format::Messages, "a cap that is only escaped")
            .sent_bytes(body(r#""max\u005ftokens":64"#), input(20)),
        Row::new(Format::Messages, "a cap of zero fills the cache").sent(json!({ "max_tokens": 0 }), nothing),
        zero(Format::Chat, "max_completion_tokens"),
        zero(Format::Chat, "max_tokens"),
        zero(Format::Responses, "max_output_tokens"),
        zero(Format::Chat, "max_tokens").elsewhere(),
        Row::new(Format::Messages, "thinking beyond the cap").sent(
            json!({ "max_tokens": 2_000, "thinking": { "type": "enabled", "budget_tokens": 100_000 } }),
            input(20),
        ),
        // Half of what is free is granted: the bill is that of the lowered cap.
        Row::new(Format::Messages, "a cap that is lowered")
            .ceiling(200_000_000)
            .sent(json!({ "max_tokens": 60_000 }), input(20)),
    ]
}
