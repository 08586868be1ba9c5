//! Words that look like a key of a provider or a forge, or like a signed token.

use super::HELD_BYTES_MAX;
use super::values::Secret;

/// How keys begin.
const KEY_BEGINNINGS: [&str; 27] = [
    "sk-",
    "sk_",
    "rk_",
    "pk-",
    "xai-",
    "gsk_",
    "hf_",
    "r8_",
    "pplx-",
    "nvapi-",
    "tvly-",
    "AIza",
    "AKIA",
    "ASIA",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "npm_",
    "pypi-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xapp-",
];
/// The longest of them.
const BEGINNING_BYTES_MAX: usize = 11;
/// Shorter words with such a beginning are names.
const KEY_BYTES_MIN: usize = 16;
/// A key has so many letters and digits without a break, and a digit among them. A name such as `sk-first-second-third`
/// does not.
const RUN_BYTES_MIN: usize = 12;
/// The JSON of a token begins with a brace and a quotation mark, in base64.
const TOKEN_BEGINNING: &[u8] = b"eyJ";
/// The character that colours of terminals begin with.
const CONTROL: u32 = 0x1b;
/// The shortest header of a token.
const TOKEN_HEADER_BYTES_MIN: usize = 12;

/// The word at the end of the text.
#[derive(Default)]
pub(super) struct Words {
    word: Option<Word>,
    escape: Escape,
}

/// Letters before a word that do not belong to it: escapes of JSON, and colours of terminals.
#[derive(Clone, Copy, Default)]
enum Escape {
    #[default]
    None,
    Backslash,
    /// So many digits of a code follow.
    Digits {
        left: u32,
        code: u32,
    },
    /// The control character before a colour.
    Control,
    Colour,
}

impl Escape {
    /// Takes the next byte, and says whether it belongs to an escape.
    fn take(&mut self, byte: u8) -> bool {
        let digit = char::from(byte).to_digit(16);
        let (next, is_part) = match (*self, digit) {
            (Self::Backslash, _) if byte == b'u' => (Self::Digits { left: 4, code: 0 }, true),
            (Self::Backslash, _) => (if byte == b'\\' { Self::Backslash } else { Self::None }, true),
            (Self::Digits { left: 1, code }, Some(digit)) if code * 16 + digit == CONTROL => {
                (Self::Control, true)
            }
            (Self::Digits { left: 1, .. }, Some(_)) => (Self::None, true),
            (Self::Digits { left, code }, Some(digit)) => {
                (Self::Digits { left: left - 1, code: code * 16 + digit }, true)
            }
            (Self::Control, _) if byte == b'[' => (Self::Colour, true),
            (Self::Colour, _) if matches!(byte, b'0'..=b'?') => (Self::Colour, true),
            (Self::Colour, _) => (Self::None, true),
            _ if byte == b'\\' => (Self::Backslash, true),
            _ if u32::from(byte) == CONTROL => (Self::Control, true),
            _ => (Self::None, false),
        };
        *self = next;
        is_part
    }
}

struct Word {
    start: usize,
    length: usize,
    stage: Stage,
}

enum Stage {
    /// It may still turn out to begin like a key or a token.
    Beginning([u8; BEGINNING_BYTES_MAX]),
    Key(KeyRun),
    /// The first part of a token.
    Header,
    /// After it, so many letters of the second part.
    Payload(usize),
    Found(Secret),
    /// Nothing of it is a secret.
    Plain,
}

/// Letters and digits of a word without a break.
#[derive(Default)]
struct KeyRun {
    length: usize,
    has_digit: bool,
    /// Whether one was long enough.
    is_random: bool,
}

impl Words {
    /// Where what could become a secret begins.
    pub(super) fn held_from(&self) -> Option<usize> {
        let word = self.word.as_ref()?;
        let is_open = !matches!(word.stage, Stage::Found(_) | Stage::Plain);
        is_open.then_some(word.start)
    }

    /// Takes the byte at this position. Returns from where on everything is a secret.
    pub(super) fn step(&mut self, at: usize, byte: u8) -> Option<(usize, Secret)> {
        let is_escaped = self.escape.take(byte);
        let goes_on = match &self.word {
            None => false,
            Some(word) => !is_escaped && (is_of_key(byte) || (byte == b'.' && word.takes_dot())),
        };
        if !goes_on {
            self.word = None;
            if is_escaped || !is_of_key(byte) {
                return None;
            }
            let stage = Stage::Beginning([0; BEGINNING_BYTES_MAX]);
            self.word = Some(Word { start: at, length: 0, stage });
        }
        self.word.as_mut().and_then(|word| word.take(at, byte))
    }
}

impl Word {
    const fn takes_dot(&self) -> bool {
        match self.stage {
            Stage::Header => self.length >= TOKEN_HEADER_BYTES_MIN,
            Stage::Found(Secret::Token) => true,
            _ => false,
        }
    }

    fn take(&mut self, at: usize, byte: u8) -> Option<(usize, Secret)> {
        self.length += 1;
        let length = self.length;
        match &mut self.stage {
            Stage::Beginning(letters) => {
                letters[length - 1] = byte;
                let letters = &letters[..length];
                let could_be = |beginning: &[u8]| beginning.starts_with(letters);
                if letters == TOKEN_BEGINNING {
                    self.stage = Stage::Header;
                } else if KEY_BEGINNINGS.iter().any(|beginning| beginning.as_bytes() == letters) {
                    self.stage = Stage::Key(KeyRun::default());
                } else if !could_be(TOKEN_BEGINNING)
                    && !KEY_BEGINNINGS.iter().any(|beginning| could_be(beginning.as_bytes()))
                {
                    self.stage = Stage::Plain;
                }
            }
            Stage::Key(run) => {
                run.take(byte);
                if run.is_random && length >= KEY_BYTES_MIN {
                    self.stage = Stage::Found(Secret::Key);
                    return Some((self.start, Secret::Key));
                }
            }
            Stage::Header if byte == b'.' => self.stage = Stage::Payload(0),
            Stage::Payload(seen) if TOKEN_BEGINNING.get(*seen) == Some(&byte) => {
                *seen += 1;
                if *seen == TOKEN_BEGINNING.len() {
                    self.stage = Stage::Found(Secret::Token);
                    return Some((self.start, Secret::Token));
                }
            }
            Stage::Payload(_) => self.stage = Stage::Plain,
            Stage::Found(secret) => return Some((at, *secret)),
            Stage::Header | Stage::Plain => {}
        }
        if length >= HELD_BYTES_MAX {
            self.stage = Stage::Plain;
        }
        None
    }
}

impl KeyRun {
    fn take(&mut self, byte: u8) {
        if matches!(byte, b'-' | b'_') {
            (self.length, self.has_digit) = (0, false);
            return;
        }
        self.length += 1;
        self.has_digit |= byte.is_ascii_digit();
        self.is_random |= self.has_digit && self.length >= RUN_BYTES_MIN;
    }
}

const fn is_of_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}
