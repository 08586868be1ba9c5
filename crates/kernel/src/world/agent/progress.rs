//! How far an agent's turns have come: counts and places, no text.

use crate::record::{Header, Outcome, Tie, WrapUpReason};
use crate::window::{Room, Window};
use crate::words::{Category, Seq, limit};

/// How far an agent's turns have come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Turns that its model has taken.
    pub turns: u32,
    /// The most tokens that its context can have.
    pub tokens: u64,
    /// The event with the last thing its model said; 0 is none.
    said: Seq,
    /// The most tokens that this can have.
    said_tokens: u32,
    /// What went wrong. Most agents have nothing of it most of the time.
    trouble: Option<Box<Trouble>>,
    /// What its next packet holds.
    pub window: Window,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Trouble {
    /// Why its model's last call came to nothing.
    failed: Option<Outcome>,
    /// How many answers in a row did not fit its schema, without any message that it was to answer, too.
    repairs: u8,
    /// Its last call, from when that was asked for until an ordinary turn starts.
    wrap_up: Option<Box<WrappedUp>>,
    /// Whether its time is nearly up.
    is_time_short: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct WrappedUp {
    reason: WrapUpReason,
    /// Whether its model was asked for an ordinary turn after that, which has not started.
    is_over: bool,
}

impl Progress {
    /// One more message with so many tokens is in its context.
    pub(crate) fn read(&mut self, tokens: u64) {
        self.tokens = self.tokens.saturating_add(tokens).saturating_add(limit::MESSAGE_TOKENS);
    }

    /// Its model is asked about a context of so many tokens.
    pub(crate) fn asked(&mut self, tokens: u64) {
        self.tokens = tokens;
        self.set_failed(None);
    }

    /// Why its model's last call came to nothing.
    pub(crate) fn failed(&self) -> Option<&Outcome> {
        self.trouble.as_ref()?.failed.as_ref()
    }

    pub(crate) fn set_failed(&mut self, failed: Option<Outcome>) {
        // Most agents have no trouble, and this is said at every turn.
        if failed.is_some() || self.trouble.is_some() {
            self.change_trouble(|trouble| trouble.failed = failed);
        }
    }

    /// Why its last call is or was that, if it had one since an ordinary turn started last.
    #[must_use]
    pub fn wrapped_up(&self) -> Option<&WrapUpReason> {
        Some(&self.trouble.as_ref()?.wrap_up.as_ref()?.reason)
    }

    /// The same, if its model was not asked for anything since.
    pub(crate) fn wraps_up(&self) -> Option<&WrapUpReason> {
        let wrap_up = self.trouble.as_ref()?.wrap_up.as_ref()?;
        (!wrap_up.is_over).then_some(&wrap_up.reason)
    }

    /// Its model is asked for a turn: for its last, or for an ordinary one.
    pub(crate) fn asked_to_wrap_up(&mut self, reason: Option<&WrapUpReason>) {
        match reason {
            Some(reason) => {
                let wrap_up = WrappedUp { reason: reason.clone(), is_over: false };
                self.change_trouble(|trouble| trouble.wrap_up = Some(Box::new(wrap_up)));
            }
            None => {
                if let Some(wrap_up) = self.trouble.as_mut().and_then(|trouble| trouble.wrap_up.as_mut()) {
                    wrap_up.is_over = true;
                }
            }
        }
    }

    /// An ordinary turn starts: there may be another last one.
    pub(crate) fn goes_on(&mut self) {
        if self.trouble.as_ref().is_some_and(|trouble| trouble.wrap_up.is_some()) {
            self.change_trouble(|trouble| trouble.wrap_up = None);
        }
    }

    /// Whether its time is nearly up.
    #[must_use]
    pub fn is_time_short(&self) -> bool {
        self.trouble.as_ref().is_some_and(|trouble| trouble.is_time_short)
    }

    pub(crate) fn set_time_short(&mut self, is_short: bool) {
        if self.is_time_short() != is_short {
            self.change_trouble(|trouble| trouble.is_time_short = is_short);
        }
    }

    /// How many answers in a row did not fit its schema.
    #[must_use]
    pub fn repairs(&self) -> u8 {
        self.trouble.as_ref().map_or(0, |trouble| trouble.repairs)
    }

    /// What its model said does not fit its schema: it is told so.
    pub(crate) fn missed(&mut self, note: u64) {
        self.read(note);
        let tokens = note.saturating_add(limit::MESSAGE_TOKENS);
        self.window.push(Header::new(tokens, Category::Error, Tie::Free));
        let repairs = self.repairs().saturating_add(1);
        self.change_trouble(|trouble| trouble.repairs = repairs);
    }

    /// Its next answer is another one than the last.
    pub(crate) fn anew(&mut self) {
        if self.trouble.is_some() {
            self.change_trouble(|trouble| trouble.repairs = 0);
        }
    }

    fn change_trouble(&mut self, change: impl FnOnce(&mut Trouble)) {
        let mut trouble = self.trouble.take().unwrap_or_default();
        change(&mut trouble);
        self.trouble = (*trouble != Trouble::default()).then_some(trouble);
    }

    /// The event with the last thing its model said.
    #[must_use]
    pub fn last(&self) -> Option<Seq> {
        Some(self.said).filter(|said| said.0 > 0)
    }

    /// The most tokens that the last thing its model said can have.
    pub(crate) fn last_tokens(&self) -> u64 {
        self.said_tokens.into()
    }

    /// This is the last thing its model said.
    pub(crate) fn set_last(&mut self, at: Option<Seq>, tokens: u64) {
        (self.said, self.said_tokens) = (at.unwrap_or_default(), u32::try_from(tokens).unwrap_or(u32::MAX));
    }

    /// Its model has taken a turn. What it thought is sent back to it, and to nobody else.
    pub(crate) fn said(&mut self, at: Seq, tokens: u64, thought: u64, asks: bool) {
        self.turns = self.turns.saturating_add(1);
        self.set_last(Some(at), tokens);
        let tokens = tokens.saturating_add(thought);
        self.read(tokens);
        let tie = if asks { Tie::Asks } else { Tie::Free };
        self.window.said(Header::new(tokens.saturating_add(limit::MESSAGE_TOKENS), Category::Dialog, tie));
    }

    /// Its model was asked for the last time and said nothing: what it said before counts.
    pub(crate) fn said_nothing(&mut self) {
        self.turns = self.turns.saturating_add(1);
    }

    /// Its model is asked for the last time, about a part of its context.
    pub(crate) fn asked_with_less(&mut self) {
        self.tokens = self.tokens.saturating_add(limit::WRAP_UP_TOKENS);
        self.set_failed(None);
    }

    /// What its model is told before its last call.
    pub(crate) fn add_last_call_note(&mut self) {
        self.window.push(Header::new(limit::WRAP_UP_TOKENS, Category::Internal, Tie::Free));
    }

    /// A tool that its model asked for has returned, and so have so many that were asked for before it.
    pub(crate) fn answered(&mut self, rank: usize, room: &Room) {
        self.read(room.tokens);
        let tokens = room.tokens.saturating_add(limit::MESSAGE_TOKENS);
        self.window.answer(rank, Header::new(tokens, Category::Output, Tie::Answers), &room.images);
    }
}
