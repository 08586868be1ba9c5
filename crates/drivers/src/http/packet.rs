//! A packet of the kernel as a request to a provider: who speaks, what follows a text, and parts with their bytes.

use spinney_kernel::budget::Used;
use spinney_kernel::context::{Message, Shown, ToolDescription};
use spinney_kernel::port::model::{AttemptError, ModelAttempt, Purpose};
use spinney_kernel::primitives::{Actor, Fault, FaultKind, PartKind};
use spinney_kernel::record::ToolAsk;

use crate::wire::{
    Continuation, Thinking, WireMessage, WireParams, WirePart, WireRequest, WireTool, WireToolCall,
};

/// What a model is asked in this attempt. `model` is the provider's name of it.
///
/// # Errors
/// If the bytes of a part that is shown cannot be read.
pub async fn wire_request(
    attempt: &ModelAttempt,
    model: &str,
    params: WireParams,
) -> Result<WireRequest, AttemptError> {
    let mut request = WireRequest {
        model: model.to_owned(),
        tools: attempt.packet.tools.iter().map(tool).collect(),
        output_cap: attempt.output_cap,
        params: WireParams { thinking: params.thinking.map(|thinking| thought(attempt, thinking)), ..params },
        ..WireRequest::default()
    };
    for message in attempt.packet.messages.iter() {
        match message.as_ref() {
            // It comes first in every packet.
            Message::System(system) if request.messages.is_empty() && request.system.is_empty() => {
                request.system = system.to_string();
                request.system_shared_bytes = system.shared_bytes();
            }
            Message::Said { body, asks } => request.messages.push(WireMessage::Assistant {
                text: body.text.clone(),
                calls: asks.iter().map(call).collect(),
                continuation: continuation(attempt, message).await?,
            }),
            Message::Result { id, tool, is_error, .. } => request.messages.push(WireMessage::Result {
                id: id.to_string(),
                tool: tool.to_string(),
                text: text(message),
                is_error: *is_error,
                parts: parts(attempt, message).await?,
            }),
            Message::System(_)
            | Message::Heard { .. }
            | Message::Shared { .. }
            | Message::Note(_)
            | Message::Mismatch(_)
            | Message::Repeated(_)
            | Message::Folded(_) => {
                let mut all = vec![WirePart::Text(text(message))];
                all.extend(parts(attempt, message).await?);
                request.messages.push(WireMessage::User(all));
            }
        }
    }
    Ok(request)
}

/// How much is thought. A call that must end with a text keeps half of its cap for that.
fn thought(attempt: &ModelAttempt, thinking: Thinking) -> Thinking {
    match (attempt.purpose, thinking) {
        (Purpose::Turn, _) | (_, Thinking::Adaptive) => thinking,
        (
            Purpose::Continue | Purpose::WrapUp | Purpose::Summary | Purpose::OfTool,
            Thinking::Budget(budget),
        ) => Thinking::Budget(budget.min(attempt.output_cap / 2)),
    }
}

/// What the provider wants back with an earlier answer.
async fn continuation(
    attempt: &ModelAttempt,
    message: &Message,
) -> Result<Option<Continuation>, AttemptError> {
    let Some(bytes) = attempt.continuation(message) else { return Ok(None) };
    match Continuation::from_bytes(&bytes.await?) {
        Ok(continuation) => Ok(Some(continuation)),
        Err(error) => {
            let message = format!("what the model thought cannot be read: {error}");
            Err(AttemptError {
                fault: Fault { message, ..Fault::new(FaultKind::Invalid) },
                used: Used::NOTHING,
            })
        }
    }
}

fn tool(tool: &ToolDescription) -> WireTool {
    let (description, schema) = (tool.description.clone(), tool.schema.clone());
    WireTool { name: tool.name.to_string(), description, schema }
}

fn call(ask: &ToolAsk) -> WireToolCall {
    WireToolCall { id: ask.id.clone(), name: ask.tool.clone(), arguments: ask.args.clone(), is_whole: true }
}

/// The text, with the sender before it if that is an agent, and what follows it on a separate line.
fn text(message: &Message) -> String {
    let mut text = match message {
        Message::Heard { from: Actor::Agent(agent), text, .. } => format!("{agent}: {text}"),
        _ => message.text().into_owned(),
    };
    if let Some(facts) = message.facts().map(ToString::to_string).filter(|facts| !facts.is_empty()) {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&facts);
    }
    text
}

/// Each part that is shown whole after the line that names it, and of the others the line in their place.
async fn parts(attempt: &ModelAttempt, message: &Message) -> Result<Vec<WirePart>, AttemptError> {
    let mut parts = Vec::new();
    for shown in message.parts() {
        parts.push(WirePart::Text(shown.to_string()));
        if let Shown::Whole(part) = shown {
            let (media, bytes) = (part.media().to_string(), attempt.bytes(part).await?);
            parts.push(match part.kind() {
                PartKind::Image => WirePart::Image { media, bytes },
                PartKind::File => WirePart::File { name: part.name().to_string(), media, bytes },
            });
        }
    }
    Ok(parts)
}
