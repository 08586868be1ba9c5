//! Rules that say which names mean a model, as genai-prices writes them.

use std::fmt;

use fancy_regex::Regex;
use serde::Deserialize;

/// Which names mean a model. Names and literals are in lower case.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum NameRule {
    Equals(String),
    StartsWith(String),
    EndsWith(String),
    Contains(String),
    Regex(Pattern),
    Or(Vec<Self>),
    And(Vec<Self>),
}

/// A pattern that was compiled.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Pattern(Regex);

/// A pattern that takes too long to match a name: it is unknown whether it means the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a rule of the price table cannot be matched with this name: {reason}")]
pub struct NameRuleError {
    reason: String,
}

impl NameRuleError {
    fn new(error: impl fmt::Display) -> Self {
        Self { reason: error.to_string() }
    }
}

impl TryFrom<String> for Pattern {
    type Error = NameRuleError;
    fn try_from(text: String) -> Result<Self, NameRuleError> {
        Regex::new(&text).map(Self).map_err(NameRuleError::new)
    }
}

impl NameRule {
    pub(super) fn matches(&self, name: &str) -> Result<bool, NameRuleError> {
        match self {
            Self::Equals(text) => Ok(name == text),
            Self::StartsWith(text) => Ok(name.starts_with(text)),
            Self::EndsWith(text) => Ok(name.ends_with(text)),
            Self::Contains(text) => Ok(name.contains(text)),
            Self::Regex(Pattern(regex)) => regex.is_match(name).map_err(NameRuleError::new),
            Self::Or(rules) => {
                for rule in rules {
                    if rule.matches(name)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::And(rules) => {
                for rule in rules {
                    if !rule.matches(name)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }
}

/// The name with dates like `-20251211` written as `-2025-12-11`; none if it has no such date.
pub(super) fn with_dashed_dates(name: &str) -> Option<String> {
    let mut changed = false;
    let parts = name.split('-').map(|part| {
        let (date, rest) = part.split_at(part.find(':').unwrap_or(part.len()));
        let is_date =
            date.len() == 8 && date.starts_with("20") && date.bytes().all(|byte| byte.is_ascii_digit());
        if !is_date {
            return part.to_owned();
        }
        changed = true;
        format!("{}-{}-{}{rest}", &date[..4], &date[4..6], &date[6..])
    });
    let all = parts.collect::<Vec<_>>().join("-");
    changed.then_some(all)
}
