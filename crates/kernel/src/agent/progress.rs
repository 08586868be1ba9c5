//! How far an agent's turns have come: counts and places, no text.

use crate::call::Outcome;
use crate::id::Seq;
use crate::limit;
use crate::window::{Category, Header, Room, Tie, Window};

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
        self.set_trouble(Trouble { failed, repairs: self.repairs() });
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
        let (failed, repairs) = (self.failed().cloned(), self.repairs().saturating_add(1));
        self.set_trouble(Trouble { failed, repairs });
    }

    /// Its next answer is another one than the last.
    pub(crate) fn anew(&mut self) {
        if let Some(trouble) = self.trouble.take() {
            self.set_trouble(Trouble { repairs: 0, ..*trouble });
        }
    }

    fn set_trouble(&mut self, trouble: Trouble) {
        self.trouble = (trouble != Trouble::default()).then(|| Box::new(trouble));
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

    /// Its model has taken a turn.
    pub(crate) fn said(&mut self, at: Seq, tokens: u64, asks: bool) {
        self.turns = self.turns.saturating_add(1);
        self.set_last(Some(at), tokens);
        self.read(tokens);
        let tie = if asks { Tie::Asks } else { Tie::Free };
        self.window.said(Header::new(tokens.saturating_add(limit::MESSAGE_TOKENS), Category::Dialog, tie));
    }

    /// A tool that its model asked for has returned, and so have so many that were asked for before it.
    pub(crate) fn answered(&mut self, rank: usize, room: &Room) {
        self.read(room.tokens);
        let tokens = room.tokens.saturating_add(limit::MESSAGE_TOKENS);
        self.window.answer(rank, Header::new(tokens, Category::Output, Tie::Answers), &room.images);
    }
}
