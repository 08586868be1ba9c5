//! The messages that a window currently holds, as headers.

pub(super) use crate::record::ContextSharer;
mod snapshot;

use std::num::NonZeroU32;
use std::ops::Range;

use smallvec::SmallVec;

use super::calibration::Calibration;
use super::list::{ListKind, ListStore, Listed, MessageList, ShareTo};
use super::summary::Draft;
use crate::definition::{Definition, TokenCounter};
use crate::primitives::{AgentId, Category, ModelName, TokenCount};
use crate::record::{Cut, Header, LeftOut, Span, Summary, Tie};

/// The messages of an agent's next packet, as headers. Unread ones are at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    list: MessageList<Headers>,
    /// The most tokens of a packet; unlimited if absent.
    size: Option<NonZeroU32>,
    /// Boxed because most windows have none of it.
    rare: Option<Box<RareParts>>,
    /// Only where counts are estimates. Without it each header's estimate is its bound.
    calibration: Option<Box<Calibration>>,
}

/// Most agents of a large tree wait with two messages.
type Headers = SmallVec<[Header; 2]>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct RareParts {
    left_out: [LeftOut; Category::COUNT],
    /// Tokens of each image shown, in order.
    images: Vec<u32>,
    /// Agents that shared their context.
    tellers: Vec<ContextSharer>,
    /// The summary of the next cut, from its request until the cut.
    summary: Option<Box<Draft>>,
}

/// What an agent shares with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedContent {
    Context,
    /// Also its first message.
    Briefing,
}

impl Window {
    /// The last `unread` headers are unread.
    #[must_use]
    pub fn new(headers: Vec<Header>, unread: usize) -> Self {
        let unread = u32::try_from(unread.min(headers.len())).unwrap_or(u32::MAX);
        let images = headers.iter().map(|header| usize::from(header.images)).sum();
        let mut window = Self { list: MessageList::new(headers.into(), unread), ..Self::default() };
        if images > 0 {
            window.rare().images = vec![0; images];
        }
        window
    }

    /// Oldest first.
    #[must_use]
    pub fn headers(&self) -> &[Header] {
        self.list.all()
    }

    /// How many messages at the end came after the last model call.
    #[must_use]
    pub const fn unread(&self) -> usize {
        self.list.unread()
    }

    /// The most tokens of a packet, if bounded.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        self.size.map(|size| u64::from(size.get()))
    }

    /// The size in the unit in which its messages are estimated.
    #[must_use]
    pub fn room(&self) -> Option<u64> {
        self.size().map(|size| self.uncorrected(size))
    }

    /// The sum of what its messages were counted as.
    #[must_use]
    pub fn counted(&self) -> TokenCount {
        self.headers().iter().map(Header::counted).sum()
    }

    /// Upper bound on its tokens.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.counted().bound()
    }

    /// How much of its size is used: what its tokens probably are.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.corrected(self.counted().estimate())
    }

    /// An estimate as the reports of the provider correct it.
    #[must_use]
    pub fn corrected(&self, estimate: u64) -> u64 {
        self.calibration.as_ref().map_or(estimate, |calibration| calibration.corrected(estimate))
    }

    /// The estimate that is `tokens` when it is corrected.
    #[must_use]
    pub(crate) fn uncorrected(&self, tokens: u64) -> u64 {
        self.calibration.as_ref().map_or(tokens, |calibration| calibration.uncorrected(tokens))
    }

    /// Upper bound on the tokens of its whole packet for a model, of which the messages were counted as at most
    /// `counted`.
    pub(crate) fn bound_for(&self, model: &ModelName, counted: u64) -> u64 {
        self.calibration.as_ref().map_or(counted, |calibration| calibration.bound(model, counted))
    }

    /// Whether its counts are estimates.
    pub(crate) const fn is_estimated(&self) -> bool {
        self.calibration.is_some()
    }

    /// The count as its headers have it: exact unless counts are estimates.
    pub(crate) const fn count(&self, tokens: TokenCount) -> TokenCount {
        let counter = if self.is_estimated() { TokenCounter::Estimate } else { TokenCounter::Exact };
        counter.count(tokens)
    }

    /// A turn was requested, with at most `bound` tokens and all messages, or, if `None`, with less or other messages.
    pub(crate) fn asked(&mut self, bound: Option<u64>) {
        let estimate = self.counted().estimate();
        if let Some(calibration) = &mut self.calibration {
            calibration.asked(bound.map(|bound| TokenCount::new(bound, estimate)));
        }
    }

    /// The provider reported the input tokens of the latest turn.
    pub(crate) fn reported(&mut self, model: &ModelName, input: u64) {
        if let Some(calibration) = &mut self.calibration {
            calibration.reported(model, input);
        }
    }

    /// The same messages, measured by their bounds.
    #[must_use]
    pub fn by_bounds(&self) -> Self {
        let mut window = Self { calibration: None, ..self.clone() };
        window.list.all_mut().iter_mut().for_each(|header| header.estimate = header.tokens);
        window
    }

    fn shrunk(&mut self) {
        if let Some(calibration) = &mut self.calibration {
            calibration.shrunk();
        }
    }

    #[must_use]
    pub fn images(&self) -> usize {
        self.rare.as_ref().map_or(0, |rare| rare.images.len())
    }

    /// The tokens of each image of the message at `place`, in order.
    #[must_use]
    pub fn images_at(&self, place: usize) -> &[u32] {
        let Some(rare) = &self.rare else { return &[] };
        let range = self.image_places(place);
        rare.images.get(range).unwrap_or_default()
    }

    /// The range of a message's images among all images shown.
    fn image_places(&self, place: usize) -> Range<usize> {
        let count = |header: &Header| usize::from(header.images);
        let first = self.headers().iter().take(place).map(count).sum();
        first..first + self.headers().get(place).map_or(0, count)
    }

    #[must_use]
    pub fn used_by(&self, category: Category) -> u64 {
        let of = self.headers().iter().filter(|header| header.category == category);
        self.corrected(of.map(|header| u64::from(header.estimate)).sum())
    }

    /// What was left out so far, by category.
    pub fn left_out(&self) -> impl Iterator<Item = (Category, LeftOut)> {
        let left_out = self.rare.as_ref().map(|rare| rare.left_out).unwrap_or_default();
        Category::ALL.into_iter().zip(left_out).filter(|(_, left)| left.messages > 0)
    }

    /// What a cut would leave out, by category.
    #[must_use]
    pub fn dropped(&self, cut: &Cut) -> Vec<(Category, LeftOut)> {
        let mut left_out = [LeftOut::default(); Category::COUNT];
        for (_, header) in (0..).zip(self.headers()).filter(|(place, _)| cut.drops(*place)) {
            left_out[header.category.place()].add(header);
        }
        Category::ALL.into_iter().zip(left_out).filter(|(_, left)| left.messages > 0).collect()
    }

    /// What can still be shared with another agent: context messages that it does not have, and for a briefing the
    /// first message.
    #[must_use]
    pub fn news(&self, for_whom: &Self, from: &AgentId, news: SharedContent) -> Vec<Span> {
        let teller = for_whom.teller(from).map(|(_, teller)| teller);
        let (known, knows_system) = teller.map_or((0, false), |teller| (teller.contexts, teller.system));
        let kept = self.headers().iter().filter(|header| header.is_own_context()).count() as u32;
        let gone = self.context_messages() - kept;
        let mut skip = known.saturating_sub(gone);
        let mut spans = Vec::new();
        for (place, header) in (0..).zip(self.headers()) {
            let is_own = header.is_own_context();
            let is_news = if place == 0 {
                news == SharedContent::Briefing && !knows_system
            } else {
                is_own && skip == 0
            };
            skip = skip.saturating_sub(u32::from(is_own));
            if is_news {
                Span::join(&mut spans, place, place + 1);
            }
        }
        spans
    }

    /// The last `turns` turns, without the current one.
    #[must_use]
    pub fn turns(&self, turns: u32) -> Vec<Span> {
        if !self.is_open() {
            return Vec::new();
        }
        let said = |header: &Header| {
            header.category == Category::Dialog && matches!(header.tie, Tie::Asks | Tie::Free)
        };
        let headers = self.headers();
        let mut places = (0..headers.len()).rev().filter(|place| said(&headers[*place]));
        let to = places.next().unwrap_or(1);
        let from = places.take(turns as usize).last().unwrap_or(to);
        // Messages to the agent just before the first of these turns belong to it.
        let letters = headers[..from].iter().rev();
        let from = from - letters.take_while(|header| header.tie == Tie::Letter).count();
        let span = Span { from: from as u32, to: to as u32 };
        if from < to && turns > 0 { vec![span] } else { Vec::new() }
    }

    /// The positions of what another agent shared before.
    #[must_use]
    pub fn shared_places(&self, from: &AgentId) -> Vec<Span> {
        let Some((place, _)) = self.teller(from) else { return Vec::new() };
        let mut spans = Vec::new();
        for (at, header) in (0..).zip(self.headers()) {
            if header.tie == Tie::Shared(place) {
                Span::join(&mut spans, at, at + 1);
            }
        }
        spans
    }

    /// What replaces a cut if a summary was requested; `None` if none was.
    #[must_use]
    pub fn summary(&self, cut: &Cut) -> Option<Summary> {
        self.rare.as_ref()?.summary.as_ref().map(|draft| draft.tells(cut))
    }

    /// The number of its own context messages, dropped ones included.
    pub(crate) fn context_messages(&self) -> u32 {
        let gone = self.rare.as_ref().map_or(0, |rare| rare.left_out[Category::Context.place()].messages);
        gone + self.headers().iter().filter(|header| header.is_own_context()).count() as u32
    }

    /// The index of an agent among those that shared something.
    pub(crate) fn teller_place(&self, from: &AgentId) -> Option<u8> {
        self.teller(from).map(|(place, _)| place)
    }

    fn teller(&self, from: &AgentId) -> Option<(u8, &ContextSharer)> {
        let tellers = &self.rare.as_ref()?.tellers;
        (0..=u8::MAX).zip(tellers).find(|(_, teller)| teller.agent == *from)
    }

    /// Sets the size of its packets and the tokens of its first message.
    pub(crate) fn bound(&mut self, size: u64, first: TokenCount) {
        self.begin_with(first);
        self.size = NonZeroU32::new(u32::try_from(size).unwrap_or(u32::MAX));
    }

    /// Sets the tokens of its first message.
    pub(crate) fn begin_with(&mut self, tokens: TokenCount) {
        let tokens = self.count(tokens);
        if let Some(header) = self.list.all_mut().first_mut() {
            *header = header.with_tokens(tokens);
        }
    }

    /// Whether its agent takes turns. Without turns nothing is stored.
    pub(crate) fn is_open(&self) -> bool {
        !self.headers().is_empty()
    }

    /// Begins with the first message. `definition` says whether counts are estimates.
    pub(crate) fn open(&mut self, tokens: TokenCount, definition: &Definition) {
        self.calibration = match definition.counter() {
            TokenCounter::Exact => None,
            TokenCounter::Estimate => Some(Box::default()),
        };
        self.list.push_read(Header::new(self.count(tokens), Category::System, Tie::Free));
    }

    fn counts(&self, header: Header) -> Header {
        header.with_tokens(self.count(header.counted()))
    }

    /// Adds an unread message.
    pub fn push(&mut self, header: Header) {
        self.push_with(header, &[]);
    }

    /// Adds an unread message with images of these sizes.
    pub fn push_with(&mut self, header: Header, images: &[u32]) {
        if self.is_open() {
            let place = self.list.push(self.counts(header).with_images(images.len()));
            self.note_images(place, images);
        }
    }

    pub(crate) fn said(&mut self, header: Header) {
        if self.is_open() {
            self.list.push_read(self.counts(header));
        }
    }

    /// Adds a tool's result. `rank` is the number of results for tools that were requested before it.
    pub(crate) fn answer(&mut self, rank: usize, header: Header, images: &[u32]) {
        if self.is_open() {
            let place = self.list.answer(rank, self.counts(header).with_images(images.len()));
            self.note_images(place, images);
        }
    }

    /// Marks everything as read.
    pub const fn read(&mut self) {
        self.list.read();
    }

    /// Whether a result of a tool or child is unread.
    pub(crate) fn reads_results(&self) -> bool {
        self.list.unread_messages().iter().any(|header| header.category == Category::Output)
    }

    /// Whether its agent, which has completed, can be given another task.
    pub(crate) fn can_go_on(&self) -> bool {
        self.list.can_go_on()
    }

    /// Removes the message that had this position in the inbox.
    pub(crate) fn take_letter(&mut self, in_inbox: usize) {
        if let Some(place) = self.list.letter(in_inbox) {
            self.blank(place, u8::MAX);
            self.list.take_unread(place);
        }
    }

    pub(crate) fn summary_asked(&mut self, spans: &[Span]) {
        self.rare().summary = Some(Box::new(Draft::from_spans(spans.to_vec())));
    }

    pub(crate) fn summary_ended(&mut self, end: Summary) {
        if let Some(draft) = self.summary_mut() {
            draft.ended(end);
        }
    }

    /// The summary was used or is no longer needed.
    pub(crate) fn forget_summary(&mut self) {
        if let Some(rare) = &mut self.rare {
            rare.summary = None;
        }
    }

    fn summary_mut(&mut self) -> Option<&mut Draft> {
        self.rare.as_mut()?.summary.as_deref_mut()
    }

    pub fn cut(&mut self, cut: &Cut) {
        self.forget_summary();
        for (category, left) in self.dropped(cut) {
            let all = &mut self.rare().left_out[category.place()];
            all.messages = all.messages.saturating_add(left.messages);
            all.tokens = all.tokens.saturating_add(left.tokens);
        }
        self.remove(&cut.drop);
        for blank in &cut.blank {
            self.blank(blank.at as usize, blank.images);
        }
        if cut.folded > 0 {
            let folded = self.count(TokenCount::of_bytes(cut.folded as usize));
            self.list.fold(Header::new(folded, Category::Context, Tie::Folded));
        }
    }

    /// Adds headers that another agent shares. `as_is` makes them its own conversation. While tools run, they stay
    /// unread until the results arrive. `around` is what the line before each of the others has. Trees of older rules
    /// (`is_old`) compute the position again for each message, so what a fork brings beside an inbox message is
    /// ordered differently from what the model reads.
    pub(crate) fn receive(
        &mut self,
        from: &AgentId,
        window: &Self,
        spans: &[Span],
        as_is: bool,
        around: TokenCount,
        is_old: bool,
    ) {
        if !self.is_open() {
            return;
        }
        let (contexts, system) = (window.context_messages(), Span::has(spans, 0));
        let tie = if as_is { None } else { Some(Tie::Shared(self.note_teller(from, contexts, system))) };
        let known = Span::places(spans).filter_map(|place| Some((place, window.headers().get(place)?)));
        let mut to = self.list.share_to();
        for (place, header) in known {
            let header = match tie {
                Some(tie) => {
                    let tokens = header.counted().plus(around);
                    self.counts(Header::new(tokens, Category::Context, tie))
                }
                None => header.forked(),
            };
            let images = window.images_at(place);
            if is_old && to == ShareTo::Read {
                to = self.list.share_to();
            }
            let place = self.list.receive(header.with_images(images.len()), to);
            self.note_images(place, images);
        }
    }

    pub(crate) fn remove(&mut self, spans: &[Span]) {
        if let Some(draft) = self.summary_mut().filter(|_| !spans.is_empty()) {
            draft.spoil();
        }
        if !spans.is_empty() {
            self.shrunk();
        }
        if self.images() > 0 {
            Span::places(spans).for_each(|place| self.blank(place, u8::MAX));
        }
        self.list.remove(spans);
    }

    fn note_teller(&mut self, from: &AgentId, contexts: u32, system: bool) -> u8 {
        let tellers = &mut self.rare().tellers;
        let place = tellers.iter().position(|teller| teller.agent == *from).unwrap_or(tellers.len());
        match tellers.get_mut(place) {
            Some(teller) => (teller.contexts, teller.system) = (contexts, teller.system || system),
            None => tellers.push(ContextSharer { agent: from.clone(), contexts, system }),
        }
        u8::try_from(place).unwrap_or(u8::MAX)
    }

    fn rare(&mut self) -> &mut RareParts {
        self.rare.get_or_insert_default()
    }

    /// Records the images of the new message at `place`.
    fn note_images(&mut self, place: usize, images: &[u32]) {
        if !images.is_empty() {
            let first = self.image_places(place).start;
            self.rare().images.splice(first..first, images.iter().copied());
        }
    }

    /// Turns the oldest images of a message into placeholders and frees their tokens.
    fn blank(&mut self, place: usize, images: u8) {
        let Range { start, end } = self.image_places(place);
        if start < end {
            self.shrunk();
        }
        let Some(header) = self.list.all_mut().get_mut(place).filter(|header| header.images > 0) else {
            return;
        };
        let Some(rare) = &mut self.rare else { return };
        let end = end.min(start + usize::from(images)).min(rare.images.len());
        for tokens in rare.images.drain(start.min(end)..end) {
            *header = header.with_tokens(header.counted().minus(TokenCount::exact(tokens.into())));
            header.images -= 1;
        }
    }
}

impl Listed for Header {
    fn kind(&self) -> ListKind {
        match self.tie {
            Tie::Free if self.category == Category::System => ListKind::First,
            Tie::Free | Tie::Shared(_) => ListKind::Other,
            Tie::Letter => ListKind::Letter,
            Tie::Asks => ListKind::Asks,
            Tie::Answers => ListKind::Answers,
            Tie::Folded => ListKind::Folded,
        }
    }
}

impl ListStore for Headers {
    type Message = Header;

    fn all(&self) -> &[Header] {
        self
    }

    fn all_mut(&mut self) -> &mut [Header] {
        self
    }

    fn insert(&mut self, place: usize, header: Header) {
        Self::insert(self, place, header);
    }

    fn retain(&mut self, mut stays: impl FnMut() -> bool) {
        Self::retain(self, |_| stays());
    }
}
