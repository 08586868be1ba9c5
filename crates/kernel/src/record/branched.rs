//! A tree that begins with the events of another one: a branch, or the continuation of a tree that had ended.

use serde::{Deserialize, Serialize};

use crate::budget::Terms;
use crate::primitives::{Seq, TreeId};
use crate::record::Due;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branched {
    pub tree: TreeId,
    pub from: TreeId,
    /// The last event that both trees share.
    pub at: Seq,
    /// Initially its origin's name.
    pub name: String,
    /// The terms of its root's account. Every account starts over: what the origin spent is not spent here.
    pub terms: Terms,
    /// Added to every due time.
    #[serde(default)]
    pub later_ms: u64,
    /// Set if the origin had ended: the new tree's root goes on where that one ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<Box<TreeContinuation>>,
}

/// What lets the root of a tree that had ended go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TreeContinuation {
    /// The root's clocks, with the time that was left.
    pub due: Due,
    /// Whether the root waits for a person after each answer from now on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_kept: bool,
}

/// How the root of a tree that is continued behaves after its answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContinuedAs {
    /// As before.
    #[default]
    Before,
    /// It waits for a person after each.
    Conversation,
}
