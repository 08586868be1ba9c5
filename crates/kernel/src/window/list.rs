//! The list of an agent's messages: their order, which are unread, and how cuts, shares and rollbacks change it. The
//! world keeps a list of headers and the contexts keep one of texts. Both apply the same events through this code, so
//! that a position means the same message in both.

use crate::record::Span;

/// What the order of a list depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListKind {
    /// The agent's first message.
    First,
    /// It came through the inbox.
    Letter,
    /// It asks for tools; their results follow.
    Asks,
    /// It answers the last message that asked.
    Answers,
    /// The digest of left-out messages.
    Folded,
    Other,
}

/// What a list needs to know of a message.
pub(crate) trait Listed: Clone {
    fn kind(&self) -> ListKind;
}

/// The storage of a list.
pub(crate) trait ListStore: Default {
    type Message: Listed;
    fn all(&self) -> &[Self::Message];
    fn all_mut(&mut self) -> &mut [Self::Message];
    fn insert(&mut self, place: usize, message: Self::Message);
    /// Calls `stays` for each message, oldest first.
    fn retain(&mut self, stays: impl FnMut() -> bool);
}

/// An agent's messages, oldest first. Those that its model has not been shown are at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MessageList<S> {
    store: S,
    unread: u32,
}

/// Where a shared message is inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShareTo {
    /// After the last read message; it also counts as read.
    Read,
    /// At the end. Tools are running, and their results must directly follow the message that asked.
    Unread,
}

impl<S: ListStore> MessageList<S> {
    /// The last `unread` messages are unread.
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

    fn read_len(&self) -> usize {
        self.all().len() - self.unread()
    }

    pub(crate) fn read_messages(&self) -> &[S::Message] {
        &self.all()[..self.read_len()]
    }

    pub(crate) fn unread_messages(&self) -> &[S::Message] {
        &self.all()[self.read_len()..]
    }

    /// Marks everything as read.
    pub(crate) const fn read(&mut self) {
        self.unread = 0;
    }

    /// Adds an unread message. Like all methods that add one, returns its position.
    pub(crate) fn push(&mut self, message: S::Message) -> usize {
        let place = self.all().len();
        self.store.insert(place, message);
        self.unread += 1;
        place
    }

    /// Adds a message as read, before all unread ones.
    pub(crate) fn push_read(&mut self, message: S::Message) -> usize {
        let place = self.read_len();
        self.store.insert(place, message);
        place
    }

    /// Adds a tool's result before all other unread messages, after the `rank` results of tools that were requested
    /// before it. So results are in request order, whichever tool was faster.
    pub(crate) fn answer(&mut self, rank: usize, message: S::Message) -> usize {
        let unread = self.unread_messages().iter();
        let answers = unread.take_while(|message| message.kind() == ListKind::Answers).count();
        let place = self.read_len() + rank.min(answers);
        self.store.insert(place, message);
        self.unread += 1;
        place
    }

    /// Whether the last read message asks for tools.
    pub(crate) fn is_asking(&self) -> bool {
        self.read_messages().last().is_some_and(|message| message.kind() == ListKind::Asks)
    }

    /// Whether its agent, which has completed, can continue with another task. It cannot if it was finished while
    /// tools were running, because it would wait for them, or if it takes no turns.
    pub(crate) fn can_go_on(&self) -> bool {
        self.all().first().is_some_and(|message| message.kind() == ListKind::First) && !self.is_asking()
    }

    /// Where messages that another agent shares now are inserted.
    pub(crate) fn share_to(&self) -> ShareTo {
        if self.is_asking() { ShareTo::Unread } else { ShareTo::Read }
    }

    pub(crate) fn receive(&mut self, message: S::Message, to: ShareTo) -> usize {
        match to {
            ShareTo::Read => self.push_read(message),
            ShareTo::Unread => self.push(message),
        }
    }

    /// The position of the unread message that is at `in_inbox` in the inbox.
    pub(crate) fn letter(&self, in_inbox: usize) -> Option<usize> {
        let unread = self.all().iter().enumerate().skip(self.read_len());
        let mut letters = unread.filter(|(_, message)| message.kind() == ListKind::Letter);
        letters.nth(in_inbox).map(|(place, _)| place)
    }

    pub(crate) fn take_unread(&mut self, place: usize) -> S::Message {
        let message = self.all()[place].clone();
        self.remove(&[Span { from: place as u32, to: place as u32 + 1 }]);
        message
    }

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

    /// The digest of left-out messages, if there is one.
    pub(crate) fn folded(&self) -> Option<&S::Message> {
        self.all().get(1).filter(|message| message.kind() == ListKind::Folded)
    }

    /// Sets the digest, which follows the first message.
    pub(crate) fn fold(&mut self, folded: S::Message) {
        match self.all().get(1).map(Listed::kind) {
            Some(ListKind::Folded) => self.all_mut()[1] = folded,
            Some(_) | None => self.store.insert(1.min(self.all().len()), folded),
        }
    }

    /// Replaces everything except the first message, which is fixed at spawn.
    pub(crate) fn restore(&mut self, other: Self) {
        let first = self.all().first().cloned();
        *self = other;
        if let (Some(first), false) = (first, self.all().is_empty()) {
            self.all_mut()[0] = first;
        }
    }
}
