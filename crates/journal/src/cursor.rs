//! A position in the list of trees. Only the store that made it knows what it means: one counts rows, another may order by
//! time and id.

use std::fmt;
use std::str::FromStr;

/// The most bytes of a cursor: more than any store needs.
const BYTES_MAX: usize = 64;

/// A position in the list of trees. As text it may leave the process and come back, changed or not: a store checks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadCursor(Vec<u8>);

/// A text that was never a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a cursor has at most {} lowercase hex digits, two for each byte", BYTES_MAX * 2)]
pub struct CursorError;

impl HeadCursor {
    /// Before the first tree.
    pub const START: Self = Self(Vec::new());

    /// For stores: a cursor with their own content, which is not empty and at most 64 bytes long.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        debug_assert!(!bytes.is_empty() && bytes.len() <= BYTES_MAX, "a cursor of {} bytes", bytes.len());
        Self(bytes.to_vec())
    }

    /// For stores: its content; empty at the start.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for HeadCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for HeadCursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Ok(byte - b'0'),
            b'a'..=b'f' => Ok(byte - b'a' + 10),
            _ => Err(CursorError),
        };
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() > BYTES_MAX || !rest.is_empty() {
            return Err(CursorError);
        }
        pairs
            .iter()
            .map(|[high, low]| Ok(digit(*high)? << 4 | digit(*low)?))
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_the_same_after_a_way_through_text() {
        for cursor in
            [HeadCursor::START, HeadCursor::from_bytes(&[0, 9, 0xaf, 0xff]), HeadCursor::from_bytes(&[7; 64])]
        {
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
    }

    #[test]
    fn a_text_that_is_not_a_cursor_is_refused() {
        for text in ["0", "0g", "AF", "0x", "äa", " 00", &"0".repeat(130)] {
            assert_eq!(text.parse::<HeadCursor>(), Err(CursorError), "{text}");
        }
    }
}
