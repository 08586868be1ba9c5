//! Payloads: what is small stands in the event, what is large is a blob with a preview in the event. What a tool
//! returns is large sooner than what a model says: many outputs share one window.

use spinney_kernel::budget::Used;
use spinney_kernel::context::offload;
use spinney_kernel::words::{
    BadPart, BlobHash, BlobRef, Body, Enclosure, ModelName, Part, Thought, check_parts, limit,
};

/// A text on its way into the journal.
pub(super) struct Payload {
    pub(super) body: Body,
    pub(super) blobs: Vec<Vec<u8>>,
}

impl Payload {
    /// This with what the model thought before it said it. The tokens of what goes back to it are at most its bytes, or
    /// all that it put out where a provider keeps the thought itself.
    pub(super) fn with_thought(
        mut self,
        model: &ModelName,
        reasoning: String,
        continuation: Option<Vec<u8>>,
        used: Used,
    ) -> Self {
        let mut keep = |bytes: Vec<u8>| {
            let blob = BlobRef { hash: BlobHash::of(&bytes), bytes: bytes.len() as u64 };
            self.blobs.push(bytes);
            blob
        };
        // Half of it is of no use to anybody.
        let continuation = continuation.filter(|bytes| bytes.len() <= limit::BLOB_BYTES_MAX).map(&mut keep);
        let reasoning = cut(&reasoning, limit::BLOB_BYTES_MAX).as_bytes().to_vec();
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

/// What a model said, as body and blob; `tokens` counts what the next model will read.
pub(super) fn said(text: String, tokens: impl Fn(&str) -> u64) -> Payload {
    if text.len() <= limit::TEXT_BYTES_MAX {
        return inline(text, tokens);
    }
    let beginning = cut(&text, limit::TEXT_BYTES_MAX).to_owned();
    let body = Body { tokens: Some(tokens(&beginning)), ..Body::text(beginning) };
    with_blob(body, None, text)
}

/// What a tool returned, as body and blob; `tokens` counts what the model will read. So many bytes are shown whole, or as
/// many as usual.
fn returned(text: String, shown_bytes: Option<u32>, tokens: impl Fn(&str) -> u64) -> Payload {
    let preview = match shown_bytes {
        Some(bytes) => offload::preview_beyond(&text, bytes as usize),
        None => offload::preview(&text),
    };
    let Some((head, tail)) = preview else { return inline(text, tokens) };
    // Words stand between the two, so that they are counted apart.
    let counted = tokens(head).saturating_add(tokens(tail));
    let gap = u32::try_from(head.len()).ok();
    let body = Body { tokens: Some(counted), ..Body::text([head, tail].concat()) };
    with_blob(body, gap, text)
}

/// What a tool returned together with images and files; `count` counts each of these. What is empty, too large or too
/// many is left out, and the text says so: a report is not refused.
pub(super) fn returned_with(
    mut text: String,
    enclosures: Vec<Enclosure>,
    shown_bytes: Option<u32>,
    tokens: impl Fn(&str) -> u64,
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

fn inline(text: String, tokens: impl Fn(&str) -> u64) -> Payload {
    let tokens = Some(tokens(&text));
    Payload { body: Body { tokens, ..Body::text(text) }, blobs: Vec::new() }
}

/// A preview with its whole, or as much of that as a blob may have.
fn with_blob(preview: Body, gap: Option<u32>, mut whole: String) -> Payload {
    whole.truncate(whole.floor_char_boundary(limit::BLOB_BYTES_MAX));
    let whole = whole.into_bytes();
    let rest = BlobRef { hash: BlobHash::of(&whole), bytes: whole.len() as u64 };
    Payload { body: preview.with_rest(rest, gap), blobs: vec![whole] }
}

/// The longest beginning of a text that has at most so many bytes.
fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}
