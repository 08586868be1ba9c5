//! Keys that must not be shown: providers repeat them in errors, whole, in part or encoded.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::bounds::FAULT_TEXT_BYTES_MAX;

/// What stands in place of a key.
const HIDDEN: &str = "[key]";
/// The shortest word that is taken for a key, in bytes.
const KEY_BYTES_MIN: usize = 4;
/// A word of at least so many bytes that is a part of a key is hidden like the key.
const PART_BYTES_MIN: usize = 8;
/// How keys of providers begin.
const KEY_BEGINNINGS: [&str; 7] = ["sk-", "sk_", "AIza", "gsk_", "xai-", "hf_", "pk-"];

/// The keys of one call, in every shape that a text may have them in.
#[derive(Clone, Default)]
pub struct Secrets(Arc<[String]>);

impl Secrets {
    /// These keys. A word that is shorter than any key hides nothing: it would make every text unreadable.
    pub fn new(keys: impl IntoIterator<Item = String>) -> Self {
        let keys = keys.into_iter().filter(|key| key.len() >= KEY_BYTES_MIN);
        Self(keys.flat_map(shapes).collect())
    }

    /// A text of a stranger as one line for people: bounded, without control characters, without keys.
    pub(super) fn clean(&self, text: &str) -> String {
        // Keys go before the text is cut: a cut key would not be found.
        let line = one_line(text);
        let whole = self.0.iter().fold(line, |line, key| line.replace(key.as_str(), HIDDEN));
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
                || self.0.iter().any(|key| key.contains(part)))
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

const fn is_key_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '*' | '.' | '+' | '/' | '=')
}

/// A key as it is, as URLs and JSON escape it, and in base64.
fn shapes(key: String) -> Vec<String> {
    let mut shapes: Vec<String> = (0..3).flat_map(|before| in_base64(&key, before)).collect();
    shapes.extend([percent(&key, "0123456789ABCDEF"), percent(&key, "0123456789abcdef")]);
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

fn percent(key: &str, digits: &str) -> String {
    let digit = |half: u8| char::from(digits.as_bytes()[usize::from(half)]);
    let mut text = String::new();
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
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
