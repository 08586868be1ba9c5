//! What a person sees of a tree while it is followed: lines, or the live view.

use std::borrow::Cow;

use serde::Serialize;
use serde::de::DeserializeOwned;
use spinney::bus::{TracedEvent, WatchItem};
use spinney::redaction::Redactor;
use spinney::tree::OpenQuestion;
use spinney_host::control::StreamedText;
use spinney_host::home::ids::TreeInHome;
use spinney_kernel::primitives::Seq;
use spinney_terminal::Terminal;
use spinney_terminal::mode::EchoOff;
use spinney_terminal::out::Unwritten;
use spinney_view::events::TextPiece;

use crate::chat::ChatScreen;
use crate::events::screen::{Screen, Style};
use crate::live::LiveScreen;
use crate::log;

/// Where a tree is shown, and how.
#[derive(Clone, Copy)]
pub(crate) struct Display {
    pub(crate) terminal: Terminal,
    pub(crate) is_live: bool,
    /// Whether the text that models stream is written as lines of JSON.
    pub(crate) has_text: bool,
    /// Whether it is shown as a conversation.
    pub(crate) is_chat: bool,
    /// Whether nothing is shown but what a person is asked.
    pub(crate) is_silent: bool,
}

impl Display {
    /// A live view on a terminal that can be drawn on, unless lines are wanted. Log lines would take it away all the
    /// time.
    pub(crate) fn for_terminal(terminal: Terminal, style: Style, is_plain: bool) -> Self {
        let has_log = log::is_on();
        let is_live = style == Style::Lines && !is_plain && !has_log && terminal.can_draw();
        Self { terminal, is_live, has_text: false, is_chat: false, is_silent: false }
    }

    /// Writes the text that models stream as well.
    pub(crate) const fn with_text(self, has_text: bool) -> Self {
        Self { has_text, ..self }
    }

    /// Shows it as a conversation, if that is wanted.
    pub(crate) const fn as_chat(self, is_chat: bool) -> Self {
        Self { is_chat, is_live: self.is_live && !is_chat, ..self }
    }

    /// Shows nothing of it, if that is wanted.
    pub(crate) const fn silent(self, is_silent: bool) -> Self {
        Self { is_silent, is_live: self.is_live && !is_silent, ..self }
    }

    /// Whether anything is done with text that models stream.
    pub(crate) const fn uses_text(self) -> bool {
        self.is_live || self.has_text || self.is_chat
    }
}

pub(crate) struct Shown {
    /// With a live view it writes nothing, but knows how long the tree took.
    pub(crate) screen: Screen,
    pub(crate) live: Option<LiveScreen>,
    pub(crate) chat: Option<ChatScreen>,
    /// While there is a live view.
    echo_off: Option<EchoOff>,
    has_text: bool,
    redactor: Redactor,
}

impl Shown {
    /// Lines begin after `past`; the live view needs everything that happened.
    pub(crate) fn new(
        TreeInHome { home, tree }: TreeInHome<'_>,
        style: Style,
        past: Seq,
        display: Display,
        redactor: Redactor,
    ) -> Self {
        let Display { terminal, is_live, has_text, is_chat, is_silent } = display;
        let from = if is_live || is_silent { Seq(u64::MAX) } else { Seq(past.0 + 1) };
        Self {
            screen: Screen::new(tree, style).on(terminal).from(from),
            chat: is_chat.then(|| ChatScreen::new(past)),
            live: is_live.then(|| LiveScreen::new(tree, home, terminal)),
            echo_off: is_live.then(EchoOff::begin),
            has_text,
            redactor,
        }
    }

    /// A question without secrets. What is answered is the question as it is.
    pub(crate) fn redacted<'q>(&self, question: &'q OpenQuestion) -> Cow<'q, OpenQuestion> {
        redacted(&self.redactor, question)
    }

    pub(crate) fn see(&mut self, seen: &WatchItem) -> Result<(), Unwritten> {
        match seen {
            WatchItem::Event(traced) => self.event(traced),
            WatchItem::Delta(_) | WatchItem::Missed(_) => {
                self.live.iter_mut().for_each(|live| live.see(seen));
                match seen {
                    WatchItem::Delta(delta) if self.chat.is_some() => {
                        self.chat.as_mut().map_or(Ok(()), |chat| chat.delta(delta))
                    }
                    WatchItem::Delta(delta) if self.has_text => self.screen.text(&TextPiece {
                        path: &delta.origin.path,
                        call: delta.call,
                        attempt: delta.attempt,
                        kind: delta.kind,
                        offset: delta.offset,
                        text: &delta.text,
                        after: delta.after,
                    }),
                    _ => Ok(()),
                }
            }
        }
    }

    /// Text that another process streams.
    pub(crate) fn streamed(&mut self, text: &StreamedText) -> Result<(), Unwritten> {
        if let Some(live) = &mut self.live {
            live.streamed(text);
        }
        if !self.has_text {
            return Ok(());
        }
        self.screen.text(&text.as_piece())
    }

    pub(crate) fn event(&mut self, traced: &TracedEvent) -> Result<(), Unwritten> {
        let mut changed = None;
        if let Cow::Owned(event) = redacted(&self.redactor, &traced.recorded.event) {
            changed.insert(traced.clone()).recorded.event = event;
        }
        let traced = changed.as_ref().unwrap_or(traced);
        self.live.iter_mut().for_each(|live| live.event(traced));
        if let Some(chat) = &mut self.chat {
            if chat.event(traced)? {
                return self.screen.pass(traced);
            }
            if self.screen.would_show(traced) {
                chat.end_line()?;
            }
        }
        self.screen.show(traced)
    }

    /// Waits until it is time to draw: forever without a live view.
    pub(crate) async fn tick(&mut self) {
        match &mut self.live {
            Some(live) => live.tick().await,
            None => std::future::pending().await,
        }
    }

    pub(crate) fn draw(&mut self) -> Result<(), Unwritten> {
        self.echo_off.iter().for_each(EchoOff::keep);
        self.live.as_mut().map_or(Ok(()), LiveScreen::draw)
    }

    /// Takes the live view away. A terminal that is gone is reported by whatever is written next.
    pub(crate) fn erase(&mut self) {
        if let Some(live) = &mut self.live {
            let _ = live.erase();
        }
        self.echo_off = None;
    }
}

/// The same without secrets.
pub(crate) fn redacted<'t, T: Serialize + DeserializeOwned + Clone>(
    redactor: &Redactor,
    shown: &'t T,
) -> Cow<'t, T> {
    let redacted = redactor.redact_typed(shown);
    redacted.unwrap_or_else(|error| unreachable!("what is shown can be written and read again: {error}"))
}
