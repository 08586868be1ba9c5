//! Single keys that control a view: arrows, Enter and letters.

use std::collections::VecDeque;
use std::io;

use super::key_reader::KeyReader;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Up,
    Down,
    Enter,
    Char(char),
    /// Any other one.
    Other,
}

pub struct KeyPresses {
    reader: KeyReader,
    pressed: VecDeque<Key>,
}

impl KeyPresses {
    /// Takes the keyboard. `None` while it belongs to others.
    pub fn begin() -> io::Result<Option<Self>> {
        Ok(KeyReader::begin()?.map(|reader| Self { reader, pressed: VecDeque::new() }))
    }

    /// Sets the terminal's mode again if it was changed.
    pub fn keep(&self) -> io::Result<()> {
        self.reader.keep()
    }

    /// Drops what was pressed and not taken: it cannot be meant for what is shown now.
    pub fn forget(&mut self) {
        self.pressed.clear();
        self.reader.forget();
    }

    /// Waits until a key was pressed. The others, and this one, stay for [`next`](Self::next). Never ends if the terminal is
    /// gone.
    pub async fn pressed(&mut self, key: Key) {
        while !self.pressed.contains(&key) {
            match self.reader.next().await {
                Some(bytes) => self.pressed.extend(decoded(&bytes)),
                None => std::future::pending().await,
            }
        }
    }

    /// The next key; `None` if the terminal is gone.
    pub async fn next(&mut self) -> Option<Key> {
        while self.pressed.is_empty() {
            self.pressed.extend(decoded(&self.reader.next().await?));
        }
        self.pressed.pop_front()
    }
}

/// The keys that sent these bytes. A terminal sends the bytes of one key together.
fn decoded(bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        let (key, taken) = match (first, after) {
            (0x1b, [b'[' | b'O', sequence @ ..]) => {
                // Numbers, and the letter that says which key it is.
                let digits = sequence.iter().take_while(|byte| matches!(byte, 0x20..0x40)).count();
                let key = match sequence.get(digits) {
                    Some(b'A') => Key::Up,
                    Some(b'B') => Key::Down,
                    Some(_) | None => Key::Other,
                };
                (key, 2 + (digits + 1).min(sequence.len()))
            }
            (0x1b, _) => (Key::Other, 1),
            (b'\r' | b'\n', _) => (Key::Enter, 1),
            (0x00..0x20 | 0x7f.., _) => (Key::Other, 1),
            (byte, _) => (Key::Char(char::from(*byte)), 1),
        };
        keys.push(key);
        rest = &rest[taken.min(rest.len())..];
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_enter_and_letters_are_told_apart() {
        assert_eq!(decoded(b"\x1b[A\x1b[B"), [Key::Up, Key::Down]);
        assert_eq!(decoded(b"\x1bOA\x1bOB\r"), [Key::Up, Key::Down, Key::Enter]);
        assert_eq!(decoded(b"qc"), [Key::Char('q'), Key::Char('c')]);
        assert_eq!(decoded(b"\x1b[1;5A"), [Key::Up]);
    }

    /// G16 (keys): other sequences, cut ones and bytes that are not text do nothing.
    #[test]
    fn g16_other_bytes_are_no_keys() {
        for bytes in [&b"\x1b"[..], b"\x1b[", b"\x1b[3~", b"\x1b[200~", b"\x00", b"\xff", b"\x7f", b"\x1bO"] {
            assert_eq!(decoded(bytes), [Key::Other], "{bytes:?}");
        }
        assert_eq!(decoded("ü".as_bytes()), [Key::Other, Key::Other]);
    }
}
