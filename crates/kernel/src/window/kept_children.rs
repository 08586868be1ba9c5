//! What is kept of completed children while their parent may need it: the knowledge of those that can get another
//! task, and the answers of those that can be compared. Both end with the parent. The world keeps headers by agent
//! index, the contexts keep texts by agent name; this code decides for both which children are kept.

use std::collections::BTreeMap;

use crate::primitives::{AnswerDigest, limit};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptChildren<A, F> {
    /// By parent, in the order of their ends.
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
    /// Keeps what a child knew. If there are too many, the one that ended first is dropped.
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

    /// Drops everything kept for a parent that has ended.
    pub(crate) fn forget(&mut self, parent: &A) {
        self.finished.remove(parent);
        self.answers.remove(parent);
    }
}
