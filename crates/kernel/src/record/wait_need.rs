//! How many of the agents that somebody waits for have to end, and how.

use serde::{Deserialize, Serialize};

/// How many of several agents must have ended before the one who asked goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitNeed {
    #[default]
    All,
    Any,
    /// So many that completed.
    First(u32),
    /// More than half of them, completed and with the same answer.
    Majority,
}

/// An agent that has ended, as far as it matters for a [`WaitNeed`]: whether it completed, and its answer or a digest of it.
pub struct Ballot<A> {
    pub is_completed: bool,
    /// What it answered; two that are equal agree.
    pub answer: Option<A>,
}

impl WaitNeed {
    /// Whether those of `asked` agents that have ended are enough. When all have, there is nothing to wait for.
    pub fn is_met<A: PartialEq>(self, asked: usize, ended: &[Ballot<A>]) -> bool {
        ended.len() >= asked || self.is_had(asked, ended)
    }

    /// Whether what was needed is there.
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
