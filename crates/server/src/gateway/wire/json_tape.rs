//! Where the values of a JSON text are. One pass without recursion gives a flat list of all values in the order of the
//! text, so any part can be found by its place, and bytes can be replaced there without rewriting the rest.
//!
//! It accepts exactly what `serde_json` accepts for a value that is not inspected: any nesting, any number, duplicate
//! keys, and escapes that are not characters.

use std::borrow::Cow;
use std::ops::Range;

use super::bounds::{REQUEST_BYTES_MAX, REQUEST_VALUES_MAX};

/// The values of a text.
#[derive(Debug)]
pub(super) struct JsonTape<'b> {
    text: &'b str,
    /// Each value before what is in it. In an object every key comes before its value.
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JsonKind {
    Object,
    Array,
    Text,
    Number,
    True,
    False,
    Null,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    kind: JsonKind,
    start: u32,
    end: u32,
    /// The first node that is not within this one.
    after: u32,
}

/// A value of a tape.
#[derive(Clone, Copy, Debug)]
pub(super) struct JsonNode<'t> {
    tape: &'t JsonTape<'t>,
    at: usize,
}

/// A member of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct JsonMember<'t> {
    pub(super) key: JsonNode<'t>,
    pub(super) value: JsonNode<'t>,
}

/// Why a text has no tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum JsonFault {
    #[error("it is not JSON: byte {at} is unexpected")]
    Unexpected { at: usize },
    #[error("it has more than {REQUEST_VALUES_MAX} JSON values")]
    TooManyValues,
    #[error("it has more than {REQUEST_BYTES_MAX} bytes")]
    TooLarge,
}

/// A key that parsers read in different ways.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum AmbiguousKey {
    #[error("`{0}` appears twice in one object: send it once")]
    Twice(String),
    /// Some servers read `Max_Tokens` as `max_tokens`.
    #[error("some servers read `{written}` as `{name}`: write it in lower case")]
    OtherCase { written: String, name: String },
}

/// What may come next.
#[derive(Clone, Copy)]
enum Next {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    CommaOrEnd,
}

impl<'b> JsonTape<'b> {
    pub(super) fn read(text: &'b str) -> Result<Self, JsonFault> {
        if text.len() > REQUEST_BYTES_MAX {
            return Err(JsonFault::TooLarge);
        }
        let mut tape = Self { text, nodes: Vec::new() };
        let bytes = text.as_bytes();
        let (mut at, mut next) = (0, Next::Value);
        let mut open: Vec<usize> = Vec::new();
        loop {
            at = after_space(bytes, at);
            let byte = bytes.get(at).copied();
            let unexpected = Err(JsonFault::Unexpected { at });
            match (next, byte) {
                (Next::Value | Next::ValueOrEnd, Some(start @ (b'{' | b'['))) => {
                    open.push(tape.nodes.len());
                    let (kind, then) = match start {
                        b'{' => (JsonKind::Object, Next::KeyOrEnd),
                        _ => (JsonKind::Array, Next::ValueOrEnd),
                    };
                    tape.push(kind, at..at)?;
                    (at, next) = (at + 1, then);
                }
                (Next::Value | Next::ValueOrEnd, Some(b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n')) => {
                    let (kind, end) = scalar(bytes, at)?;
                    tape.push(kind, at..end)?;
                    (at, next) = (end, Next::CommaOrEnd);
                }
                (Next::Key | Next::KeyOrEnd, Some(b'"')) => {
                    let end = text_end(bytes, at)?;
                    tape.push(JsonKind::Text, at..end)?;
                    at = after_space(bytes, end);
                    if bytes.get(at) != Some(&b':') {
                        return Err(JsonFault::Unexpected { at });
                    }
                    (at, next) = (at + 1, Next::Value);
                }
                (Next::CommaOrEnd, None) if open.is_empty() => return Ok(tape),
                (Next::CommaOrEnd, Some(b',')) => {
                    next = match open.last().map(|ix| tape.nodes[*ix].kind) {
                        Some(JsonKind::Object) => Next::Key,
                        Some(_) => Next::Value,
                        None => return unexpected,
                    };
                    at += 1;
                }
                (Next::KeyOrEnd | Next::ValueOrEnd | Next::CommaOrEnd, Some(end @ (b'}' | b']'))) => {
                    let Some(ix) = open.pop() else { return unexpected };
                    let after = tape.count();
                    let node = &mut tape.nodes[ix];
                    if (node.kind == JsonKind::Object) != (end == b'}') {
                        return unexpected;
                    }
                    at += 1;
                    (node.end, node.after, next) = (place(at), after, Next::CommaOrEnd);
                }
                _ => return unexpected,
            }
        }
    }

    pub(super) const fn root(&self) -> JsonNode<'_> {
        JsonNode { tape: self, at: 0 }
    }

    fn push(&mut self, kind: JsonKind, span: Range<usize>) -> Result<(), JsonFault> {
        if self.nodes.len() >= REQUEST_VALUES_MAX {
            return Err(JsonFault::TooManyValues);
        }
        let after = self.count() + 1;
        self.nodes.push(Node { kind, start: place(span.start), end: place(span.end), after });
        Ok(())
    }

    fn count(&self) -> u32 {
        place(self.nodes.len())
    }
}

impl<'t> JsonNode<'t> {
    fn node(self) -> Node {
        self.tape.nodes[self.at]
    }

    pub(super) fn kind(self) -> JsonKind {
        self.node().kind
    }

    pub(super) fn span(self) -> Range<usize> {
        let node = self.node();
        node.start as usize..node.end as usize
    }

    pub(super) fn raw(self) -> &'t str {
        &self.tape.text[self.span()]
    }

    pub(super) fn is_null(self) -> bool {
        self.kind() == JsonKind::Null
    }

    /// Whether it says nothing: null, false, or an empty list, object or text.
    pub(super) fn is_nothing(self) -> bool {
        match self.kind() {
            JsonKind::Null | JsonKind::False => true,
            JsonKind::Object | JsonKind::Array => self.node().after as usize == self.at + 1,
            JsonKind::Text => self.span().len() == 2,
            JsonKind::Number | JsonKind::True => false,
        }
    }

    /// The text, if it is one and has no escapes that are not characters.
    pub(super) fn text(self) -> Option<Cow<'t, str>> {
        if self.kind() != JsonKind::Text {
            return None;
        }
        let raw = self.raw();
        if raw.contains('\\') {
            return serde_json::from_str::<String>(raw).ok().map(Cow::Owned);
        }
        Some(Cow::Borrowed(&raw[1..raw.len() - 1]))
    }

    pub(super) fn is_text(self, text: &str) -> bool {
        self.text().is_some_and(|own| own == text)
    }

    /// The number, if it is written as a whole one and is not negative.
    pub(super) fn whole_number(self) -> Option<u64> {
        let raw = self.raw();
        let is_whole = self.kind() == JsonKind::Number && raw.bytes().all(|byte| byte.is_ascii_digit());
        is_whole.then(|| raw.parse().unwrap_or(u64::MAX))
    }

    /// The members of an object; none if it is something else.
    pub(super) fn members(self) -> impl Iterator<Item = JsonMember<'t>> {
        let end = if self.kind() == JsonKind::Object { self.node().after as usize } else { 0 };
        let mut at = self.at + 1;
        std::iter::from_fn(move || {
            (at < end).then(|| {
                let key = JsonNode { tape: self.tape, at };
                let value = JsonNode { tape: self.tape, at: at + 1 };
                at = value.node().after as usize;
                JsonMember { key, value }
            })
        })
    }

    /// The items of a list; none if it is something else.
    pub(super) fn items(self) -> impl Iterator<Item = Self> {
        let end = if self.kind() == JsonKind::Array { self.node().after as usize } else { 0 };
        let mut at = self.at + 1;
        std::iter::from_fn(move || {
            (at < end).then(|| {
                let item = JsonNode { tape: self.tape, at };
                at = item.node().after as usize;
                item
            })
        })
    }

    /// A member by its name, which is in lower case.
    pub(super) fn member(self, name: &str) -> Result<Option<Self>, AmbiguousKey> {
        let mut found = None;
        for member in self.members() {
            let Some(key) = member.key.text() else { continue };
            if key == name {
                if found.replace(member.value).is_some() {
                    return Err(AmbiguousKey::Twice(name.to_owned()));
                }
            } else if is_other_case(&key, name) {
                let written = key.chars().filter(|letter| !letter.is_control()).take(64).collect();
                return Err(AmbiguousKey::OtherCase { written, name: name.to_owned() });
            }
        }
        Ok(found)
    }

    /// It and everything in it, including keys.
    pub(super) fn with_descendants(self) -> impl Iterator<Item = Self> {
        (self.at..self.node().after as usize).map(move |at| JsonNode { tape: self.tape, at })
    }
}

/// Whether a key is the same name in a different case: with capitals, or letters such as the long s.
fn is_other_case(key: &str, name: &str) -> bool {
    if key.is_ascii() {
        return key.eq_ignore_ascii_case(name);
    }
    folded(key) == name
}

/// A key in plain lower case: up and down again, so letters such as the long s become plain ones.
pub(super) fn folded(key: &str) -> String {
    key.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

/// A place in a text that is at most [`REQUEST_BYTES_MAX`] long, or in its tape.
fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn after_space(bytes: &[u8], at: usize) -> usize {
    let space = bytes[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    at + space.count()
}

fn scalar(bytes: &[u8], at: usize) -> Result<(JsonKind, usize), JsonFault> {
    let word = |kind, word: &str| {
        let is_word = bytes[at..].starts_with(word.as_bytes());
        if is_word { Ok((kind, at + word.len())) } else { Err(JsonFault::Unexpected { at }) }
    };
    match bytes[at] {
        b'"' => Ok((JsonKind::Text, text_end(bytes, at)?)),
        b't' => word(JsonKind::True, "true"),
        b'f' => word(JsonKind::False, "false"),
        b'n' => word(JsonKind::Null, "null"),
        _ => Ok((JsonKind::Number, number_end(bytes, at)?)),
    }
}

/// Where a text ends that begins with a quotation mark at `at`.
fn text_end(bytes: &[u8], start: usize) -> Result<usize, JsonFault> {
    let mut at = start + 1;
    loop {
        at = plain_end(bytes, at);
        match bytes.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => match bytes.get(at + 1) {
                Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => at += 2,
                Some(b'u') => {
                    let digits = bytes.get(at + 2..at + 6);
                    if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                        return Err(JsonFault::Unexpected { at });
                    }
                    at += 6;
                }
                _ => return Err(JsonFault::Unexpected { at }),
            },
            _ => return Err(JsonFault::Unexpected { at }),
        }
    }
}

/// The first position from `at` with a quotation mark, a backslash or a control character. Most of a body is text, so this
/// scans eight bytes at once.
pub(super) fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    let is_plain = |byte: &u8| !matches!(byte, b'"' | b'\\' | 0..=0x1f);
    // Sets the high bit of each byte that is smaller than `than`, and perhaps of later bytes.
    let smaller = |word: u64, than: u8| word.wrapping_sub(ONES * u64::from(than)) & !word & HIGH;
    while let Some(eight) = bytes.get(at..at + 8).and_then(|eight| <[u8; 8]>::try_from(eight).ok()) {
        let word = u64::from_le_bytes(eight);
        let is_quote = smaller(word ^ (ONES * u64::from(b'"')), 1);
        let is_backslash = smaller(word ^ (ONES * u64::from(b'\\')), 1);
        if is_quote | is_backslash | smaller(word, 0x20) != 0 {
            break;
        }
        at += 8;
    }
    at + bytes[at.min(bytes.len())..].iter().take_while(|byte| is_plain(byte)).count()
}

fn number_end(bytes: &[u8], start: usize) -> Result<usize, JsonFault> {
    let digits = |at: usize| {
        let count = bytes[at.min(bytes.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 { Err(JsonFault::Unexpected { at }) } else { Ok(at + count) }
    };
    let mut at = start + usize::from(bytes[start] == b'-');
    at = if bytes.get(at) == Some(&b'0') { at + 1 } else { digits(at)? };
    if bytes.get(at) == Some(&b'.') {
        at = digits(at + 1)?;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        at = digits(at + 1 + sign)?;
    }
    Ok(at)
}
