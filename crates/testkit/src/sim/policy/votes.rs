//! Counts votes independently of the kernel.

use std::collections::BTreeMap;

use serde_json::Value;
use spinney_kernel::definition::{Majority, Missing, OnTie, VoteRule};
use spinney_kernel::record::{FailureCode, NodeEnd};

use super::BoundedValue;

/// How a vote must end, by the values of its voters.
pub(super) fn end(rule: &VoteRule, voters: u32, values: &BTreeMap<u32, BoundedValue>) -> NodeEnd {
    let failed = |code: &str| NodeEnd::failed(FailureCode::from_text(code), "");
    let ballots: Vec<(u32, Value)> =
        values.iter().filter_map(|(voter, value)| Some((*voter, ballot(rule, value.as_ref()?)?))).collect();
    let votes_for = |value: &Value| ballots.iter().filter(|(_, other)| other == value).count();
    let Some(most) = ballots.iter().map(|(_, value)| votes_for(value)).max() else {
        return failed("no_votes");
    };
    let leaders: Vec<&(u32, Value)> = ballots.iter().filter(|(_, value)| votes_for(value) == most).collect();
    let all = if rule.missing == Missing::Against { voters as usize } else { ballots.len() };
    let is_enough = match rule.majority {
        Majority::Half => 2 * most > all,
        Majority::TwoThirds => 3 * most >= 2 * all,
        Majority::All => most == all,
        Majority::Most => true,
    };
    let is_tie = leaders.iter().any(|(_, value)| *value != leaders[0].1);
    match (is_enough, is_tie && rule.on_tie == OnTie::Fail) {
        (false, _) => failed("no_majority"),
        (true, true) => failed("tie"),
        (true, false) => NodeEnd::Succeeded { winner: Some(leaders[0].0), undo: None },
    }
}

fn ballot(rule: &VoteRule, value: &Value) -> Option<Value> {
    let value = rule.by.as_ref().map_or(Some(value), |key| value.get(key))?;
    Some(value.as_str().map_or_else(|| value.clone(), |text| Value::from(text.trim())))
}
