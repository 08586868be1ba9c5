//! How many of the awaited agents must end, and how.

use serde::{Deserialize, Serialize};

/// How many of several agents must end before a wait is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitNeed {
    #[default]
    All,
    Any,
    /// This many completed.
    First(u32),
    /// More than half completed with the same answer.
    Majority,
}

/// An ended agent, as far as a [`WaitNeed`] is concerned: whether it completed, and its answer or a digest of it.
pub struct Ballot<A> {
    pub is_completed: bool,
    /// Equal values count as the same answer.
    pub answer: Option<A>,
}

impl WaitNeed {
    /// Whether the ended ones are enough. Always true once all `asked` agents have ended.
    pub fn is_met<A: PartialEq>(self, asked: usize, ended: &[Ballot<A>]) -> bool {
        ended.len() >= asked || self.is_had(asked, ended)
    }

    /// Whether the need itself is satisfied.
    pub fn is_had<A: PartialEq>(self, asked: usize, ended: &[Ballot<A>]) -> bool {
        let completed = || ended.iter().filter(|ballot| ballot.is_completed);
        match self {
            Self::All => ended.len() >= asked,
            Self::Any => !ended.is_empty(),
            Self::First(count) => completed().count() >= count as usize,
            Self::Majority => {
                let answers: Vec<&A> = completed().filter_map(|ballot| ballot.answer.as_ref()).collect();
                let same = |answer: &&A| answers.iter().filter(|other| *other == answer).count();
                answers.iter().map(same).max().is_some_and(|votes| votes * 2 > asked)
            }
        }
    }
}
