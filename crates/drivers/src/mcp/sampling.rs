//! A model call that a server asks for: the model of the agent that called the server reads what the server wrote as one
//! message, in the agent's budget, and the server gets its text.

#![expect(deprecated, reason = "servers of all versions so far may ask for model calls")]

use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, Role, SamplingMessage, SamplingMessageContentBlock,
};
use spinney_kernel::port::NoReply;
use spinney_kernel::primitives::limit::TEXT_BYTES_MAX;

use super::open_calls::OpenCall;

/// The most output tokens of one call.
const OUTPUT_CAP: u64 = 4_000;

/// Asks the model for a call. What is not asked is an error that the server reads.
pub(super) async fn sample(
    call: &OpenCall,
    params: &CreateMessageRequestParams,
) -> Result<CreateMessageResult, String> {
    if params.tools.as_ref().is_some_and(|tools| !tools.is_empty()) {
        return Err("a model call for a server has no tools".to_owned());
    }
    let message = message(params)?;
    call.count_model_call()?;
    let _waiting = call.wait();
    let output_cap = u64::from(params.max_tokens).clamp(1, OUTPUT_CAP);
    let reply = call.model.ask(message, output_cap).await.map_err(|why| match why {
        // The numbers of the budget are not the server's.
        NoReply::NotAsked(_) => "the model was not asked: it would not fit the agent's budget now".to_owned(),
        NoReply::Failed(kind) => format!("the model did not answer: {kind}"),
        NoReply::Ended => "the call has ended".to_owned(),
    })?;
    let stop = match reply.is_cut {
        true => CreateMessageResult::STOP_REASON_END_MAX_TOKEN,
        false => CreateMessageResult::STOP_REASON_END_TURN,
    };
    let answer = SamplingMessage::new(Role::Assistant, SamplingMessageContentBlock::text(reply.text));
    Ok(CreateMessageResult::new(answer, reply.model.to_string()).with_stop_reason(stop))
}

/// What the model reads. A server's instructions are part of it: they count no more than what it asks.
fn message(params: &CreateMessageRequestParams) -> Result<String, String> {
    let mut parts: Vec<String> =
        params.system_prompt.iter().filter(|prompt| !prompt.trim().is_empty()).cloned().collect();
    let is_talk = params.messages.len() > 1;
    for message in &params.messages {
        for block in message.content.iter() {
            let SamplingMessageContentBlock::Text(text) = block else {
                return Err("a model call for a server has only text".to_owned());
            };
            parts.push(match (is_talk, &message.role) {
                (false, _) => text.text.clone(),
                (true, Role::User) => format!("user: {}", text.text),
                (true, Role::Assistant) => format!("assistant: {}", text.text),
            });
        }
    }
    let text = parts.join("\n\n");
    if params.messages.is_empty() || text.trim().is_empty() {
        return Err("there is no message for the model".to_owned());
    }
    if text.len() > TEXT_BYTES_MAX {
        return Err(format!(
            "the message for the model has {} bytes, the limit is {TEXT_BYTES_MAX}",
            text.len()
        ));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(params: Value) -> Result<String, String> {
        message(&serde_json::from_value(params).unwrap_or_else(|error| panic!("{error}")))
    }

    #[test]
    fn a_model_reads_what_a_server_wrote_as_one_message() {
        let said =
            |role: &str, text: &str| json!({ "role": role, "content": { "type": "text", "text": text } });
        let one =
            json!({ "messages": [said("user", "Name it.")], "systemPrompt": "Be short.", "maxTokens": 9 });
        assert_eq!(read(one), Ok("Be short.\n\nName it.".to_owned()));
        let talk = json!({ "messages": [said("user", "Hi"), said("assistant", "Yes?")], "maxTokens": 9 });
        assert_eq!(read(talk), Ok("user: Hi\n\nassistant: Yes?".to_owned()));
    }

    /// G28: what a server asks the model has bounds.
    #[test]
    fn g28_a_message_without_text_or_with_too_much_is_not_asked() {
        let image = json!({ "role": "user", "content": { "type": "image", "data": "AA==", "mimeType": "image/png" } });
        let long =
            json!({ "role": "user", "content": { "type": "text", "text": "x".repeat(TEXT_BYTES_MAX + 1) } });
        let blank = json!({ "role": "user", "content": { "type": "text", "text": " \n" } });
        for (messages, why) in [
            (vec![image], "a model call for a server has only text"),
            (vec![], "there is no message for the model"),
            (vec![blank], "there is no message for the model"),
            (vec![long], "the message for the model has 32769 bytes, the limit is 32768"),
        ] {
            assert_eq!(read(json!({ "messages": messages, "maxTokens": 9 })), Err(why.to_owned()));
        }
    }
}
