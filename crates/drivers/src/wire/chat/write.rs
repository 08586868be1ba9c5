//! Chat completions, written.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::wire::answer::WireToolCall;
use crate::wire::json::Object;
use crate::wire::request::{BodyError, ServiceTier, WireMessage, WirePart, WireRequest};
use crate::wire::turns::{
    BEGINNING, Unsupported, arguments, data_url, file_text, fitting_id, only_text, schema, unread,
};

/// The longest id of a call that OpenAI takes here, in bytes.
const ID_BYTES_MAX: usize = 40;

/// The kind of server that speaks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::wire) enum ChatDialect {
    OpenAi,
    /// All others: the older name of the cap, and no files.
    Compatible,
}

pub(in crate::wire) fn write(request: &WireRequest, dialect: ChatDialect) -> Result<Vec<u8>, BodyError> {
    let (params, mut body) = (&request.params, Object::default());
    let unsupported = Unsupported { provider: "chat completions" };
    unsupported.refuse_thinking(params)?;
    unsupported.refuse("cache", params.cache.as_ref())?;
    body.put("model", &request.model)?;
    body.put("messages", &messages(request, dialect)?)?;
    if !request.tools.is_empty() {
        body.put("tools", &tools(request)?)?;
    }
    match dialect {
        ChatDialect::OpenAi => body.put("max_completion_tokens", &request.output_cap)?,
        ChatDialect::Compatible => body.put("max_tokens", &request.output_cap)?,
    }
    body.put_some("temperature", params.temperature.as_ref())?;
    body.put_some("top_p", params.top_p.as_ref())?;
    body.put_some("stop", Some(&params.stop).filter(|stop| !stop.is_empty()))?;
    body.put_some("seed", params.seed.as_ref())?;
    body.put_some("reasoning_effort", params.effort.as_ref())?;
    if let Some(structured) = &params.structured {
        let mut form = Object::default();
        form.put("name", &structured.name)?;
        form.put("schema", &schema(&structured.name, &structured.schema)?)?;
        form.put("strict", &structured.is_strict)?;
        let mut response_format = Object::default();
        response_format.put("type", "json_schema")?;
        response_format.put("json_schema", &form)?;
        body.put("response_format", &response_format)?;
    }
    if let (ChatDialect::OpenAi, Some(ServiceTier::Standard)) = (dialect, params.tier) {
        body.put("service_tier", "default")?;
    }
    body.put("stream", &true)?;
    body.put("stream_options", &json!({ "include_usage": true }))?;
    Ok(serde_json::to_vec(&body)?)
}

fn tools(request: &WireRequest) -> Result<Vec<Object>, BodyError> {
    let tools = request.tools.iter().map(|tool| {
        let mut function = Object::default();
        function.put("name", &tool.name)?;
        function.put("description", &tool.description)?;
        function.put("parameters", &schema(&tool.name, &tool.schema)?)?;
        let mut entry = Object::default();
        entry.put("type", "function")?;
        entry.put("function", &function)?;
        Ok(entry)
    });
    tools.collect()
}

fn messages(request: &WireRequest, dialect: ChatDialect) -> Result<Vec<Box<RawValue>>, BodyError> {
    let mut messages = Vec::new();
    let mut put = |message: &Value| -> Result<(), BodyError> {
        messages.push(to_raw_value(message)?);
        Ok(())
    };
    if !request.system.is_empty() {
        put(&json!({ "role": "system", "content": request.system }))?;
    }
    // The templates of many models refuse a dialog that the user does not begin. OpenAI takes it, and counts each message.
    if dialect == ChatDialect::Compatible && !matches!(request.messages.first(), Some(WireMessage::User(_))) {
        put(&json!({ "role": "user", "content": BEGINNING }))?;
    }
    // What comes with tools' results follows all of them: nothing may stand between results of one answer.
    let mut along: Vec<Value> = Vec::new();
    for message in &request.messages {
        if !along.is_empty() && !matches!(message, WireMessage::Result { .. }) {
            put(&json!({ "role": "user", "content": std::mem::take(&mut along) }))?;
        }
        match message {
            WireMessage::User(parts) => match only_text(parts) {
                Some(text) => put(&json!({ "role": "user", "content": text }))?,
                None => {
                    let content: Vec<Value> = parts.iter().map(|part| content(part, dialect)).collect();
                    put(&json!({ "role": "user", "content": content }))?;
                }
            },
            WireMessage::Assistant { text, calls, .. } => {
                let mut said = json!({ "role": "assistant", "content": text });
                if !calls.is_empty() {
                    let call = |call: &WireToolCall| -> Result<Value, BodyError> {
                        let function = json!({ "name": call.name, "arguments": arguments(call)? });
                        Ok(
                            json!({ "id": fitting_id(&call.id, ID_BYTES_MAX), "type": "function", "function": function }),
                        )
                    };
                    let calls: Result<Vec<Value>, BodyError> = calls.iter().map(call).collect();
                    said["tool_calls"] = Value::Array(calls?);
                    if text.is_empty() {
                        said["content"] = Value::Null;
                    }
                }
                put(&said)?;
            }
            WireMessage::Result { id, text, parts, .. } => {
                put(
                    &json!({ "role": "tool", "tool_call_id": fitting_id(id, ID_BYTES_MAX), "content": text }),
                )?;
                along.extend(parts.iter().map(|part| content(part, dialect)));
            }
        }
    }
    if !along.is_empty() {
        put(&json!({ "role": "user", "content": along }))?;
    }
    Ok(messages)
}

fn content(part: &WirePart, dialect: ChatDialect) -> Value {
    match part {
        WirePart::Text(text) => json!({ "type": "text", "text": text }),
        WirePart::Image { media, bytes } => {
            json!({ "type": "image_url", "image_url": { "url": data_url(media, bytes) } })
        }
        WirePart::File { name, media, bytes } => match file_text(media, bytes) {
            Some(text) => json!({ "type": "text", "text": format!("{name}:\n{text}") }),
            None if dialect == ChatDialect::OpenAi && media == "application/pdf" => {
                json!({ "type": "file", "file": { "filename": name, "file_data": data_url(media, bytes) } })
            }
            None => json!({ "type": "text", "text": unread(name, media, bytes) }),
        },
    }
}
