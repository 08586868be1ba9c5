//! The headers of a tree's shared values. Their texts are in the journal.

use std::collections::BTreeMap;

use crate::context::shown_tokens;
use crate::primitives::{Actor, BlobRef, Body, Time, TokenCount, ValueName};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedStore {
    values: BTreeMap<ValueName, SharedHeader>,
    bytes: u64,
}

/// What the world knows of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedHeader {
    /// The first is 1.
    pub version: u64,
    pub by: Actor,
    pub at: Time,
    /// Of its JSON.
    pub bytes: u64,
    /// The whole of it, if it is long.
    pub rest: Option<BlobRef>,
    /// Of what an agent is shown of it.
    pub(crate) tokens: TokenCount,
}

impl SharedStore {
    #[must_use]
    pub fn find(&self, name: &ValueName) -> Option<&SharedHeader> {
        self.values.get(name)
    }

    pub fn all(&self) -> impl Iterator<Item = (&ValueName, &SharedHeader)> {
        self.values.iter()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Of all values.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn write(&mut self, name: &ValueName, value: &Body, by: &Actor, version: u64, at: Time) {
        let bytes = bytes_of(value);
        let (by, rest, tokens) = (by.clone(), value.rest().cloned(), shown_tokens(value));
        let header = SharedHeader { version, by, at, bytes, rest, tokens };
        let before = self.values.insert(name.clone(), header).map_or(0, |before| before.bytes);
        self.bytes = self.bytes + bytes - before;
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// The size of a value's JSON.
pub(crate) fn bytes_of(value: &Body) -> u64 {
    value.rest().map_or(value.text.len() as u64, |rest| rest.bytes)
}
