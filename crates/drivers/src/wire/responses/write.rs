//! OpenAI's responses, written. Nothing is stored there, so reasoning travels encrypted and comes back whole.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::wire::WireFormat;
use crate::wire::json::Object;
use crate::wire::request::{BodyError, ServiceTier, WireMessage, WirePart, WireRequest};
use crate::wire::turns::{
    EarlierAnswer, TurnPiece, Unsupported, arguments, data_url, file_text, fitting_id, schema, unread,
};

/// The longest id of a call that the provider takes, in bytes.
const ID_BYTES_MAX: usize = 64;

pub(in crate::wire) fn write(request: &WireRequest) -> Result<Vec<u8>, BodyError> {
    let (params, mut body) = (&request.params, Object::default());
    let unsupported = Unsupported { provider: "responses" };
    unsupported.refuse_thinking(params)?;
    unsupported.refuse("seed", params.seed.as_ref())?;
    unsupported.refuse("cache", params.cache.as_ref())?;
    unsupported.refuse_stop(params)?;
    body.put("model", &request.model)?;
    if !request.system.is_empty() && begins_with_user(request) {
        body.put("instructions", &request.system)?;
    }
    body.put("input", &input(request)?)?;
    if !request.tools.is_empty() {
        body.put("tools", &tools(request)?)?;
    }
    body.put("max_output_tokens", &request.output_cap)?;
    body.put_some("temperature", params.temperature.as_ref())?;
    body.put_some("top_p", params.top_p.as_ref())?;
    if let Some(effort) = &params.effort {
        body.put("reasoning", &json!({ "effort": effort }))?;
    }
    if let Some(structured) = &params.structured {
        let mut form = Object::default();
        form.put("type", "json_schema")?;
        form.put("name", &structured.name)?;
        form.put("schema", &schema(&structured.name, &structured.schema)?)?;
        form.put("strict", &structured.is_strict)?;
        let mut text = Object::default();
        text.put("format", &form)?;
        body.put("text", &text)?;
    }
    body.put("store", &false)?;
    if reasons(&request.model) {
        body.put("include", &["reasoning.encrypted_content"])?;
    }
    if let Some(ServiceTier::Standard) = params.tier {
        body.put("service_tier", "default")?;
    }
    body.put("stream", &true)?;
    Ok(serde_json::to_vec(&body)?)
}

/// Whether a model reasons. Those that do not refuse to be asked for their encrypted reasoning.
fn reasons(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let is_older = ["gpt-3", "gpt-4", "chatgpt-"].iter().any(|beginning| name.starts_with(beginning));
    !is_older && !name.contains("-chat")
}

fn tools(request: &WireRequest) -> Result<Vec<Object>, BodyError> {
    let tools = request.tools.iter().map(|tool| {
        let mut entry = Object::default();
        entry.put("type", "function")?;
        entry.put("name", &tool.name)?;
        entry.put("description", &tool.description)?;
        entry.put("parameters", &schema(&tool.name, &tool.schema)?)?;
        entry.put("strict", &false)?;
        Ok(entry)
    });
    tools.collect()
}

fn begins_with_user(request: &WireRequest) -> bool {
    matches!(request.messages.first(), Some(WireMessage::User(_)))
}

fn input(request: &WireRequest) -> Result<Vec<Box<RawValue>>, BodyError> {
    let mut items = Vec::new();
    // The input may not be empty. What the system says is its first item, on every turn, until the user begins.
    if !request.system.is_empty() && !begins_with_user(request) {
        let content = [json!({ "type": "input_text", "text": request.system })];
        items.push(to_raw_value(&json!({ "type": "message", "role": "developer", "content": content }))?);
    }
    for message in &request.messages {
        match message {
            WireMessage::User(parts) => {
                let content: Vec<Value> = parts.iter().map(content).collect();
                items.push(to_raw_value(&json!({ "type": "message", "role": "user", "content": content }))?);
            }
            WireMessage::Assistant { text, calls, continuation } => {
                let earlier = EarlierAnswer { text, calls, continuation: continuation.as_ref() };
                for piece in earlier.pieces(WireFormat::OpenAiResponses, &request.model) {
                    items.push(item(piece)?);
                }
            }
            WireMessage::Result { id, text, parts, .. } => {
                let output = if parts.is_empty() {
                    json!(text)
                } else {
                    let text = json!({ "type": "input_text", "text": text });
                    Value::Array(std::iter::once(text).chain(parts.iter().map(content)).collect())
                };
                let item = json!({ "type": "function_call_output", "call_id": fitting_id(id, ID_BYTES_MAX), "output": output });
                items.push(to_raw_value(&item)?);
            }
        }
    }
    Ok(items)
}

fn item(piece: TurnPiece<'_>) -> Result<Box<RawValue>, BodyError> {
    Ok(match piece {
        TurnPiece::Raw(raw) => raw.to_owned(),
        TurnPiece::Text(text) => {
            let content = [json!({ "type": "output_text", "text": text })];
            to_raw_value(&json!({ "type": "message", "role": "assistant", "content": content }))?
        }
        TurnPiece::Call(call) => {
            let (id, name, arguments) = (fitting_id(&call.id, ID_BYTES_MAX), &call.name, arguments(call)?);
            let call =
                json!({ "type": "function_call", "call_id": id, "name": name, "arguments": arguments });
            to_raw_value(&call)?
        }
    })
}

fn content(part: &WirePart) -> Value {
    match part {
        WirePart::Text(text) => json!({ "type": "input_text", "text": text }),
        WirePart::Image { media, bytes } => {
            json!({ "type": "input_image", "image_url": data_url(media, bytes) })
        }
        WirePart::File { name, media, bytes } => match file_text(media, bytes) {
            Some(text) => json!({ "type": "input_text", "text": format!("{name}:\n{text}") }),
            None if media == "application/pdf" => {
                json!({ "type": "input_file", "filename": name, "file_data": data_url(media, bytes) })
            }
            None => json!({ "type": "input_text", "text": unread(name, media, bytes) }),
        },
    }
}
