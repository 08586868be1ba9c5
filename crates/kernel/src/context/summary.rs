//! A summary in the making: what the model that is to write it is shown, and what it wrote. It stands here from when
//! it is asked for until the cut that it tells.

use std::sync::Arc;

use super::known::Context;
use super::{Message, Packet};
use crate::record::{Covers, ModelCall, Span};
use crate::words::{Body, limit};

/// What stands before and behind the number of characters in what asks for a summary. A change of these words is a
/// change of the rules: they are counted in every hold.
const ASK: &str =
    "Your window is full and the steps above will leave it. Sum them up for yourself, in at most ";
const OF: &str = " characters: goals, facts found, decisions, what failed and is not to be tried again, files by name. Answer with the summary alone; call no tool.";
/// The most digits of that number.
const DIGITS: usize = 20;

/// A summary in the making.
#[derive(Clone, Debug)]
pub(super) struct Summarising {
    pub(super) covers: Covers,
    /// What its model is shown: the same at every attempt, whatever comes meanwhile.
    messages: Arc<Vec<Arc<Message>>>,
    /// What its model wrote.
    pub(super) body: Option<Body>,
}

impl Summarising {
    /// Of what leaves the window of this agent.
    pub(super) fn new(context: &Context, work: &ModelCall, covers: &Covers) -> Self {
        let list = &context.list;
        let first = list.all().iter().take(1);
        let before = list.folded();
        let goes = Span::places(&covers.spans).filter_map(|place| list.all().get(place).cloned());
        // Images take room in a packet by their own limit; a summary does with the lines that name them.
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

    /// What its model is shown. It may call no tool.
    pub(super) fn packet(&self, tokens: u64) -> Packet {
        Packet { messages: Arc::clone(&self.messages), tools: Arc::default(), tokens }
    }
}

fn asks(chars: u64) -> String {
    format!("{ASK}{chars}{OF}")
}

/// The most tokens that what asks for a summary can have.
pub(crate) const fn summary_tokens() -> u64 {
    (ASK.len() + DIGITS + OF.len()) as u64 + limit::MESSAGE_TOKENS
}
