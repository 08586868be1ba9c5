//! Texts that were cut: a secret may have lost its end or its beginning there.

use std::sync::Arc;

use super::{Redactor, VALUE_BYTES_MIN};

/// What is shown of a part of a secret.
const CUT: &str = "[redacted: cut]";
/// A word that begins behind a cut is hidden if it has so many letters and digits without a break, and a digit among them.
const RUN_BYTES_MIN: usize = 12;
const PRIVATE_KEY_BEGINS: &str = "-----BEGIN ";
const PRIVATE_KEY_ENDS: &str = "PRIVATE KEY-----";

impl Redactor {
    /// The beginning of a text, whose rest is elsewhere.
    #[must_use]
    pub fn redact_before_cut(&self, text: &str) -> String {
        let mut stream = super::RedactedStream::new(Arc::clone(&self.values));
        let mut shown = stream.push(text);
        let is_part = stream.held_bytes() >= VALUE_BYTES_MIN;
        let rest = stream.finish();
        shown += if is_part { CUT } else { &rest };
        shown
    }

    /// The end of a text, whose beginning is elsewhere.
    #[must_use]
    pub fn redact_after_cut(&self, text: &str) -> String {
        let hidden = self.end_of_secret(text);
        let mark = if hidden > 0 { CUT } else { "" };
        format!("{mark}{}", self.redact(&text[hidden..]))
    }

    /// How much of the beginning of a text may be the end of a secret.
    fn end_of_secret(&self, text: &str) -> usize {
        let of_values = self.values.longest_end_before(text, VALUE_BYTES_MIN);
        let key_ends = text.find(PRIVATE_KEY_ENDS).map_or(0, |at| at + PRIVATE_KEY_ENDS.len());
        let of_key = if text[..key_ends].contains(PRIVATE_KEY_BEGINS) { 0 } else { key_ends };
        let is_of_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let word = text.bytes().take_while(|byte| is_of_word(*byte)).count();
        let is_random =
            |run: &str| run.len() >= RUN_BYTES_MIN && run.bytes().any(|byte| byte.is_ascii_digit());
        let of_word = if text[..word].split(['-', '_', '.']).any(is_random) { word } else { 0 };
        of_values.max(of_key).max(of_word)
    }
}
