//! Requests whose cost no hold bounds: they ask for something that is billed by another unit, at another price, or more
//! often than once. Each is refused with what to do instead. `docs/gateway.md` has the list.

use spinney_drivers::prices::refused_param;

use super::call_request::bad;
use super::error::{GatewayError, GatewayErrorKind};
use super::json_tape::{JsonKind, JsonNode};
use super::route::CallFormat;

/// Service tiers that cost no more than the price table says.
const TIERS: [&str; 5] = ["auto", "default", "flex", "standard", "standard_only"];

/// Fields whose presence is the switch: an empty object turns them on.
const SWITCHES: [&str; 5] =
    ["code_execution", "file_search", "search_parameters", "web_search", "web_search_options"];

/// Refuses what cannot be bounded.
pub(super) fn refuse_unbounded(format: CallFormat, root: JsonNode<'_>) -> Result<(), GatewayError> {
    let mut has_tools = false;
    for member in root.members() {
        let (Some(name), value) = (member.key.text(), member.value) else { continue };
        let is_switch = SWITCHES.contains(&name.as_ref()) && value.kind() == JsonKind::Object;
        if value.is_nothing() && !is_switch {
            continue;
        }
        match name.as_ref() {
            "service_tier" => only(name.as_ref(), value, &TIERS)?,
            "speed" => only(name.as_ref(), value, &["standard"])?,
            "inference_geo" => only(name.as_ref(), value, &["global"])?,
            "n" => {
                if value.whole_number() != Some(1) {
                    return Err(refused("`n` above 1: every further answer is billed; leave `n` out"));
                }
            }
            "modalities" => {
                if value.items().any(|item| !item.is_text("text")) {
                    return Err(refused("output that is not text is billed apart: leave `modalities` out"));
                }
            }
            "tools" => {
                if std::mem::replace(&mut has_tools, true) {
                    return Err(bad("`tools` is in one object twice: send it once"));
                }
                if value.kind() != JsonKind::Array {
                    return Err(bad("`tools` is no list"));
                }
                for tool in value.items() {
                    refuse_tool(format, tool)?;
                }
            }
            // Codex sends its tools in an item, and tools that a search found are in one as well.
            "input" if format == CallFormat::Responses => {
                for item in value.items() {
                    for tool in item.member("tools")?.into_iter().flat_map(JsonNode::items) {
                        refuse_tool(format, tool)?;
                    }
                }
            }
            "context_management" => refuse_compaction(value)?,
            "prompt" if format == CallFormat::Responses => {
                return Err(refused("a prompt that the provider keeps may call paid tools: send its text"));
            }
            // These have their own rules, or another meaning here.
            "max_completion_tokens" | "max_output_tokens" | "max_tokens" => {}
            name => {
                if let Some(why) = refused_param(name) {
                    return Err(refused(format!("the field `{name}`: {why}")));
                }
            }
        }
    }
    Ok(())
}

fn only(name: &str, value: JsonNode<'_>, allowed: &[&str]) -> Result<(), GatewayError> {
    if allowed.iter().any(|allowed| value.is_text(allowed)) {
        return Ok(());
    }
    let allowed = allowed.join("`, `");
    Err(refused(format!("another `{name}` has other prices: leave it out, or send `{allowed}`")))
}

/// Tools that the program runs cost nothing beyond their tokens. Those that the provider runs are billed apart, and call
/// the model again with more input than was held.
fn refuse_tool(format: CallFormat, tool: JsonNode<'_>) -> Result<(), GatewayError> {
    let kind = tool.member("type")?;
    let Some(kind) = kind.filter(|kind| !kind.is_null()) else { return Ok(()) };
    let Some(kind) = kind.text() else { return Err(bad("the `type` of a tool is no text")) };
    let is_run_by_program = match (format, kind.as_ref()) {
        (_, "custom" | "function") => true,
        (CallFormat::Messages, kind) => {
            ["bash_", "computer_", "memory_", "text_editor_"].iter().any(|family| kind.starts_with(family))
        }
        (CallFormat::Responses, "apply_patch" | "computer" | "computer_use_preview" | "local_shell") => true,
        (CallFormat::Responses, "tool_search") => {
            tool.member("execution")?.is_some_and(|by| by.is_text("client"))
        }
        (CallFormat::Responses, "shell") => match tool.member("environment")? {
            None => true,
            Some(environment) => environment.member("type")?.is_some_and(|kind| kind.is_text("local")),
        },
        (CallFormat::Responses, "namespace") => {
            for tool in tool.member("tools")?.into_iter().flat_map(JsonNode::items) {
                if tool.member("type")?.is_some_and(|kind| kind.is_text("namespace")) {
                    return Err(bad("a namespace of tools is in another one"));
                }
                refuse_tool(format, tool)?;
            }
            true
        }
        _ => false,
    };
    if is_run_by_program {
        return Ok(());
    }
    let kind: String = kind.chars().filter(|letter| !letter.is_control()).take(64).collect();
    let why = "the provider runs this tool and bills it apart, so the budget could not bound it";
    Err(refused(format!("the tool `{kind}`: {why}; turn it off{}", remedy(&kind))))
}

/// How the known programs turn a tool off.
fn remedy(kind: &str) -> &'static str {
    if kind.starts_with("web_search") {
        " (Claude Code: `--disallowedTools WebSearch`; Codex: `-c web_search=disabled`)"
    } else {
        ""
    }
}

/// Edits that only leave something out are free. Those that summarise call the model once more.
fn refuse_compaction(management: JsonNode<'_>) -> Result<(), GatewayError> {
    let edits = match management.kind() {
        JsonKind::Array => Some(management),
        _ => management.member("edits")?,
    };
    for edit in edits.into_iter().flat_map(JsonNode::items) {
        let kind = edit.member("type")?.and_then(JsonNode::text).unwrap_or_default();
        if !kind.starts_with("clear_") {
            return Err(refused(
                "`context_management` may call the model once more, which is billed apart: let the program compact its context itself",
            ));
        }
    }
    Ok(())
}

fn refused(message: impl Into<String>) -> GatewayError {
    GatewayError::new(GatewayErrorKind::Refused, message)
}
