//! The list of an agent's messages: in which order they stand, which of them are unread, and where a cut, a share and a
//! rollback change it. The world keeps one of headers and the contexts keep one of texts. Both change it by the same
//! events through this code, so that a place in the one is the same place in the other.

use crate::record::Span;

/// What the order of a list depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListKind {
    /// What the agent is and has to do.
    First,
    /// It came through the inbox.
    Letter,
    /// It asks for tools; what they return follows.
    Asks,
    /// It answers the last message that asked.
    Answers,
    /// It tells in short what was left out.
    Folded,
    Other,
}

/// A message, as far as its list needs to know it.
pub(crate) trait Listed: Clone {
    fn kind(&self) -> ListKind;
}

/// Where a list keeps its messages.
pub(crate) trait ListStore: Default {
    type Message: Listed;
    fn all(&self) -> &[Self::Message];
    fn all_mut(&mut self) -> &mut [Self::Message];
    fn insert(&mut self, place: usize, message: Self::Message);
    /// Asks for each message, the oldest first, whether it stays.
    fn retain(&mut self, stays: impl FnMut() -> bool);
}

/// The messages of an agent, the oldest first. What its model has not been shown stands at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MessageList<S> {
    store: S,
    unread: u32,
}

/// Where a shared message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShareTo {
    /// Behind what the model has read: it counts as read, too.
    Read,
    /// To the end. Tools are out, and what they return stands right behind the message that asked.
    Unread,
}

impl<S: ListStore> MessageList<S> {
    /// These messages, of which so many at the end are unread.
    pub(crate) const fn new(store: S, unread: u32) -> Self {
        Self { store, unread }
    }

    pub(crate) const fn store(&self) -> &S {
        &self.store
    }

    pub(crate) fn all(&self) -> &[S::Message] {
        self.store.all()
    }

    pub(crate) fn all_mut(&mut self) -> &mut [S::Message] {
        self.store.all_mut()
    }

    pub(crate) const fn unread(&self) -> usize {
        self.unread as usize
    }

    /// The place of the first unread message.
    fn read_len(&self) -> usize {
        self.all().len() - self.unread()
    }

    pub(crate) fn read_messages(&self) -> &[S::Message] {
        &self.all()[..self.read_len()]
    }

    pub(crate) fn unread_messages(&self) -> &[S::Message] {
        &self.all()[self.read_len()..]
    }

    /// The model is shown everything.
    pub(crate) const fn read(&mut self) {
        self.unread = 0;
    }

    /// The next message; it is unread. Gives its place, as all that add one do.
    pub(crate) fn push(&mut self, message: S::Message) -> usize {
        let place = self.all().len();
        self.store.insert(place, message);
        self.unread += 1;
        place
    }

    /// What the model said, or has read by now: before everything that came meanwhile.
    pub(crate) fn push_read(&mut self, message: S::Message) -> usize {
        let place = self.read_len();
        self.store.insert(place, message);
        place
    }

    /// What a tool returned: before everything else that came meanwhile, and behind what so many others returned that
    /// were asked for before it. So they stand as the model will read them, whichever was faster.
    pub(crate) fn answer(&mut self, rank: usize, message: S::Message) -> usize {
        let unread = self.unread_messages().iter();
        let answers = unread.take_while(|message| message.kind() == ListKind::Answers).count();
        let place = self.read_len() + rank.min(answers);
        self.store.insert(place, message);
        self.unread += 1;
        place
    }

    /// Whether the last message that the model has read asks for tools.
    pub(crate) fn is_asking(&self) -> bool {
        self.read_messages().last().is_some_and(|message| message.kind() == ListKind::Asks)
    }

    /// Whether its agent, which has completed, can go on from here with another task. One that somebody finished while its
    /// tools were out would wait for them, and one that takes no turns knows nothing.
    pub(crate) fn can_go_on(&self) -> bool {
        self.all().first().is_some_and(|message| message.kind() == ListKind::First) && !self.is_asking()
    }

    /// Where messages go that another agent shares now.
    pub(crate) fn share_to(&self) -> ShareTo {
        if self.is_asking() { ShareTo::Unread } else { ShareTo::Read }
    }

    /// Takes a message that another agent shares.
    pub(crate) fn receive(&mut self, message: S::Message, to: ShareTo) -> usize {
        match to {
            ShareTo::Read => self.push_read(message),
            ShareTo::Unread => self.push(message),
        }
    }

    /// The place of an unread letter that has this place in the inbox.
    pub(crate) fn letter(&self, in_inbox: usize) -> Option<usize> {
        let unread = self.all().iter().enumerate().skip(self.read_len());
        let mut letters = unread.filter(|(_, message)| message.kind() == ListKind::Letter);
        letters.nth(in_inbox).map(|(place, _)| place)
    }

    /// Takes out an unread message.
    pub(crate) fn take_unread(&mut self, place: usize) -> S::Message {
        let message = self.all()[place].clone();
        self.remove(&[Span { from: place as u32, to: place as u32 + 1 }]);
        message
    }

    /// Takes out what is at these places.
    pub(crate) fn remove(&mut self, spans: &[Span]) {
        if spans.is_empty() {
            return;
        }
        let (read, mut place, mut gone_unread) = (self.read_len(), 0, 0);
        self.store.retain(|| {
            let goes = Span::has(spans, place);
            gone_unread += u32::from(goes && place as usize >= read);
            place += 1;
            !goes
        });
        self.unread -= gone_unread;
    }

    /// What tells in short what was left out before, if something was.
    pub(crate) fn folded(&self) -> Option<&S::Message> {
        self.all().get(1).filter(|message| message.kind() == ListKind::Folded)
    }

    /// Behind the first message stands what tells in short what was left out, from now on this.
    pub(crate) fn fold(&mut self, folded: S::Message) {
        match self.all().get(1).map(Listed::kind) {
            Some(ListKind::Folded) => self.all_mut()[1] = folded,
            Some(_) | None => self.store.insert(1.min(self.all().len()), folded),
        }
    }

    /// Holds what another list does. The first message stays: what an agent is was settled at its birth.
    pub(crate) fn restore(&mut self, other: Self) {
        let first = self.all().first().cloned();
        *self = other;
        if let (Some(first), false) = (first, self.all().is_empty()) {
            self.all_mut()[0] = first;
        }
    }
}
