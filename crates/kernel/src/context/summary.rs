//! A summary that is being written: what its model is shown, and what it wrote. It exists from the request until the
//! cut that uses it.

use std::sync::Arc;

use super::agent_context::Context;
use super::{Message, Packet};
use crate::primitives::{Body, TokenCount, limit};
use crate::record::{ModelCall, Span, SummaryRange};

/// The text before and after the number of characters in the request. Every hold counts this text, so changing it
/// changes the rules.
const ASK: &str =
    "Your window is full and the steps above will leave it. Sum them up for yourself, in at most ";
const OF: &str = " characters: goals, facts found, decisions, what failed and is not to be tried again, files by name. Answer with the summary alone; call no tool.";
/// The most digits of that number.
const DIGITS: usize = 20;

#[derive(Clone, Debug)]
pub(super) struct Summarising {
    pub(super) covers: SummaryRange,
    /// The same at every attempt, whatever arrives meanwhile.
    messages: Arc<Vec<Arc<Message>>>,
    pub(super) body: Option<Body>,
}

impl Summarising {
    pub(super) fn new(context: &Context, work: &ModelCall, covers: &SummaryRange) -> Self {
        let list = &context.list;
        let first = list.all().iter().take(1);
        let before = list.folded();
        let goes = Span::places(&covers.spans).filter_map(|place| list.all().get(place).cloned());
        // Images have their own limit in a packet; the lines that name them are enough for a summary.
        let goes = goes.map(|mut message| {
            if message.images() > 0 {
                Arc::make_mut(&mut message).blank(u8::MAX);
            }
            message
        });
        let chars = covers.room().min(work.output_cap.saturating_mul(limit::SUMMARY_CHARS_PER_TOKEN));
        let ask = Arc::new(Message::Note(asks(chars)));
        let messages = first.chain(before).cloned().chain(goes).chain([ask]).collect();
        Self { covers: covers.clone(), messages: Arc::new(messages), body: None }
    }

    /// It may call no tools.
    pub(super) fn packet(&self, tokens: u64) -> Packet {
        Packet { messages: Arc::clone(&self.messages), tools: Arc::default(), tokens }
    }
}

fn asks(chars: u64) -> String {
    format!("{ASK}{chars}{OF}")
}

/// The tokens of the request.
pub(crate) const fn summary_tokens() -> TokenCount {
    TokenCount::of_bytes(ASK.len() + DIGITS + OF.len()).plus(limit::MESSAGE_TOKENS)
}
