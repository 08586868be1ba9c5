//! What a person approves with a yes to a tool: all of its arguments, the important ones first.
//!
//! The arguments are hostile: they are shown one value per line, exactly as they are sent. Nothing in a value can
//! look like another value, a duplicate key is shown twice, and hidden parts are counted.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use spinney_kernel::record::ToolAsk;

use crate::wording::counted;

/// The most dangerous keys come first, in this order; the others follow as they were sent.
const FIRST: [&str; 18] = [
    "path",
    "file",
    "file_path",
    "filename",
    "from",
    "to",
    "command",
    "cmd",
    "program",
    "argv",
    "args",
    "cwd",
    "url",
    "uri",
    "host",
    "method",
    "agent",
    "tool",
];

/// Bytes shown of a shortened value, at its head and its tail.
const HEAD_BYTES: usize = 400;
const TAIL_BYTES: usize = 200;
/// Most values, and most lines of a value, that a brief extent shows.
const VALUES_MAX: usize = 16;
const LINES_MAX: usize = 12;
/// Above this many lines, the most important values are repeated below: they have scrolled away.
const SCREEN_LINES: usize = 16;
const REPEATED: usize = 3;

/// How much of the arguments is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalExtent {
    /// Every byte.
    Whole,
    /// Head and tail, and how much is hidden.
    Brief,
}

/// A call that needs approval, as lines.
#[derive(Debug, PartialEq, Eq)]
pub struct ShownApproval {
    /// One value per line; each line of a multi-line value starts with a bar.
    pub lines: Vec<String>,
    /// Bytes of the arguments that are hidden.
    pub hidden_bytes: usize,
}

struct Entry {
    key: String,
    value: String,
}

impl ShownApproval {
    /// What a yes to this call permits.
    #[must_use]
    pub fn new(ask: &ToolAsk, extent: ApprovalExtent) -> Self {
        let mut entries = entries(&ask.args);
        entries.sort_by_key(|entry| rank(&entry.key));
        let shown = match extent {
            ApprovalExtent::Whole => entries.len(),
            ApprovalExtent::Brief => entries.len().min(VALUES_MAX),
        };
        let mut hidden_bytes = entries[shown..].iter().map(|entry| entry.key.len() + entry.value.len()).sum();
        let mut lines = Vec::new();
        for entry in &entries[..shown] {
            lines.extend(entry.lines(extent, &mut hidden_bytes));
        }
        if shown < entries.len() {
            lines.push(format!(
                "… and {} that are not shown",
                counted((entries.len() - shown) as u64, "value")
            ));
        }
        if lines.len() > SCREEN_LINES && entries.iter().any(|entry| rank(&entry.key) < FIRST.len()) {
            lines.push(format!("of {} in all, the most important again:", size(&ask.args)));
            let first = entries.iter().filter(|entry| rank(&entry.key) < FIRST.len());
            lines.extend(first.take(REPEATED).map(|entry| entry.line(ApprovalExtent::Brief, &mut 0)));
        }
        Self { lines, hidden_bytes }
    }

    /// The most important values on one line, and the total size.
    pub fn in_short(ask: &ToolAsk) -> String {
        let mut entries = entries(&ask.args);
        entries.sort_by_key(|entry| rank(&entry.key));
        let values = entries.iter().take(REPEATED).map(|entry| {
            let end = entry.value.floor_char_boundary(HEAD_BYTES);
            format!("{} {}", entry.key, &entry.value[..end])
        });
        let values: Vec<String> = values.collect();
        format!("{}: {}", size(&ask.args), values.join(" · "))
    }
}

impl Entry {
    /// Its JSON on one line: a line break between JSON tokens means nothing.
    fn line(&self, extent: ApprovalExtent, hidden_bytes: &mut usize) -> String {
        let value = self.value.split('\n').map(str::trim).collect::<Vec<_>>().join(" ");
        format!("{}: {}", cut(&self.key, extent, hidden_bytes), cut(&value, extent, hidden_bytes))
    }

    fn lines(&self, extent: ApprovalExtent, hidden_bytes: &mut usize) -> Vec<String> {
        let text = serde_json::from_str::<String>(&self.value).ok();
        // A multi-line text is shown as lines.
        let is_long = text.as_ref().is_some_and(|text| text.trim_end().contains('\n'));
        let Some(text) = text.filter(|_| is_long) else {
            return vec![self.line(extent, hidden_bytes)];
        };
        let key = cut(&self.key, extent, hidden_bytes);
        let all: Vec<&str> = text.split('\n').collect();
        let (head, tail) = match extent {
            ApprovalExtent::Brief if all.len() > LINES_MAX => (LINES_MAX / 2, LINES_MAX / 2),
            ApprovalExtent::Brief | ApprovalExtent::Whole => (all.len(), 0),
        };
        let (head, rest) = all.split_at(head);
        let (middle, tail) = rest.split_at(rest.len() - tail);
        let mut lines = vec![format!("{key}: {} of text", counted(all.len() as u64, "line"))];
        let mut bar = |line: &&str| format!("  | {}", cut(line, extent, hidden_bytes));
        lines.extend(head.iter().map(&mut bar));
        let after: Vec<String> = tail.iter().map(&mut bar).collect();
        if !middle.is_empty() {
            let bytes: usize = middle.iter().map(|line| line.len() + 1).sum();
            *hidden_bytes += bytes;
            lines.push(format!("  … {} HIDDEN HERE …", hidden(middle.len(), bytes)));
        }
        lines.extend(after);
        lines
    }
}

fn hidden(lines: usize, bytes: usize) -> String {
    format!("{} of {}", counted(lines as u64, "line"), counted(bytes as u64, "byte")).to_uppercase()
}

fn size(args: &str) -> String {
    format!("{} of arguments", counted(args.len() as u64, "byte"))
}

/// A text, or its head and tail and how much is between them.
fn cut(text: &str, extent: ApprovalExtent, hidden_bytes: &mut usize) -> String {
    let (head, tail) = (text.floor_char_boundary(HEAD_BYTES), text.len().saturating_sub(TAIL_BYTES));
    let tail = text.ceil_char_boundary(tail.max(head));
    if extent == ApprovalExtent::Whole || tail == head {
        return text.to_owned();
    }
    *hidden_bytes += tail - head;
    let between = counted((tail - head) as u64, "byte").to_uppercase();
    format!("{} … {between} HIDDEN HERE … {}", &text[..head], &text[tail..])
}

fn rank(key: &str) -> usize {
    FIRST.iter().position(|first| key.eq_ignore_ascii_case(first)).unwrap_or(FIRST.len())
}

/// Decodes JSON escapes of ordinary characters: `\u002fetc` is `/etc` to the tool, and must be to the reader. Other
/// escapes stay.
fn decoded(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        text.push_str(before);
        let code = escape.get(2..6).filter(|_| escape.as_bytes().get(1) == Some(&b'u'));
        let ordinary = code
            .and_then(|code| u8::from_str_radix(code.strip_prefix("00")?, 16).ok())
            .filter(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\'));
        let taken = match ordinary {
            Some(byte) => {
                text.push(char::from(byte));
                6
            }
            // Skip a backslash and what it escapes, so no escape is read from its middle.
            None => {
                let end = escape.char_indices().nth(2).map_or(escape.len(), |(end, _)| end);
                text.push_str(&escape[..end]);
                end
            }
        };
        rest = &escape[taken..];
    }
    text + rest
}

/// The values of an object as they were sent; anything else is one value without a key.
fn entries(args: &str) -> Vec<Entry> {
    match serde_json::from_str(args) {
        Ok(Pairs(pairs)) => {
            let entry = |(key, value): (String, Box<RawValue>)| Entry {
                key: quoted(&key),
                value: decoded(value.get()),
            };
            pairs.into_iter().map(entry).collect()
        }
        Err(_) => {
            vec![Entry {
                key: "(no JSON object)".to_owned(),
                value: serde_json::Value::from(args).to_string(),
            }]
        }
    }
}

/// A plain word as it is, otherwise as JSON: a key cannot look like a value or another line.
fn quoted(key: &str) -> String {
    let is_word =
        !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    if is_word { key.to_owned() } else { serde_json::Value::from(key).to_string() }
}

/// The pairs of an object, including duplicate keys.
struct Pairs(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Pairs;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(args: &str) -> ToolAsk {
        ToolAsk {
            id: "1".to_owned(),
            tool: "write".to_owned(),
            args: args.to_owned(),
            tokens: None,
            told_tokens: None,
        }
    }

    fn whole(args: &str) -> Vec<String> {
        let ShownApproval { lines, hidden_bytes } = ShownApproval::new(&ask(args), ApprovalExtent::Whole);
        assert_eq!(hidden_bytes, 0);
        lines
    }

    #[test]
    fn escapes_of_ordinary_characters_are_written_out() {
        assert_eq!(whole(r#"{"path": "\u002fetc\u002f\u0070asswd"}"#), [r#"path: "/etc/passwd""#]);
        assert_eq!(
            whole(r#"{"a": ["\u0041", "\\u0041", "\u0022", "\u202e"]}"#),
            [r#"a: ["A", "\\u0041", "\u0022", "\u202e"]"#]
        );
    }

    #[test]
    fn what_matters_comes_first_and_no_value_looks_like_another() {
        assert_eq!(
            whole(r#"{"z": 1, "path": "a", "x": {"b": [1,  2]}, "path": "/etc", "command": "rm"}"#),
            ["path: \"a\"", "path: \"/etc\"", "command: \"rm\"", "z: 1", "x: {\"b\": [1,  2]}"]
        );
        assert_eq!(whole("{}"), Vec::<String>::new());
        assert_eq!(whole("[1,\n2]"), ["(no JSON object): 2 lines of text", "  | [1,", "  | 2]"]);
        assert_eq!(
            whole(r#"{"text": "one\npath: b", "a\nb": "c\n"}"#),
            ["text: 2 lines of text", "  | one", "  | path: b", "\"a\\nb\": \"c\\n\""]
        );
    }

    #[test]
    fn whatever_is_hidden_is_counted_and_nothing_hides_in_padding() {
        let padded = format!(r#"{{"text": "{}../../secret", "path": "out"}}"#, " ".repeat(4_000));
        let ShownApproval { lines, hidden_bytes } = ShownApproval::new(&ask(&padded), ApprovalExtent::Brief);
        assert_eq!(lines[0], "path: \"out\"");
        assert!(lines[1].ends_with("../../secret\""), "{lines:?}");
        assert!(lines[1].contains("3,414 BYTES HIDDEN HERE"), "{lines:?}");
        assert_eq!(hidden_bytes, 3_414);
        assert!(whole(&padded)[1].contains(&" ".repeat(4_000)));
        let tall = format!(r#"{{"text": "{}", "path": "out"}}"#, r"a\n".repeat(100));
        let lines = ShownApproval::new(&ask(&tall), ApprovalExtent::Brief).lines;
        assert!(lines.contains(&"  … 89 LINES OF 178 BYTES HIDDEN HERE …".to_owned()), "{lines:?}");
        // In full it is longer than a screen: the path appears at both ends.
        let lines = whole(&tall);
        assert_eq!(lines.iter().filter(|line| *line == "path: \"out\"").count(), 2, "{lines:?}");
    }
}
