//! The values that are looked for, as one automaton (Aho and Corasick): it reads each byte once, however many there are.

use std::collections::{BTreeSet, VecDeque};

use super::{HELD_BYTES_MAX, VALUE_BYTES_MIN};

/// How deep in JSON a value is found.
const JSON_DEPTH_MAX: usize = 3;
/// In how many forms one is looked for at most. A value of letters, digits and the like has one.
const FORMS_MAX: usize = 40;

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Secret {
    /// A word that looks like a key.
    Key,
    /// A signed token.
    Token,
    /// A private key in its text form.
    PrivateKey,
    /// One of the values, by the index of its name.
    Value(u32),
}

/// All values.
pub(super) struct Values {
    names: Vec<String>,
    /// As they are.
    plain: Vec<String>,
    nodes: Vec<Node>,
}

/// A state: the longest end of the text that is the beginning of a value.
#[derive(Default)]
struct Node {
    /// By byte.
    next: Vec<(u8, u32)>,
    /// The state of the next shorter end.
    fail: u32,
    /// The length of this one.
    depth: u32,
    /// The longest value that ends here, and its name.
    value: Option<(u32, u32)>,
}

impl Default for Values {
    fn default() -> Self {
        Self { names: Vec::new(), plain: Vec::new(), nodes: vec![Node::default()] }
    }
}

impl Values {
    pub(super) fn new(values: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut all = Self::default();
        for (name, value) in values {
            if value.len() >= VALUE_BYTES_MIN {
                let known = all.names.iter().position(|known| *known == name);
                let name = known.unwrap_or_else(|| {
                    all.names.push(name);
                    all.names.len() - 1
                });
                all.plain.push(value.clone());
                for form in escaped(value) {
                    windows(&form).into_iter().for_each(|window| all.insert(window, name as u32));
                }
            }
        }
        all.link();
        all
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn name(&self, secret: Secret) -> &str {
        match secret {
            Secret::Key => "key",
            Secret::Token => "token",
            Secret::PrivateKey => "private key",
            Secret::Value(name) => &self.names[name as usize],
        }
    }

    /// How long the longest end of a value is that the text begins with, if it has at least so many bytes.
    pub(super) fn longest_end_before(&self, text: &str, bytes_min: usize) -> usize {
        let of_value = |value: &String| {
            let ends = value.char_indices().skip(1).map(|(at, _)| &value[at..]);
            let mut long = ends.take_while(|end| end.len() >= bytes_min);
            long.find(|end| text.starts_with(*end)).map_or(0, str::len)
        };
        self.plain.iter().map(of_value).max().unwrap_or(0)
    }

    /// The state after one more byte.
    pub(super) fn step(&self, mut state: u32, byte: u8) -> u32 {
        loop {
            match self.child(state, byte) {
                Some(child) => return child,
                None if state == 0 => return 0,
                None => state = self.nodes[state as usize].fail,
            }
        }
    }

    /// How many bytes before this state could be the beginning of a value.
    pub(super) fn depth(&self, state: u32) -> usize {
        self.nodes[state as usize].depth as usize
    }

    /// The length of the longest value that ends in this state.
    pub(super) fn ended(&self, state: u32) -> Option<(usize, Secret)> {
        self.nodes[state as usize].value.map(|(length, name)| (length as usize, Secret::Value(name)))
    }

    fn child(&self, state: u32, byte: u8) -> Option<u32> {
        let next = &self.nodes[state as usize].next;
        next.binary_search_by_key(&byte, |(byte, _)| *byte).ok().map(|at| next[at].1)
    }

    fn insert(&mut self, value: &str, name: u32) {
        let mut state = 0;
        for byte in value.bytes() {
            state = self.child(state, byte).unwrap_or_else(|| {
                let (child, depth) = (self.nodes.len() as u32, self.nodes[state as usize].depth + 1);
                self.nodes.push(Node { depth, ..Node::default() });
                let next = &mut self.nodes[state as usize].next;
                let at = next.partition_point(|(known, _)| *known < byte);
                next.insert(at, (byte, child));
                child
            });
        }
        // The first name stays.
        self.nodes[state as usize].value.get_or_insert((value.len() as u32, name));
    }

    fn link(&mut self) {
        let mut queue = VecDeque::from([0_u32]);
        while let Some(state) = queue.pop_front() {
            for at in 0..self.nodes[state as usize].next.len() {
                let (byte, child) = self.nodes[state as usize].next[at];
                let fail = if state == 0 { 0 } else { self.step(self.nodes[state as usize].fail, byte) };
                let shorter = self.nodes[fail as usize].value;
                let node = &mut self.nodes[child as usize];
                node.fail = fail;
                node.value = node.value.or(shorter);
                queue.push_back(child);
            }
        }
    }
}

/// A value as it is, and as JSON escapes it, in JSON that is a text of other JSON as well.
fn escaped(value: String) -> BTreeSet<String> {
    let mut all = BTreeSet::from([value]);
    for _ in 0..JSON_DEPTH_MAX {
        let deeper: Vec<String> = all.iter().flat_map(|text| in_json(text)).collect();
        all.extend(deeper.into_iter().take(FORMS_MAX.saturating_sub(all.len())));
    }
    all
}

/// A text as JSON has it: as few escapes as can be, and those that libraries add by default. They are for slashes, for what
/// could be HTML, and for everything that is not ASCII.
fn in_json(text: &str) -> impl Iterator<Item = String> {
    let json = serde_json::Value::from(text).to_string();
    let plain = json[1..json.len() - 1].to_owned();
    let slashes = plain.replace('/', "\\/");
    let html = |letter: char| matches!(letter, '<' | '>' | '&' | '\'' | '+');
    let few = |letter: char| matches!(letter, '<' | '>' | '&');
    [
        with_codes(&plain, Digits::Lower, |letter| !letter.is_ascii()),
        with_codes(&slashes, Digits::Lower, |letter| !letter.is_ascii()),
        with_codes(&plain, Digits::Upper, |letter| !letter.is_ascii()),
        with_codes(&plain, Digits::Upper, |letter| !letter.is_ascii() || html(letter)),
        with_codes(&plain, Digits::Lower, few),
        slashes,
        plain,
    ]
    .into_iter()
}

#[derive(Clone, Copy)]
enum Digits {
    Lower,
    Upper,
}

/// Some letters as `\uXXXX`.
fn with_codes(json: &str, digits: Digits, is_coded: impl Fn(char) -> bool) -> String {
    let mut text = String::new();
    for letter in json.chars() {
        if !is_coded(letter) {
            text.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            text += &match digits {
                Digits::Lower => format!("\\u{unit:04x}"),
                Digits::Upper => format!("\\u{unit:04X}"),
            };
        }
    }
    text
}

/// A value in parts that are no longer than what is held back. Where all of it is found, all of it is covered.
fn windows(value: &str) -> Vec<&str> {
    let (mut windows, mut start, mut end) = (Vec::new(), 0, 0);
    while end < value.len() {
        end = value.floor_char_boundary(start + HELD_BYTES_MAX);
        windows.push(&value[start..end]);
        // The last part is as long as the others: a short one would be an ordinary word.
        start = end.min(value.ceil_char_boundary(value.len().saturating_sub(HELD_BYTES_MAX)));
    }
    windows
}
