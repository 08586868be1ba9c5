//! Anthropic's messages, written. Users and models take turns, and the results of tools stand first in theirs.

use std::collections::BTreeSet;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use spinney_kernel::definition::{CacheTime, Thinking};

use crate::wire::WireFormat;
use crate::wire::json::Object;
use crate::wire::request::{BodyError, ServiceTier, WireMessage, WirePart, WireRequest};
use crate::wire::turns::{
    BEGINNING, EarlierAnswer, TurnPiece, Unsupported, arguments_raw, base64, file_text, schema, unread,
};

/// The smallest thinking budget that the provider takes.
const BUDGET_MIN: u64 = 1_024;

pub(in crate::wire) fn write(request: &WireRequest) -> Result<Vec<u8>, BodyError> {
    let (params, mut body) = (&request.params, Object::default());
    Unsupported { provider: "Anthropic" }.refuse("seed", params.seed.as_ref())?;
    let cache = params.cache.and_then(cache_control);
    body.put("model", &request.model)?;
    body.put("max_tokens", &request.output_cap)?;
    if !request.system.trim().is_empty() {
        body.put("system", &system(request, cache.as_ref()))?;
    }
    body.put("messages", &turns(request, cache.as_ref())?)?;
    put_tools(request, &mut body)?;
    body.put_some("temperature", params.temperature.as_ref())?;
    body.put_some("top_p", params.top_p.as_ref())?;
    body.put_some("stop_sequences", Some(&params.stop).filter(|stop| !stop.is_empty()))?;
    match params.thinking {
        Some(Thinking::Adaptive) if !is_adaptive(&request.model) => {
            let older = Unsupported { provider: "Anthropic's models before 4.6" };
            older.refuse("thinking: adaptive", params.thinking.as_ref())?;
        }
        Some(Thinking::Adaptive) => body.put("thinking", &json!({ "type": "adaptive" }))?,
        Some(Thinking::Budget(budget)) => {
            // A budget is a part of the cap and must be below it, whatever the cap was shrunk to.
            let budget = budget.min(request.output_cap.saturating_sub(1));
            if budget >= BUDGET_MIN {
                body.put("thinking", &json!({ "type": "enabled", "budget_tokens": budget }))?;
            }
        }
        None => {}
    }
    let mut output = Object::default();
    output.put_some("effort", params.effort.as_ref())?;
    if let Some(structured) = &params.structured {
        let mut form = Object::default();
        form.put("type", "json_schema")?;
        form.put("schema", &schema(&structured.name, &structured.schema)?)?;
        output.put("format", &form)?;
    }
    if !output.is_empty() {
        body.put("output_config", &output)?;
    }
    if let Some(ServiceTier::Standard) = params.tier {
        body.put("service_tier", "standard_only")?;
    }
    body.put("stream", &true)?;
    Ok(serde_json::to_vec(&body)?)
}

/// With a mark at the end of what other requests share, and otherwise at the end. The goal of an agent is its own, so
/// caching it would be useless; its later turns are cached from the last message on.
fn system(request: &WireRequest, cache: Option<&Value>) -> Vec<Value> {
    let text = |text: &str| json!({ "type": "text", "text": text });
    let shared = request.system.get(..request.system_shared_bytes).filter(|shared| !shared.trim().is_empty());
    let own = shared.map_or("", |shared| &request.system[shared.len()..]);
    match (cache, shared) {
        (Some(_), Some(shared)) if !own.trim().is_empty() => vec![with_cache(text(shared), cache), text(own)],
        _ => vec![with_cache(text(&request.system), cache)],
    }
}

/// Whether a model can decide how much it thinks. Those that cannot are known by their names.
fn is_adaptive(model: &str) -> bool {
    !["claude-3", "-4-0", "-4-1", "-4-5", "-4-2025"].iter().any(|older| model.contains(older))
}

fn cache_control(time: CacheTime) -> Option<Value> {
    match time {
        CacheTime::Off => None,
        CacheTime::FiveMinutes => Some(json!({ "type": "ephemeral" })),
        CacheTime::Hour => Some(json!({ "type": "ephemeral", "ttl": "1h" })),
    }
}

fn with_cache(mut block: Value, cache: Option<&Value>) -> Value {
    if let Some(cache) = cache {
        block["cache_control"] = cache.clone();
    }
    block
}

/// Calls in the dialog must be of tools that are described. Where none may be called any more, those that were called
/// are named anyway.
fn put_tools(request: &WireRequest, body: &mut Object) -> Result<(), BodyError> {
    let tool = |name: &str, description: &str, text: &str| -> Result<Object, BodyError> {
        let mut entry = Object::default();
        entry.put("name", name)?;
        entry.put("description", description)?;
        entry.put("input_schema", &schema(name, text)?)?;
        Ok(entry)
    };
    if !request.tools.is_empty() {
        let tools: Result<Vec<Object>, BodyError> =
            request.tools.iter().map(|known| tool(&known.name, &known.description, &known.schema)).collect();
        body.put("tools", &tools?)?;
        return Ok(());
    }
    let calls = request.messages.iter().flat_map(|message| match message {
        WireMessage::Assistant { calls, .. } => calls.as_slice(),
        WireMessage::User(_) | WireMessage::Result { .. } => &[],
    });
    let called: BTreeSet<&str> = calls.map(|call| call.name.as_str()).collect();
    if !called.is_empty() {
        let tools: Result<Vec<Object>, BodyError> =
            called.iter().map(|name| tool(name, "cannot be called any more", "")).collect();
        body.put("tools", &tools?)?;
        body.put("tool_choice", &json!({ "type": "none" }))?;
    }
    Ok(())
}

/// A turn of the user or of the model.
#[derive(Default)]
struct Turn {
    is_user: bool,
    /// Results of tools, which stand first.
    results: Vec<Value>,
    blocks: Vec<Box<RawValue>>,
    /// Blocks of the user that a mark can be put on.
    plain: Vec<Value>,
}

fn turns(request: &WireRequest, cache: Option<&Value>) -> Result<Vec<Object>, BodyError> {
    let mut turns: Vec<Turn> = Vec::new();
    for message in &request.messages {
        match message {
            WireMessage::User(parts) => user(&mut turns).plain.extend(parts.iter().filter_map(block)),
            WireMessage::Result { id, text, is_error, parts, .. } => {
                let text = WirePart::Text(text.clone());
                let content: Vec<Value> = std::iter::once(&text).chain(parts).filter_map(block).collect();
                let mut result =
                    json!({ "type": "tool_result", "tool_use_id": safe_id(id), "content": content });
                if *is_error {
                    result["is_error"] = Value::Bool(true);
                }
                user(&mut turns).results.push(result);
            }
            WireMessage::Assistant { text, calls, continuation } => {
                let earlier = EarlierAnswer { text, calls, continuation: continuation.as_ref() };
                let mut blocks = Vec::new();
                for piece in earlier.pieces(WireFormat::AnthropicMessages, &request.model) {
                    blocks.extend(said(piece)?);
                }
                match turns.last_mut() {
                    _ if blocks.is_empty() => {}
                    Some(last) if !last.is_user => last.blocks.extend(blocks),
                    Some(_) => turns.push(Turn { blocks, ..Turn::default() }),
                    None => {
                        user(&mut turns).plain.push(json!({ "type": "text", "text": BEGINNING }));
                        turns.push(Turn { blocks, ..Turn::default() });
                    }
                }
            }
        }
    }
    turns.retain(|turn| !(turn.results.is_empty() && turn.blocks.is_empty() && turn.plain.is_empty()));
    if turns.is_empty() {
        user(&mut turns).plain.push(json!({ "type": "text", "text": BEGINNING }));
    }
    if let Some(last) = turns.last_mut().filter(|turn| turn.is_user) {
        let block = if last.plain.is_empty() { last.results.last_mut() } else { last.plain.last_mut() };
        if let Some(block) = block {
            *block = with_cache(block.take(), cache);
        }
    }
    turns.iter().map(Turn::written).collect()
}

fn user(turns: &mut Vec<Turn>) -> &mut Turn {
    if !turns.last().is_some_and(|turn| turn.is_user) {
        turns.push(Turn { is_user: true, ..Turn::default() });
    }
    let last = turns.len() - 1;
    &mut turns[last]
}

impl Turn {
    fn written(&self) -> Result<Object, BodyError> {
        let mut turn = Object::default();
        turn.put("role", if self.is_user { "user" } else { "assistant" })?;
        if self.is_user {
            let content: Vec<&Value> = self.results.iter().chain(&self.plain).collect();
            turn.put("content", &content)?;
        } else {
            turn.put("content", &self.blocks)?;
        }
        Ok(turn)
    }
}

/// A part of the user. Text without anything to read is refused by the provider, so it is left out.
fn block(part: &WirePart) -> Option<Value> {
    Some(match part {
        WirePart::Text(text) if text.trim().is_empty() => return None,
        WirePart::Text(text) => json!({ "type": "text", "text": text }),
        WirePart::Image { media, bytes } => {
            json!({ "type": "image", "source": { "type": "base64", "media_type": media, "data": base64(bytes) } })
        }
        WirePart::File { name, media, bytes } => match file_text(media, bytes) {
            Some(text) => {
                let source = json!({ "type": "text", "media_type": "text/plain", "data": text });
                json!({ "type": "document", "source": source, "title": name })
            }
            None if media == "application/pdf" => {
                let source = json!({ "type": "base64", "media_type": media, "data": base64(bytes) });
                json!({ "type": "document", "source": source, "title": name })
            }
            None => json!({ "type": "text", "text": unread(name, media, bytes) }),
        },
    })
}

fn said(piece: TurnPiece<'_>) -> Result<Option<Box<RawValue>>, BodyError> {
    Ok(match piece {
        TurnPiece::Raw(raw) => Some(raw.to_owned()),
        TurnPiece::Text(text) if text.trim().is_empty() => None,
        TurnPiece::Text(text) => Some(to_raw_value(&json!({ "type": "text", "text": text }))?),
        TurnPiece::Call(call) => {
            let mut block = Object::default();
            block.put("type", "tool_use")?;
            block.put("id", &safe_id(&call.id))?;
            block.put("name", &call.name)?;
            block.put("input", &arguments_raw(call)?)?;
            Some(block.raw()?)
        }
    })
}

/// An id of another provider in the letters that this one takes.
fn safe_id(id: &str) -> String {
    let is_safe = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let id: String = id.chars().map(|letter| if is_safe(letter) { letter } else { '_' }).collect();
    if id.is_empty() { "_".to_owned() } else { id }
}
