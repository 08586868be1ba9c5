//! What is kept of children that ended beyond their totals, as long as their parent may still want it: how much those
//! knew that can be given another task, and what those answered that can be compared. Both are bounded, and both go
//! with the parent.

pub(super) use crate::words::AnswerDigest;
pub(crate) use crate::words::answer_digest;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::window::Window;
use crate::words::{Body, limit};
use crate::world::{AgentIx, Charter};

/// A child that completed and can be given another task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// What was fixed at its birth.
    pub charter: Arc<Charter>,
    /// What it knew, by its headers.
    pub window: Window,
}

/// What is kept of children that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    /// By parent, in the order in which they ended.
    finished: BTreeMap<AgentIx, Vec<(AgentIx, Finished)>>,
    /// By parent: what children answered that it may compare.
    answers: BTreeMap<AgentIx, BTreeMap<AgentIx, AnswerDigest>>,
    /// By parent: children that a ceiling stopped, since that was raised last.
    lost: BTreeMap<AgentIx, Vec<AgentIx>>,
}

impl Kept {
    /// Keeps what a child knew; for that the one goes that ended first, if there are too many.
    pub(super) fn finish(&mut self, parent: AgentIx, child: AgentIx, finished: Finished) {
        let all = self.finished.entry(parent).or_default();
        if all.len() == limit::FINISHED_KEPT_MAX {
            all.remove(0);
        }
        all.push((child, finished));
    }

    pub(super) fn finished(&self, parent: AgentIx, child: AgentIx) -> Option<&Finished> {
        let (_, finished) = self.finished.get(&parent)?.iter().find(|(of, _)| *of == child)?;
        Some(finished)
    }

    /// A child said this, and asked for nothing.
    pub(super) fn answered(&mut self, parent: AgentIx, child: AgentIx, body: &Body) {
        self.answers.entry(parent).or_default().insert(child, answer_digest(body));
    }

    pub(super) fn answer(&self, parent: AgentIx, child: AgentIx) -> Option<&AnswerDigest> {
        self.answers.get(&parent)?.get(&child)
    }

    pub(super) fn lost(&self, parent: AgentIx) -> &[AgentIx] {
        self.lost.get(&parent).map_or(&[], Vec::as_slice)
    }

    pub(super) fn lose(&mut self, parent: AgentIx, child: AgentIx) {
        self.lost.entry(parent).or_default().push(child);
    }

    pub(super) fn forget_lost(&mut self, parent: AgentIx) {
        self.lost.remove(&parent);
    }

    /// An agent is over, and so is what it may have wanted of others.
    pub(super) fn forget_children(&mut self, parent: AgentIx) {
        self.finished.remove(&parent);
        self.answers.remove(&parent);
        self.lost.remove(&parent);
    }
}
