//! What one agent knows: the messages that its next packet holds, and what came and is no message yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::brief::Brief;
use super::folded::Folded;
use super::{Message, Offloaded, Origin, ToolAsk};
use crate::body::Body;
use crate::id::{AgentId, Seq};
use crate::offload::{Offloads, Whole};
use crate::window::{Covers, Cut, Span};

#[derive(Clone, Debug)]
pub(super) struct Context {
    pub(super) origin: Arc<Origin>,
    /// Whether a call of its parent waits for it.
    pub(super) is_waited_for: bool,
    pub(super) brief: Arc<Brief>,
    pub(super) messages: Arc<Vec<Arc<Message>>>,
    /// What came and is no message yet. Most agents have nothing of it most of the time.
    pub(super) unread: Option<Box<Unread>>,
    /// Long tool outputs that are files of its workspace. Most agents have none.
    pub(super) offloads: Option<Box<Offloads>>,
    /// Every message ever, if somebody asked for that.
    pub(super) all: Option<Box<All>>,
}

/// Every message ever.
#[derive(Clone, Debug, Default)]
pub(super) struct All {
    pub(super) messages: Vec<Arc<Message>>,
}

/// What came to an agent and its model has not been shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Unread {
    /// What the tools of the last answer returned, in the order they were asked for: what a model reads does not
    /// depend on which was faster.
    pub(super) answers: BTreeMap<u32, Message>,
    /// Letters and notes, by the event that brought them.
    pub(super) letters: Vec<(Seq, Message)>,
    /// Results of attached children that no call has taken yet.
    pub(super) results: BTreeMap<Seq, String>,
}

impl Unread {
    pub(super) fn with(letters: Vec<(Seq, Message)>) -> Box<Self> {
        Box::new(Self { letters, ..Self::default() })
    }

    fn is_empty(&self) -> bool {
        self.answers.is_empty() && self.letters.is_empty() && self.results.is_empty()
    }
}

impl Context {
    /// Adds a message. A packet that is still out keeps what it had.
    pub(super) fn push(&mut self, message: Arc<Message>) {
        if let Some(all) = &mut self.all {
            all.messages.push(Arc::clone(&message));
        }
        let messages = Arc::make_mut(&mut self.messages);
        // Most contexts of a large tree are short, and there are many of them.
        if messages.len() == messages.capacity() {
            messages.reserve_exact(messages.len() / 2 + 1);
        }
        messages.push(message);
    }

    pub(super) fn unread(&mut self) -> &mut Unread {
        self.unread.get_or_insert_default()
    }

    /// Makes messages of what came.
    pub(super) fn read(&mut self) {
        let Some(mut unread) = self.unread.take() else { return };
        let answers = std::mem::take(&mut unread.answers).into_values();
        let letters = std::mem::take(&mut unread.letters).into_iter().map(|(_, message)| message);
        answers.chain(letters).for_each(|message| self.push(Arc::new(message)));
        self.unread = Some(unread).filter(|unread| !unread.is_empty());
    }

    /// The message at this place of the window, read or not.
    pub(super) fn at(&self, place: usize) -> Option<Arc<Message>> {
        if let Some(message) = self.messages.get(place) {
            return Some(Arc::clone(message));
        }
        self.unread_messages().nth(place - self.messages.len()).cloned().map(Arc::new)
    }

    /// What came and is no message yet, in the order in which it will be.
    pub(super) fn unread_messages(&self) -> impl Iterator<Item = &Message> {
        let unread = self.unread.iter();
        unread.flat_map(|unread| {
            let letters = unread.letters.iter().map(|(_, message)| message);
            unread.answers.values().chain(letters)
        })
    }

    /// How many messages the window holds, read or not.
    pub(super) fn count(&self) -> usize {
        let unread = self.unread.as_ref().map_or(0, |unread| unread.answers.len() + unread.letters.len());
        self.messages.len() + unread
    }

    /// Leaves out what was decided, and tells it in short behind the first message: by a summary of what that covers,
    /// if there is one, and by lines.
    pub(super) fn cut(&mut self, cut: &Cut, summary: Option<(&Covers, &Body)>) {
        self.read();
        let messages = Arc::make_mut(&mut self.messages);
        let mut folded = match messages.get(1).map(AsRef::as_ref) {
            Some(Message::Folded(folded)) => folded.as_ref().clone(),
            Some(_) | None => Folded::default(),
        };
        let is_summed = |place: u32| summary.is_some_and(|(covers, _)| Span::has(&covers.spans, place));
        let places = (0..).zip(messages.iter()).filter(|(place, _)| cut.drops(*place));
        let (summed, rest): (Vec<_>, Vec<_>) = places.partition(|(place, _)| is_summed(*place));
        let messages_of = |gone: Vec<(u32, &Arc<Message>)>| -> Vec<Arc<Message>> {
            gone.into_iter().map(|(_, message)| Arc::clone(message)).collect()
        };
        let (summed, rest) = (messages_of(summed), messages_of(rest));
        remove(messages, &cut.drop);
        if cut.folded == 0 {
            return;
        }
        if let Some((covers, body)) = summary {
            folded.sum_up(body, &summed, usize::try_from(covers.room()).unwrap_or(usize::MAX));
        }
        folded.add(&rest, cut.folded as usize);
        let folded = Arc::new(Message::Folded(Box::new(folded)));
        match messages.get_mut(1) {
            Some(message) if matches!(message.as_ref(), Message::Folded(_)) => *message = folded,
            Some(_) | None => messages.insert(1.min(messages.len()), folded),
        }
    }

    /// A tool of it returned this: where the whole of it is, if that is long.
    pub(super) fn offloaded(&mut self, body: &Body) -> (Whole, Option<Box<Offloaded>>) {
        let (Some(rest), Some(_)) = (&body.rest, body.parts()) else { return (Whole::Journal, None) };
        let whole = self.offloads.get_or_insert_default().take(rest);
        let file = match &whole {
            Whole::File(name) => Some(Box::new(Offloaded { name: name.clone(), bytes: rest.bytes })),
            Whole::NoRoom | Whole::Journal => None,
        };
        (whole, file)
    }

    /// Takes what another agent knows.
    pub(super) fn told(&mut self, from: &AgentId, messages: Vec<Arc<Message>>, as_is: bool) {
        for message in messages {
            let told = || Arc::new(Message::Told { from: from.clone(), message: Arc::clone(&message) });
            self.push(if as_is { message } else { told() });
        }
    }

    /// Forgets what is at these places.
    pub(super) fn forget(&mut self, spans: &[Span]) {
        if !spans.is_empty() {
            remove(Arc::make_mut(&mut self.messages), spans);
        }
    }

    /// The last thing that its model said, and the tools it asked for.
    pub(super) fn said(&self) -> Option<(&Body, &[ToolAsk])> {
        self.messages.iter().rev().find_map(|message| match message.as_ref() {
            Message::Said { body, asks } => Some((body, asks.as_slice())),
            Message::System(_)
            | Message::Heard { .. }
            | Message::Result { .. }
            | Message::Told { .. }
            | Message::Note(_)
            | Message::Folded(_) => None,
        })
    }

    pub(super) fn ask(&self, ask: u32) -> Option<&ToolAsk> {
        self.said()?.1.get(ask as usize)
    }

    /// What an event brought, if nobody has read it.
    pub(super) fn taken(&mut self, seq: Seq) -> Option<String> {
        let unread = self.unread.as_mut()?;
        if let Some(told) = unread.results.remove(&seq) {
            return Some(told);
        }
        let is_it =
            |(letter, message): &(Seq, Message)| *letter == seq && matches!(message, Message::Heard { .. });
        let place = unread.letters.iter().position(is_it)?;
        Some(unread.letters.remove(place).1.text().into_owned())
    }
}

/// Takes messages out of a list.
fn remove(messages: &mut Vec<Arc<Message>>, spans: &[Span]) {
    let mut place = 0;
    messages.retain(|_| {
        let goes = Span::has(spans, place);
        place += 1;
        !goes
    });
}
