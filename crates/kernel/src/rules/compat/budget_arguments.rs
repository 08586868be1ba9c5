//! Budgets in the arguments of built-in tools, as trees under older rules may write them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::context::read;
use crate::definition::{BudgetKeys, Builtin, Refusal, TimeSpan};
use crate::rules::Draft;

/// Reads arguments that have a budget. Before rules 5 a budget had no `repeats`, and errors did not list it.
pub(crate) fn read_with_budget<T: DeserializeOwned>(
    draft: &Draft<'_>,
    builtin: Builtin,
    args: &str,
) -> Result<T, Refusal> {
    #[derive(Deserialize)]
    struct Rules4 {
        #[serde(rename = "budget", default)]
        _budget: BTreeMap<Rules4Key, IgnoredAny>,
    }
    let arguments = read(builtin, args);
    if draft.rules() >= 5 || !args.contains("budget") {
        return arguments;
    }
    match (arguments, read::<Rules4>(builtin, args)) {
        (Err(refusal), Err(_)) if !refusal.to_string().contains("`repeats`") => Err(refusal),
        (_, Err(refusal)) => Err(refusal),
        (arguments, Ok(_)) => arguments,
    }
}

/// The keys of a budget before rules 5.
#[derive(PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Rules4Key {
    CostUsd,
    Tokens,
    Steps,
    ToolCalls,
    Retries,
    Timeout,
    Lend,
    AnswerReserve,
    OnLow,
    WrapUp,
}

/// Rules 2 accepted only a plain duration as a timeout.
pub(crate) fn check_timeout(
    draft: &Draft<'_>,
    builtin: Builtin,
    args: &str,
    budget: &BudgetKeys,
) -> Result<(), Refusal> {
    #[derive(Deserialize)]
    struct Rules2 {
        #[serde(rename = "budget")]
        _budget: Rules2Budget,
    }
    #[derive(Deserialize)]
    struct Rules2Budget {
        #[serde(rename = "timeout")]
        _timeout: Option<TimeSpan>,
    }
    let is_wall = budget.timeout.is_some_and(|timeout| timeout.is_wall);
    if is_wall && draft.rules() < 3 { read::<Rules2>(builtin, args).map(drop) } else { Ok(()) }
}
