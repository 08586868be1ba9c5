//! The arena: every agent of a tree by index and by id. Living agents are linked to parent and siblings; an ended one
//! is unlinked and keeps only its totals.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::budget::{AccountIx, Amounts, Shortfall, SparseAmounts};
use crate::definition::{Caps, OnLow, Recursion, Repeats, WrapUp};
use crate::primitives::{
    AgentId, AnswerDigest, Body, ByName, CallId, Category, ModelName, RoleName, Seq, ThreadId, Time,
    TokenCount, answer_digest, digest, limit, make_room,
};
use crate::record::{Attachment, Due, ExitKind, Header, Spawned, Tie};
use crate::window::{Inbox, KeptChildren, Room, Window};
use crate::world::{AgentClocks, AgentState, Phase, Progress};

/// The index of an agent in its tree. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentIx(NonZeroU32);

impl AgentIx {
    const FIRST: Self = Self(NonZeroU32::MIN);

    /// The tree's limits keep `count` far below the last index.
    fn after(count: usize) -> Self {
        Self(u32::try_from(count).map_or(NonZeroU32::MAX, |count| NonZeroU32::MIN.saturating_add(count)))
    }

    pub(crate) const fn is_among_first(self, count: u32) -> bool {
        self.0.get() <= count
    }

    const fn place(self) -> usize {
        self.0.get() as usize - 1
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// What was fixed at spawn; siblings share it if it is the same.
    pub terms: Arc<AgentTerms>,
    pub attachment: Attachment,
    pub(crate) family: FamilyLinks,
    pub account: AccountIx,
    pub state: AgentState,
    /// Whether it and everything below it start no new effects.
    pub paused: bool,
    /// Its open calls, in the order of their requests.
    pub open: SmallVec<[CallId; 2]>,
    pub running: u32,
    pub(crate) kinds: Kinds,
    pub progress: Progress,
    pub inbox: Inbox,
    pub(crate) clocks: Option<Box<AgentClocks>>,
    /// The ceiling at which the last model call of its program was given up.
    pub(crate) given_up: Option<Box<(AgentId, Shortfall)>>,
}

/// Counts of an agent's open calls by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kinds {
    /// Waits that it requested itself.
    pub(crate) waits: u16,
    /// Those that answer no tool call of its model.
    pub(crate) unasked: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedMessage {
    pub seq: Seq,
    pub room: Room,
    pub category: Category,
}

impl Agent {
    /// Adds a message to its inbox.
    pub(crate) fn take(&mut self, QueuedMessage { seq, room, category }: QueuedMessage) {
        self.inbox.push(seq);
        self.progress.read(room.tokens);
        let tokens = room.tokens.plus(limit::MESSAGE_TOKENS);
        self.progress.window.push_with(Header::new(tokens, category, Tie::Letter), &room.images);
    }

    /// It goes on in another tree, alone.
    pub(crate) fn revive(&mut self, account: AccountIx, due: &Due) {
        self.account = account;
        (self.state, self.paused, self.given_up) = (AgentState::Live, false, None);
        (self.open, self.running, self.kinds, self.family) = Default::default();
        self.clocks = AgentClocks::from_due(due);
        self.progress.revive();
    }

    /// Removes a message that it must not read twice.
    pub(crate) fn remove_message(&mut self, letter: Seq) {
        if let Some(place) = self.inbox.take(letter) {
            self.progress.window.take_letter(place);
        }
    }
}

/// What is fixed about an agent at spawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentTerms {
    pub role: RoleName,
    pub model: ModelName,
    pub thread: ThreadId,
    pub caps: Arc<Caps>,
    /// What happens when a model call does not fit the budget.
    pub on_low: OnLow,
    /// Whether it gets a last call before it runs out of budget.
    pub wrap_up: WrapUp,
    pub repeats: Repeats,
    pub depth: u32,
    /// Whether it talks to a person until it hands back.
    pub talks: bool,
    /// A digest of its goal, if its role may recurse: detects a descendant with the same goal.
    pub goal: Option<Box<[u8; 16]>>,
    /// Rules 2 only. Later rules use clocks.
    pub deadline: Option<Time>,
}

impl AgentTerms {
    /// Whether a new sibling would have the same terms.
    fn is_of(&self, spawned: &Spawned) -> bool {
        self.goal.is_none()
            && self.role == spawned.role
            && self.model == spawned.model
            && self.thread == spawned.thread
            && self.deadline == spawned.due.deadline
            && self.on_low == spawned.on_low
            && self.talks == spawned.talks
            && self.wrap_up == spawned.wrap_up
            && self.repeats == spawned.repeats
            && *self.caps == spawned.caps
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FamilyLinks {
    pub(crate) parent: Option<AgentIx>,
    pub(crate) first_child: Option<AgentIx>,
    pub(crate) next: Option<AgentIx>,
    pub(crate) previous: Option<AgentIx>,
    pub(crate) children_live: u32,
}

/// What is kept of an ended agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub role: RoleName,
    pub parent: Option<AgentIx>,
    pub depth: u32,
    pub exit: ExitKind,
    /// The event with the details.
    pub at: Seq,
    /// The tokens of its result or progress.
    pub tokens: TokenCount,
    /// What it and everything below it used.
    pub spent: Amounts,
    /// The part of it that no provider reported.
    pub presumed: SparseAmounts,
}

impl Ended {
    #[must_use]
    pub fn is_completed(&self) -> bool {
        self.exit == ExitKind::Completed
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Slot {
    Living(Box<Agent>),
    Ended(Box<Ended>),
}

/// A completed child that can be given another task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    pub terms: Arc<AgentTerms>,
    /// Its messages, as headers.
    pub window: Window,
}

#[derive(Clone, Debug, Default)]
pub struct Agents {
    slots: ByName<AgentId, Slot>,
    kept: KeptChildren<AgentIx, Finished>,
    /// By parent: children stopped by a ceiling since the ceiling was last raised.
    lost: BTreeMap<AgentIx, Vec<AgentIx>>,
}

impl PartialEq for Agents {
    /// Spawn order also counts.
    fn eq(&self, other: &Self) -> bool {
        self.kept == other.kept && self.lost == other.lost && self.slots.iter().eq(other.slots.iter())
    }
}

impl Eq for Agents {}

/// What spawning an agent needs besides the event.
pub(crate) struct NewAgent {
    pub(crate) parent: Option<AgentIx>,
    pub(crate) account: AccountIx,
    pub(crate) recursive: Recursion,
}

impl Agents {
    /// Living and ended.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// `None` before the tree has started.
    #[must_use]
    pub fn root(&self) -> Option<AgentIx> {
        if self.slots.is_empty() { None } else { Some(AgentIx::FIRST) }
    }

    #[must_use]
    pub fn find(&self, id: &AgentId) -> Option<AgentIx> {
        self.slots.get_index_of(id).map(AgentIx::after)
    }

    /// In spawn order.
    pub fn all(&self) -> impl Iterator<Item = AgentIx> {
        (0..self.slots.len()).map(AgentIx::after)
    }

    #[must_use]
    pub fn id(&self, ix: AgentIx) -> &AgentId {
        match self.slots.get_index(ix.place()) {
            Some((id, _)) => id,
            None => unreachable!("a place is only handed out for an agent that exists"),
        }
    }

    #[must_use]
    pub fn living(&self, ix: AgentIx) -> Option<&Agent> {
        match self.slots.get_index(ix.place()) {
            Some((_, Slot::Living(agent))) => Some(agent),
            Some((_, Slot::Ended(_))) | None => None,
        }
    }

    #[must_use]
    pub fn ended(&self, ix: AgentIx) -> Option<&Ended> {
        match self.slots.get_index(ix.place()) {
            Some((_, Slot::Ended(ended))) => Some(ended),
            Some((_, Slot::Living(_))) | None => None,
        }
    }

    /// What a completed child knew, if its parent may give it another task.
    #[must_use]
    pub fn finished(&self, parent: AgentIx, child: AgentIx) -> Option<&Finished> {
        self.kept.finished(&parent, &child)
    }

    /// A digest of a child's answer, if its parent may compare it.
    #[must_use]
    pub fn answer(&self, ix: AgentIx) -> Option<&AnswerDigest> {
        self.kept.answer(&self.parent(ix)?, &ix)
    }

    /// A living agent's children stopped by a ceiling since the ceiling was last raised.
    #[must_use]
    pub fn lost(&self, parent: AgentIx) -> &[AgentIx] {
        self.lost.get(&parent).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn lose(&mut self, parent: AgentIx, child: AgentIx) {
        self.lost.entry(parent).or_default().push(child);
    }

    /// The agent may assign the tasks of such children again.
    pub(crate) fn forget_lost(&mut self, parent: AgentIx) {
        self.lost.remove(&parent);
    }

    /// A child gave an answer without tool calls. Answers that no call of the parent waits for are compared with
    /// each other; one that ends a call is part of that call's result.
    pub(crate) fn answered(&mut self, ix: AgentIx, body: &Body) {
        let agent = self.agent(ix);
        match (agent.family.parent, agent.attachment) {
            (Some(parent), Attachment::Detached) => self.kept.answered(parent, ix, answer_digest(body)),
            (Some(parent), Attachment::Call { ask: Some(ask), .. }) => {
                self.agent_mut(parent).progress.child_answered(ask, body);
            }
            (
                _,
                Attachment::Call { .. }
                | Attachment::Root
                | Attachment::Detached
                | Attachment::Step { .. }
                | Attachment::Disowned,
            ) => {}
        }
    }

    /// Keeps an agent's window for another task. The agent is about to be retired.
    pub(crate) fn finish(&mut self, ix: AgentIx, parent: AgentIx) {
        let agent = self.agent_mut(ix);
        let window = std::mem::take(&mut agent.progress.window);
        let finished = Finished { terms: Arc::clone(&agent.terms), window };
        self.kept.finish(parent, ix, finished);
    }

    /// The parent, living or ended.
    #[must_use]
    pub fn parent(&self, ix: AgentIx) -> Option<AgentIx> {
        self.living(ix)
            .map_or_else(|| self.ended(ix).and_then(|ended| ended.parent), |agent| agent.family.parent)
    }

    /// Nearest first.
    pub fn above(&self, ix: AgentIx) -> impl Iterator<Item = AgentIx> {
        std::iter::successors(self.parent(ix), |ix| self.parent(*ix))
    }

    /// Living ones, newest first.
    pub fn children(&self, ix: AgentIx) -> impl Iterator<Item = AgentIx> {
        let first = self.living(ix).and_then(|agent| agent.family.first_child);
        std::iter::successors(first, |ix| self.living(*ix).and_then(|agent| agent.family.next))
    }

    /// `ix` and every living agent below it, parents before their children.
    #[must_use]
    pub fn subtree(&self, ix: AgentIx) -> Vec<AgentIx> {
        let mut found = vec![ix];
        let mut at = 0;
        while let Some(ix) = found.get(at).copied() {
            found.extend(self.children(ix));
            at += 1;
        }
        found
    }

    /// Ids from the root down.
    #[must_use]
    pub fn path(&self, ix: AgentIx) -> Vec<AgentId> {
        let mut path: Vec<AgentId> = self.above(ix).map(|ix| self.id(ix).clone()).collect();
        path.reverse();
        path.push(self.id(ix).clone());
        path
    }

    pub(crate) fn insert(&mut self, spawned: &Spawned, birth: &NewAgent) -> AgentIx {
        let NewAgent { parent, account, recursive } = *birth;
        let ix = AgentIx::after(self.slots.len());
        let sibling = parent.and_then(|ix| self.living(ix)).and_then(|parent| parent.family.first_child);
        let agent = Agent {
            terms: self.terms_of(spawned, parent, recursive),
            attachment: spawned.attachment,
            family: FamilyLinks { parent, next: sibling, ..FamilyLinks::default() },
            account,
            state: AgentState::Live,
            paused: false,
            open: SmallVec::new(),
            running: 0,
            kinds: Kinds::default(),
            progress: Progress::default(),
            inbox: Inbox::default(),
            clocks: AgentClocks::from_due(&spawned.due),
            given_up: None,
        };
        if let Some(sibling) = sibling {
            self.agent_mut(sibling).family.previous = Some(ix);
        }
        if let Some(parent) = parent {
            let family = &mut self.agent_mut(parent).family;
            family.first_child = Some(ix);
            family.children_live += 1;
        }
        make_room(&mut self.slots);
        self.slots.insert(spawned.agent.clone(), Slot::Living(Box::new(agent)));
        ix
    }

    pub(crate) fn retire(&mut self, ix: AgentIx, ended: Ended) {
        let agent = self.agent_mut(ix);
        assert!(agent.state.phase().may_become(Phase::Ended), "the end of an agent is final");
        let family = std::mem::take(&mut agent.family);
        self.kept.forget(&ix);
        self.lost.remove(&ix);
        if let Some(previous) = family.previous {
            self.agent_mut(previous).family.next = family.next;
        }
        if let Some(next) = family.next {
            self.agent_mut(next).family.previous = family.previous;
        }
        if let Some(parent) = family.parent {
            let parent = &mut self.agent_mut(parent).family;
            parent.children_live -= 1;
            if family.previous.is_none() {
                parent.first_child = family.next;
            }
        }
        if let Some((_, slot)) = self.slots.get_index_mut(ix.place()) {
            *slot = Slot::Ended(Box::new(ended));
        }
    }

    /// The root lives again, in a tree that continues this one.
    pub(crate) fn revive_root(&mut self, agent: Box<Agent>) {
        if let Some((_, slot)) = self.slots.get_index_mut(AgentIx::FIRST.place()) {
            *slot = Slot::Living(agent);
        }
    }

    /// Panics if it has ended: that is a bug, and stops this tree only.
    #[must_use]
    pub fn agent(&self, ix: AgentIx) -> &Agent {
        match self.living(ix) {
            Some(agent) => agent,
            None => unreachable!("agent {} is not living", self.id(ix)),
        }
    }

    pub(crate) fn agent_mut(&mut self, ix: AgentIx) -> &mut Agent {
        match self.slots.get_index_mut(ix.place()) {
            Some((_, Slot::Living(agent))) => agent,
            Some((id, Slot::Ended(_))) => unreachable!("agent {id} is not living"),
            None => unreachable!("a place is only handed out for an agent that exists"),
        }
    }

    /// Siblings of one role mostly have the same terms, and a child often has its parent's rights.
    fn terms_of(&self, spawned: &Spawned, parent: Option<AgentIx>, recursive: Recursion) -> Arc<AgentTerms> {
        let parent = parent.and_then(|ix| self.living(ix));
        let sibling = parent.and_then(|parent| self.living(parent.family.first_child?));
        let recurses = recursive == Recursion::Allowed;
        if let Some(sibling) = sibling.filter(|sibling| !recurses && sibling.terms.is_of(spawned)) {
            return Arc::clone(&sibling.terms);
        }
        let shared =
            [sibling, parent].into_iter().flatten().find(|relative| *relative.terms.caps == spawned.caps);
        Arc::new(AgentTerms {
            role: spawned.role.clone(),
            model: spawned.model.clone(),
            thread: spawned.thread.clone(),
            caps: shared
                .map_or_else(|| Arc::new(spawned.caps.clone()), |relative| Arc::clone(&relative.terms.caps)),
            on_low: spawned.on_low.clone(),
            wrap_up: spawned.wrap_up,
            repeats: spawned.repeats,
            depth: parent.map_or(0, |parent| parent.terms.depth + 1),
            talks: spawned.talks,
            goal: recurses.then(|| Box::new(digest(&spawned.goal))),
            deadline: spawned.due.deadline,
        })
    }
}
