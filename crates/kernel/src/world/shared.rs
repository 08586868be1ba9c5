//! The headers of a tree's shared values. Their texts are in the journal, except those that graphs may be given.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::context::shown_tokens;
use crate::definition::{Builtin, Definition, InputSource};
use crate::primitives::{Actor, BlobRef, Body, Time, TokenCount, ValueName};
use crate::record::{NamedValue, ValueForm};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedStore {
    values: BTreeMap<ValueName, SharedHeader>,
    bytes: u64,
    inputs: SharedInputs,
}

/// The values that graphs of the tree may be given.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SharedInputs {
    /// The tree's own graph names them.
    Named(BTreeSet<ValueName>),
    /// An agent may write a graph, which names what it likes.
    Any,
}

impl Default for SharedInputs {
    fn default() -> Self {
        Self::Named(BTreeSet::new())
    }
}

impl SharedInputs {
    fn of(definition: &Definition) -> Self {
        let writes_graphs = Builtin::RunPipeline.as_str();
        if definition.roles.values().any(|role| role.caps.tools.has(writes_graphs)) {
            return Self::Any;
        }
        let steps = definition.graph.iter().flat_map(|graph| graph.steps());
        let inputs = steps.flat_map(|(_, _, step)| &step.inputs);
        let shared = inputs.filter(|input| input.source == InputSource::Shared);
        Self::Named(shared.map(|input| input.name.clone()).collect())
    }

    fn has(&self, name: &ValueName) -> bool {
        match self {
            Self::Named(names) => names.contains(name),
            Self::Any => true,
        }
    }
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
    /// As events hold it, where a graph may be given it.
    pub(crate) value: Option<Arc<NamedValue>>,
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

    /// A tree starts.
    pub(super) fn start(&mut self, definition: &Definition) {
        self.inputs = SharedInputs::of(definition);
    }

    pub(super) fn write(
        &mut self,
        name: &ValueName,
        value: &Body,
        form: ValueForm,
        by: &Actor,
        version: u64,
        at: Time,
    ) {
        let bytes = bytes_of(value);
        let (by, rest, tokens) = (by.clone(), value.rest().cloned(), shown_tokens(value));
        let kept = || Arc::new(NamedValue { form, body: beginning(value) });
        let value = self.inputs.has(name).then(kept);
        let header = SharedHeader { version, by, at, bytes, rest, tokens, value };
        let before = self.values.insert(name.clone(), header).map_or(0, |before| before.bytes);
        self.bytes = self.bytes + bytes - before;
    }

    pub(super) fn clear(&mut self) {
        *self = Self { inputs: std::mem::take(&mut self.inputs), ..Self::default() };
    }
}

/// A value as steps of graphs are given it: the end of a long one is left out.
fn beginning(value: &Body) -> Body {
    match (value.rest(), value.ends()) {
        (Some(rest), Some((head, _))) => Body::text(head).with_rest(rest.clone(), None),
        _ => Body { tokens: None, ..value.clone() },
    }
}

/// The size of a value's JSON.
pub(crate) fn bytes_of(value: &Body) -> u64 {
    value.rest().map_or(value.text.len() as u64, |rest| rest.bytes)
}
