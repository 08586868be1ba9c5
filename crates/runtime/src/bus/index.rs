//! Who wants what: lines by what they ask for, so that an event costs the same however many ask for something else.

use std::collections::BTreeMap;
use std::sync::Arc;

use spinney_kernel::id::{AgentId, Topic};

use super::line::Line;
use super::{Sight, Watch};

/// Live lines, each in one place.
#[derive(Default)]
pub(super) struct Index {
    lines: BTreeMap<Key, BTreeMap<u64, Arc<Line>>>,
    count: usize,
}

/// The narrowest thing that a watcher asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    All,
    Agent(AgentId),
    Topic(String),
    Kind(String),
}

impl Key {
    fn of(watch: &Watch) -> Self {
        match (&watch.agent, &watch.topic, &watch.kind) {
            (Some(agent), _, _) => Self::Agent(agent.clone()),
            (None, Some(topic), _) => Self::Topic(topic.as_str().to_owned()),
            (None, None, Some(kind)) => Self::Kind(kind.clone()),
            (None, None, None) => Self::All,
        }
    }
}

impl Index {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn insert(&mut self, id: u64, line: Arc<Line>) {
        if self.lines.entry(Key::of(&line.watch)).or_default().insert(id, line).is_none() {
            self.count += 1;
        }
    }

    pub(super) fn remove(&mut self, id: u64, watch: &Watch) {
        let key = Key::of(watch);
        let Some(lines) = self.lines.get_mut(&key) else { return };
        if lines.remove(&id).is_some() {
            self.count -= 1;
        }
        if lines.is_empty() {
            self.lines.remove(&key);
        }
    }

    /// Every line.
    pub(super) fn all(&self) -> impl Iterator<Item = (u64, &Arc<Line>)> {
        self.lines.values().flatten().map(|(id, line)| (*id, line))
    }

    /// Forgets every line.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The lines that want an event.
    pub(super) fn wanting<'a>(&'a self, sight: &'a Sight) -> impl Iterator<Item = (u64, &'a Arc<Line>)> {
        let mut keys = vec![Key::All, Key::Kind(sight.told.event.word().to_owned())];
        keys.extend(sight.hop.agent.clone().map(Key::Agent));
        keys.extend(above(&sight.hop.topic).map(|topic| Key::Topic(topic.to_owned())));
        keys.into_iter()
            .filter_map(|key| self.lines.get(&key))
            .flatten()
            .filter(move |(_, line)| line.watch.wants(sight))
            .map(|(id, line)| (*id, line))
    }
}

/// A topic and every one that covers it.
fn above(topic: &Topic) -> impl Iterator<Item = &str> {
    let text = topic.as_str();
    text.match_indices('.').map(|(at, _)| &text[..at]).chain([text])
}
