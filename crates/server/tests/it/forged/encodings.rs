//! Bodies that a server may read otherwise than the gateway does.

use super::bill::Billed;
use super::row::{Row, input};
use crate::provider::Format;

const BODY: &str =
    r#"{"model":"gpt-5","max_completion_tokens":64,"messages":[{"role":"user","content":"hi"}]}"#;

pub(super) fn rows() -> Vec<Row> {
    let row = |name: &'static str| Row::new(Format::Chat, name);
    let utf_16: Vec<u8> = BODY.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let with = |from: &str, to: &str| BODY.replace(from, to);
    let mut rows = vec![
        row("UTF-16").refused_bytes(utf_16),
        row("a mark of the byte order").refused_bytes(format!("\u{feff}{BODY}")),
        row("bytes that are not text").refused_bytes([BODY.as_bytes(), &[0xff]].concat()),
        row("two bodies").refused_bytes(format!("{BODY}{BODY}")),
        row("a comment").refused_bytes(with("{\"model\"", "{/* */\"model\"")),
        row("a comma at the end").refused_bytes(with("hi\"}]}", "hi\"}],}")),
        row("a control character in a text").refused_bytes(with("hi", "h\u{1}i")),
        row("a number that no JSON has").refused_bytes(with("64", "064")),
        row("an endless number").refused_bytes(with("64", "Infinity")),
        row("a field without a name of letters").refused_bytes(with("{\"model\"", r#"{"\ud800":1,"model""#)),
        row("half a letter in a text").sent_bytes(with("hi", r"\ud800\ud800"), Billed { output: 64, ..input(20) }),
        row("two models").refused_bytes(with("{\"model\"", r#"{"model":"gpt-5-pro","model""#)),
        row("two models, one of them escaped").refused_bytes(with("{\"model\"", r#"{"\u006dodel":"gpt-5-pro","model""#)),
        row("tools twice").refused_bytes(with(
            "{\"model\"",
            r#"{"tools":[{"type":"function","function":{"name":"f"}}],"tools":[{"type":"web_search"}],"model""#,
        )),
        row("a type twice").refused_bytes(with("\"hi\"", r#"[{"type":"text","type":"file","text":"x"}]"#)),
        row("a type in other letters").refused_bytes(with("\"hi\"", r#"[{"Type":"file","text":"x"}]"#)),
        row("a type that is escaped").sent_bytes(with("\"hi\"", r#"[{"t\u0079pe":"fil\u0065","file":{"file_id":"f"}}]"#), input(399_000)),
        row("messages twice").sent_bytes(
            with("{\"model\"", &format!(r#"{{"messages":[{{"role":"user","content":"{}"}}],"model""#, "a b ".repeat(2_000))),
            input(4_000),
        ),
        row("a compressed body").header("content-encoding", "gzip").refused_bytes(BODY),
        row("two encodings").header("content-encoding", "identity, br").refused_bytes(BODY),
    ];
    rows.extend(["utf-7", "utf-16", "UTF-16LE", "latin1", ""].map(|charset| {
        let media = format!("application/json; charset={charset}");
        Row::new(Format::Chat, format!("a body in the charset {charset:?}"))
            .header("content-type", &media)
            .refused_bytes(BODY)
    }));
    rows
}
