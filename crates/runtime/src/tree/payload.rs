//! Payloads: what is small stands in the event, what is large is a blob with a preview in the event.

use spinney_kernel::body::{BlobRef, Body};
use spinney_kernel::id::BlobHash;
use spinney_kernel::limit;

/// A text on its way into the journal.
pub(super) struct Payload {
    pub(super) body: Body,
    pub(super) blobs: Vec<Vec<u8>>,
}

/// A text as body and blob; `tokens` counts what the model will read.
pub(super) fn payload(text: String, tokens: impl Fn(&str) -> u64) -> Payload {
    if text.len() <= limit::TEXT_BYTES_MAX {
        let tokens = Some(tokens(&text));
        return Payload { body: Body { text, rest: None, tokens, gap: None }, blobs: Vec::new() };
    }
    let preview = cut(&text, limit::TEXT_BYTES_MAX).to_owned();
    let whole = cut(&text, limit::BLOB_BYTES_MAX).as_bytes().to_vec();
    let rest = Some(BlobRef { hash: BlobHash::of(&whole), bytes: whole.len() as u64 });
    let tokens = Some(tokens(&preview));
    Payload { body: Body { text: preview, rest, tokens, gap: None }, blobs: vec![whole] }
}

/// The longest beginning of a text that has at most so many bytes.
fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}
