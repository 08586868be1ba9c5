//! The conversation of an agent of an outside program. Such an agent has no context here, but a request has everything
//! that was said before it, and its response what came next.

use std::collections::BTreeMap;

use spinney_journal::{Journal, JournalFault};
use spinney_kernel::primitives::{CallId, Category};
use spinney_view::context_message::{MessageAsk, MessagePart, MessageSender, MessageView};
use spinney_view::outside_calls::ProgramCall;
use spinney_view::recall::MessagePlace;

use crate::gateway::wire::{
    CallFormat, Conversation, ConversationAsk, ConversationMessage, ConversationPart, ProviderApi, Speaker,
};

/// How many of the newest calls are looked at for one that offers tools. Each may have many megabytes.
const LOOKED_AT_MAX: usize = 5;

/// The conversation of one call.
pub struct FoundConversation<'c> {
    pub call: CallId,
    /// What is known of it.
    pub made: &'c ProgramCall,
    conversation: Conversation,
    format: CallFormat,
}

impl<'c> FoundConversation<'c> {
    /// The newest conversation among the calls of an agent. None if no request was kept, or none can be read.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub async fn newest(
        journal: &dyn Journal,
        calls: &'c BTreeMap<CallId, ProgramCall>,
    ) -> Result<Option<Self>, JournalFault> {
        let mut found = None;
        for (call, made) in calls.iter().rev().take(LOOKED_AT_MAX) {
            let Some(api) = ProviderApi::of_model(made.model.as_str()) else { continue };
            let request = made.sent(journal).await?;
            let Ok((conversation, format)) = Conversation::read(api, request.as_bytes()) else { continue };
            // A call beside the conversation, such as one for a title, offers no tools.
            let offers_tools = conversation.offers_tools;
            if offers_tools || found.is_none() {
                found = Some(Self { call: *call, made, conversation, format });
            }
            if offers_tools {
                break;
            }
        }
        Ok(found)
    }

    /// Adds what the provider answered. False if that is not an answer that can be shown.
    pub fn add_answer(&mut self, answer: &str) -> bool {
        self.conversation.add_response(self.format, answer)
    }

    /// Its messages, oldest first, like those of a context.
    pub fn messages(&self) -> impl Iterator<Item = MessageView> {
        self.conversation.messages.iter().zip(1_u64..).map(|(message, number)| view(message, number))
    }
}

fn view(message: &ConversationMessage, number: u64) -> MessageView {
    let ConversationMessage { speaker, text, reasoning, asks, tool, is_error, parts } = message;
    let ask = |ConversationAsk { id, tool, args }: &ConversationAsk| MessageAsk {
        id: id.clone(),
        tool: tool.clone(),
        args: args.clone(),
    };
    let part = |ConversationPart { kind, media, bytes }: &ConversationPart| MessagePart {
        kind: kind.clone(),
        name: None,
        media: media.clone(),
        bytes: *bytes,
        blob: None,
        is_left_out: false,
    };
    MessageView {
        number,
        category: category(*speaker, *is_error),
        role: role(*speaker),
        from: tool.clone().map(|tool| MessageSender::Tool { tool }),
        tokens: None,
        place: MessagePlace::Window,
        is_error: *is_error,
        text: text.clone(),
        asks: asks.iter().map(ask).collect(),
        output_tokens: None,
        reasoning: (!reasoning.is_empty()).then(|| reasoning.clone()),
        facts: None,
        parts: parts.iter().map(part).collect(),
    }
}

const fn role(speaker: Speaker) -> &'static str {
    match speaker {
        Speaker::System => "system",
        Speaker::User => "user",
        Speaker::Assistant => "assistant",
        Speaker::Tool => "tool",
    }
}

/// As for the messages of trees.
const fn category(speaker: Speaker, is_error: bool) -> Category {
    match (speaker, is_error) {
        (Speaker::System, _) => Category::System,
        (Speaker::User | Speaker::Assistant, _) => Category::Dialog,
        (Speaker::Tool, false) => Category::Output,
        (Speaker::Tool, true) => Category::Error,
    }
}
