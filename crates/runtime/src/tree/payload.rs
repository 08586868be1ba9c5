//! Payloads: small texts go into the event, large ones become a blob with a preview in the event. The limit is lower
//! for tools than for models, because many outputs share one window.

use spinney_kernel::budget::Used;
use spinney_kernel::context::offload;
use spinney_kernel::primitives::{
    BadPart, BlobHash, BlobRef, Body, Enclosure, ModelName, Part, Thought, TokenCount, check_parts, limit,
};

/// A text to be recorded.
pub(super) struct Payload {
    pub(super) body: Body,
    pub(super) blobs: Vec<Vec<u8>>,
}

impl Payload {
    /// Adds the model's reasoning. The tokens sent back are at most its bytes, or its whole output if the provider
    /// stores the reasoning itself.
    pub(super) fn with_thought(
        mut self,
        model: &ModelName,
        reasoning: &str,
        continuation: Option<Vec<u8>>,
        used: Used,
    ) -> Self {
        let mut keep = |bytes: Vec<u8>| {
            let blob = BlobRef { hash: BlobHash::digest(&bytes), bytes: bytes.len() as u64 };
            self.blobs.push(bytes);
            blob
        };
        // A partial one is useless.
        let continuation = continuation.filter(|bytes| bytes.len() <= limit::BLOB_BYTES_MAX).map(&mut keep);
        let reasoning = cut(reasoning, limit::BLOB_BYTES_MAX).as_bytes().to_vec();
        let reasoning = Some(reasoning).filter(|bytes| !bytes.is_empty()).map(&mut keep);
        if continuation.is_none() && reasoning.is_none() {
            return self;
        }
        let put_out = if let Used::Tokens(usage) = used { usage.output_tokens() } else { 0 };
        let tokens = continuation.as_ref().map_or(0, |blob| blob.bytes.max(put_out));
        let thought = Thought { model: model.clone(), continuation, reasoning, tokens };
        Self { body: self.body.with_thought(Some(thought)), ..self }
    }
}

/// A model's text as body and blob; `tokens` counts what the next model will read.
pub(super) fn said(text: String, tokens: impl Fn(&str) -> TokenCount) -> Payload {
    if text.len() <= limit::TEXT_BYTES_MAX {
        return inline(text, tokens);
    }
    let beginning = cut(&text, limit::TEXT_BYTES_MAX).to_owned();
    let body = Body { tokens: Some(tokens(&beginning)), ..Body::text(beginning) };
    with_blob(body, None, text)
}

/// A tool's text as body and blob; `tokens` counts what the model will read. `shown_bytes` overrides how much is
/// shown whole.
fn returned(text: String, shown_bytes: Option<u32>, tokens: impl Fn(&str) -> TokenCount) -> Payload {
    let preview = match shown_bytes {
        Some(bytes) => offload::preview_beyond(&text, bytes as usize),
        None => offload::preview(&text),
    };
    let Some((head, tail)) = preview else { return inline(text, tokens) };
    // The two are counted separately, because a line comes between them.
    let counted = tokens(head).plus(tokens(tail));
    let gap = u32::try_from(head.len()).ok();
    let body = Body { tokens: Some(counted), ..Body::text([head, tail].concat()) };
    with_blob(body, gap, text)
}

/// A tool's text with images and files; `count` counts each of these. Empty, oversized or excess ones are left out,
/// and the text says so, because a report cannot be refused.
pub(super) fn returned_with(
    mut text: String,
    enclosures: Vec<Enclosure>,
    shown_bytes: Option<u32>,
    tokens: impl Fn(&str) -> TokenCount,
    count: impl Fn(&mut Part, &[u8]),
) -> Payload {
    let (mut parts, mut bytes): (Vec<Part>, Vec<Vec<u8>>) = (Vec::new(), Vec::new());
    let mut leave_out = |bad: BadPart| text.push_str(&format!("\n[a part was left out: {bad}]"));
    let count_all = enclosures.len();
    for enclosure in enclosures.into_iter().take(limit::PARTS_MAX) {
        let fits = enclosure.part().and_then(|part| {
            check_parts(parts.iter().chain([&part]))?;
            Ok(part)
        });
        match fits {
            Ok(mut part) => {
                count(&mut part, &enclosure.bytes);
                parts.push(part);
                bytes.push(enclosure.bytes);
            }
            Err(bad) => leave_out(bad),
        }
    }
    if count_all > limit::PARTS_MAX {
        leave_out(BadPart::TooMany { count: count_all, count_max: limit::PARTS_MAX });
    }
    let Payload { body, mut blobs } = returned(text, shown_bytes, tokens);
    blobs.append(&mut bytes);
    Payload { body: body.with_parts(parts), blobs }
}

fn inline(text: String, tokens: impl Fn(&str) -> TokenCount) -> Payload {
    let tokens = Some(tokens(&text));
    Payload { body: Body { tokens, ..Body::text(text) }, blobs: Vec::new() }
}

/// A preview with its whole text, cut to the size of a blob.
fn with_blob(preview: Body, gap: Option<u32>, mut whole: String) -> Payload {
    whole.truncate(whole.floor_char_boundary(limit::BLOB_BYTES_MAX));
    let whole = whole.into_bytes();
    let rest = BlobRef { hash: BlobHash::digest(&whole), bytes: whole.len() as u64 };
    Payload { body: preview.with_rest(rest, gap), blobs: vec![whole] }
}

/// Cuts at a character boundary, to at most `bytes_max` bytes.
fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}
