//! Shared values: their texts, as a fold over the events. The world keeps their headers; a long value is a blob, of
//! which head and tail are here.

use std::collections::BTreeMap;

use super::offload;
use crate::primitives::{Actor, BlobHash, BlobRef, Body, Time, TokenCount, ValueName, limit};
use crate::record::{Event, ValueForm};

/// A value as compact JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedText(String);

impl SharedText {
    /// Removes insignificant white space. `None` if it is not JSON.
    #[must_use]
    pub fn from_json(json: &str) -> Option<Self> {
        let value: serde_json::Value = serde_json::from_str(json).ok()?;
        Some(Self(value.to_string()))
    }

    /// The value that a call of `write_context` has in its arguments, if they are well formed.
    #[must_use]
    pub fn in_args(args: &str) -> Option<Self> {
        let super::WriteContextArgs { value, .. } = serde_json::from_str(args).ok()?;
        Self::from_json(value.get())
    }

    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.0.len()
    }

    /// The tokens of what an agent is shown of it.
    pub fn counted(&self, tokens: &dyn Fn(&str) -> TokenCount) -> TokenCount {
        match self.ends() {
            Some((head, tail)) => tokens(head).plus(tokens(tail)),
            None => tokens(&self.0),
        }
    }

    /// As an event holds it: a long one as head and tail, with a reference to [`blob`](Self::blob).
    #[must_use]
    pub fn body(&self, tokens: Option<TokenCount>) -> Body {
        let Some((head, tail)) = self.ends() else { return Body { tokens, ..Body::text(self.0.clone()) } };
        let rest = BlobRef { hash: BlobHash::digest(self.0.as_bytes()), bytes: self.0.len() as u64 };
        let body = Body { tokens, ..Body::text([head, tail].concat()) };
        body.with_rest(rest, u32::try_from(head.len()).ok())
    }

    /// What has to be stored beside the event, if the value is long.
    #[must_use]
    pub fn blob(self) -> Option<Vec<u8>> {
        self.ends().is_some().then(|| self.0.into_bytes())
    }

    fn ends(&self) -> Option<(&str, &str)> {
        offload::preview_beyond(&self.0, limit::TEXT_BYTES_MAX)
    }
}

/// A value at one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedValue {
    /// The first is 1.
    pub version: u64,
    pub by: Actor,
    /// When it was written.
    pub at: Time,
    /// Its JSON; a long one is a blob.
    pub body: Body,
    /// Whether the blob is a text, and the value a JSON string with it.
    pub form: ValueForm,
}

/// The values of a tree, each at its last version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedValues {
    values: BTreeMap<ValueName, SharedValue>,
    is_cleared: bool,
}

impl SharedValues {
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::ValueWritten { name, value, form, by, version, at } => {
                let (version, by, at, form) = (*version, by.clone(), *at, *form);
                let value = SharedValue { version, by, at, body: value.clone(), form };
                self.values.insert(name.clone(), value);
            }
            Event::ValuesCleared { .. } => self.is_cleared = true,
            // When the tree that is continued ended, its values were cleared.
            Event::TreeBranched(branched) if branched.continuation.is_some() => *self = Self::default(),
            Event::TreeBranched(_) => self.is_cleared = false,
            _ => {}
        }
    }

    #[must_use]
    pub fn find(&self, name: &str) -> Option<&SharedValue> {
        self.values.get(name)
    }

    pub fn all(&self) -> impl Iterator<Item = (&ValueName, &SharedValue)> {
        self.values.iter()
    }

    /// Whether the root has ended, so no agent can read them any more.
    #[must_use]
    pub const fn is_cleared(&self) -> bool {
        self.is_cleared
    }
}

impl SharedValue {
    /// Of its JSON.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.body.rest().map_or(self.body.text.len() as u64, |rest| rest.bytes)
    }
}
