//! Gemini, written. Users and models take turns; results of tools are matched with calls by name and order.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use spinney_kernel::definition::Thinking;

use crate::wire::WireFormat;
use crate::wire::json::Object;
use crate::wire::request::{BodyError, WireMessage, WirePart, WireRequest};
use crate::wire::turns::{
    BEGINNING, EarlierAnswer, TurnPiece, Unsupported, arguments_raw, base64, file_text, schema, unread,
};

/// What the provider documents for calls that another model made: newer models refuse calls without a signature.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

pub(in crate::wire) fn write(request: &WireRequest) -> Result<Vec<u8>, BodyError> {
    let mut body = Object::default();
    Unsupported { provider: "Gemini" }.refuse("cache", request.params.cache.as_ref())?;
    if !request.system.is_empty() {
        body.put("systemInstruction", &json!({ "parts": [{ "text": request.system }] }))?;
    }
    body.put("contents", &contents(request)?)?;
    if !request.tools.is_empty() {
        let mut tools = Object::default();
        tools.put("functionDeclarations", &declarations(request)?)?;
        body.put("tools", &[tools])?;
    }
    body.put("generationConfig", &generation(request)?)?;
    Ok(serde_json::to_vec(&body)?)
}

fn declarations(request: &WireRequest) -> Result<Vec<Object>, BodyError> {
    let tools = request.tools.iter().map(|tool| {
        let mut entry = Object::default();
        entry.put("name", &tool.name)?;
        entry.put("description", &tool.description)?;
        entry.put("parametersJsonSchema", &schema(&tool.name, &tool.schema)?)?;
        Ok(entry)
    });
    tools.collect()
}

fn generation(request: &WireRequest) -> Result<Object, BodyError> {
    let (params, mut config) = (&request.params, Object::default());
    config.put("maxOutputTokens", &request.output_cap)?;
    config.put_some("temperature", params.temperature.as_ref())?;
    config.put_some("topP", params.top_p.as_ref())?;
    config.put_some("stopSequences", Some(&params.stop).filter(|stop| !stop.is_empty()))?;
    config.put_some("seed", params.seed.as_ref())?;
    if let Some(structured) = &params.structured {
        config.put("responseMimeType", "application/json")?;
        config.put("responseJsonSchema", &schema(&structured.name, &structured.schema)?)?;
    }
    let mut thinking = Object::default();
    thinking.put_some("thinkingLevel", params.effort.as_ref())?;
    match params.thinking {
        Some(Thinking::Adaptive) => thinking.put("thinkingBudget", &-1)?,
        Some(Thinking::Budget(budget)) => thinking.put("thinkingBudget", &budget.min(request.output_cap))?,
        None => {}
    }
    if !thinking.is_empty() {
        thinking.put("includeThoughts", &true)?;
        config.put("thinkingConfig", &thinking)?;
    }
    Ok(config)
}

struct Turn {
    role: &'static str,
    parts: Vec<Box<RawValue>>,
    /// What comes with the results of tools, which stand first.
    along: Vec<Box<RawValue>>,
}

fn contents(request: &WireRequest) -> Result<Vec<Object>, BodyError> {
    let mut turns: Vec<Turn> = Vec::new();
    for message in &request.messages {
        match message {
            WireMessage::User(parts) => {
                for part in parts {
                    let part = to_raw_value(&shown(part))?;
                    turn(&mut turns, "user").along.push(part);
                }
            }
            WireMessage::Result { id, tool, text, is_error, parts } => {
                let response = if *is_error { json!({ "error": text }) } else { json!({ "result": text }) };
                let mut result = json!({ "name": tool, "response": response });
                if is_theirs(id) {
                    result["id"] = json!(id);
                }
                let result = to_raw_value(&json!({ "functionResponse": result }))?;
                let turn = turn(&mut turns, "user");
                turn.parts.push(result);
                for part in parts {
                    turn.along.push(to_raw_value(&shown(part))?);
                }
            }
            WireMessage::Assistant { text, calls, continuation } => {
                let earlier = EarlierAnswer { text, calls, continuation: continuation.as_ref() };
                let parts = said(&earlier.pieces(WireFormat::Gemini, &request.model), &request.model)?;
                if turns.is_empty() && !parts.is_empty() {
                    turn(&mut turns, "user").along.push(to_raw_value(&json!({ "text": BEGINNING }))?);
                }
                if !parts.is_empty() {
                    turn(&mut turns, "model").parts.extend(parts);
                }
            }
        }
    }
    if turns.is_empty() {
        turn(&mut turns, "user").along.push(to_raw_value(&json!({ "text": BEGINNING }))?);
    }
    let written = turns.iter().map(|turn| {
        let mut content = Object::default();
        content.put("role", turn.role)?;
        let parts: Vec<&RawValue> = turn.parts.iter().chain(&turn.along).map(AsRef::as_ref).collect();
        content.put("parts", &parts)?;
        Ok(content)
    });
    written.collect()
}

fn turn<'t>(turns: &'t mut Vec<Turn>, role: &'static str) -> &'t mut Turn {
    if turns.last().is_none_or(|turn| turn.role != role) {
        turns.push(Turn { role, parts: Vec::new(), along: Vec::new() });
    }
    let last = turns.len() - 1;
    &mut turns[last]
}

fn said(pieces: &[TurnPiece<'_>], model: &str) -> Result<Vec<Box<RawValue>>, BodyError> {
    let has_signature = pieces.iter().any(|piece| matches!(piece, TurnPiece::Raw(_)));
    let mut wants_signature = !has_signature && signs_calls(model);
    let mut parts = Vec::new();
    for piece in pieces {
        parts.push(match piece {
            TurnPiece::Raw(raw) => (*raw).to_owned(),
            TurnPiece::Text(text) => to_raw_value(&json!({ "text": text }))?,
            TurnPiece::Call(call) => {
                let mut function = Object::default();
                function.put_some("id", Some(&call.id).filter(|id| is_theirs(id)))?;
                function.put("name", &call.name)?;
                function.put("args", &arguments_raw(call)?)?;
                let mut part = Object::default();
                part.put("functionCall", &function)?;
                if std::mem::take(&mut wants_signature) {
                    part.put("thoughtSignature", NO_SIGNATURE)?;
                }
                part.raw()?
            }
        });
    }
    Ok(parts)
}

/// Whether an id was given by a provider, and not made up where one gives none.
fn is_theirs(id: &str) -> bool {
    !id.is_empty() && !id.starts_with("call_")
}

/// Whether a model refuses calls without a signature: those from the third generation on do.
fn signs_calls(model: &str) -> bool {
    model.contains("gemini") && !["gemini-1", "gemini-2"].iter().any(|older| model.contains(older))
}

fn shown(part: &WirePart) -> Value {
    match part {
        WirePart::Text(text) => json!({ "text": text }),
        WirePart::Image { media, bytes } => {
            json!({ "inlineData": { "mimeType": media, "data": base64(bytes) } })
        }
        WirePart::File { name, media, bytes } => match file_text(media, bytes) {
            Some(text) => json!({ "text": format!("{name}:\n{text}") }),
            None if takes(media) => json!({ "inlineData": { "mimeType": media, "data": base64(bytes) } }),
            None => json!({ "text": unread(name, media, bytes) }),
        },
    }
}

fn takes(media: &str) -> bool {
    media == "application/pdf" || ["image/", "audio/", "video/"].iter().any(|kind| media.starts_with(kind))
}
