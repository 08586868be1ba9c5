//! Going back: a context becomes what one was at a checkpoint. The texts of then are not in the event, and a fold does
//! not keep what windows have let go; so whoever folds says before which checkpoints later events go back to, and only
//! what those need is kept on the way. A fold that was not told so says at which event it lacks something.

use std::collections::BTreeMap;

use super::super::known::{All, Unread};
use super::super::message::Texts;
use super::super::text::ROLLED_BACK;
use super::{Contexts, Reader};
use crate::record::{Event, Restored, Standing};
use crate::window::MessageList;
use crate::words::{AgentId, CallId, Seq};

/// What an agent knew at one moment, with its texts. Shared with the context that it was taken from.
#[derive(Clone, Debug)]
pub struct ContextSnapshot {
    agent: AgentId,
    list: MessageList<Texts>,
    unread: Option<Box<Unread>>,
    all: Option<Box<All>>,
    open: Vec<(CallId, u32)>,
}

impl ContextSnapshot {
    /// The calls that were to answer tools that its last answer asked for, and which of them.
    #[must_use]
    pub fn open(&self) -> &[(CallId, u32)] {
        &self.open
    }

    /// Whether these are the texts of an agent that stood so.
    #[must_use]
    pub fn fits(&self, agent: &AgentId, standing: &Standing) -> bool {
        let window = &standing.window;
        let read = self.list.read_messages();
        let categories = read.iter().map(|message| message.category());
        self.agent == *agent
            && self.list.all().len() == window.headers.len()
            && self.list.unread() == window.unread as usize
            && categories.eq(window.headers.iter().take(read.len()).map(|header| header.category))
            && self.open == standing.open
    }
}

/// The checkpoints of a tree that later events go back to, by where they are and whose, and how often.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places(BTreeMap<Seq, BTreeMap<AgentId, u32>>);

impl Places {
    /// Notes where an event goes back to, if it does.
    pub fn note(&mut self, event: &Event) {
        if let Event::ContextRestored(restored) = event {
            *self.0.entry(restored.at).or_default().entry(restored.from.clone()).or_default() += 1;
        }
    }

    /// Whether a later event goes back to this one.
    #[must_use]
    pub fn has(&self, seq: Seq) -> bool {
        self.0.contains_key(&seq)
    }

    /// Whose contexts later events go back to, as they were at this one.
    pub fn whose(&self, seq: Seq) -> impl Iterator<Item = &AgentId> {
        self.0.get(&seq).into_iter().flat_map(BTreeMap::keys)
    }
}

/// What a fold knows about going back. Most trees never do.
#[derive(Clone, Debug, Default)]
pub(super) struct Recall {
    /// What is to be kept.
    places: Places,
    /// Whose checkpoints the last events made.
    made: Vec<AgentId>,
    /// What was kept, and how often it will be needed yet.
    kept: BTreeMap<(Seq, AgentId), (ContextSnapshot, u32)>,
    /// The first event that went back to what was not kept, or was not so.
    lacks: Option<Seq>,
}

impl Contexts {
    /// Keeps what agents know at these checkpoints, for later events that go back there.
    pub fn keep(&mut self, places: Places) {
        self.recall().places = places;
    }

    /// Takes what an agent knew at a checkpoint: the next event goes back there.
    pub fn hand(&mut self, at: Seq, known: ContextSnapshot) {
        self.recall().kept.insert((at, known.agent.clone()), (known, 1));
    }

    /// Lets go of what was handed over in vain.
    pub fn take_back(&mut self, at: Seq) {
        self.recall().kept.retain(|(kept, _), _| *kept != at);
    }

    /// The first event that went back to what this fold did not keep, or to what was not so. From there on the context
    /// of its agent is not what it should be: fold again, and say before what is to be [kept](Self::keep).
    #[must_use]
    pub fn lacks(&self) -> Option<Seq> {
        self.recall.as_ref().and_then(|recall| recall.lacks)
    }

    /// What was kept of a checkpoint.
    #[must_use]
    pub fn kept(&self, at: Seq, agent: &AgentId) -> Option<&ContextSnapshot> {
        self.recall.as_ref()?.kept.get(&(at, agent.clone())).map(|(known, _)| known)
    }

    /// What a living agent knows now.
    #[must_use]
    pub fn known(&self, agent: &AgentId) -> Option<ContextSnapshot> {
        let context = self.agents.get(agent)?;
        Some(ContextSnapshot {
            agent: agent.clone(),
            list: context.list.clone(),
            unread: context.unread.clone(),
            all: context.all.clone(),
            open: self.open.asks_of(agent).collect(),
        })
    }

    /// What agents know at a checkpoint is kept if a later event goes back there. One that is followed by others of its
    /// batch is where the last of them is.
    pub(super) fn keep_known(&mut self, event: &Event) {
        let seq = self.seq;
        let Some(recall) = &mut self.recall else { return };
        let Event::CheckpointMade { agent, .. } = event else { return recall.made.clear() };
        recall.made.push(agent.clone());
        let Some(whose) = recall.places.0.get(&seq) else { return };
        let whose = whose.iter().filter(|(agent, _)| recall.made.contains(agent));
        for (agent, uses) in whose.map(|(agent, uses)| (agent.clone(), *uses)).collect::<Vec<_>>() {
            if let Some(known) = self.known(&agent) {
                self.recall().kept.insert((seq, agent), (known, uses));
            }
        }
    }

    /// A context is what one was at a checkpoint.
    pub(super) fn restored(&mut self, restored: &Restored) {
        match self
            .recall()
            .take(restored.at, &restored.from)
            .filter(|known| known.fits(&restored.from, &restored.standing))
        {
            Some(known) => self.go_back(restored, known),
            None => {
                let seq = self.seq;
                self.recall().lacks.get_or_insert(seq);
            }
        }
    }

    fn go_back(&mut self, restored: &Restored, known: ContextSnapshot) {
        for child in &restored.cancelled {
            self.agents.get_mut(child).into_iter().for_each(|child| child.reader = Reader::Nobody);
        }
        self.summaries.remove(&restored.agent);
        self.last_calls.remove(&restored.agent);
        let Some(context) = self.agents.get_mut(&restored.agent) else { return };
        context.restore(known.list, known.unread, known.all);
        for ask in &restored.unanswered {
            self.result(&restored.agent, *ask, ROLLED_BACK.to_owned(), true, None);
        }
    }

    fn recall(&mut self) -> &mut Recall {
        self.recall.get_or_insert_default()
    }
}

impl Recall {
    /// What was kept of a checkpoint; after the last use it goes.
    fn take(&mut self, at: Seq, agent: &AgentId) -> Option<ContextSnapshot> {
        let place = (at, agent.clone());
        let (known, uses) = self.kept.get_mut(&place)?;
        *uses -= 1;
        if *uses > 0 { Some(known.clone()) } else { self.kept.remove(&place).map(|(known, _)| known) }
    }
}
