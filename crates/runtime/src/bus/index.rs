//! An index of watchers by what they ask for, so an event's cost does not depend on watchers that ask for
//! something else.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use spinney_kernel::primitives::Topic;

use super::line::Line;
use super::{Overflow, TracedEvent, Watch};

/// Live lines, each under one key.
#[derive(Default)]
pub(super) struct Index {
    lines: BTreeMap<Key<'static>, BTreeMap<u64, Arc<Line>>>,
    /// Lines that the tree waits for.
    patient: BTreeMap<u64, Arc<Line>>,
    drawn: u64,
}

/// The most selective filter of a watcher.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key<'a> {
    All,
    Agent(Cow<'a, str>),
    Topic(Cow<'a, str>),
    Kind(Cow<'a, str>),
}

impl Key<'static> {
    fn from_watch(watch: &Watch) -> Self {
        let own = |text: &str| Cow::Owned(text.to_owned());
        match (&watch.agent, &watch.topic, &watch.kind) {
            (Some(agent), _, _) => Self::Agent(own(agent.as_str())),
            (None, Some(topic), _) => Self::Topic(own(topic.as_str())),
            (None, None, Some(kind)) => Self::Kind(own(kind)),
            (None, None, None) => Self::All,
        }
    }
}

impl Index {
    /// Number of keys, including those without a line, so a leak shows.
    pub(super) fn len(&self) -> usize {
        self.lines.values().map(|lines| lines.len().max(1)).sum()
    }

    /// Adds a line and returns its number.
    pub(super) fn insert(&mut self, line: &Arc<Line>) -> u64 {
        self.drawn += 1;
        self.lines.entry(Key::from_watch(&line.watch)).or_default().insert(self.drawn, Arc::clone(line));
        if let Overflow::Wait(_) = line.watch.overflow {
            self.patient.insert(self.drawn, Arc::clone(line));
        }
        self.drawn
    }

    pub(super) fn remove(&mut self, id: u64, watch: &Watch) {
        let key = Key::from_watch(watch);
        let Some(lines) = self.lines.get_mut(&key) else { return };
        lines.remove(&id);
        if lines.is_empty() {
            self.lines.remove(&key);
        }
        self.patient.remove(&id);
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Line>> {
        self.lines.values().flat_map(BTreeMap::values)
    }

    /// Removes every line. Numbers are never reused.
    pub(super) fn clear(&mut self) {
        *self = Self { drawn: self.drawn, ..Self::default() };
    }

    pub(super) fn wanting<'a>(
        &'a self,
        traced: &'a TracedEvent,
    ) -> impl Iterator<Item = (u64, &'a Arc<Line>)> {
        let lines: &'a BTreeMap<Key<'a>, _> = &self.lines;
        let agent = traced.context.agent.as_ref().map(|agent| Key::Agent(Cow::Borrowed(agent.as_str())));
        [Key::All, Key::Kind(Cow::Borrowed(traced.recorded.event.as_str()))]
            .into_iter()
            .chain(agent)
            .chain(above(&traced.context.topic).map(|topic| Key::Topic(Cow::Borrowed(topic))))
            .filter_map(move |key| lines.get(&key))
            .flatten()
            .filter(|(_, line)| line.watch.wants(traced))
            .map(|(id, line)| (*id, line))
    }

    /// The full lines that the tree waits for, with the time limit of each.
    pub(super) fn holding(&self) -> impl Iterator<Item = (u64, &Arc<Line>, Duration)> {
        self.patient.iter().filter_map(|(id, line)| match line.watch.overflow {
            Overflow::Wait(patience) if line.is_full() => Some((*id, line, patience)),
            Overflow::Wait(_) | Overflow::DropDeltas | Overflow::Disconnect => None,
        })
    }
}

/// A topic and all topics that cover it.
fn above(topic: &Topic) -> impl Iterator<Item = &str> {
    let text = topic.as_str();
    text.match_indices('.').map(|(at, _)| &text[..at]).chain([text])
}
