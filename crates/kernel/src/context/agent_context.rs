//! One agent's context: its messages, and notes about those that its model has not been shown.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::brief::Brief;
use super::folded::Folded;
use super::message::Texts;
use super::program_past::ProgramRecord;
use super::text::LAST_CALL;
use super::{Message, Offloaded, Origin, SharedAs};
use crate::budget::{Amounts, Ceilings};
use crate::context::offload::{Offloads, Whole};
use crate::primitives::{AgentId, Body, Seq};
use crate::record::{Attachment, Cut, Span, SummaryRange, ToolAsk};
use crate::window::{Inbox, MessageList, ShareTo};

#[derive(Clone, Debug)]
pub(super) struct Context {
    pub(super) origin: Arc<Origin>,
    /// Who reads its result.
    pub(super) reader: Reader,
    pub(super) brief: Arc<Brief>,
    pub(super) list: MessageList<Texts>,
    /// Notes about unread messages. Usually empty.
    pub(super) unread: Option<Box<Unread>>,
    /// Long tool outputs in its workspace. Most agents have none.
    pub(super) offloads: Option<Box<Offloads>>,
    /// Whether it may give follow-ups to its children.
    pub(super) follows_up: bool,
    /// If it is a program.
    pub(super) program: Option<Box<ProgramRecord>>,
    /// Every message, if the fold keeps them.
    pub(super) all: Option<Box<All>>,
}

/// Who reads an agent's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    /// A call of its parent that waits for it.
    Call,
    /// Its parent, as a message.
    Parent,
    /// No agent: its graph reads it, or its parent was rolled back to a point before it existed.
    Nobody,
}

impl Reader {
    pub(super) const fn new(attachment: Attachment) -> Self {
        match attachment {
            Attachment::Call { .. } => Self::Call,
            Attachment::Root | Attachment::Detached => Self::Parent,
            Attachment::Step { .. } | Attachment::Disowned => Self::Nobody,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct All {
    pub(super) messages: Vec<Arc<Message>>,
}

/// What the list does not hold about unread messages, and results that are not messages yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Unread {
    /// The tools of the last answer that have returned, in order.
    asks: Vec<u32>,
    inbox: Inbox,
    /// Results of attached children that no call has taken yet.
    pub(super) results: BTreeMap<Seq, Returned>,
}

/// A child's result as its parent reads it, and what the child used.
#[derive(Clone, Debug, Default)]
pub(super) struct Returned {
    pub(super) text: String,
    pub(super) used: Amounts,
}

impl Returned {
    /// A result that was shown before.
    pub(super) fn new(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl Context {
    pub(super) fn unread(&mut self) -> &mut Unread {
        self.unread.get_or_insert_default()
    }

    /// Adds a message that counts as read.
    pub(super) fn push(&mut self, message: Arc<Message>) {
        if let Some(all) = &mut self.all {
            all.messages.push(Arc::clone(&message));
        }
        self.list.push_read(message);
    }

    pub(super) fn letter(&mut self, at: Seq, message: Message) {
        self.unread().inbox.push(at);
        self.list.push(Arc::new(message));
    }

    /// Adds the result of a tool from its last answer.
    pub(super) fn answer(&mut self, ask: u32, message: Message) {
        let asks = &mut self.unread().asks;
        let rank = asks.partition_point(|other| *other < ask);
        asks.insert(rank, ask);
        self.list.answer(rank, Arc::new(message));
    }

    /// Marks everything as read.
    pub(super) fn read(&mut self) {
        if let Some(all) = &mut self.all {
            all.messages.extend_from_slice(self.list.unread_messages());
        }
        self.list.read();
        let results = self.unread.take().map(|unread| unread.results).unwrap_or_default();
        if !results.is_empty() {
            self.unread().results = results;
        }
    }

    pub(super) fn shown(&self) -> Texts {
        match self.list.unread() {
            0 => Arc::clone(self.list.store()),
            _ => Arc::new(self.list.read_messages().to_vec()),
        }
    }

    /// Adds the notice of its last call. Returns that call's messages if they are not the whole window.
    pub(super) fn add_last_call_note(&mut self, cut: Option<&Cut>) -> Option<Texts> {
        let seen = cut.map(|cut| {
            let mut seen = Self { all: None, ..self.clone() };
            seen.cut(cut, None);
            seen.push(Arc::new(Message::Note(LAST_CALL.to_owned())));
            seen.shown()
        });
        self.push(Arc::new(Message::Note(LAST_CALL.to_owned())));
        seen
    }

    /// Drops what was decided and adds a digest after the first message: a summary if there is one, and lines for the
    /// rest.
    pub(super) fn cut(&mut self, cut: &Cut, summary: Option<(&SummaryRange, &Body)>) {
        let mut folded = match self.list.folded().map(AsRef::as_ref) {
            Some(Message::Folded(folded)) => folded.as_ref().clone(),
            Some(_) | None => Folded::default(),
        };
        let is_summed = |place: u32| summary.is_some_and(|(covers, _)| Span::has(&covers.spans, place));
        let places = (0..).zip(self.list.all()).filter(|(place, _)| cut.drops(*place));
        let (summed, rest): (Vec<_>, Vec<_>) = places.partition(|(place, _)| is_summed(*place));
        let messages_of = |gone: Vec<(u32, &Arc<Message>)>| -> Vec<Arc<Message>> {
            gone.into_iter().map(|(_, message)| Arc::clone(message)).collect()
        };
        let (summed, rest) = (messages_of(summed), messages_of(rest));
        self.list.remove(&cut.drop);
        for blank in &cut.blank {
            let Some(message) = self.list.all_mut().get_mut(blank.at as usize) else { continue };
            let all = self.all.as_mut().map_or(&mut [][..], |all| &mut all.messages);
            let kept = all.iter_mut().rfind(|kept| Arc::ptr_eq(kept, message));
            Arc::make_mut(message).blank(blank.images);
            kept.into_iter().for_each(|kept| *kept = Arc::clone(message));
        }
        if cut.folded == 0 {
            return;
        }
        if let Some((covers, body)) = summary {
            folded.sum_up(body, &summed, usize::try_from(covers.room()).unwrap_or(usize::MAX));
        }
        folded.add(&rest, cut.folded as usize);
        self.list.fold(Arc::new(Message::Folded(Box::new(folded))));
    }

    /// Where the whole of a tool's result is, if it is long.
    pub(super) fn offloaded(&mut self, body: &Body) -> (Whole, Option<Offloaded>) {
        let (Some(rest), Some(_)) = (body.rest(), body.ends()) else { return (Whole::Journal, None) };
        let whole = self.offloads.get_or_insert_default().take(rest);
        let file = match &whole {
            Whole::File(name) => Some(Offloaded { name: name.clone(), bytes: rest.bytes }),
            Whole::NoRoom | Whole::Journal => None,
        };
        (whole, file)
    }

    /// Adds another agent's messages. With `as_is` they become its own conversation, unless tools are running.
    pub(super) fn receive(
        &mut self,
        from: &AgentId,
        messages: Vec<Arc<Message>>,
        as_is: bool,
        shared_as: SharedAs,
    ) {
        let to = self.list.share_to();
        for message in messages {
            let message = match (to, as_is) {
                (ShareTo::Read, true) => message,
                _ => Arc::new(Message::Shared { from: from.clone(), message, shared_as }),
            };
            if let (ShareTo::Read, Some(all)) = (to, &mut self.all) {
                all.messages.push(Arc::clone(&message));
            }
            self.list.receive(message, to);
        }
    }

    /// Restores a checkpoint's context.
    pub(super) fn restore(
        &mut self,
        list: MessageList<Texts>,
        unread: Option<Box<Unread>>,
        all: Option<Box<All>>,
    ) {
        self.list.restore(list);
        self.unread = unread;
        if self.all.is_some() {
            self.all = all;
        }
        if let (Some(all), Some(first)) = (&mut self.all, self.list.all().first())
            && let Some(message) = all.messages.first_mut()
        {
            message.clone_from(first);
        }
    }

    /// Its model's last text and tool calls.
    pub(super) fn said(&self) -> Option<(&Body, &[ToolAsk])> {
        self.list.read_messages().iter().rev().find_map(|message| match message.as_ref() {
            Message::Said { body, asks } => Some((body, asks.as_slice())),
            _ => None,
        })
    }

    pub(super) fn ask(&self, ask: u32) -> Option<&ToolAsk> {
        self.said()?.1.get(ask as usize)
    }

    /// Adds the remaining budget to every result that its model has not been shown.
    pub(super) fn tell_left(&mut self, left: &Ceilings) {
        let messages = self.list.all_mut();
        let said = messages.iter().rposition(|message| matches!(message.as_ref(), Message::Said { .. }));
        for message in messages.iter_mut().skip(said.map_or(0, |said| said + 1)) {
            let all = self.all.as_mut().map_or(&mut [][..], |all| &mut all.messages);
            let kept = all.iter_mut().rfind(|kept| Arc::ptr_eq(kept, message));
            Arc::make_mut(message).tell_left(left);
            kept.into_iter().for_each(|kept| *kept = Arc::clone(message));
        }
    }
}

impl Context {
    /// Takes the result that an event brought, if it is still unread.
    pub(super) fn taken(&mut self, seq: Seq) -> Option<Returned> {
        let unread = self.unread.as_mut()?;
        if let Some(returned) = unread.results.remove(&seq) {
            return Some(returned);
        }
        let place = self.list.letter(unread.inbox.take(seq)?)?;
        let letter = self.list.take_unread(place);
        let used = letter.facts().and_then(|facts| facts.used).unwrap_or_default();
        Some(Returned { text: letter.text().into_owned(), used })
    }
}
