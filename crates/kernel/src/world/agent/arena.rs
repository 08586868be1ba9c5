//! The arena: every agent of a tree by place and by id. Living agents are linked to parent and siblings; an ended
//! one is unlinked and keeps only its totals.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::budget::{AccountIx, Amounts};
use crate::definition::{Caps, OnLow, Recursion, WrapUp};
use crate::record::{Attachment, ExitKind, Header, Spawned, Tie};
use crate::window::{Inbox, KeptChildren, Room, Window};
use crate::words::{
    AgentId, AnswerDigest, Body, ByName, CallId, Category, ModelName, RoleName, Seq, ThreadId, Time,
    answer_digest, digest, limit, make_room,
};
use crate::world::{AgentClocks, AgentState, Phase, Progress};

/// The place of an agent in its tree. Never used again for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentIx(NonZeroU32);

impl AgentIx {
    const FIRST: Self = Self(NonZeroU32::MIN);

    /// The place after `count` others. A tree is bounded far below the last one.
    fn after(count: usize) -> Self {
        Self(u32::try_from(count).map_or(NonZeroU32::MAX, |count| NonZeroU32::MIN.saturating_add(count)))
    }

    /// Whether it is one of the first so many.
    pub(crate) const fn is_among_first(self, count: u32) -> bool {
        self.0.get() <= count
    }

    const fn place(self) -> usize {
        self.0.get() as usize - 1
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// What was fixed at its birth; siblings share it where it is the same.
    pub charter: Arc<Charter>,
    /// How its result reaches its parent.
    pub attachment: Attachment,
    /// Who is around it.
    pub(crate) kin: Kin,
    pub account: AccountIx,
    /// Where it is in its life.
    pub state: AgentState,
    /// Whether it, and so everything below, starts no further effect.
    pub paused: bool,
    /// Its calls that have not ended, in the order they were asked.
    pub open: SmallVec<[CallId; 2]>,
    /// How many of them run.
    pub running: u32,
    /// How many of them are of a kind.
    pub(crate) kinds: Kinds,
    /// How far its turns have come.
    pub progress: Progress,
    /// Messages it has not read.
    pub inbox: Inbox,
    /// Its clocks, if it has any.
    pub(crate) clocks: Option<Box<AgentClocks>>,
}

/// How many open calls of an agent are of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kinds {
    /// Waits that it asked for by itself.
    pub(crate) waits: u16,
    /// Those that end no tool that its model asked for.
    pub(crate) unasked: u16,
}

/// A message that an agent has not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// The event that brought it.
    pub seq: Seq,
    /// How much room it takes.
    pub room: Room,
    /// What it is for.
    pub category: Category,
}

impl Agent {
    /// Puts a message into its inbox.
    pub(crate) fn take(&mut self, Letter { seq, room, category }: Letter) {
        self.inbox.push(seq);
        self.progress.read(room.tokens);
        let tokens = room.tokens.saturating_add(limit::MESSAGE_TOKENS);
        self.progress.window.push_with(Header::new(tokens, category, Tie::Letter), &room.images);
    }

    /// Takes a message out of its inbox that it need not read a second time.
    pub(crate) fn put_away(&mut self, letter: Seq) {
        if let Some(place) = self.inbox.take(letter) {
            self.progress.window.take_letter(place);
        }
    }
}

/// What was fixed at an agent's birth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charter {
    pub role: RoleName,
    /// The model it calls.
    pub model: ModelName,
    /// The conversation it belongs to.
    pub thread: ThreadId,
    /// What it may do.
    pub caps: Arc<Caps>,
    /// What happens when a model call cannot fit.
    pub on_low: OnLow,
    /// Whether it gets a last call before it ends for want of room.
    pub wrap_up: WrapUp,
    /// How far below the root it is.
    pub depth: u32,
    /// A digest of its goal, if its role may recurse: to tell whether a descendant is asked the same again.
    pub goal: Option<Box<[u8; 16]>>,
    /// When its time is up, under rules 2. Later rules have clocks.
    pub deadline: Option<Time>,
}

impl Charter {
    /// Whether this is the charter of such a sibling, too.
    fn is_of(&self, spawned: &Spawned) -> bool {
        self.goal.is_none()
            && self.role == spawned.role
            && self.model == spawned.model
            && self.thread == spawned.thread
            && self.deadline == spawned.due.deadline
            && self.on_low == spawned.on_low
            && self.wrap_up == spawned.wrap_up
            && *self.caps == spawned.caps
    }
}

/// Links to living relatives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kin {
    pub(crate) parent: Option<AgentIx>,
    pub(crate) first_child: Option<AgentIx>,
    pub(crate) next: Option<AgentIx>,
    pub(crate) previous: Option<AgentIx>,
    pub(crate) children_live: u32,
}

/// What is kept of an agent that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub role: RoleName,
    pub parent: Option<AgentIx>,
    /// How far below the root it was.
    pub depth: u32,
    /// How it ended.
    pub exit: ExitKind,
    /// The event that says all about it.
    pub at: Seq,
    /// The most tokens that what it has to show can have.
    pub tokens: u64,
    /// What it and everything below it used.
    pub spent: Amounts,
}

impl Ended {
    /// Whether it did what it was to do.
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

/// A child that completed and can be given another task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// What was fixed at its birth.
    pub charter: Arc<Charter>,
    /// What it knew, by its headers.
    pub window: Window,
}

/// Every agent of a tree.
#[derive(Clone, Debug, Default)]
pub struct Agents {
    slots: ByName<AgentId, Slot>,
    kept: KeptChildren<AgentIx, Finished>,
    /// By parent: children that a ceiling stopped, since that was raised last.
    lost: BTreeMap<AgentIx, Vec<AgentIx>>,
}

impl PartialEq for Agents {
    /// The order of birth counts too.
    fn eq(&self, other: &Self) -> bool {
        self.kept == other.kept && self.lost == other.lost && self.slots.iter().eq(other.slots.iter())
    }
}

impl Eq for Agents {}

/// What is known of an agent at its birth besides the event.
pub(crate) struct Birth {
    pub(crate) parent: Option<AgentIx>,
    pub(crate) account: AccountIx,
    pub(crate) recursive: Recursion,
}

impl Agents {
    /// How many there are or were.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there never was one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The root, if the tree has begun.
    #[must_use]
    pub fn root(&self) -> Option<AgentIx> {
        if self.slots.is_empty() { None } else { Some(AgentIx::FIRST) }
    }

    /// The agent called `id`.
    #[must_use]
    pub fn find(&self, id: &AgentId) -> Option<AgentIx> {
        self.slots.get_index_of(id).map(AgentIx::after)
    }

    /// Everyone, in order of birth.
    pub fn all(&self) -> impl Iterator<Item = AgentIx> {
        (0..self.slots.len()).map(AgentIx::after)
    }

    /// The id of the agent at `ix`.
    #[must_use]
    pub fn id(&self, ix: AgentIx) -> &AgentId {
        match self.slots.get_index(ix.place()) {
            Some((id, _)) => id,
            None => unreachable!("a place is only handed out for an agent that exists"),
        }
    }

    /// The living agent at `ix`.
    #[must_use]
    pub fn living(&self, ix: AgentIx) -> Option<&Agent> {
        match self.slots.get_index(ix.place()) {
            Some((_, Slot::Living(agent))) => Some(agent),
            Some((_, Slot::Ended(_))) | None => None,
        }
    }

    /// What is left of the agent at `ix`, if it ended.
    #[must_use]
    pub fn ended(&self, ix: AgentIx) -> Option<&Ended> {
        match self.slots.get_index(ix.place()) {
            Some((_, Slot::Ended(ended))) => Some(ended),
            Some((_, Slot::Living(_))) | None => None,
        }
    }

    /// What a child that completed knew, if its parent may give it another task.
    #[must_use]
    pub fn finished(&self, parent: AgentIx, child: AgentIx) -> Option<&Finished> {
        self.kept.finished(&parent, &child)
    }

    /// A digest of what a child answered, if its parent may compare it.
    #[must_use]
    pub fn answer(&self, ix: AgentIx) -> Option<&AnswerDigest> {
        self.kept.answer(&self.parent(ix)?, &ix)
    }

    /// The children of a living agent that a ceiling stopped, since that was raised last.
    #[must_use]
    pub fn lost(&self, parent: AgentIx) -> &[AgentIx] {
        self.lost.get(&parent).map_or(&[], Vec::as_slice)
    }

    /// A ceiling stopped a child.
    pub(crate) fn lose(&mut self, parent: AgentIx, child: AgentIx) {
        self.lost.entry(parent).or_default().push(child);
    }

    /// An agent may give the tasks of such children again.
    pub(crate) fn forget_lost(&mut self, parent: AgentIx) {
        self.lost.remove(&parent);
    }

    /// A child said this, and asked for nothing. Only what a parent does not wait for with a call of its own is compared.
    pub(crate) fn answered(&mut self, ix: AgentIx, body: &Body) {
        let agent = self.agent(ix);
        if let (Some(parent), Attachment::Detached) = (agent.kin.parent, agent.attachment) {
            self.kept.answered(parent, ix, answer_digest(body));
        }
    }

    /// Keeps what an agent knows, for another task. It is about to be retired.
    pub(crate) fn finish(&mut self, ix: AgentIx, parent: AgentIx) {
        let agent = self.agent_mut(ix);
        let window = std::mem::take(&mut agent.progress.window);
        let finished = Finished { charter: Arc::clone(&agent.charter), window };
        self.kept.finish(parent, ix, finished);
    }

    /// Who spawned the agent at `ix`, living or not.
    #[must_use]
    pub fn parent(&self, ix: AgentIx) -> Option<AgentIx> {
        self.living(ix)
            .map_or_else(|| self.ended(ix).and_then(|ended| ended.parent), |agent| agent.kin.parent)
    }

    /// The ancestors of `ix`, the nearest first.
    pub fn above(&self, ix: AgentIx) -> impl Iterator<Item = AgentIx> {
        std::iter::successors(self.parent(ix), |ix| self.parent(*ix))
    }

    /// The living children of `ix`, the newest first.
    pub fn children(&self, ix: AgentIx) -> impl Iterator<Item = AgentIx> {
        let first = self.living(ix).and_then(|agent| agent.kin.first_child);
        std::iter::successors(first, |ix| self.living(*ix).and_then(|agent| agent.kin.next))
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

    /// The path of `ix`: ids from the root down.
    #[must_use]
    pub fn path(&self, ix: AgentIx) -> Vec<AgentId> {
        let mut path: Vec<AgentId> = self.above(ix).map(|ix| self.id(ix).clone()).collect();
        path.reverse();
        path.push(self.id(ix).clone());
        path
    }

    /// Adds an agent and links it to its parent.
    pub(crate) fn insert(&mut self, spawned: &Spawned, birth: &Birth) -> AgentIx {
        let Birth { parent, account, recursive } = *birth;
        let ix = AgentIx::after(self.slots.len());
        let sibling = parent.and_then(|ix| self.living(ix)).and_then(|parent| parent.kin.first_child);
        let agent = Agent {
            charter: self.charter(spawned, parent, recursive),
            attachment: spawned.attachment,
            kin: Kin { parent, next: sibling, ..Kin::default() },
            account,
            state: AgentState::Live,
            paused: false,
            open: SmallVec::new(),
            running: 0,
            kinds: Kinds::default(),
            progress: Progress::default(),
            inbox: Inbox::default(),
            clocks: AgentClocks::of(spawned),
        };
        if let Some(sibling) = sibling {
            self.agent_mut(sibling).kin.previous = Some(ix);
        }
        if let Some(parent) = parent {
            let kin = &mut self.agent_mut(parent).kin;
            kin.first_child = Some(ix);
            kin.children_live += 1;
        }
        make_room(&mut self.slots);
        self.slots.insert(spawned.agent.clone(), Slot::Living(Box::new(agent)));
        ix
    }

    /// Unlinks an agent and keeps only `ended` of it.
    pub(crate) fn retire(&mut self, ix: AgentIx, ended: Ended) {
        let agent = self.agent_mut(ix);
        assert!(agent.state.phase().may_become(Phase::Ended), "the end of an agent is final");
        let kin = std::mem::take(&mut agent.kin);
        self.kept.forget(&ix);
        self.lost.remove(&ix);
        if let Some(previous) = kin.previous {
            self.agent_mut(previous).kin.next = kin.next;
        }
        if let Some(next) = kin.next {
            self.agent_mut(next).kin.previous = kin.previous;
        }
        if let Some(parent) = kin.parent {
            let parent = &mut self.agent_mut(parent).kin;
            parent.children_live -= 1;
            if kin.previous.is_none() {
                parent.first_child = kin.next;
            }
        }
        if let Some((_, slot)) = self.slots.get_index_mut(ix.place()) {
            *slot = Slot::Ended(Box::new(ended));
        }
    }

    /// The living agent at `ix`. Asking for one that ended is a bug, and stops this tree only.
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

    /// Siblings of one role mostly have the same charter, and a child often its parent's rights.
    fn charter(&self, spawned: &Spawned, parent: Option<AgentIx>, recursive: Recursion) -> Arc<Charter> {
        let parent = parent.and_then(|ix| self.living(ix));
        let sibling = parent.and_then(|parent| self.living(parent.kin.first_child?));
        let recurses = recursive == Recursion::Allowed;
        if let Some(sibling) = sibling.filter(|sibling| !recurses && sibling.charter.is_of(spawned)) {
            return Arc::clone(&sibling.charter);
        }
        let shared = [sibling, parent].into_iter().flatten().find(|kin| *kin.charter.caps == spawned.caps);
        Arc::new(Charter {
            role: spawned.role.clone(),
            model: spawned.model.clone(),
            thread: spawned.thread.clone(),
            caps: shared.map_or_else(|| Arc::new(spawned.caps.clone()), |kin| Arc::clone(&kin.charter.caps)),
            on_low: spawned.on_low.clone(),
            wrap_up: spawned.wrap_up,
            depth: parent.map_or(0, |parent| parent.charter.depth + 1),
            goal: recurses.then(|| Box::new(digest(&spawned.goal))),
            deadline: spawned.due.deadline,
        })
    }
}
