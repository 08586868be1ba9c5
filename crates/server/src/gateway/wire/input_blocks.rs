//! The blocks of an input, by the shape of each format: where messages, items, tools and instructions are, and which of
//! them are images, files or audio. A block is looked at only where the provider does: an image in the arguments of a
//! tool call is text.

use super::bounds::DEFINED_TOOL_TOKENS;
use super::error::{GatewayError, GatewayErrorKind};
use super::input::{InputBlocks, Media};
use super::json_tape::{DuplicateKey, JsonKind, JsonNode};
use super::route::CallFormat;

/// Fields that no model is shown.
const NO_INPUT: [&str; 12] = [
    "client_metadata",
    "include",
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens",
    "metadata",
    "model",
    "prompt_cache_key",
    "store",
    "stream",
    "stream_options",
    "temperature",
];

/// Input that is named and not sent.
const KEPT_ITEM: &str = "an item that the provider keeps";

/// Bytes of a message around its content: a role and braces. More is counted.
const AROUND_BYTES_MAX: usize = 64;

pub(super) fn input_blocks(format: CallFormat, root: JsonNode<'_>) -> Result<InputBlocks, GatewayError> {
    let mut input = InputBlocks::default();
    for member in root.members() {
        let Some(name) = member.key.text() else {
            input.add_bytes(member.value.span().len());
            continue;
        };
        let value = member.value;
        match (format, name.as_ref()) {
            (_, "tools" | "functions" | "messages") if value.kind() != JsonKind::Array => {
                input.add_bytes(value.span().len());
            }
            (_, "tools" | "functions") => tools(value, &mut input)?,
            (CallFormat::Messages, "system") => contents(format, value, &mut input)?,
            (CallFormat::Messages, "messages") => {
                for message in value.items() {
                    message_blocks(format, message, &mut input)?;
                }
            }
            (CallFormat::Chat, "messages") | (CallFormat::Responses, "input") => {
                if value.kind() != JsonKind::Array {
                    input.push(value, Media::default());
                }
                for item in value.items() {
                    let media = item_media(format, item)?;
                    input.push(item, media);
                }
            }
            (CallFormat::Responses, "instructions") => input.push(value, Media::default()),
            (CallFormat::Responses, "previous_response_id" | "conversation") if !value.is_null() => {
                input.add_elsewhere("an answer that the provider keeps");
            }
            (_, "context_management" | "truncation") if !value.is_nothing() && !value.is_text("disabled") => {
                input.add_edits(value.raw());
            }
            (_, "context_management" | "truncation") => input.add_setting(value.raw()),
            (_, "thinking") => {
                input.add_setting(value.member("type")?.map(JsonNode::raw).unwrap_or_default());
            }
            (CallFormat::Responses, "reasoning") => {
                input.add_setting(value.member("context")?.map(JsonNode::raw).unwrap_or_default());
            }
            // What no model is shown.
            (_, name) if NO_INPUT.contains(&name) => {}
            // A provider may show a schema of the answer twice.
            _ => input.add_bytes(member.key.span().len() + 2 * value.span().len()),
        }
    }
    Ok(input)
}

fn tools(tools: JsonNode<'_>, input: &mut InputBlocks) -> Result<(), GatewayError> {
    for tool in tools.items() {
        let is_ours = match tool.member("type")?.and_then(JsonNode::text) {
            None => true,
            Some(kind) => matches!(kind.as_ref(), "custom" | "function" | "namespace"),
        };
        let more = if is_ours { 0 } else { DEFINED_TOOL_TOKENS };
        // Such a tool is shown once a search has found it.
        let comes_and_goes = tool.member("defer_loading")?.is_some_and(|defer| !defer.is_nothing());
        input.push(tool, Media { more, comes_and_goes, ..Media::default() });
    }
    Ok(())
}

/// A message of Anthropic's: each part of its content is a block, because marks of the cache move between them.
fn message_blocks(
    format: CallFormat,
    message: JsonNode<'_>,
    input: &mut InputBlocks,
) -> Result<(), GatewayError> {
    let Some(content) = message.member("content")? else {
        input.push(message, Media::default());
        return Ok(());
    };
    let around = message.span().len() - content.span().len();
    if around > AROUND_BYTES_MAX {
        input.add_bytes(around);
    }
    contents(format, content, input)
}

/// A text, or a list of parts.
fn contents(format: CallFormat, content: JsonNode<'_>, input: &mut InputBlocks) -> Result<(), GatewayError> {
    if content.kind() != JsonKind::Array {
        input.push(content, Media::default());
    }
    for part in content.items() {
        let mut media = Media::default();
        part_media(format, part, &mut media)?;
        input.push(part, media);
    }
    Ok(())
}

/// What a message of chat completions or an item of responses has beyond text.
fn item_media(format: CallFormat, item: JsonNode<'_>) -> Result<Media, GatewayError> {
    let mut media = Media::default();
    for name in ["content", "output"] {
        let Some(content) = item.member(name)? else { continue };
        // The output of a computer call is one part and no list.
        if content.kind() == JsonKind::Object {
            part_media(format, content, &mut media)?;
        }
        for part in content.items() {
            part_media(format, part, &mut media)?;
        }
    }
    match item.member("type")?.and_then(JsonNode::text).as_deref() {
        Some("item_reference") => media.elsewhere = Some(KEPT_ITEM),
        Some("reasoning") if format == CallFormat::Responses && is_kept(item)? => {
            media.elsewhere = Some(KEPT_ITEM);
        }
        Some(kind) if format == CallFormat::Responses && kind.ends_with("_call") && is_only_id(item) => {
            media.elsewhere = Some(KEPT_ITEM);
        }
        Some("input_audio" | "input_image" | "input_file") => part_media(format, item, &mut media)?,
        _ => {}
    }
    // An answer in audio that the provider keeps.
    if format == CallFormat::Chat && item.member("audio")?.is_some_and(|audio| !audio.is_nothing()) {
        return Err(not_text());
    }
    Ok(media)
}

/// Whether a reasoning item names what the provider keeps instead of bringing it along.
fn is_kept(item: JsonNode<'_>) -> Result<bool, DuplicateKey> {
    let has = |content: Option<JsonNode<'_>>| content.is_some_and(|content| !content.is_nothing());
    Ok(has(item.member("id")?) && !has(item.member("encrypted_content")?))
}

/// Whether an item says nothing but which one it is.
fn is_only_id(item: JsonNode<'_>) -> bool {
    let says = |name: &str| !matches!(name, "id" | "status" | "type");
    item.members()
        .all(|member| member.value.is_nothing() || member.key.text().is_some_and(|name| !says(&name)))
}

fn part_media(format: CallFormat, part: JsonNode<'_>, media: &mut Media) -> Result<(), GatewayError> {
    let kind = part.member("type")?.and_then(JsonNode::text);
    match (format, kind.as_deref().unwrap_or_default()) {
        (CallFormat::Messages, "image") => image(part.member("source")?, "data", media)?,
        (CallFormat::Messages, "document") => document(part, media)?,
        (CallFormat::Messages, "tool_result") => {
            for part in part.member("content")?.into_iter().flat_map(JsonNode::items) {
                match part.member("type")?.and_then(JsonNode::text).as_deref() {
                    Some("image") => image(part.member("source")?, "data", media)?,
                    Some("document") => document(part, media)?,
                    _ => {}
                }
            }
        }
        // Those of earlier turns are left out.
        (CallFormat::Messages, "thinking" | "redacted_thinking") => media.comes_and_goes = true,
        (CallFormat::Messages, "container_upload") => media.elsewhere = Some("a file"),
        (CallFormat::Chat, "image_url") => image(part.member("image_url")?, "url", media)?,
        (CallFormat::Responses, "input_image" | "computer_screenshot") => {
            image(Some(part), "image_url", media)?;
        }
        (CallFormat::Chat, "file") | (CallFormat::Responses, "input_file") => {
            media.elsewhere = Some("a file");
        }
        (CallFormat::Chat | CallFormat::Responses, "input_audio") => return Err(not_text()),
        (CallFormat::Chat, "video_url" | "input_video") => return Err(not_text()),
        _ => {}
    }
    Ok(())
}

/// An image, with its bytes in the member of this name or somewhere else.
fn image(holder: Option<JsonNode<'_>>, name: &str, media: &mut Media) -> Result<(), DuplicateKey> {
    media.images += 1;
    let Some(holder) = holder else { return Ok(()) };
    let bytes = if holder.kind() == JsonKind::Object { holder.member(name)? } else { Some(holder) };
    if let Some(bytes) = bytes.filter(|bytes| bytes.kind() == JsonKind::Text) {
        media.image_spans.push(bytes.span());
    }
    Ok(())
}

/// A document is counted by its text if it is one, and by the model's context otherwise: pages are shown as text and as
/// images, and a small file can have many.
fn document(part: JsonNode<'_>, media: &mut Media) -> Result<(), GatewayError> {
    let Some(source) = part.member("source")? else { return Ok(()) };
    match source.member("type")?.and_then(JsonNode::text).as_deref() {
        Some("text") => {}
        Some("content") => {
            for part in source.member("content")?.into_iter().flat_map(JsonNode::items) {
                if part.member("type")?.is_some_and(|kind| kind.is_text("image")) {
                    image(part.member("source")?, "data", media)?;
                }
            }
        }
        _ => media.elsewhere = Some("a file"),
    }
    Ok(())
}

fn not_text() -> GatewayError {
    let message = "audio and video have prices of their own, which no hold bounds: send text and images";
    GatewayError::new(GatewayErrorKind::Refused, message)
}
