//! The id of an account: a number that is unique in its tree, and an optional name.

use std::fmt;

use spinney_kernel::primitives::AgentId;

/// Identifies one account of a tree. Shown as its name, or else as `a1`, `a2` and so on. Two accounts may share a
/// name; their ids still differ.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountId {
    number: u64,
    name: Option<AgentId>,
}

impl AccountId {
    pub(super) const fn new(number: u64, name: Option<AgentId>) -> Self {
        Self { number, name }
    }

    /// Its name, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_ref().map(AgentId::as_str)
    }
}

impl fmt::Display for AccountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name}"),
            None => write!(f, "a{}", self.number),
        }
    }
}
