//! The conversation that a call continues, for people who look at a run: the messages of its request, and the answer in its
//! response, in any of the formats, streamed or not. What is not known is named and not read.

use std::collections::BTreeMap;

use serde_json::Value;
use spinney_drivers::wire::{
    Keep, ReadAs, Secrets, ServedFrom, StreamReader, UndividedWrites, WireAnswer, read_whole,
};

use super::route::{CallFormat, ProviderApi};

/// The messages of a call, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    pub messages: Vec<ConversationMessage>,
    /// Whether the request offers tools. Calls beside the work of an agent, such as one for a title, offer none.
    pub offers_tools: bool,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationMessage {
    pub speaker: Speaker,
    pub text: String,
    /// What the model thought, as far as the provider shows it.
    pub reasoning: String,
    pub asks: Vec<ConversationAsk>,
    /// The tool whose result it is.
    pub tool: Option<String>,
    pub is_error: bool,
    /// What is not text, such as images.
    pub parts: Vec<ConversationPart>,
}

/// The speaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    System,
    User,
    Assistant,
    Tool,
}

/// A tool call that a model asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationAsk {
    pub id: String,
    pub tool: String,
    /// As JSON, or as the model wrote it.
    pub args: String,
}

/// A part of a message that is not text, by the type that its format gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationPart {
    pub kind: String,
    pub media: Option<String>,
    /// Of its data in the request, in its encoding.
    pub bytes: u64,
}

/// Why there is no conversation in a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request is not in a format that can be shown")]
pub struct UnreadRequest;

impl Conversation {
    /// Reads the body of a request to this provider.
    ///
    /// # Errors
    /// If it is not JSON, or has no messages.
    pub fn read(api: ProviderApi, request: &[u8]) -> Result<(Self, CallFormat), UnreadRequest> {
        let body: Value = serde_json::from_slice(request).map_err(|_| UnreadRequest)?;
        let format = match api {
            ProviderApi::Anthropic => CallFormat::Messages,
            ProviderApi::OpenAi if body.get("input").is_some() => CallFormat::Responses,
            ProviderApi::OpenAi => CallFormat::Chat,
            ProviderApi::Gemini => CallFormat::Gemini,
        };
        let mut draft = Draft::default();
        match format {
            CallFormat::Messages => draft.messages_request(&body)?,
            CallFormat::Chat => draft.chat_request(&body)?,
            CallFormat::Responses => draft.responses_request(&body)?,
            CallFormat::Gemini => draft.gemini_request(&body)?,
        }
        let offers_tools = match &body["tools"] {
            Value::Array(tools) => !tools.is_empty(),
            // Gemini takes one that is not in a list.
            tools => tools.is_object(),
        };
        Ok((Self { messages: draft.messages, offers_tools }, format))
    }

    /// Adds the answer in a response. Returns whether there was one.
    pub fn add_response(&mut self, format: CallFormat, response: &str) -> bool {
        let Some(WireAnswer { text, reasoning, calls, .. }) = answer(format, response) else { return false };
        if text.is_empty() && reasoning.is_empty() && calls.is_empty() {
            return false;
        }
        let asks = calls.into_iter().map(|call| ConversationAsk {
            id: call.id,
            tool: call.name,
            args: call.arguments,
        });
        let mut message = ConversationMessage::new(Speaker::Assistant, text);
        message.reasoning = reasoning;
        message.asks = asks.collect();
        self.messages.push(message);
        true
    }
}

impl ConversationMessage {
    const fn new(speaker: Speaker, text: String) -> Self {
        Self {
            speaker,
            text,
            reasoning: String::new(),
            asks: Vec::new(),
            tool: None,
            is_error: false,
            parts: Vec::new(),
        }
    }

    fn add_text(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }

    fn add_reasoning(&mut self, text: &str) {
        if !self.reasoning.is_empty() {
            self.reasoning.push('\n');
        }
        self.reasoning.push_str(text);
    }

    /// Adds the content of a message: a text, or a list of parts.
    fn add_content(&mut self, content: &Value) {
        if let Some(text) = content.as_str() {
            self.add_text(text);
        }
        for part in content.as_array().into_iter().flatten() {
            self.add_part(part);
        }
    }

    /// Adds a part, whichever format it is in: the names of types do not collide.
    fn add_part(&mut self, part: &Value) {
        match text_of(part, "type") {
            "text" | "input_text" | "output_text" | "summary_text" | "reasoning_text" => {
                self.add_text(text_of(part, "text"));
            }
            "refusal" => self.add_text(text_of(part, "refusal")),
            "thinking" => self.add_reasoning(text_of(part, "thinking")),
            kind => self.parts.push(ConversationPart {
                kind: if kind.is_empty() { "part".to_owned() } else { kind.to_owned() },
                media: media(part),
                bytes: data_bytes(part),
            }),
        }
    }
}

impl ConversationMessage {
    /// A part of Gemini's, which has its kind as a key.
    fn add_gemini_part(&mut self, part: &Value) {
        let blob = either(part, "inlineData", "inline_data");
        match (part["text"].as_str(), part["thought"].as_bool()) {
            (Some(text), Some(true)) => self.add_reasoning(text),
            (Some(text), _) => self.add_text(text),
            (None, _) => {
                let is_kind = |key: &&String| !key.to_ascii_lowercase().starts_with("thought");
                let kind = part.as_object().and_then(|part| part.keys().find(is_kind));
                self.parts.push(ConversationPart {
                    kind: kind.map_or_else(|| "part".to_owned(), String::clone),
                    media: either(blob, "mimeType", "mime_type").as_str().map(str::to_owned),
                    bytes: blob["data"].as_str().map_or(0, str::len) as u64,
                });
            }
        }
    }
}

/// The answer in a response, whole or streamed, as far as it came.
fn answer(format: CallFormat, response: &str) -> Option<WireAnswer> {
    let read_as = ReadAs {
        format: format.wire(),
        model: String::new(),
        keep: Keep::Everything,
        secrets: Secrets::default(),
        served_from: ServedFrom::Elsewhere,
        undivided_writes: UndividedWrites::Minutes,
    };
    if response.trim_start().starts_with('{') {
        return read_whole(&read_as, response, &mut |_| {}).ok();
    }
    let mut reader = StreamReader::new(read_as);
    // What came before a fault is shown.
    let _ = reader.feed(response.as_bytes(), &mut |_| {});
    Some(reader.finish())
}

/// A conversation under construction.
#[derive(Default)]
struct Draft {
    messages: Vec<ConversationMessage>,
    /// The tools by the ids of their calls.
    tools: BTreeMap<String, String>,
}

impl Draft {
    fn say(&mut self, speaker: Speaker, content: &Value) {
        let mut message = ConversationMessage::new(speaker, String::new());
        message.add_content(content);
        self.messages.push(message);
    }

    /// The assistant's message that an item belongs to: the last one, or a new one.
    fn assistant(&mut self) -> &mut ConversationMessage {
        if self.messages.last().is_none_or(|last| last.speaker != Speaker::Assistant) {
            self.messages.push(ConversationMessage::new(Speaker::Assistant, String::new()));
        }
        let Some(last) = self.messages.last_mut() else { unreachable!("one was added") };
        last
    }

    fn ask(&mut self, id: &str, tool: &str, args: String) {
        self.tools.insert(id.to_owned(), tool.to_owned());
        let ask = ConversationAsk { id: id.to_owned(), tool: tool.to_owned(), args };
        self.assistant().asks.push(ask);
    }

    fn result(&mut self, id: &str, content: &Value, is_error: bool) {
        let mut message = ConversationMessage::new(Speaker::Tool, String::new());
        message.add_content(content);
        message.tool = self.tools.get(id).cloned();
        message.is_error = is_error;
        self.messages.push(message);
    }

    fn messages_request(&mut self, body: &Value) -> Result<(), UnreadRequest> {
        if let Some(system) = body.get("system").filter(|system| !system.is_null()) {
            self.say(Speaker::System, system);
        }
        for message in list(body, "messages")? {
            let content = &message["content"];
            match (text_of(message, "role"), content.as_array()) {
                ("assistant", Some(blocks)) => {
                    self.messages.push(ConversationMessage::new(Speaker::Assistant, String::new()));
                    for block in blocks {
                        self.assistant_block(block);
                    }
                }
                ("assistant", None) => self.say(Speaker::Assistant, content),
                ("system", _) => self.say(Speaker::System, content),
                (_, Some(blocks)) => self.user_blocks(blocks),
                (_, None) => self.say(Speaker::User, content),
            }
        }
        Ok(())
    }

    fn assistant_block(&mut self, block: &Value) {
        match text_of(block, "type") {
            "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                self.ask(text_of(block, "id"), text_of(block, "name"), block["input"].to_string());
            }
            _ => self.assistant().add_part(block),
        }
    }

    /// Results of tools are their own messages, between what the user says.
    fn user_blocks(&mut self, blocks: &[Value]) {
        let mut said: Option<ConversationMessage> = None;
        for block in blocks {
            if text_of(block, "type") == "tool_result" {
                self.messages.extend(said.take());
                let is_error = block["is_error"].as_bool().unwrap_or(false);
                self.result(text_of(block, "tool_use_id"), &block["content"], is_error);
            } else {
                said.get_or_insert_with(|| ConversationMessage::new(Speaker::User, String::new()))
                    .add_part(block);
            }
        }
        self.messages.extend(said);
    }

    fn chat_request(&mut self, body: &Value) -> Result<(), UnreadRequest> {
        for message in list(body, "messages")? {
            let content = &message["content"];
            match text_of(message, "role") {
                "system" | "developer" => self.say(Speaker::System, content),
                "tool" => self.result(text_of(message, "tool_call_id"), content, false),
                "function" => {
                    // It names its tool instead of a call.
                    let name = text_of(message, "name");
                    self.tools.insert(name.to_owned(), name.to_owned());
                    self.result(name, content, false);
                }
                "assistant" => {
                    self.say(Speaker::Assistant, content);
                    let reasoning = text_of(message, "reasoning_content");
                    self.assistant().reasoning.push_str(reasoning);
                    for call in message["tool_calls"].as_array().into_iter().flatten() {
                        let (function, custom) = (&call["function"], &call["custom"]);
                        let (name, args) = if function.is_object() {
                            (text_of(function, "name"), text_of(function, "arguments"))
                        } else {
                            (text_of(custom, "name"), text_of(custom, "input"))
                        };
                        self.ask(text_of(call, "id"), name, args.to_owned());
                    }
                    if let Some(call) = message.get("function_call").filter(|call| call.is_object()) {
                        self.ask("", text_of(call, "name"), text_of(call, "arguments").to_owned());
                    }
                }
                _ => self.say(Speaker::User, content),
            }
        }
        Ok(())
    }

    fn responses_request(&mut self, body: &Value) -> Result<(), UnreadRequest> {
        if let Some(instructions) = body["instructions"].as_str() {
            self.say(Speaker::System, &Value::from(instructions));
        }
        if let Some(text) = body["input"].as_str() {
            self.say(Speaker::User, &Value::from(text));
            return Ok(());
        }
        for item in list(body, "input")? {
            self.item(item);
        }
        Ok(())
    }

    fn item(&mut self, item: &Value) {
        let kind = match text_of(item, "type") {
            "" if item.get("role").is_some() => "message",
            kind => kind,
        };
        if kind == "message" {
            return match text_of(item, "role") {
                "system" | "developer" => self.say(Speaker::System, &item["content"]),
                // What it thought comes before, as an item.
                "assistant" if self.is_thinking() => self.assistant().add_content(&item["content"]),
                "assistant" => self.say(Speaker::Assistant, &item["content"]),
                _ => self.say(Speaker::User, &item["content"]),
            };
        }
        let id = text_of(item, "call_id");
        if kind == "reasoning" {
            let texts = [&item["summary"], &item["content"]].map(|parts| parts.as_array());
            self.messages.push(ConversationMessage::new(Speaker::Assistant, String::new()));
            for part in texts.into_iter().flatten().flatten() {
                self.assistant().add_reasoning(text_of(part, "text"));
            }
        } else if kind.ends_with("_output") {
            self.result(id, &item["output"], false);
        } else if kind.ends_with("_call") {
            let name = match text_of(item, "name") {
                "" => kind.trim_end_matches("_call"),
                name => name,
            };
            let given =
                ["arguments", "input", "action", "operation"].into_iter().find_map(|key| item.get(key));
            let args = given.map(|given| given.as_str().map_or_else(|| given.to_string(), str::to_owned));
            self.ask(id, name, args.unwrap_or_default());
        } else {
            self.assistant().add_part(item);
        }
    }

    fn gemini_request(&mut self, body: &Value) -> Result<(), UnreadRequest> {
        let instruction = either(body, "systemInstruction", "system_instruction");
        if !instruction.is_null() {
            let mut message = ConversationMessage::new(Speaker::System, String::new());
            for part in one_or_more(&instruction["parts"]) {
                message.add_gemini_part(part);
            }
            self.messages.push(message);
        }
        let contents = one_or_more(&body["contents"]);
        if contents.is_empty() {
            return Err(UnreadRequest);
        }
        for content in contents {
            let speaker = if content["role"] == "model" { Speaker::Assistant } else { Speaker::User };
            let mut said: Option<ConversationMessage> = None;
            for part in one_or_more(&content["parts"]) {
                let (asked, result) = (
                    either(part, "functionCall", "function_call"),
                    either(part, "functionResponse", "function_response"),
                );
                let name = |function: &Value| text_of(function, "name").to_owned();
                if asked.is_object() {
                    let ask = ConversationAsk {
                        id: text_of(asked, "id").to_owned(),
                        tool: name(asked),
                        args: asked["args"].to_string(),
                    };
                    said.get_or_insert_with(|| ConversationMessage::new(speaker, String::new()))
                        .asks
                        .push(ask);
                } else if result.is_object() {
                    self.messages.extend(said.take());
                    let response = &result["response"];
                    let text =
                        ["error", "output", "result"].into_iter().find_map(|key| response[key].as_str());
                    let text = text.map_or_else(|| response.to_string(), str::to_owned);
                    let mut message = ConversationMessage::new(Speaker::Tool, text);
                    message.tool = Some(name(result));
                    message.is_error = !response["error"].is_null();
                    for part in one_or_more(&result["parts"]) {
                        message.add_gemini_part(part);
                    }
                    self.messages.push(message);
                } else {
                    said.get_or_insert_with(|| ConversationMessage::new(speaker, String::new()))
                        .add_gemini_part(part);
                }
            }
            self.messages.extend(said);
        }
        Ok(())
    }

    /// Whether the last message is only what a model thought.
    fn is_thinking(&self) -> bool {
        self.messages.last().is_some_and(|last| {
            last.speaker == Speaker::Assistant
                && last.text.is_empty()
                && last.asks.is_empty()
                && last.parts.is_empty()
        })
    }
}

/// A field in either spelling of Google's JSON; null if there is none.
fn either<'v>(value: &'v Value, name: &str, snake: &str) -> &'v Value {
    if value[name].is_null() { &value[snake] } else { &value[name] }
}

/// The items of a list, or the one item that is not in a list.
fn one_or_more(value: &Value) -> Vec<&Value> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(items) => items.iter().collect(),
        one => vec![one],
    }
}

fn list<'b>(body: &'b Value, key: &str) -> Result<&'b Vec<Value>, UnreadRequest> {
    body[key].as_array().ok_or(UnreadRequest)
}

fn text_of<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

/// The media type of a part, if it says so.
fn media(part: &Value) -> Option<String> {
    let named = part["source"]["media_type"].as_str();
    let url = data_url(part).and_then(|url| url.strip_prefix("data:")?.split([';', ',']).next());
    named.or(url).map(str::to_owned)
}

fn data_url(part: &Value) -> Option<&str> {
    part["image_url"]["url"].as_str().or_else(|| part["image_url"].as_str())
}

fn data_bytes(part: &Value) -> u64 {
    let data = part["source"]["data"].as_str().or_else(|| data_url(part));
    let data = data.or_else(|| part["file_data"].as_str()).or_else(|| part["file"]["file_data"].as_str());
    data.map_or(0, str::len) as u64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Who says what, asks for what, and what else is there.
    fn brief(api: ProviderApi, body: &Value) -> Vec<String> {
        let (conversation, _) = Conversation::read(api, body.to_string().as_bytes()).unwrap();
        let line = |message: &ConversationMessage| {
            let asks: Vec<String> =
                message.asks.iter().map(|ask| format!("{} {} {}", ask.id, ask.tool, ask.args)).collect();
            let parts: Vec<String> = message
                .parts
                .iter()
                .map(|part| format!("{} {:?} {}", part.kind, part.media, part.bytes))
                .collect();
            let (speaker, tool) = (message.speaker, message.tool.as_deref().unwrap_or("-"));
            format!(
                "{speaker:?} {tool} {} | {} | {} | {asks:?} | {parts:?}",
                if message.is_error { "failed" } else { "" },
                message.reasoning,
                message.text,
            )
        };
        conversation.messages.iter().map(line).collect()
    }

    #[test]
    fn blocks_of_anthropic_become_messages_in_their_order() {
        let body = json!({ "system": "S", "messages": [
            { "role": "user", "content": [
                { "type": "text", "text": "a" },
                { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "QUJD" } },
            ] },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "hm", "signature": "x" },
                { "type": "redacted_thinking", "data": "y" },
                { "type": "text", "text": "b" },
                { "type": "tool_use", "id": "1", "name": "look", "input": {} },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "1", "is_error": true, "content": "c" },
                { "type": "text", "text": "d" },
                { "type": "tool_result", "tool_use_id": "2", "content": [{ "type": "text", "text": "e" }] },
            ] },
        ] });
        assert_eq!(
            brief(ProviderApi::Anthropic, &body),
            [
                "System -  |  | S | [] | []",
                "User -  |  | a | [] | [\"image Some(\\\"image/png\\\") 4\"]",
                "Assistant -  | hm | b | [\"1 look {}\"] | [\"redacted_thinking None 0\"]",
                "Tool look failed |  | c | [] | []",
                "User -  |  | d | [] | []",
                "Tool -  |  | e | [] | []",
            ]
        );
    }

    #[test]
    fn items_of_responses_become_messages_in_their_order() {
        let body = json!({ "input": [
            { "role": "developer", "content": "S" },
            { "role": "user", "content": [{ "type": "input_image", "image_url": "data:image/png;base64,QUJD" }] },
            { "type": "reasoning", "summary": [{ "type": "summary_text", "text": "hm" }], "encrypted_content": "x" },
            { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "b" }] },
            { "type": "custom_tool_call", "call_id": "1", "name": "patch", "input": "***" },
            { "type": "local_shell_call", "call_id": "2", "action": { "command": ["ls"] } },
            { "type": "custom_tool_call_output", "call_id": "1", "output": "c" },
            { "type": "item_reference", "id": "i" },
        ] });
        assert_eq!(
            brief(ProviderApi::OpenAi, &body),
            [
                "System -  |  | S | [] | []",
                "User -  |  |  | [] | [\"input_image Some(\\\"image/png\\\") 26\"]",
                "Assistant -  | hm | b | [\"1 patch ***\", \"2 local_shell {\\\"command\\\":[\\\"ls\\\"]}\"] | []",
                "Tool patch  |  | c | [] | []",
                "Assistant -  |  |  | [] | [\"item_reference None 0\"]",
            ]
        );
    }

    #[test]
    fn parts_of_gemini_become_messages_in_their_order() {
        let body = json!({ "system_instruction": { "parts": { "text": "S" } }, "contents": [
            { "role": "user", "parts": [
                { "text": "a" },
                { "inlineData": { "mimeType": "image/png", "data": "QUJD" } },
            ] },
            { "role": "model", "parts": [
                { "text": "hm", "thought": true },
                { "text": "b" },
                { "functionCall": { "id": "1", "name": "look", "args": { "x": 1 } }, "thoughtSignature": "x" },
            ] },
            { "role": "user", "parts": [
                { "functionResponse": { "name": "look", "response": { "error": "c" } } },
                { "text": "d" },
                { "function_response": { "name": "look", "response": { "e": 1 } } },
            ] },
        ] });
        assert_eq!(
            brief(ProviderApi::Gemini, &body),
            [
                "System -  |  | S | [] | []",
                "User -  |  | a | [] | [\"inlineData Some(\\\"image/png\\\") 4\"]",
                "Assistant -  | hm | b | [\"1 look {\\\"x\\\":1}\"] | []",
                "Tool look failed |  | c | [] | []",
                "User -  |  | d | [] | []",
                "Tool look  |  | {\"e\":1} | [] | []",
            ]
        );
    }

    #[test]
    fn what_is_no_request_is_not_read() {
        for body in ["", "[]", "{\"messages\":3}", "null"] {
            for api in ProviderApi::ALL {
                assert_eq!(Conversation::read(api, body.as_bytes()), Err(UnreadRequest), "{body}");
            }
        }
    }

    #[test]
    fn a_response_that_breaks_off_is_added_as_far_as_it_came() {
        let mut conversation = Conversation { messages: Vec::new(), offers_tools: false };
        let event = json!({ "choices": [{ "index": 0, "delta": { "content": "Let me" } }] });
        assert!(conversation.add_response(CallFormat::Chat, &format!("data: {event}\n\ndata: {{\"cho")));
        assert_eq!(conversation.messages[0].text, "Let me");
        for nothing in ["", "{}", "123 bytes, not kept: too many large responses at the same time"] {
            assert!(!conversation.add_response(CallFormat::Chat, nothing), "{nothing}");
        }
    }
}
