//! The common form of all formats: values with the place where each was written.

use std::collections::BTreeMap;

use serde_json::Number;

use super::error::TextPosition;
use super::value_error::ValueError;

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) place: TextPosition,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// A key without a value, or `null`.
    Empty,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    /// In the order of the file. Keys are unique.
    Map(Vec<(Key, Node)>),
}

#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) place: TextPosition,
    pub(super) text: String,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'a> {
    Key(&'a str),
    Item(usize),
}

/// A [`Step`] that outlives its file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum OwnedStep {
    Key(String),
    Item(usize),
}

impl Node {
    /// Removes the value at the end of `path`, with its key. Returns the place of the map that had it, and its key.
    pub(super) fn remove(&mut self, path: &[OwnedStep]) -> Option<(TextPosition, String)> {
        let (last, above) = path.split_last()?;
        let node = self.inner_mut(above)?;
        match (last, &mut node.kind) {
            (OwnedStep::Key(text), Kind::Map(entries)) => {
                entries.retain(|(key, _)| key.text != *text);
                Some((node.place, text.clone()))
            }
            (OwnedStep::Item(at), Kind::List(items)) if *at < items.len() => {
                items.remove(*at);
                None
            }
            (OwnedStep::Key(_) | OwnedStep::Item(_), _) => None,
        }
    }

    pub(super) fn inner_mut(&mut self, path: &[OwnedStep]) -> Option<&mut Self> {
        let mut node = self;
        for step in path {
            let inner = match (step, &mut node.kind) {
                (OwnedStep::Key(text), Kind::Map(entries)) => {
                    entries.iter_mut().find(|(key, _)| key.text == *text).map(|(_, value)| value)
                }
                (OwnedStep::Item(at), Kind::List(items)) => items.get_mut(*at),
                (OwnedStep::Key(_) | OwnedStep::Item(_), _) => None,
            };
            node = inner?;
        }
        Some(node)
    }

    /// How many values a list or map has.
    pub(super) fn len_at(&self, path: &[Step<'_>]) -> usize {
        match &self.follow(path).kind {
            Kind::List(items) => items.len(),
            Kind::Map(entries) => entries.len(),
            Kind::Empty | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => 0,
        }
    }

    /// The place of the value at the end of `path`, or of the last existing one on the way.
    pub(super) fn place_of(&self, path: &[Step<'_>]) -> TextPosition {
        self.follow(path).place
    }

    /// The place of the last key of `path`, or of the value that should have it.
    pub(super) fn place_of_key(&self, path: &[Step<'_>]) -> TextPosition {
        let Some((Step::Key(last), above)) = path.split_last() else { return self.place_of(path) };
        let inner = self.follow(above);
        let Kind::Map(entries) = &inner.kind else { return inner.place };
        entries.iter().find(|(key, _)| key.text == *last).map_or(inner.place, |(key, _)| key.place)
    }

    /// The place of `text` in the list at the end of `path`.
    pub(super) fn place_of_item(&self, path: &[Step<'_>], text: &str) -> TextPosition {
        let list = self.follow(path);
        let Kind::List(items) = &list.kind else { return list.place };
        let item = items.iter().find(|item| matches!(&item.kind, Kind::Text(item) if item == text));
        item.map_or(list.place, |item| item.place)
    }

    pub(super) fn follow(&self, path: &[Step<'_>]) -> &Self {
        let mut node = self;
        for step in path {
            let inner = match (step, &node.kind) {
                (Step::Key(text), Kind::Map(entries)) => {
                    entries.iter().find(|(key, _)| key.text == *text).map(|(_, value)| value)
                }
                (Step::Item(at), Kind::List(items)) => items.get(*at),
                (Step::Key(_) | Step::Item(_), _) => None,
            };
            let Some(inner) = inner else { break };
            node = inner;
        }
        node
    }
}

/// Fails if a key occurs twice.
pub(super) fn map(entries: Vec<(Key, Node)>) -> Result<Kind, ValueError> {
    let mut seen = BTreeMap::new();
    for (key, _) in &entries {
        if let Some(first) = seen.insert(key.text.as_str(), key.place) {
            let message = format!("duplicate key `{}`: first on line {}", key.text, first.line);
            return Err(ValueError::new(message).at(key.place));
        }
    }
    Ok(Kind::Map(entries))
}
