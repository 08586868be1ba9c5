//! The progress of an agent's turns: counts and positions, no text.

use crate::context::repeats_text;
use crate::definition::Repeats;
use crate::primitives::{Body, Category, ModelName, Seq, TokenCount, limit};
use crate::record::{Header, Outcome, Tie, ToolAsk, WrapUpReason};
use crate::window::{Room, Window};

use super::repeats::{Repeated, Row, is_counted};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Turns that its model has completed.
    pub turns: u32,
    /// Upper bound on the tokens of its context.
    pub tokens: u64,
    /// The event with its model's last text; 0 is none.
    said: Seq,
    /// The tokens of that text.
    said_tokens: TokenCount,
    /// Failures. Boxed because most agents have none.
    trouble: Option<Box<FailureState>>,
    /// The tool calls of its last answer. Boxed because most agents of a large tree wait for their first one.
    repeated: Option<Box<Repeated>>,
    pub window: Window,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct FailureState {
    /// Why its model's last call failed.
    failed: Option<Outcome>,
    /// How many answers in a row did not match its schema, with no new message in between.
    repairs: u8,
    /// Its last call, from the request until an ordinary turn starts.
    wrap_up: Option<Box<WrappedUp>>,
    is_time_short: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct WrappedUp {
    reason: WrapUpReason,
    /// The model of the last call, and of the turn that follows it.
    model: ModelName,
    /// Whether an ordinary turn was requested since and has not started.
    is_over: bool,
}

impl Progress {
    /// Adds a message to its context.
    pub(crate) fn read(&mut self, tokens: TokenCount) {
        self.tokens = self.tokens.saturating_add(tokens.plus(limit::MESSAGE_TOKENS).bound());
    }

    pub(crate) fn asked(&mut self, tokens: u64) {
        self.tokens = tokens;
        self.set_failed(None);
    }

    /// Why its model's last call failed.
    pub(crate) fn failed(&self) -> Option<&Outcome> {
        self.trouble.as_ref()?.failed.as_ref()
    }

    pub(crate) fn set_failed(&mut self, failed: Option<Outcome>) {
        // Avoids an allocation: this runs every turn, and most agents have no failures.
        if failed.is_some() || self.trouble.is_some() {
            self.change_trouble(|trouble| trouble.failed = failed);
        }
    }

    /// The reason of its last call, if it had one since the latest ordinary turn started.
    #[must_use]
    pub fn wrapped_up(&self) -> Option<&WrapUpReason> {
        Some(&self.trouble.as_ref()?.wrap_up.as_ref()?.reason)
    }

    /// The model of that call.
    pub(crate) fn wrapped_up_model(&self) -> Option<&ModelName> {
        Some(&self.trouble.as_ref()?.wrap_up.as_ref()?.model)
    }

    /// The reason of its last call, if nothing was requested of its model since.
    pub(crate) fn wraps_up(&self) -> Option<&WrapUpReason> {
        let wrap_up = self.trouble.as_ref()?.wrap_up.as_ref()?;
        (!wrap_up.is_over).then_some(&wrap_up.reason)
    }

    /// A turn of this model was requested: the last one if there is a reason, otherwise an ordinary one.
    pub(crate) fn asked_to_wrap_up(&mut self, model: &ModelName, reason: Option<&WrapUpReason>) {
        match reason {
            Some(reason) => {
                let (reason, model) = (reason.clone(), model.clone());
                let wrap_up = WrappedUp { reason, model, is_over: false };
                self.change_trouble(|trouble| trouble.wrap_up = Some(Box::new(wrap_up)));
            }
            None => {
                if let Some(wrap_up) = self.trouble.as_mut().and_then(|trouble| trouble.wrap_up.as_mut()) {
                    wrap_up.is_over = true;
                }
            }
        }
    }

    /// An ordinary turn starts; there may be another last call later.
    pub(crate) fn goes_on(&mut self) {
        if self.trouble.as_ref().is_some_and(|trouble| trouble.wrap_up.is_some()) {
            self.change_trouble(|trouble| trouble.wrap_up = None);
        }
    }

    #[must_use]
    pub fn is_time_short(&self) -> bool {
        self.trouble.as_ref().is_some_and(|trouble| trouble.is_time_short)
    }

    pub(crate) fn set_time_short(&mut self, is_short: bool) {
        if self.is_time_short() != is_short {
            self.change_trouble(|trouble| trouble.is_time_short = is_short);
        }
    }

    /// How many answers in a row did not match its schema.
    #[must_use]
    pub fn repairs(&self) -> u8 {
        self.trouble.as_ref().map_or(0, |trouble| trouble.repairs)
    }

    /// Its answer did not match its schema, and it gets a note of `note` tokens.
    pub(crate) fn missed(&mut self, note: TokenCount) {
        self.read(note);
        let tokens = note.plus(limit::MESSAGE_TOKENS);
        self.window.push(Header::new(tokens, Category::Error, Tie::Free));
        let repairs = self.repairs().saturating_add(1);
        self.change_trouble(|trouble| trouble.repairs = repairs);
    }

    /// The next answer is not a repair of the last one, and its calls continue no row: the agent reads news.
    pub(crate) fn anew(&mut self) {
        self.repeated = None;
        if self.trouble.is_some() {
            self.change_trouble(|trouble| trouble.repairs = 0);
        }
    }

    /// Its model's last answer asks for these tools. If the last of them is not counted, a row of equal calls is over.
    pub(crate) fn asked_tools(&mut self, asks: &[ToolAsk], repeats: Repeats) {
        if repeats == Repeats::OFF || !asks.last().is_some_and(is_counted) {
            self.repeated = None;
        } else {
            self.repeated.get_or_insert_default().asked(asks);
        }
    }

    /// A tool of its last answer returned.
    pub(crate) fn tool_ended(&mut self, ask: u32, outcome: &Outcome) {
        if let Some(repeated) = &mut self.repeated {
            repeated.ended(ask, outcome);
        }
    }

    /// A tool of its last answer was answered at once.
    pub(crate) fn tool_answered(&mut self, ask: u32, body: &Body) {
        if let Some(repeated) = &mut self.repeated {
            repeated.answered(ask, body);
        }
    }

    /// A child that a tool call waits for gave an answer.
    pub(crate) fn child_answered(&mut self, ask: u32, body: &Body) {
        if let Some(repeated) = &mut self.repeated {
            repeated.child_answered(ask, body);
        }
    }

    /// The row of equal tool calls at the end of its last answer, if the answer asked for tools and the agent was not
    /// told about them yet.
    pub(crate) fn row(&self) -> Option<Row<'_>> {
        self.repeated.as_ref()?.row()
    }

    /// The agent is warned about the row.
    pub(crate) fn noticed(&mut self, tool: &str, count: u32, count_max: u32, rules: u32) {
        let tokens = TokenCount::of_bytes(repeats_text(tool, count, count_max, rules).len());
        self.read(tokens);
        let tokens = tokens.plus(limit::MESSAGE_TOKENS);
        self.window.push(Header::new(tokens, Category::Error, Tie::Free));
        self.repeated.get_or_insert_default().noticed();
    }

    /// A turn was requested: the calls of the last answer are counted.
    pub(crate) fn count_calls(&mut self) {
        if let Some(repeated) = &mut self.repeated {
            repeated.close();
        }
    }

    fn change_trouble(&mut self, change: impl FnOnce(&mut FailureState)) {
        let mut trouble = self.trouble.take().unwrap_or_default();
        change(&mut trouble);
        self.trouble = (*trouble != FailureState::default()).then_some(trouble);
    }

    /// It goes on in another tree, with its context alone.
    pub(crate) fn revive(&mut self) {
        (self.turns, self.trouble, self.repeated) = Default::default();
    }

    /// The event with its model's last text.
    #[must_use]
    pub fn last(&self) -> Option<Seq> {
        Some(self.said).filter(|said| said.0 > 0)
    }

    /// The tokens of its model's last text.
    pub(crate) const fn last_tokens(&self) -> TokenCount {
        self.said_tokens
    }

    pub(crate) fn set_last(&mut self, at: Option<Seq>, tokens: TokenCount) {
        let tokens = self.window.count(tokens).at_most(u32::MAX.into());
        (self.said, self.said_tokens) = (at.unwrap_or_default(), tokens);
    }

    /// Its model completed a turn. Its reasoning goes back to that model only.
    pub(crate) fn said(&mut self, at: Seq, tokens: TokenCount, thought: TokenCount, asks: bool) {
        self.turns = self.turns.saturating_add(1);
        self.set_last(Some(at), tokens);
        let tokens = tokens.plus(thought);
        self.read(tokens);
        let tie = if asks { Tie::Asks } else { Tie::Free };
        self.window.said(Header::new(tokens.plus(limit::MESSAGE_TOKENS), Category::Dialog, tie));
    }

    /// The last call returned no text: the earlier text counts.
    pub(crate) fn said_nothing(&mut self) {
        self.turns = self.turns.saturating_add(1);
    }

    /// The last call was requested with a part of its context.
    pub(crate) fn asked_with_less(&mut self) {
        self.tokens = self.tokens.saturating_add(limit::WRAP_UP_TOKENS.bound());
        self.set_failed(None);
    }

    pub(crate) fn add_last_call_note(&mut self) {
        self.window.push(Header::new(limit::WRAP_UP_TOKENS, Category::Internal, Tie::Free));
    }

    /// A tool of its last answer returned; `rank` earlier ones have also returned.
    pub(crate) fn answered(&mut self, rank: usize, room: &Room) {
        self.read(room.tokens);
        let tokens = room.tokens.plus(limit::MESSAGE_TOKENS);
        self.window.answer(rank, Header::new(tokens, Category::Output, Tie::Answers), &room.images);
    }
}
