//! A line that a person types while other output continues. What is typed is part of the live view, so drawing does not
//! destroy it.

use std::io;
use std::mem::take;

use super::key_reader::KeyReader;

/// Longer lines are not typed. It is more than an answer may have, so one that is cut here is refused and never sent in part.
const LINE_BYTES_MAX: usize = 40 * 1024;

/// What came of the keys that were pressed.
#[derive(Debug, PartialEq, Eq)]
pub enum Pressed {
    /// The line may look different.
    Changed,
    Entered(String),
    /// Ctrl-D on an empty line, or the terminal is gone.
    Ended,
}

pub struct Keyboard {
    reader: KeyReader,
    line: TypedLine,
}

impl Keyboard {
    /// Takes the keyboard. `None` while it belongs to others.
    pub fn begin() -> io::Result<Option<Self>> {
        let reader = KeyReader::begin()?;
        Ok(reader.map(|reader| Self { reader, line: TypedLine::default() }))
    }

    /// Sets the terminal's mode again if it was changed.
    pub fn keep(&self) -> io::Result<()> {
        self.reader.keep()
    }

    /// What is typed so far.
    pub fn text(&self) -> &str {
        &self.line.text
    }

    pub async fn next(&mut self) -> Pressed {
        while let Some(bytes) = self.reader.next().await {
            if let Some(pressed) = self.line.press(&bytes) {
                return pressed;
            }
        }
        Pressed::Ended
    }
}

/// The line, and the keys that are not complete.
#[derive(Default)]
struct TypedLine {
    text: String,
    /// The beginning of a character.
    character: Vec<u8>,
    escape: Escape,
}

/// The keys that send several bytes, such as arrows. They do nothing.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Escape {
    #[default]
    None,
    Begun,
    /// Until a letter.
    Sequence,
    /// One more byte.
    Last,
}

impl TypedLine {
    /// Takes the bytes of keys. What follows a finished line in them is dropped: the next question has not been read yet.
    fn press(&mut self, bytes: &[u8]) -> Option<Pressed> {
        let before = self.text.len();
        let mut is_changed = false;
        for byte in bytes {
            if self.is_escaped(*byte) {
                continue;
            }
            match byte {
                b'\n' | b'\r' => {
                    self.character.clear();
                    return Some(Pressed::Entered(take(&mut self.text)));
                }
                // Ctrl-D
                0x04 if self.text.is_empty() => return Some(Pressed::Ended),
                // Backspace
                0x08 | 0x7f => is_changed |= self.text.pop().is_some(),
                // Ctrl-U
                0x15 => self.text.clear(),
                // Ctrl-W
                0x17 => {
                    let words = self.text.trim_end();
                    let kept = words.rfind(char::is_whitespace).map_or(0, |space| space + 1);
                    self.text.truncate(kept);
                }
                b'\t' => self.add(b' '),
                0x1b => self.escape = Escape::Begun,
                0x00..0x20 => {}
                byte => self.add(*byte),
            }
        }
        (is_changed || self.text.len() != before).then_some(Pressed::Changed)
    }

    fn is_escaped(&mut self, byte: u8) -> bool {
        let (next, is_escaped) = match (self.escape, byte) {
            (Escape::None, _) => (Escape::None, false),
            (Escape::Begun, b'[') => (Escape::Sequence, true),
            (Escape::Begun, b'O') => (Escape::Last, true),
            (Escape::Sequence, 0x20..0x40) => (Escape::Sequence, true),
            // Enter after a lone Escape is Enter.
            (_, b'\n' | b'\r') => (Escape::None, false),
            (Escape::Begun | Escape::Sequence | Escape::Last, _) => (Escape::None, true),
        };
        self.escape = next;
        is_escaped
    }

    fn add(&mut self, byte: u8) {
        if self.text.len() >= LINE_BYTES_MAX {
            return;
        }
        self.character.push(byte);
        match std::str::from_utf8(&self.character) {
            Ok(character) => self.text.push_str(character),
            Err(error) if error.error_len().is_none() => return,
            Err(_) => self.text.push(char::REPLACEMENT_CHARACTER),
        }
        self.character.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[&[u8]]) -> (Option<Pressed>, String) {
        let mut line = TypedLine::default();
        let mut last = None;
        for keys in keys {
            last = line.press(keys);
        }
        (last, line.text)
    }

    #[test]
    fn a_line_is_typed_and_corrected() {
        assert_eq!(typed(&[b"blue"]), (Some(Pressed::Changed), "blue".to_owned()));
        assert_eq!(typed(&[b"blx\x7fue"]).1, "blue");
        assert_eq!(typed(&[b"red, no", b"\x15", b"blue"]).1, "blue");
        assert_eq!(typed(&[b"dark red \x17blue"]).1, "dark blue");
        assert_eq!(typed(&[b"gr\xc3", b"\xbcn"]).1, "grün");
        assert_eq!(typed(&[b"\xff\x80", b"a"]).1, "\u{fffd}\u{fffd}a");
        assert_eq!(typed(&["grün".as_bytes(), b"\x7f\x7f\x7f"]).1, "g");
        assert_eq!(typed(&[b"\x7f"]), (None, String::new()));
    }

    #[test]
    fn enter_ends_a_line_and_what_came_with_it_is_dropped() {
        let entered = Some(Pressed::Entered("yes".to_owned()));
        assert_eq!(typed(&[b"yes\nyes\n"]), (entered, String::new()));
        assert_eq!(typed(&[b"\x04"]).0, Some(Pressed::Ended));
        assert_eq!(typed(&[b"a\x04"]).1, "a");
    }

    /// G16 (keys): arrows, function keys and control characters are not typed.
    #[test]
    fn g16_keys_that_are_no_text_do_nothing() {
        assert_eq!(typed(&[b"\x1b[A\x1b[1;5C\x1bOP\x1bx\x01\x00ok\x1b[", b"3~"]).1, "ok");
        assert_eq!(typed(&[b"a\x1b\n"]).0, Some(Pressed::Entered("a".to_owned())));
        let much = vec![b'x'; 2 * LINE_BYTES_MAX];
        assert_eq!(typed(&[&much]).1.len(), LINE_BYTES_MAX);
    }
}
