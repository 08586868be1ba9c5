//! Calls that end otherwise than with an answer: broken connections, answers that cannot be read, errors.

use serde_json::{Value, json};

use super::bill::Billed;
use super::row::{Reply, Row, input, usage, whole};
use crate::provider::Format;

/// The model has written everything, and the bill is for all of it.
pub(super) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for format in Format::ALL {
        let row = |name: &str| Row::new(format, name).sent(json!({}), input(30));
        rows.extend([
            row("a connection that breaks before the answer").answers(|_| Reply::status(200, "").cut()),
            row("an answer that breaks off")
                .answers(move |billed| Reply::json(&whole(format, &usage(format, billed))).cut()),
            row("an answer that is empty").answers(|_| Reply::status(200, "")),
            row("an answer that is no JSON").answers(|_| Reply::status(200, "<html>")),
            row("an error in an answer").answers(|_| {
                let error: Value =
                    json!({ "type": "error", "error": { "type": "server_error", "message": "x" } });
                Reply::json(&error)
            }),
            row("a stream that nobody asked for and that breaks off")
                .answers(|_| Reply::stream(&[json!({ "type": "ping" })]).cut()),
        ]);
    }
    // A server in between may have given up while the model works on.
    rows.extend([408, 502, 504, 520, 524, 527, 530].map(|status| {
        Row::new(Format::Chat, format!("a server in between that gives up with {status}"))
            .elsewhere()
            .sent(json!({}), input(30))
            .answers(move |_| Reply::status(status, "{}"))
    }));
    // Nothing is billed for these.
    let free = Billed { output: 0, ..input(0) };
    rows.extend([400, 401, 429, 503, 529, 302].map(|status| {
        Row::new(Format::Messages, format!("an error that costs nothing: {status}"))
            .sent(json!({}), free)
            .answers(move |_| Reply::status(status, "{}"))
    }));
    rows
}
