//! Keys that must not be shown: providers repeat them in errors, whole, in part or encoded.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use memchr::memchr_iter;

use super::bounds::FAULT_TEXT_BYTES_MAX;
use super::escaped::{self, Beginning, ESCAPE_BYTES_MAX, beginning};

/// What replaces a key.
const HIDDEN: &str = "[key]";
/// The shortest word that is taken for a key, in bytes.
const KEY_BYTES_MIN: usize = 4;
/// A word of at least so many bytes that is a part of a key is hidden like the key.
const PART_BYTES_MIN: usize = 8;
/// How keys of providers begin.
const KEY_BEGINNINGS: [&str; 7] = ["sk-", "sk_", "AIza", "gsk_", "xai-", "hf_", "pk-"];

/// The keys of one call, in every shape that a text may have them in.
#[derive(Clone, Default)]
pub struct Secrets(Arc<Shapes>);

#[derive(Default)]
struct Shapes {
    shapes: Vec<String>,
    /// Made when it is needed: most calls have nothing to hide.
    search: OnceLock<ShapeSearch>,
}

struct ShapeSearch {
    /// Finds all shapes at once.
    plain: AhoCorasick,
    /// The letters that they have.
    letters: [bool; 256],
}

impl Secrets {
    /// These keys. A word that is shorter than any key hides nothing: it would make every text unreadable.
    pub fn new(keys: impl IntoIterator<Item = String>) -> Self {
        let keys = keys.into_iter().filter(|key| key.len() >= KEY_BYTES_MIN);
        Self(Arc::new(Shapes { shapes: keys.flat_map(key_shapes).collect(), search: OnceLock::new() }))
    }

    /// Where the first of them begins, however its letters are escaped.
    #[must_use]
    pub fn first_in(&self, bytes: &[u8]) -> Option<usize> {
        self.0.places(bytes).into_iter().map(|place| place.start).min()
    }

    /// Bytes of a stranger without keys; everything else stays as it is. A key is found however its letters are escaped.
    #[must_use]
    pub fn hide<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        without(bytes, self.0.places(bytes))
    }

    /// The same for bytes whose end was cut off, perhaps in the middle of a key.
    #[must_use]
    pub fn hide_cut<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let mut places = self.0.places(bytes);
        places.extend(self.0.place_of_cut(bytes));
        without(bytes, places)
    }

    /// A text of a stranger as one line for people: bounded, without control characters, without keys.
    pub(super) fn clean(&self, text: &str) -> String {
        // Keys go before the text is cut: a cut key would not be found.
        let line = one_line(text);
        let whole = String::from_utf8_lossy(&self.hide(line.as_bytes())).into_owned();
        let mut clean = String::new();
        for piece in whole.split_inclusive(|c: char| !is_key_letter(c)) {
            let word = piece.trim_end_matches(|c: char| !is_key_letter(c));
            let shown = if self.is_key(word) { HIDDEN } else { word };
            for text in [shown, &piece[word.len()..]] {
                if clean.len() + text.len() > FAULT_TEXT_BYTES_MAX {
                    clean.push('…');
                    return clean;
                }
                clean.push_str(text);
            }
        }
        clean
    }

    fn is_key(&self, word: &str) -> bool {
        let part = word.trim_matches('.');
        let is_masked = word.contains("***") || part.contains("...");
        part.len() >= PART_BYTES_MIN
            && (is_masked
                || KEY_BEGINNINGS.iter().any(|beginning| part.starts_with(beginning))
                || self.0.shapes.iter().any(|key| key.contains(part)))
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.shapes.len())
    }
}

impl Shapes {
    /// Where keys are, in any order.
    fn places(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        if self.shapes.is_empty() {
            return Vec::new();
        }
        let ShapeSearch { plain, letters } = self.search();
        let mut places: Vec<Range<usize>> = plain.find_iter(bytes).map(|found| found.range()).collect();
        // The first escaped letter of a key has only plain ones before it.
        for (at, letter) in escaped::places(bytes).filter(|(_, letter)| letters[usize::from(*letter)]) {
            for shape in self.shapes.iter().map(String::as_bytes) {
                let before = memchr_iter(letter, shape);
                let begins = before.filter(|count| bytes[..at].ends_with(&shape[..*count]));
                places.extend(begins.filter_map(|count| {
                    let from = at - count;
                    match beginning(&bytes[from..], shape) {
                        Beginning::Whole(taken) => Some(from..from + taken),
                        Beginning::Cut(_) | Beginning::Differs => None,
                    }
                }));
            }
        }
        places
    }

    /// Where a key begins whose end is missing.
    fn place_of_cut(&self, bytes: &[u8]) -> Option<Range<usize>> {
        let longest = self.shapes.iter().map(String::len).max()?;
        let from = bytes.len().saturating_sub(longest * ESCAPE_BYTES_MAX);
        let is_cut = |at: &usize| {
            let rest = &bytes[*at..];
            let found = self.shapes.iter().map(|shape| beginning(rest, shape.as_bytes()));
            found
                .into_iter()
                .any(|found| matches!(found, Beginning::Cut(letters) if letters >= PART_BYTES_MIN))
        };
        (from..bytes.len()).find(is_cut).map(|at| at..bytes.len())
    }

    fn search(&self) -> &ShapeSearch {
        self.search.get_or_init(|| {
            let built = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&self.shapes);
            let plain =
                built.unwrap_or_else(|error| unreachable!("keys have far less than 2^31 bytes: {error}"));
            let mut letters = [false; 256];
            self.shapes
                .iter()
                .flat_map(|shape| shape.bytes())
                .for_each(|own| letters[usize::from(own)] = true);
            ShapeSearch { plain, letters }
        })
    }
}

/// Bytes with a word in these places.
fn without(bytes: &[u8], mut places: Vec<Range<usize>>) -> Cow<'_, [u8]> {
    if places.is_empty() {
        return Cow::Borrowed(bytes);
    }
    // The longest of those that begin at one place comes first.
    places.sort_unstable_by_key(|place| (place.start, Reverse(place.end)));
    let (mut clean, mut end) = (Vec::with_capacity(bytes.len()), 0);
    for place in places {
        if place.start >= end {
            clean.extend_from_slice(&bytes[end..place.start]);
            clean.extend_from_slice(HIDDEN.as_bytes());
        }
        end = end.max(place.end);
    }
    clean.extend_from_slice(&bytes[end..]);
    Cow::Owned(clean)
}

const fn is_key_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '*' | '.' | '+' | '/' | '=')
}

/// What libraries leave as it is beside letters, digits, `-`, `.` and `_`, and how they write a space: whole parts of a URL
/// (RFC 3986), paths, forms, and what JavaScript makes of a part and of a whole URL.
const URL_ESCAPES: [(&str, &str); 6] =
    [("~", "%20"), ("~/", "%20"), ("~", "+"), ("", "+"), ("~!*'()", "%20"), ("~!*'();,/?:@&=+$#", "%20")];

/// A key as it is, as URLs and JSON escape it, and in base64.
#[must_use]
pub fn key_shapes(key: String) -> Vec<String> {
    let mut shapes: Vec<String> = (0..3).flat_map(|before| in_base64(&key, before)).collect();
    for (kept, space) in URL_ESCAPES {
        shapes.extend(
            ["0123456789ABCDEF", "0123456789abcdef"].map(|digits| percent(&key, kept, space, digits)),
        );
    }
    let json = serde_json::Value::from(key.as_str()).to_string();
    shapes.push(json[1..json.len() - 1].to_owned());
    shapes.push(key);
    shapes.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
    shapes.dedup();
    shapes
}

/// The letters of base64 that depend on the key alone, if so many bytes stand before it in what was encoded: as in the
/// header of a user and a password. In both alphabets.
fn in_base64(key: &str, before: usize) -> Vec<String> {
    let bytes = [&[0; 3][..before], key.as_bytes()].concat();
    let letters = STANDARD_NO_PAD.encode(&bytes);
    let own = letters[(before * 8).div_ceil(6)..bytes.len() * 8 / 6].to_owned();
    if own.len() < PART_BYTES_MIN {
        return Vec::new();
    }
    let for_urls = own.replace('+', "-").replace('/', "_");
    vec![own, for_urls]
}

fn percent(key: &str, kept: &str, space: &str, digits: &str) -> String {
    let digit = |half: u8| char::from(digits.as_bytes()[usize::from(half)]);
    let mut text = String::new();
    for byte in key.bytes() {
        if byte == b' ' {
            text.push_str(space);
        } else if byte.is_ascii_alphanumeric()
            || matches!(byte, b'-' | b'_' | b'.')
            || kept.as_bytes().contains(&byte)
        {
            text.push(char::from(byte));
        } else {
            text.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    text
}

/// Without control characters and the invisible ones that change how a terminal shows the rest.
fn one_line(text: &str) -> String {
    let mut line = String::new();
    for letter in text.chars() {
        let is_space = letter.is_whitespace();
        let is_hidden = letter.is_control()
            || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        if is_space && !line.is_empty() && !line.ends_with(' ') {
            line.push(' ');
        } else if !is_space && !is_hidden {
            line.push(letter);
        }
    }
    line.truncate(line.trim_end().len());
    line
}
