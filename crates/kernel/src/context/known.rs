//! What one agent knows: the messages that its next packet holds, and what came and is no message yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::brief::Brief;
use super::folded::Folded;
use super::text::LAST_CALL;
use super::{Message, Offloaded, Origin};
use crate::budget::{Amounts, Ceilings};
use crate::context::offload::{Offloads, Whole};
use crate::record::{Attachment, Covers, Cut, Span, ToolAsk};
use crate::words::{AgentId, Body, Seq};

#[derive(Clone, Debug)]
pub(super) struct Context {
    pub(super) origin: Arc<Origin>,
    /// Who reads how it ended.
    pub(super) reader: Reader,
    pub(super) brief: Arc<Brief>,
    pub(super) messages: Arc<Vec<Arc<Message>>>,
    /// What came and is no message yet. Most agents have nothing of it most of the time.
    pub(super) unread: Option<Box<Unread>>,
    /// Long tool outputs that are files of its workspace. Most agents have none.
    pub(super) offloads: Option<Box<Offloads>>,
    /// Every message ever, if somebody asked for that.
    pub(super) all: Option<Box<All>>,
}

/// Who reads how an agent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    /// A call of its parent, which waits for it.
    Call,
    /// Its parent, as a message.
    Parent,
    /// Nobody: its parent was rolled back to before it was there.
    Nobody,
}

impl Reader {
    pub(super) const fn of(attachment: Attachment) -> Self {
        match attachment {
            Attachment::Call { .. } => Self::Call,
            Attachment::Root | Attachment::Detached => Self::Parent,
            Attachment::Disowned => Self::Nobody,
        }
    }
}

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
    pub(super) results: BTreeMap<Seq, Returned>,
}

/// What a child returned, as its parent reads it, and what it used.
#[derive(Clone, Debug, Default)]
pub(super) struct Returned {
    pub(super) text: String,
    pub(super) used: Amounts,
}

impl Returned {
    /// Something that was told before.
    pub(super) fn of(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl Unread {
    pub(super) fn with(letters: Vec<(Seq, Message)>) -> Box<Self> {
        Box::new(Self { letters, ..Self::default() })
    }

    /// How many messages it will be.
    pub(super) fn len(&self) -> usize {
        self.answers.len() + self.letters.len()
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

    /// Its model is told that it is asked for the last time. What that sees, if it is not the whole window.
    pub(super) fn add_last_call_note(&mut self, cut: Option<&Cut>) -> Option<Arc<Vec<Arc<Message>>>> {
        let seen = cut.map(|cut| {
            let mut seen = Self { all: None, ..self.clone() };
            seen.cut(cut, None);
            seen.push(Arc::new(Message::Note(LAST_CALL.to_owned())));
            seen.messages
        });
        self.push(Arc::new(Message::Note(LAST_CALL.to_owned())));
        seen
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

    /// What the window holds, read or not.
    pub(super) fn window(&self) -> impl Iterator<Item = &Message> {
        self.messages.iter().map(AsRef::as_ref).chain(self.unread_messages())
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
        for blank in &cut.blank {
            let Some(message) = messages.get_mut(blank.at as usize) else { continue };
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
        let folded = Arc::new(Message::Folded(Box::new(folded)));
        match messages.get_mut(1) {
            Some(message) if matches!(message.as_ref(), Message::Folded(_)) => *message = folded,
            Some(_) | None => messages.insert(1.min(messages.len()), folded),
        }
    }

    /// A tool of it returned this: where the whole of it is, if that is long.
    pub(super) fn offloaded(&mut self, body: &Body) -> (Whole, Option<Offloaded>) {
        let (Some(rest), Some(_)) = (body.rest(), body.ends()) else { return (Whole::Journal, None) };
        let whole = self.offloads.get_or_insert_default().take(rest);
        let file = match &whole {
            Whole::File(name) => Some(Offloaded { name: name.clone(), bytes: rest.bytes }),
            Whole::NoRoom | Whole::Journal => None,
        };
        (whole, file)
    }

    /// Takes what another agent knows. While tools are out it is unread until they are back: what they return stands
    /// right behind the message that asked.
    pub(super) fn receive(&mut self, from: &AgentId, at: Seq, messages: Vec<Arc<Message>>, as_is: bool) {
        let is_asking = self.messages.last().is_some_and(|last| last.asks());
        for message in messages {
            let shared = |message| Message::Shared { from: from.clone(), message };
            match (is_asking, as_is) {
                (true, _) => self.unread().letters.push((at, shared(message))),
                (false, true) => self.push(message),
                (false, false) => self.push(Arc::new(shared(message))),
            }
        }
    }

    /// Has this as its first message, whatever that was.
    pub(super) fn begin_with(&mut self, first: &Arc<Message>) {
        let put = |messages: &mut [Arc<Message>]| {
            messages.first_mut().into_iter().for_each(|message| *message = Arc::clone(first));
        };
        if self.messages.first().is_some_and(|message| !Arc::ptr_eq(message, first)) {
            let messages: &mut Vec<_> = Arc::make_mut(&mut self.messages);
            put(messages);
        }
        self.all.iter_mut().for_each(|all| put(&mut all.messages));
    }

    /// Forgets what is at these places.
    pub(super) fn forget(&mut self, spans: &[Span]) {
        if spans.is_empty() {
            return;
        }
        let read = self.messages.len();
        remove(Arc::make_mut(&mut self.messages), spans);
        if let Some(unread) = &mut self.unread {
            // What tools returned is no news of anybody.
            let mut place = (read + unread.answers.len()) as u32;
            unread.letters.retain(|_| {
                place += 1;
                !Span::has(spans, place - 1)
            });
        }
        self.unread = self.unread.take().filter(|unread| !unread.is_empty());
    }

    /// The last thing that its model said, and the tools it asked for.
    pub(super) fn said(&self) -> Option<(&Body, &[ToolAsk])> {
        self.messages.iter().rev().find_map(|message| match message.as_ref() {
            Message::Said { body, asks } => Some((body, asks.as_slice())),
            Message::System(_)
            | Message::Heard { .. }
            | Message::Result { .. }
            | Message::Shared { .. }
            | Message::Note(_)
            | Message::Mismatch(_)
            | Message::Folded(_) => None,
        })
    }

    pub(super) fn ask(&self, ask: u32) -> Option<&ToolAsk> {
        self.said()?.1.get(ask as usize)
    }

    /// Tells what is left with every result that its model has not been shown before.
    pub(super) fn tell_left(&mut self, left: &Ceilings) {
        let said = self.messages.iter().rposition(|message| matches!(message.as_ref(), Message::Said { .. }));
        let messages = Arc::make_mut(&mut self.messages);
        for message in messages.iter_mut().skip(said.map_or(0, |said| said + 1)) {
            let all = self.all.as_mut().map_or(&mut [][..], |all| &mut all.messages);
            let kept = all.iter_mut().rfind(|kept| Arc::ptr_eq(kept, message));
            Arc::make_mut(message).tell_left(left);
            kept.into_iter().for_each(|kept| *kept = Arc::clone(message));
        }
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
