//! The blocks of an input, by the shape of each format: where messages, items, tools and instructions are, and which of
//! them are images, files or references. A block is looked at only where the provider does: an image in the arguments of
//! a tool call is text. A block counts as the model's whole context if it
//! cannot be classified, or if it names content that is not in the request.

use spinney_drivers::wire::NameKind;

use super::bounds::DEFINED_TOOL_TOKENS;
use super::error::{GatewayError, GatewayErrorKind};
use super::input::{Elsewhere, InputBlocks, Media, Omits};
use super::json_tape::{JsonKind, JsonNode};
use super::request_check::RequestCheck;
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

/// What a message of chat completions has that is always shown.
const MESSAGE_KEYS: [&str; 8] =
    ["role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "cache_control"];

/// Bytes of a message around its content: a role and braces. More is counted.
const AROUND_BYTES_MAX: usize = 64;

pub(super) fn input_blocks(
    check: &mut RequestCheck<'_>,
    root: JsonNode<'_>,
) -> Result<InputBlocks, GatewayError> {
    let mut input = InputBlocks::default();
    for member in root.members() {
        let Some(name) = member.key.text() else {
            input.add_bytes(member.value.span().len());
            continue;
        };
        let value = member.value;
        input.is_in_turns = matches!(name.as_ref(), "messages" | "input");
        match (check.format(), name.as_ref()) {
            (_, "tools" | "functions" | "messages") if value.kind() != JsonKind::Array => {
                input.add_bytes(value.span().len());
            }
            (_, "tools" | "functions") => tools(value, &mut input)?,
            (CallFormat::Messages, "system") => contents(check, value, "", &mut input)?,
            (CallFormat::Messages, "messages") => {
                for message in value.items() {
                    message_blocks(check, message, &mut input)?;
                }
            }
            (CallFormat::Chat, "messages") => {
                for message in value.items() {
                    let media = chat_media(check, message)?;
                    input.push(message, media);
                }
            }
            (CallFormat::Responses, "input" | "instructions") => items(check, value, &mut input)?,
            (_, "previous_response_id" | "conversation") if !value.is_null() => {
                input.add_elsewhere(Elsewhere::Answer);
            }
            (_, "truncation") if !value.is_nothing() && !value.is_text("disabled") => {
                input.add_edits(Omits::ByOrder, value.raw());
            }
            (_, "context_management") if !value.is_nothing() => {
                input.add_edits(omits(value)?, value.raw());
            }
            (_, "context_management" | "truncation") => input.add_setting(value.raw()),
            // Everything but how much.
            (_, "thinking") => {
                for member in value.members().filter(|member| !member.key.is_text("budget_tokens")) {
                    input.add_setting(member.key.raw());
                    input.add_setting(member.value.raw());
                }
            }
            (CallFormat::Responses, "reasoning") => {
                input.add_setting(value.member("context")?.map(JsonNode::raw).unwrap_or_default());
            }
            // What no model is shown.
            (_, name) if NO_INPUT.contains(&name) => {}
            (_, name) => {
                // While no tool may be called, some servers show none. An unknown field may leave anything out.
                if matches!(name, "tool_choice" | "function_call") || !check.is_read(name) {
                    input.add_setting(member.key.raw());
                    input.add_setting(value.raw());
                }
                // A provider may show a schema of the answer twice.
                input.add_bytes(member.key.span().len() + 2 * value.span().len());
            }
        }
    }
    Ok(input)
}

/// The blocks that context edits leave out.
fn omits(management: JsonNode<'_>) -> Result<Omits, GatewayError> {
    let edits = match management.kind() {
        JsonKind::Array => Some(management),
        _ => management.member("edits")?,
    };
    for edit in edits.into_iter().flat_map(JsonNode::items) {
        let kind = edit.member("type")?.and_then(JsonNode::text).unwrap_or_default();
        if kind != "clear_thinking_20251015" {
            return Ok(Omits::ByOrder);
        }
    }
    Ok(Omits::Thinking)
}

fn tools(tools: JsonNode<'_>, input: &mut InputBlocks) -> Result<(), GatewayError> {
    for tool in tools.items() {
        let mut media = Media::default();
        tool_media(tool, &mut media)?;
        media.set_tool_name(tool.member("name")?);
        input.push(tool, media);
    }
    Ok(())
}

/// What the provider adds for a tool or for those of a namespace, and whether it is shown in some calls only.
fn tool_media(tool: JsonNode<'_>, media: &mut Media) -> Result<(), GatewayError> {
    let kind = tool.member("type")?.and_then(JsonNode::text);
    if kind.as_deref() == Some("namespace") {
        for tool in tool.member("tools")?.into_iter().flat_map(JsonNode::items) {
            tool_media(tool, media)?;
        }
    }
    let is_ours = kind.is_none_or(|kind| matches!(kind.as_ref(), "custom" | "function" | "namespace"));
    // Such a tool is shown once a search has found it.
    let is_deferred = tool.member("defer_loading")?.is_some_and(|defer| !defer.is_nothing());
    media.add_tool(if is_ours { 0 } else { DEFINED_TOOL_TOKENS }, is_deferred);
    Ok(())
}

/// A message of Anthropic's: each part of its content is a block, because marks of the cache move between them.
fn message_blocks(
    check: &mut RequestCheck<'_>,
    message: JsonNode<'_>,
    input: &mut InputBlocks,
) -> Result<(), GatewayError> {
    let Some(content) = message.member("content")? else {
        input.push(message, Media::elsewhere(Elsewhere::Unknown));
        return Ok(());
    };
    // A message is shown even if nothing is in it.
    if content.is_nothing() {
        input.push(message, Media::default());
        return Ok(());
    }
    let around = message.span().len() - content.span().len();
    if around > AROUND_BYTES_MAX {
        input.add_bytes(around);
    }
    let is_term =
        |key: &JsonNode<'_>| !["role", "content", "output_config"].iter().any(|name| key.is_text(name));
    let terms = message.members().filter(|member| is_term(&member.key));
    let terms: String = terms.flat_map(|member| [member.key.raw(), member.value.raw()]).collect();
    contents(check, content, &terms, input)
}

/// A text, or a list of parts. A server may take one part that is not in a list. `terms` say whether they are shown.
fn contents(
    check: &mut RequestCheck<'_>,
    content: JsonNode<'_>,
    terms: &str,
    input: &mut InputBlocks,
) -> Result<(), GatewayError> {
    let mut add = |part: JsonNode<'_>| {
        let mut media = Media::with_terms(terms);
        part_media(check, part, &mut media)?;
        if part.member("type")?.is_some_and(|kind| kind.is_text("tool_removal")) {
            input.add_setting(part.raw());
        }
        input.push(part, media);
        Ok(())
    };
    match content.kind() {
        JsonKind::Array => content.items().try_for_each(add),
        _ => add(content),
    }
}

/// A text, or a list of items. A server may take one item that is not in a list.
fn items(
    check: &mut RequestCheck<'_>,
    value: JsonNode<'_>,
    input: &mut InputBlocks,
) -> Result<(), GatewayError> {
    let mut add = |item: JsonNode<'_>| {
        let is_text = matches!(item.kind(), JsonKind::Text | JsonKind::Null);
        let media = if is_text { Media::default() } else { item_media(check, item)? };
        input.push(item, media);
        Ok(())
    };
    match value.kind() {
        JsonKind::Array => value.items().try_for_each(add),
        _ => add(value),
    }
}

/// The content of a chat completions message beyond text.
fn chat_media(check: &mut RequestCheck<'_>, message: JsonNode<'_>) -> Result<Media, GatewayError> {
    let mut media = Media::default();
    if let Some(content) = message.member("content")? {
        parts_media(check, content, &mut media)?;
    }
    // An answer in audio that the provider keeps.
    if message.member("audio")?.is_some_and(|audio| !audio.is_nothing()) {
        return Err(not_text());
    }
    // Reasoning, and whatever else a server has of its own: those of earlier turns may be left out.
    let is_known = |key: &JsonNode<'_>| MESSAGE_KEYS.iter().any(|name| key.is_text(name));
    media.is_shown_by_place =
        message.members().any(|member| !is_known(&member.key) && !member.value.is_nothing());
    // A message without a role cannot be classified.
    if message.member("role")?.is_none_or(JsonNode::is_nothing) {
        media.add_elsewhere(Elsewhere::Unknown);
    }
    Ok(media)
}

/// The content of a Responses item beyond text.
fn item_media(check: &mut RequestCheck<'_>, item: JsonNode<'_>) -> Result<Media, GatewayError> {
    let mut media = Media::default();
    for name in ["content", "output", "summary"] {
        if let Some(content) = item.member(name)? {
            parts_media(check, content, &mut media)?;
        }
    }
    let kind = item.member("type")?.filter(|kind| !kind.is_null());
    let has = |name: &str| Ok::<_, GatewayError>(item.member(name)?.is_some_and(|value| !value.is_nothing()));
    // If an item has an id, an empty field may stand for content stored under that id.
    let brings =
        |name: &str| Ok::<_, GatewayError>(has(name)? || (item.member(name)?.is_some() && !has("id")?));
    let Some(kind) = kind else {
        // Without a type it is a message, or a reference to one that the provider stores.
        if !(has("role")? && brings("content")?) {
            media.add_elsewhere(Elsewhere::Item);
        }
        return Ok(media);
    };
    let Some(kind) = kind.text() else {
        media.add_elsewhere(Elsewhere::Unknown);
        return Ok(media);
    };
    // A message part may take the place of a message.
    if matches!(kind.as_ref(), "input_text" | "input_image" | "input_file" | "input_audio") {
        part_media(check, item, &mut media)?;
        return Ok(media);
    }
    if !check.is_known(NameKind::Item, &kind)? {
        media.add_elsewhere(Elsewhere::Unknown);
        return Ok(media);
    }
    if let Some(tools) = item.member("tools")? {
        check.tools(tools)?;
        for tool in tools.items() {
            tool_media(tool, &mut media)?;
        }
    }
    let brings_content = match kind.as_ref() {
        "message" | "agent_message" => brings("content")?,
        "function_call" => has("name")? && (brings("arguments")? || has("encrypted_function_args")?),
        "custom_tool_call" => has("name")? && brings("input")?,
        "function_call_output"
        | "custom_tool_call_output"
        | "computer_call_output"
        | "local_shell_call_output"
        | "shell_call_output" => brings("output")?,
        "apply_patch_call_output" => has("status")? || has("output")?,
        "local_shell_call" | "shell_call" => has("action")?,
        "computer_call" => has("action")? || has("actions")?,
        "apply_patch_call" => has("operation")?,
        "tool_search_call" => has("arguments")?,
        "tool_search_output" | "additional_tools" => brings("tools")?,
        "configuration_update" | "compaction_trigger" => true,
        "reasoning" | "compaction" | "compaction_summary" | "context_compaction" => {
            // Reasoning of earlier turns is left out.
            media.is_shown_by_place = kind == "reasoning";
            if has("encrypted_content")? {
                media.add_opaque(item.member("encrypted_content")?);
            }
            has("encrypted_content")? || (!has("id")? && has("content")?)
        }
        // A reference to a stored item, or a type that was added to the list without a rule here.
        _ => false,
    };
    if !brings_content {
        media.add_elsewhere(Elsewhere::Item);
    }
    if has("encrypted_function_args")? {
        media.add_opaque(item.member("encrypted_function_args")?);
    }
    Ok(media)
}

/// A list of parts, or a single part without a list, such as the output of a computer call.
fn parts_media(
    check: &mut RequestCheck<'_>,
    content: JsonNode<'_>,
    media: &mut Media,
) -> Result<(), GatewayError> {
    if content.kind() == JsonKind::Object {
        part_media(check, content, media)?;
    }
    for part in content.items() {
        part_media(check, part, media)?;
    }
    Ok(())
}

fn part_media(
    check: &mut RequestCheck<'_>,
    part: JsonNode<'_>,
    media: &mut Media,
) -> Result<(), GatewayError> {
    match part.kind() {
        JsonKind::Object => {}
        JsonKind::Array => {
            media.add_elsewhere(Elsewhere::Unknown);
            return Ok(());
        }
        _ => return Ok(()),
    }
    let Some(kind) = part.member("type")?.and_then(JsonNode::text) else {
        media.add_elsewhere(Elsewhere::Unknown);
        return Ok(());
    };
    if matches!(kind.as_ref(), "input_audio" | "input_video" | "video_url" | "audio") {
        return Err(not_text());
    }
    if !check.is_known(NameKind::Block, &kind)? {
        media.add_elsewhere(Elsewhere::Unknown);
        return Ok(());
    }
    if let Some(options) = part.member("prompt_cache_breakpoint")? {
        check.cache_ttl(options)?;
    }
    match (check.format(), kind.as_ref()) {
        (CallFormat::Messages, "image") => anthropic_image(part.member("source")?, media)?,
        (CallFormat::Messages, "document") => document(check, part, media)?,
        (CallFormat::Messages, "tool_result" | "search_result") => {
            if let Some(content) = part.member("content")? {
                parts_media(check, content, media)?;
            }
        }
        (CallFormat::Messages, "tool_addition") => {
            let tool = part.member("tool")?;
            match tool
                .map(|tool| tool.member("type"))
                .transpose()?
                .flatten()
                .and_then(JsonNode::text)
                .as_deref()
            {
                Some("tool_reference") => {
                    media.add_reference(tool.map(|tool| tool.member("tool_name")).transpose()?.flatten());
                }
                Some("tool_definition") => {
                    if let Some(definition) =
                        tool.map(|tool| tool.member("definition")).transpose()?.flatten()
                    {
                        check.tool(definition)?;
                        tool_media(definition, media)?;
                    }
                }
                _ => media.add_elsewhere(Elsewhere::Unknown),
            }
        }
        (CallFormat::Messages, "tool_reference") => media.add_reference(part.member("tool_name")?),
        // Those of earlier turns are left out.
        (CallFormat::Messages, "thinking" | "redacted_thinking") => {
            media.is_recounted = true;
            let sealed = if kind == "thinking" { "signature" } else { "data" };
            let sealed = part.member(sealed)?.filter(|sealed| !sealed.is_nothing());
            // Other servers may sign anything, and have no counter.
            if sealed.is_some() && check.is_own() {
                media.add_opaque(sealed);
            }
        }
        (CallFormat::Messages, "compaction") => media.add_elsewhere(Elsewhere::Encrypted),
        (CallFormat::Chat, "image_url") => image_url(part.member("image_url")?, media)?,
        (CallFormat::Responses, "input_image" | "computer_screenshot") => {
            image_url(part.member("image_url")?.filter(|url| !url.is_null()), media)?;
        }
        (CallFormat::Chat, "file") => media.add_elsewhere(Elsewhere::File),
        (CallFormat::Responses, "input_file") => {
            let has = |name: &str| {
                Ok::<_, GatewayError>(part.member(name)?.is_some_and(|value| !value.is_nothing()))
            };
            // The provider can count a file that is in the request.
            let is_here = has("file_data")? && !has("file_id")? && !has("file_url")?;
            media.add_elsewhere(if is_here { Elsewhere::Pages } else { Elsewhere::File });
        }
        // Codex hands a task on to an agent in this form.
        (CallFormat::Responses, "encrypted_content") => {
            media.add_handed_on(part.member("encrypted_content")?);
        }
        (CallFormat::Messages, "text" | "tool_use" | "tool_removal" | "connector_text" | "fallback")
        | (CallFormat::Chat, "text" | "refusal")
        | (
            CallFormat::Responses,
            "input_text" | "output_text" | "text" | "refusal" | "reasoning_text" | "summary_text",
        ) => {}
        // On the list without a rule.
        _ => media.add_elsewhere(Elsewhere::Unknown),
    }
    Ok(())
}

/// An image in Anthropic's format: its bytes, or a reference to them.
fn anthropic_image(source: Option<JsonNode<'_>>, media: &mut Media) -> Result<(), GatewayError> {
    let text =
        |name: &str| Ok::<_, GatewayError>(source.map(|source| source.member(name)).transpose()?.flatten());
    let kind = text("type")?.and_then(JsonNode::text);
    match kind.as_deref() {
        Some("base64") => {
            let is_image = |media: JsonNode<'_>| {
                media.text().is_some_and(|media| media.to_ascii_lowercase().starts_with("image/"))
            };
            if text("media_type")?.is_none_or(is_image) {
                media.add_image(text("data")?);
            } else {
                media.add_elsewhere(Elsewhere::File);
            }
        }
        // The image may change until the next call.
        Some("url" | "file") => media.add_remote_image(),
        _ => media.add_elsewhere(Elsewhere::Unknown),
    }
    Ok(())
}

/// An image in OpenAI's format: a data URL with its bytes, or a reference to them.
fn image_url(holder: Option<JsonNode<'_>>, media: &mut Media) -> Result<(), GatewayError> {
    let url = match holder {
        Some(holder) if holder.kind() == JsonKind::Object => holder.member("url")?,
        holder => holder,
    };
    let Some(url) = url.filter(|url| url.kind() == JsonKind::Text) else {
        media.add_remote_image();
        return Ok(());
    };
    // The prefix is enough, so the URL is not decoded. With escapes in its prefix, it cannot be classified.
    let raw = url.raw().trim_start_matches('"').trim_start();
    let begins = |with: &str| raw.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
    if begins("data:image/") {
        media.add_image(Some(url));
    } else if begins("http:") || begins("https:") {
        media.add_remote_image();
    } else {
        media.add_elsewhere(Elsewhere::File);
    }
    Ok(())
}

/// A document is counted by its text if it is one, and by the model's context otherwise: pages are shown as text and as
/// images, and a small file can have many.
fn document(check: &mut RequestCheck<'_>, part: JsonNode<'_>, media: &mut Media) -> Result<(), GatewayError> {
    let source = part.member("source")?;
    let kind = source.map(|source| source.member("type")).transpose()?.flatten().and_then(JsonNode::text);
    match (source, kind.as_deref()) {
        // Each of its sentences gets marks of its own.
        (Some(_), Some("text")) if has_citations(part)? => media.add_elsewhere(Elsewhere::Pages),
        (Some(_), Some("text")) => {}
        (Some(source), Some("content")) => {
            if let Some(content) = source.member("content")? {
                parts_media(check, content, media)?;
            }
        }
        // The document is in the request, so the provider can count its pages.
        (Some(_), Some("base64")) => media.add_elsewhere(Elsewhere::Pages),
        _ => media.add_elsewhere(Elsewhere::File),
    }
    Ok(())
}

/// Whether the model is asked to name the sentences of a document.
fn has_citations(part: JsonNode<'_>) -> Result<bool, GatewayError> {
    let enabled =
        part.member("citations")?.map(|citations| citations.member("enabled")).transpose()?.flatten();
    Ok(enabled.is_some_and(|enabled| !enabled.is_nothing()))
}

fn not_text() -> GatewayError {
    let message = "audio and video have separate prices, which no hold bounds: send text and images";
    GatewayError::new(GatewayErrorKind::Refused, message)
}
