//! What a program asks a model, whatever the wire format: the model, what was said, and the bytes behind it.

use serde_json::Value;

use crate::upstream::ReceivedRequest;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WireFormat {
    Messages,
    Responses,
    Chat,
    Gemini,
}

#[derive(Clone)]
pub(crate) struct Question {
    pub(crate) asked: ReceivedRequest,
    pub(crate) model: String,
    pub(crate) is_streamed: bool,
    /// What users and other agents said, one text per message. Programs put notes of their own among it.
    pub(crate) users: Vec<String>,
    /// What tools answered.
    pub(crate) results: Vec<String>,
    /// How many messages there are. It grows with each turn of a conversation.
    pub(super) turns: usize,
}

impl Question {
    /// Whether a program wants its context in a shorter form (responses only).
    pub(crate) fn is_compaction(&self) -> bool {
        list(&self.asked.body["input"]).last().is_some_and(|item| item["type"] == "compaction_trigger")
    }

    pub(super) fn read(asked: &ReceivedRequest, format: WireFormat) -> Self {
        let (asked, body) = (asked.clone(), &asked.body);
        let turns = match format {
            WireFormat::Responses => &body["input"],
            WireFormat::Messages | WireFormat::Chat => &body["messages"],
            WireFormat::Gemini => &body["contents"],
        };
        let (mut users, mut results) = (Vec::new(), Vec::new());
        for turn in list(turns) {
            let parts = || list(&turn["parts"]);
            if format == WireFormat::Gemini && turn["role"] == "user" {
                let of_tools =
                    parts().map(|part| &part["functionResponse"]).filter(|result| result.is_object());
                results.extend(of_tools.map(|result| result["response"].to_string()));
                users.push(text_of(&turn["parts"]));
                continue;
            }
            match (turn["role"].as_str(), turn["type"].as_str()) {
                (Some("user"), _) => {
                    let of_tools = list(&turn["content"]).filter(|part| part["type"] == "tool_result");
                    results.extend(of_tools.map(|part| text_of(&part["content"])));
                    users.push(text_of(&turn["content"]));
                }
                (Some("tool"), _) => results.push(text_of(&turn["content"])),
                (_, Some("function_call_output" | "custom_tool_call_output")) => {
                    results.push(text_of(&turn["output"]));
                }
                // What one agent says to another. A provider would have encrypted it.
                (_, Some("agent_message")) => users.push(text_of(&turn["content"])),
                _ => {}
            }
        }
        // Gemini has both in the path.
        let in_path =
            asked.path().split('?').next().and_then(|path| path.rsplit('/').next()?.split_once(':'));
        let (model, is_streamed) = match (format, in_path) {
            (WireFormat::Gemini, Some((model, method))) => (model.to_owned(), method.starts_with("stream")),
            _ => (
                body["model"].as_str().unwrap_or_default().to_owned(),
                body["stream"].as_bool().unwrap_or(false),
            ),
        };
        Self { model, is_streamed, users, results, turns: list(turns).count(), asked }
    }

    /// Whether a user said this.
    pub(crate) fn has(&self, part: &str) -> bool {
        self.users.iter().any(|text| text.contains(part))
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A text, or the texts of a list of parts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        content => {
            let texts =
                list(content).filter_map(|part| part["text"].as_str().or(part["encrypted_content"].as_str()));
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}
