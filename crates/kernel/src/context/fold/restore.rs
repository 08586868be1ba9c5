//! Rollback: a context becomes what it was at a checkpoint. The event does not contain the texts, and a fold does not
//! keep what windows drop. So the caller says in advance which checkpoints later events return to, and only what
//! those need is kept. A fold without that information reports the event at which it lacks something.

use std::collections::BTreeMap;

use super::super::agent_context::{All, Unread};
use super::super::message::Texts;
use super::super::text::ROLLED_BACK;
use super::{Contexts, Reader};
use crate::primitives::{AgentId, CallId, Seq};
use crate::record::{AgentSnapshot, Event, Restored};
use crate::window::MessageList;

/// An agent's context at one moment, with its texts. Shared with the context that it was taken from.
#[derive(Clone, Debug)]
pub struct ContextSnapshot {
    agent: AgentId,
    list: MessageList<Texts>,
    unread: Option<Box<Unread>>,
    all: Option<Box<All>>,
    open: Vec<(CallId, u32)>,
}

impl ContextSnapshot {
    /// Open calls for tools of its last answer, with the tool's index.
    #[must_use]
    pub fn open(&self) -> &[(CallId, u32)] {
        &self.open
    }

    /// Whether these texts belong to an agent in that state.
    #[must_use]
    pub fn fits(&self, agent: &AgentId, standing: &AgentSnapshot) -> bool {
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

/// The checkpoints that later events return to: position, agent, and how often.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places(BTreeMap<Seq, BTreeMap<AgentId, u32>>);

impl Places {
    /// Records the checkpoint that an event returns to, if it does.
    pub fn note(&mut self, event: &Event) {
        if let Event::ContextRestored(restored) = event {
            *self.0.entry(restored.at).or_default().entry(restored.from.clone()).or_default() += 1;
        }
    }

    #[must_use]
    pub fn has(&self, seq: Seq) -> bool {
        self.0.contains_key(&seq)
    }

    /// The agents that later events return to this event.
    pub fn whose(&self, seq: Seq) -> impl Iterator<Item = &AgentId> {
        self.0.get(&seq).into_iter().flat_map(BTreeMap::keys)
    }
}

/// What a fold keeps for rollbacks. Most trees have none.
#[derive(Clone, Debug, Default)]
pub(super) struct Recall {
    places: Places,
    /// Agents of the checkpoints made by the last events.
    made: Vec<AgentId>,
    /// Snapshots, and how often each is still needed.
    kept: BTreeMap<(Seq, AgentId), (ContextSnapshot, u32)>,
    /// The first event whose snapshot is missing or does not match.
    lacks: Option<Seq>,
}

impl Contexts {
    /// Keeps snapshots at these checkpoints for later events that return to them.
    pub fn keep(&mut self, places: Places) {
        self.recall().places = places;
    }

    /// Supplies the snapshot for the next event, which returns to it.
    pub fn hand(&mut self, at: Seq, known: ContextSnapshot) {
        self.recall().kept.insert((at, known.agent.clone()), (known, 1));
    }

    /// Drops a supplied snapshot that was not used.
    pub fn take_back(&mut self, at: Seq) {
        self.recall().kept.retain(|(kept, _), _| *kept != at);
    }

    /// The first event whose snapshot this fold did not keep or that does not match. From there on its agent's
    /// context is wrong: fold again and [`keep`](Self::keep) the checkpoint first.
    #[must_use]
    pub fn lacks(&self) -> Option<Seq> {
        self.recall.as_ref().and_then(|recall| recall.lacks)
    }

    #[must_use]
    pub fn kept(&self, at: Seq, agent: &AgentId) -> Option<&ContextSnapshot> {
        self.recall.as_ref()?.kept.get(&(at, agent.clone())).map(|(known, _)| known)
    }

    /// A snapshot of a living agent's current context.
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

    /// Takes snapshots at a checkpoint if a later event returns to it. A checkpoint is valid at the end of its batch.
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
            self.result(&restored.agent, *ask, ROLLED_BACK.under(self.briefs.rules()).to_owned(), true, None);
        }
    }

    fn recall(&mut self) -> &mut Recall {
        self.recall.get_or_insert_default()
    }
}

impl Recall {
    /// Drops the snapshot after its last use.
    fn take(&mut self, at: Seq, agent: &AgentId) -> Option<ContextSnapshot> {
        let place = (at, agent.clone());
        let (known, uses) = self.kept.get_mut(&place)?;
        *uses -= 1;
        if *uses > 0 { Some(known.clone()) } else { self.kept.remove(&place).map(|(known, _)| known) }
    }
}
