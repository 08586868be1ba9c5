//! Counts the votes of a group by its rule. It knows values, not who voted.

use std::sync::Arc;

use serde_json::Value;

use crate::definition::{Majority, Missing, OnTie, VoteRule};
use crate::primitives::Reworded;
use crate::record::{FailureCode, NamedValue, NodeEnd};

const NO_MAJORITY: Reworded = Reworded::new("which is not a majority", "which is no majority");

/// The winner of a vote is the first voter with the winning value. `None` is a voter without a vote.
pub(super) fn count(rules: u32, rule: &VoteRule, votes: &[Option<Arc<NamedValue>>]) -> NodeEnd {
    let cast: Vec<Option<Value>> =
        votes.iter().map(|vote| vote.as_ref().and_then(|vote| ballot(rule, vote))).collect();
    // The first voter and the number of votes of each value.
    let mut counts: Vec<(usize, &Value, usize)> = Vec::new();
    for (voter, vote) in cast.iter().enumerate() {
        let Some(vote) = vote else { continue };
        match counts.iter_mut().find(|(_, value, _)| *value == vote) {
            Some((_, _, count)) => *count += 1,
            None => counts.push((voter, vote, 1)),
        }
    }
    let given: usize = counts.iter().map(|(_, _, count)| count).sum();
    let all = match rule.missing {
        Missing::Against => votes.len(),
        Missing::Ignored => given,
    };
    let Some(most) = counts.iter().map(|(_, _, count)| *count).max() else {
        return NodeEnd::failed(FailureCode::NoVotes, format!("none of {} voters gave a vote", votes.len()));
    };
    let mut leaders = counts.iter().filter(|(_, _, count)| *count == most);
    let Some((winner, ..)) = leaders.next() else { unreachable!("somebody has the most votes") };
    let is_tie = leaders.next().is_some();
    let is_enough = match rule.majority {
        Majority::Half => most * 2 > all,
        Majority::TwoThirds => most * 3 >= all * 2,
        Majority::All => most == all,
        Majority::Most => true,
    };
    if !is_enough {
        let message =
            format!("{most} of {all} votes agree, {} ({})", NO_MAJORITY.under(rules), word(rule.majority));
        return NodeEnd::failed(FailureCode::NoMajority, message);
    }
    if is_tie && rule.on_tie == OnTie::Fail {
        return NodeEnd::failed(
            FailureCode::Tie,
            format!("several answers have {most} of {all} votes: add a voter, or write `on_tie: first`"),
        );
    }
    NodeEnd::Succeeded { winner: u32::try_from(*winner).ok(), undo: None }
}

/// What a voter voted for, in a form that can be compared.
fn ballot(rule: &VoteRule, vote: &NamedValue) -> Option<Value> {
    let value = vote.value()?;
    let value = match &rule.by {
        Some(key) => value.get(key)?.clone(),
        None => value,
    };
    Some(match value {
        Value::String(text) => Value::String(text.trim().to_owned()),
        other => other,
    })
}

const fn word(majority: Majority) -> &'static str {
    match majority {
        Majority::Half => "more than half",
        Majority::TwoThirds => "at least two thirds",
        Majority::All => "all",
        Majority::Most => "the most",
    }
}
