//! The initial context of a new agent: its window size, and what it is given beside its goal.

use super::thread;
use crate::context::{Goal, SharedAs, first_tokens, heard_tokens};
use crate::definition::{Definition, GivenMessage, Refusal, Role, Share, TokenCounter, check_size};
use crate::primitives::{Actor, AgentId, Category, Envelope, TokenCount, check_parts, limit};
use crate::record::{Clamped, Event, Span, Spawned};
use crate::rules::Draft;
use crate::window;
use crate::window::{SharedContent, Window};
use crate::world::{AgentIx, World};

/// Everything in it was checked.
pub(crate) struct Opening {
    size: Option<u64>,
    first: TokenCount,
    /// How the tree's windows count.
    counter: TokenCounter,
    clamped: Option<Clamped>,
    share: Share,
    messages: Vec<GivenMessage>,
    before: Option<(AgentId, Span)>,
}

/// The spawner's wishes.
pub(crate) struct Wish<'a> {
    pub(crate) goal: Goal<'a>,
    pub(crate) share: Option<Share>,
    pub(crate) messages: &'a [GivenMessage],
    pub(crate) window: Option<u64>,
    /// The completed child that the new agent continues, and the part of its window that it keeps.
    pub(crate) before: Option<(AgentId, Span)>,
}

impl Opening {
    /// Refuses what must not be shared, and a window too small for anything.
    pub(crate) fn new(
        draft: &Draft<'_>,
        parent: Option<AgentIx>,
        spawned: &Spawned,
        role: &Role,
        wish: &Wish<'_>,
    ) -> Result<Self, Refusal> {
        let Some(turns) = &role.turns else {
            return Ok(Self {
                size: None,
                first: TokenCount::ZERO,
                counter: TokenCounter::Exact,
                clamped: None,
                share: Share::Goal,
                messages: Vec::new(),
                before: None,
            });
        };
        let share = wish.share.unwrap_or(turns.share);
        share.check()?;
        wish.window.map_or(Ok(()), check_size)?;
        if wish.messages.len() > limit::SHARES_MAX {
            let (what, count) = ("messages".to_owned(), wish.messages.len());
            return Err(Refusal::TooMany { what, count, count_max: limit::SHARES_MAX });
        }
        check_parts(wish.messages.iter().flat_map(|given| given.body.parts()))?;
        for GivenMessage { category, body } in wish.messages {
            check_category(*category)?;
            body.checked_message()?;
        }
        let own = turns.window.as_ref().and_then(|window| window.size);
        let given = [own, wish.window];
        let size = window::effective(draft.definition(), &spawned.model, &spawned.on_low, given);
        let above = parent.and_then(|parent| draft.agent(parent).progress.window.size());
        let clamped = above.filter(|_| window::is_below(size, above)).map(|parent_size| {
            let is_told = parent.is_some_and(|parent| tells(draft, parent));
            Clamped { parent_size, is_told }
        });
        let counter = draft.definition().counter();
        let first = counter.count(first_tokens(draft.definition(), &spawned.caps, turns, wish.goal));
        let (messages, before) = (wish.messages.to_vec(), wish.before.clone());
        Ok(Self { size, first, counter, clamped, share, messages, before })
    }

    /// The root has no parent and no spawner.
    pub(crate) fn of_root(definition: &Definition, spawned: &Spawned, role: &Role, goal: Goal<'_>) -> Self {
        let counter = definition.counter();
        let (mut size, mut first) = (None, TokenCount::ZERO);
        if let Some(turns) = &role.turns {
            let own = turns.window.as_ref().and_then(|window| window.size);
            size = window::effective(definition, &spawned.model, &spawned.on_low, [own, None]);
            first = counter.count(first_tokens(definition, &spawned.caps, turns, goal));
        }
        let (share, messages) = (Share::Goal, Vec::new());
        Self { size, first, counter, clamped: None, share, messages, before: None }
    }

    /// The approximate tokens of its first packet: its window may cut some.
    pub(crate) fn packet_tokens(&self, world: &World, parent: Option<AgentIx>, agent: &AgentId) -> u64 {
        let of = |window: &Window, spans: &[Span], around: TokenCount| -> TokenCount {
            let headers = Span::places(spans).filter_map(|place| window.headers().get(place));
            headers.map(|header| header.counted().plus(around)).sum()
        };
        let shared = parent.map(|parent| {
            let (spans, as_is) = self.shared(world, parent);
            let around = SharedAs::under(world.rules()).tokens();
            let around = if as_is { TokenCount::ZERO } else { around };
            of(&world.agent(parent).progress.window, &spans, around)
        });
        let before = self.before.as_ref().and_then(|(from, span)| {
            let finished = world.agents().finished(parent?, world.agents().find(from)?)?;
            Some(of(&finished.window, &[*span], TokenCount::ZERO))
        });
        let letter = limit::SENDER_TOKENS.plus(limit::MESSAGE_TOKENS);
        let given = |given: &GivenMessage| heard_tokens(&given.body, &Envelope::default()).plus(letter);
        let messages: TokenCount = self.messages.iter().map(given).sum();
        let unspawned = world.unspawned().get(agent).into_iter().flatten();
        let unspawned: TokenCount =
            unspawned.map(|letter| letter.room.tokens.plus(limit::MESSAGE_TOKENS)).sum();
        let parts = [shared.unwrap_or_default(), before.unwrap_or_default(), messages, unspawned];
        let whole = self.counter.count(parts.into_iter().fold(self.first, TokenCount::plus));
        match self.size.filter(|size| *size < whole.estimate()) {
            Some(size) => {
                // What is left of the estimate has its share of the bound.
                let kept = u128::from(size / 100 * limit::TRIM_PERCENT) * u128::from(whole.bound());
                let kept = kept / u128::from(whole.estimate().max(1));
                u64::try_from(kept).unwrap_or(u64::MAX).max(self.first.bound())
            }
            None => whole.bound(),
        }
    }

    /// The parent's messages that the new agent gets, and whether they become its own conversation.
    fn shared(&self, world: &World, parent: AgentIx) -> (Vec<Span>, bool) {
        let (from, window) = (world.agent_id(parent), &world.agent(parent).progress.window);
        match self.share {
            Share::Goal | Share::Thread => (Vec::new(), false),
            Share::Briefing => (window.news(&Window::default(), from, SharedContent::Briefing), false),
            Share::Fork(turns) => (window.turns(turns), true),
        }
    }

    /// Records it for an agent that was just spawned.
    pub(crate) fn record(self, draft: &mut Draft<'_>, parent: Option<AgentIx>, agent: &AgentId, by: &Actor) {
        if let Some(size) = self.size {
            let (agent, first, clamped) = (agent.clone(), self.first, self.clamped);
            draft.record(Event::WindowSet { agent, size, first, clamped });
        }
        if let Some(parent) = parent {
            let from = draft.agent_id(parent).clone();
            let (spans, as_is) = self.shared(draft, parent);
            if !spans.is_empty() {
                let (to, replaces) = (agent.clone(), Vec::new());
                draft.record(Event::ContextShared { from, to, spans, as_is, replaces });
            }
            if self.share == Share::Thread {
                thread::join(draft, parent, agent);
            }
        }
        if let Some((from, span)) = self.before {
            let (to, spans, replaces) = (agent.clone(), vec![span], Vec::new());
            draft.record(Event::ContextShared { from, to, spans, as_is: true, replaces });
        }
        for GivenMessage { category, body } in self.messages {
            let envelope = Envelope { category, ..Envelope::default() };
            draft.record(Event::MessageSent { from: by.clone(), to: agent.clone(), body, envelope });
        }
    }
}

/// Whether an agent is notified when a child's window is smaller than its own.
fn tells(draft: &Draft<'_>, parent: AgentIx) -> bool {
    draft.turns_of(parent).is_some_and(|turns| turns.window.as_ref().is_none_or(|window| window.clamp_note))
}

/// Refuses a category that only the system may use.
pub(crate) fn check_category(category: Category) -> Result<(), Refusal> {
    match category {
        Category::Context | Category::Dialog => Ok(()),
        Category::System | Category::Output | Category::Error | Category::Internal | Category::Unknown => {
            Err(Refusal::CategoryNotAllowed { category })
        }
    }
}
