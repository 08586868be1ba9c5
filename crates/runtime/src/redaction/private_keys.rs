//! Private keys in their text form, between a line that begins and a line that ends them.

use std::mem;

const BEGIN: &[u8] = b"BEGIN ";
const END: &[u8] = b"END ";
/// The words after which a key follows.
const KINDS: [&[u8]; 2] = [b"PRIVATE KEY", b"PRIVATE KEY BLOCK"];
/// The dashes before and after each line.
const DASHES: usize = 5;
/// The longest name of a kind of key.
const KIND_BYTES_MAX: usize = 48;
/// The largest key. A text about keys is shown again after so many bytes.
const KEY_BYTES_MAX: usize = 16 * 1_024;

/// How far the end of the text is in such a key.
#[derive(Default)]
pub(super) struct PrivateKeys {
    /// In a key: how many bytes of it may follow.
    inside: Option<usize>,
    line: Line,
}

/// A line that begins or ends a key.
#[derive(Default)]
enum Line {
    #[default]
    None,
    /// So many dashes in a row.
    Dashes {
        start: usize,
        count: usize,
    },
    /// So many letters of the first word.
    Word {
        start: usize,
        length: usize,
    },
    Kind {
        start: usize,
        kind: Vec<u8>,
    },
    /// So many dashes after the kind.
    Closing {
        start: usize,
        kind: Vec<u8>,
        count: usize,
    },
}

impl PrivateKeys {
    /// Where what could become a key begins.
    pub(super) const fn held_from(&self) -> Option<usize> {
        match (&self.inside, &self.line) {
            (Some(_), _) | (None, Line::None) => None,
            (
                None,
                Line::Dashes { start, .. }
                | Line::Word { start, .. }
                | Line::Kind { start, .. }
                | Line::Closing { start, .. },
            ) => Some(*start),
        }
    }

    /// Takes the byte at this position. Returns from where on everything belongs to a key.
    pub(super) fn step(&mut self, at: usize, byte: u8) -> Option<usize> {
        let word = if self.inside.is_some() { END } else { BEGIN };
        let closed = self.line.take(at, byte, word);
        let Some(left) = &mut self.inside else {
            let (start, _) = closed.filter(|(_, kind)| KINDS.iter().any(|known| kind.ends_with(known)))?;
            (self.inside, self.line) = (Some(KEY_BYTES_MAX), Line::None);
            return Some(start);
        };
        *left -= 1;
        let is_over = closed.is_some() || *left == 0;
        let is_of_it = is_of_private_key(byte);
        if is_over || !is_of_it {
            self.inside = None;
            self.line = Line::None;
        }
        is_of_it.then_some(at)
    }
}

impl Line {
    /// Where the line began and what kind it names, once it is complete.
    fn take(&mut self, at: usize, byte: u8, word: &[u8]) -> Option<(usize, Vec<u8>)> {
        *self = match mem::take(self) {
            // More dashes than there must be: the line begins with the last of them.
            Self::Dashes { start, count: DASHES } if byte == b'-' => {
                Self::Dashes { start: start + 1, count: DASHES }
            }
            Self::Dashes { start, count } if byte == b'-' => Self::Dashes { start, count: count + 1 },
            Self::Dashes { start, count: DASHES } if byte == word[0] => Self::Word { start, length: 1 },
            Self::Word { start, length } if byte == word[length] => match length + 1 {
                length if length == word.len() => Self::Kind { start, kind: Vec::new() },
                length => Self::Word { start, length },
            },
            Self::Kind { start, mut kind } if kind.len() < KIND_BYTES_MAX && is_of_kind(byte) => {
                kind.push(byte);
                Self::Kind { start, kind }
            }
            Self::Kind { start, kind } if byte == b'-' => Self::Closing { start, kind, count: 1 },
            Self::Closing { start, kind, count } if byte == b'-' && count + 1 == DASHES => {
                // They may begin another line.
                *self = Self::Dashes { start: at + 1 - DASHES, count: DASHES };
                return Some((start, kind));
            }
            Self::Closing { start, kind, count } if byte == b'-' => {
                Self::Closing { start, kind, count: count + 1 }
            }
            _ if byte == b'-' => Self::Dashes { start: at, count: 1 },
            _ => Self::None,
        };
        None
    }
}

const fn is_of_kind(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' '
}

/// The letters of a key and its headers. A backslash is there where the key is in JSON.
const fn is_of_private_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || byte.is_ascii_whitespace()
        || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'\\' | b':' | b',' | b'.')
}
