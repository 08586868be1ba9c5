//! What a call came to, as its model reads it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{
    CallToolResult, ContentBlock, GetPromptResult, ReadResourceResult, ResourceContents, Role,
};
use spinney_kernel::port::tool::ToolAnswer;
use spinney_kernel::primitives::limit::{PART_BYTES_MAX, PARTS_MAX};
use spinney_kernel::primitives::{Enclosure, IMAGE_TYPES, PartKind};

/// Texts in order, images as images; of anything else, what it is.
pub(super) fn answer(result: CallToolResult) -> ToolAnswer {
    let mut shown = Shown::default();
    for block in result.content {
        shown.add(block);
    }
    if shown.texts.is_empty()
        && let Some(value) = result.structured_content
    {
        shown.texts.push(value.to_string());
    }
    shown.answer(result.is_error == Some(true))
}

/// The contents of a resource.
pub(super) fn resource(result: ReadResourceResult) -> ToolAnswer {
    let mut shown = Shown::default();
    for contents in result.contents {
        match contents {
            ResourceContents::TextResourceContents { text, .. } => shown.texts.push(text),
            contents => shown.add_resource(contents),
        }
    }
    shown.answer(false)
}

/// The messages of a prompt, each after whose it is.
pub(super) fn prompt(result: GetPromptResult) -> ToolAnswer {
    let mut shown = Shown::default();
    for message in result.messages {
        shown.texts.push(match message.role {
            Role::User => "[user]".to_owned(),
            Role::Assistant => "[assistant]".to_owned(),
        });
        shown.add(message.content);
    }
    shown.answer(false)
}

/// What an answer shows so far.
#[derive(Default)]
struct Shown {
    texts: Vec<String>,
    parts: Vec<Enclosure>,
}

impl Shown {
    fn add(&mut self, block: ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.texts.push(text.text),
            ContentBlock::Image(content) => self.add_image(&content.data, &content.mime_type),
            ContentBlock::Audio(audio) => {
                self.texts.push(format!(
                    "[{} of audio, {}, are not shown]",
                    bytes(&audio.data),
                    short(&audio.mime_type)
                ));
            }
            ContentBlock::Resource(embedded) => self.add_resource(embedded.resource),
            ContentBlock::ResourceLink(link) => {
                self.texts.push(format!("[resource {}: {}]", short(&link.name), short(&link.uri)));
            }
            _ => self.texts.push("[content of an unknown kind is not shown]".to_owned()),
        }
    }

    fn add_image(&mut self, data: &str, media: &str) {
        match image(data, media, self.parts.len()) {
            Ok(image) => self.parts.push(image),
            Err(why) => self.texts.push(format!("[an image that is not shown: {why}]")),
        }
    }

    fn add_resource(&mut self, contents: ResourceContents) {
        match contents {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                self.texts.push(format!("[resource {}]\n{text}", short(&uri)));
            }
            ResourceContents::BlobResourceContents { blob, mime_type: Some(media), .. }
                if IMAGE_TYPES.contains(&media.to_ascii_lowercase().as_str()) =>
            {
                self.add_image(&blob, &media);
            }
            ResourceContents::BlobResourceContents { uri, blob, .. } => {
                self.texts.push(format!("[resource {}: {} that are not text]", short(&uri), bytes(&blob)));
            }
            _ => self.texts.push("[a resource of an unknown kind is not shown]".to_owned()),
        }
    }

    fn answer(mut self, is_error: bool) -> ToolAnswer {
        if self.texts.is_empty() && self.parts.is_empty() {
            self.texts.push("it returned nothing".to_owned());
        }
        let text = self.texts.join("\n");
        let answer = if is_error { ToolAnswer::failed(text) } else { ToolAnswer::text(text) };
        answer.with_parts(self.parts)
    }
}

/// Models refuse a whole request for an image that is none.
fn image(data: &str, media: &str, before: usize) -> Result<Enclosure, String> {
    if before >= PARTS_MAX {
        return Err(format!("a result has at most {PARTS_MAX}"));
    }
    let media = media.to_ascii_lowercase();
    if !IMAGE_TYPES.contains(&media.as_str()) {
        return Err(format!("models do not take {}", short(&media)));
    }
    let bytes = STANDARD.decode(data.trim()).map_err(|_| "it is not base64".to_owned())?;
    if bytes.len() as u64 > PART_BYTES_MAX {
        return Err(format!("it has {} bytes, more than {PART_BYTES_MAX}", bytes.len()));
    }
    if kind(&bytes) != Some(media.as_str()) {
        return Err(format!("it is not {media}"));
    }
    let ending = media.rsplit_once('/').map_or("png", |(_, ending)| ending);
    let bad = |error: spinney_kernel::primitives::IdError| error.to_string();
    let name = format!("image-{}.{ending}", before + 1).parse().map_err(bad)?;
    Ok(Enclosure { kind: PartKind::Image, media: media.parse().map_err(bad)?, name, bytes })
}

/// What the first bytes of an image say.
fn kind(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// How many bytes a text in base64 has, about.
fn bytes(base64: &str) -> String {
    format!("{} bytes", base64.len() / 4 * 3)
}

/// A name of the server in one of our lines.
fn short(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(result: serde_json::Value) -> ToolAnswer {
        answer(serde_json::from_value(result).unwrap_or_else(|error| panic!("{error}")))
    }

    #[test]
    fn texts_images_and_resources_of_a_result_are_shown() {
        let png = STANDARD.encode(b"\x89PNG\r\n\x1a\nrest");
        let result = shown(json!({ "content": [
            { "type": "text", "text": "one" },
            { "type": "image", "data": png, "mimeType": "image/png" },
            { "type": "image", "data": png, "mimeType": "image/jpeg" },
            { "type": "image", "data": "?", "mimeType": "image/png" },
            { "type": "audio", "data": "AAAA", "mimeType": "audio/wav" },
            { "type": "resource", "resource": { "uri": "a://b", "text": "two" } },
            { "type": "resource_link", "uri": "a://c", "name": "c" },
        ] }));
        assert_eq!(
            result.text,
            "one\n[an image that is not shown: it is not image/jpeg]\n[an image that is not shown: it is not base64]\n[3 bytes of audio, audio/wav, are not shown]\n[resource a://b]\ntwo\n[resource c: a://c]"
        );
        assert_eq!((result.parts.len(), result.is_error), (1, false));
        assert_eq!(result.parts[0].bytes, b"\x89PNG\r\n\x1a\nrest");
    }

    #[test]
    fn a_result_without_texts_is_its_structured_content() {
        let result = shown(json!({ "content": [], "structuredContent": { "a": 1 }, "isError": true }));
        assert_eq!((result.text.as_str(), result.is_error), (r#"{"a":1}"#, true));
        assert_eq!(shown(json!({ "content": [] })).text, "it returned nothing");
    }
}
