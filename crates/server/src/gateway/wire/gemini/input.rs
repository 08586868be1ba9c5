//! The blocks of an input: the parts of contents and of the system instruction, and the functions among the tools.

use spinney_drivers::wire::NameKind;

use super::super::error::GatewayError;
use super::super::input::{Elsewhere, InputBlocks, Media};
use super::super::json_tape::{JsonKind, JsonNode};
use super::super::request_check::RequestCheck;
use super::check::only_keys;
use super::names::{GeminiField, field, fields, items};

/// Fields that no model is shown.
const NO_INPUT: [&str; 4] = ["labels", "safetySettings", "serviceTier", "store"];
/// Schemas in the configuration, which a model may be shown.
const SCHEMAS: [&str; 3] = ["_responseJsonSchema", "responseJsonSchema", "responseSchema"];
/// Bytes of a content around its parts: a role and braces. More is counted.
const AROUND_BYTES_MAX: usize = 64;
/// What the provider documents for calls that another model made. They are not signatures.
const NO_SIGNATURES: [&str; 2] = ["context_engineering_is_the_way_to_go", "skip_thought_signature_validator"];

pub(super) fn blocks(check: &mut RequestCheck<'_>, root: JsonNode<'_>) -> Result<InputBlocks, GatewayError> {
    let mut input = InputBlocks::default();
    for GeminiField { name, key, value, .. } in fields(root)? {
        input.is_in_turns = name == "contents";
        match name.as_ref() {
            "contents" | "systemInstruction" => {
                for one in items(value) {
                    content(check, one, &mut input)?;
                }
            }
            "tools" => {
                for tool in items(value) {
                    functions(tool, &mut input)?;
                }
            }
            "generationConfig" => config(value, &mut input)?,
            "cachedContent" if !value.is_nothing() => input.add_elsewhere(Elsewhere::Item),
            name if NO_INPUT.contains(&name) => {}
            _ => {
                // What a call may use may decide what is shown. An unknown field may leave anything out.
                input.add_setting(key.raw());
                input.add_setting(value.raw());
                input.add_bytes(key.span().len() + 2 * value.span().len());
            }
        }
    }
    Ok(input)
}

fn config(config: JsonNode<'_>, input: &mut InputBlocks) -> Result<(), GatewayError> {
    for GeminiField { name, value, .. } in fields(config)? {
        match name.as_ref() {
            // A provider may show a schema of the answer twice.
            name if SCHEMAS.contains(&name) => input.add_bytes(2 * value.span().len()),
            // Everything but how much.
            "thinkingConfig" => {
                for GeminiField { name, value, .. } in fields(value)? {
                    if name != "thinkingBudget" {
                        input.add_setting(&name);
                        input.add_setting(value.raw());
                    }
                }
            }
            "maxOutputTokens" | "candidateCount" | "seed" | "temperature" | "topK" | "topP" => {}
            // The resolution of images is among them.
            name => {
                input.add_setting(name);
                input.add_setting(value.raw());
                input.add_bytes(value.span().len());
            }
        }
    }
    Ok(())
}

fn functions(tool: JsonNode<'_>, input: &mut InputBlocks) -> Result<(), GatewayError> {
    for GeminiField { name, value, .. } in fields(tool)? {
        if name == "functionDeclarations" {
            for function in items(value) {
                input.push(function, Media::default());
            }
        } else {
            input.add_setting(&name);
            input.add_setting(value.raw());
            input.add_bytes(value.span().len());
        }
    }
    Ok(())
}

fn content(
    check: &mut RequestCheck<'_>,
    content: JsonNode<'_>,
    input: &mut InputBlocks,
) -> Result<(), GatewayError> {
    let parts = field(content, "parts")?;
    // One that has no parts is shown as well.
    let Some(parts) = parts.filter(|parts| !parts.is_nothing()) else {
        input.push(content, Media::default());
        return Ok(());
    };
    let around = content.span().len() - parts.span().len();
    if around > AROUND_BYTES_MAX {
        input.add_bytes(around);
    }
    let others =
        fields(content)?.into_iter().filter(|field| !matches!(field.name.as_ref(), "role" | "parts"));
    let terms: String = others.flat_map(|field| [field.key.raw(), field.value.raw()]).collect();
    for part in items(parts) {
        let mut media = Media::with_terms(&terms);
        part_media(check, part, &mut media)?;
        input.push(part, media);
    }
    Ok(())
}

/// What a part has beyond text.
fn part_media(
    check: &mut RequestCheck<'_>,
    part: JsonNode<'_>,
    media: &mut Media,
) -> Result<(), GatewayError> {
    for GeminiField { name, value, .. } in fields(part)? {
        if value.is_null() || !check_part(check, &name, media)? {
            continue;
        }
        match name.as_ref() {
            // The provider may leave out what was thought in earlier turns.
            "thought" => media.is_recounted |= !value.is_nothing(),
            "thoughtSignature" => {
                let is_none = NO_SIGNATURES.iter().any(|none| value.is_text(none));
                // Other servers may sign anything, and have no counter.
                if !is_none && !value.is_nothing() && check.is_own() {
                    media.is_recounted = true;
                    media.add_opaque_bytes(value);
                }
            }
            "inlineData" => inline_data(check, value, media)?,
            "functionResponse" => {
                for one in field(value, "parts")?.map(items).unwrap_or_default() {
                    part_media(check, one, media)?;
                }
            }
            // A number of tokens may be among its fields.
            "mediaResolution" => only_keys(check, NameKind::Block, value, &["level"])?,
            _ => {}
        }
    }
    Ok(())
}

/// Checks the name of a field of a part. Returns whether it is read here; of one that passed without being on the list, only
/// the model's context bounds the rest.
fn check_part(check: &mut RequestCheck<'_>, name: &str, media: &mut Media) -> Result<bool, GatewayError> {
    let is_known = check.is_known(NameKind::Block, name)?;
    if !is_known {
        media.add_elsewhere(if name == "fileData" { Elsewhere::File } else { Elsewhere::Unknown });
    }
    Ok(is_known)
}

/// Bytes in the request, by their kind.
fn inline_data(
    check: &mut RequestCheck<'_>,
    blob: JsonNode<'_>,
    media: &mut Media,
) -> Result<(), GatewayError> {
    let kind = field(blob, "mimeType")?.and_then(JsonNode::text).unwrap_or_default().to_ascii_lowercase();
    let data = field(blob, "data")?.filter(|data| data.kind() == JsonKind::Text);
    let (kind, rest) = kind.split_once('/').unwrap_or((&kind, ""));
    match (kind, rest) {
        ("image", _) => media.add_image(data),
        // No token is shorter than a byte, and base64 has more bytes than the text.
        ("text", _) => {}
        ("audio" | "video", _) => {
            let why = "it has another price, or more tokens than its bytes say: send text and images";
            check.refuse(NameKind::Block, kind, why)?;
            media.add_elsewhere(Elsewhere::Pages);
        }
        // A document is shown as pages, and a small one can have many.
        ("application", _) => media.add_elsewhere(Elsewhere::Pages),
        _ => media.add_elsewhere(Elsewhere::Unknown),
    }
    Ok(())
}
