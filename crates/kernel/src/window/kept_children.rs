//! What is kept of children that completed, as long as their parent may still want it: what those knew that can be given
//! another task, and what those answered that can be compared. Both go with the parent. The world keeps headers so, by the
//! places of agents, and the contexts keep texts, by their names: which children are kept is decided here for both.

use std::collections::BTreeMap;

use crate::words::{AnswerDigest, limit};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptChildren<A, F> {
    /// By parent, in the order in which they ended.
    finished: BTreeMap<A, Vec<(A, F)>>,
    /// By parent.
    answers: BTreeMap<A, BTreeMap<A, AnswerDigest>>,
}

impl<A, F> Default for KeptChildren<A, F> {
    fn default() -> Self {
        Self { finished: BTreeMap::new(), answers: BTreeMap::new() }
    }
}

impl<A: Ord, F> KeptChildren<A, F> {
    /// Keeps what a child knew; for that the one goes that ended first, if there are too many.
    pub(crate) fn finish(&mut self, parent: A, child: A, finished: F) {
        let all = self.finished.entry(parent).or_default();
        if all.len() == limit::FINISHED_KEPT_MAX {
            all.remove(0);
        }
        all.push((child, finished));
    }

    pub(crate) fn finished(&self, parent: &A, child: &A) -> Option<&F> {
        let (_, finished) = self.finished.get(parent)?.iter().find(|(of, _)| of == child)?;
        Some(finished)
    }

    pub(crate) fn answered(&mut self, parent: A, child: A, answer: AnswerDigest) {
        self.answers.entry(parent).or_default().insert(child, answer);
    }

    pub(crate) fn answer(&self, parent: &A, child: &A) -> Option<&AnswerDigest> {
        self.answers.get(parent)?.get(child)
    }

    /// A parent is over, and so is what it may have wanted of its children.
    pub(crate) fn forget(&mut self, parent: &A) {
        self.finished.remove(parent);
        self.answers.remove(parent);
    }
}
