//! Redaction: secrets in a text are replaced by a mark that says what was there. What is looked for is the values of
//! variables, and what looks like a key. It is for what people and programs are shown, and knows neither trees nor where
//! secrets come from.

mod cuts;
mod json;
mod private_keys;
mod scan;
mod stream;
mod values;
mod words;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use self::scan::Scan;
pub use self::stream::RedactedStream;
use self::values::Values;

/// The longest part of a text that is held back because it could be the beginning of a secret, in bytes.
pub const HELD_BYTES_MAX: usize = 512;
/// Shorter values are ordinary words: replacing them would make every text unreadable.
pub const VALUE_BYTES_MIN: usize = 8;
/// Bytes that are looked at together.
const PIECE_BYTES: usize = 16 * 1_024;

/// Replaces secrets. Clones share what it looks for. The default looks for what looks like a key, and for no values.
#[derive(Clone, Default)]
pub struct Redactor {
    values: Arc<Values>,
}

impl Redactor {
    /// Looks for these values as well, each with the name that its mark has. A value may have several forms under one name.
    /// Those below [`VALUE_BYTES_MIN`] are left out.
    pub fn new(values: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { values: Arc::new(Values::new(values)) }
    }

    /// A text with marks in place of secrets.
    #[must_use]
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.first_in(text.as_bytes()).is_none() {
            return Cow::Borrowed(text);
        }
        let (mut stream, mut shown, mut rest) = (self.stream(), String::new(), text);
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
            shown += &stream.push(piece);
            rest = after;
        }
        Cow::Owned(shown + &stream.finish())
    }

    /// The bytes of a text with marks in place of secrets; none if there are none, or if it is not a text.
    #[must_use]
    pub fn redact_bytes(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        match self.redact(str::from_utf8(bytes).ok()?) {
            Cow::Borrowed(_) => None,
            Cow::Owned(redacted) => Some(redacted.into_bytes()),
        }
    }

    /// A text that arrives in pieces.
    #[must_use]
    pub fn stream(&self) -> RedactedStream {
        RedactedStream::new(Arc::clone(&self.values))
    }

    /// Where the first secret begins, and the name of its mark.
    #[must_use]
    pub fn first_in(&self, bytes: &[u8]) -> Option<(usize, &str)> {
        let mut scan = Scan::new(Arc::clone(&self.values));
        let mut found = None;
        for byte in bytes {
            scan.step(*byte, |covered, secret| {
                found.get_or_insert((covered.start, secret));
            });
            if let Some((at, secret)) = found {
                return Some((at, self.values.name(secret)));
            }
        }
        None
    }
}

impl fmt::Debug for Redactor {
    /// Shows no secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({})", self.values.len())
    }
}
