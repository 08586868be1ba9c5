//! Errors in a script, with their place.

use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error, Location, MessageFormatter, UserMessageFormatter};
use spinney_kernel::primitives::limit;

use super::script::{ALIASED_MAX, DEPTH_MAX, SCRIPT_BYTES_MAX};
use super::template::quoted;

/// Why a text is not a script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// Too large to be written by hand.
    #[error("{name}: the script has {bytes} bytes, at most {SCRIPT_BYTES_MAX}")]
    TooLarge {
        /// The script's name.
        name: String,
        /// Its size.
        bytes: usize,
    },
    /// Something in it is wrong.
    #[error("{name}:{line}:{column}: {problem}")]
    Wrong {
        /// The script's name.
        name: String,
        /// Where; the first line is 1.
        line: u64,
        /// Where in the line; the first column is 1.
        column: u64,
        /// What, and what to do about it.
        problem: String,
    },
}

/// What is wrong, and where if that is known.
#[derive(Debug)]
pub(super) struct Problem {
    place: Location,
    text: String,
}

impl Problem {
    pub(super) const fn new(text: String) -> Self {
        Self { place: Location::UNKNOWN, text }
    }

    pub(super) const fn at(place: Location, text: String) -> Self {
        Self { place, text }
    }

    /// Adds the part of the script that contains it.
    pub(super) fn within(self, label: &str, place: Location) -> Self {
        let place = if self.place == Location::UNKNOWN { place } else { self.place };
        Self { place, text: format!("{label}: {}", self.text) }
    }

    pub(super) fn named(self, name: &str) -> ScriptError {
        let (line, column) = (self.place.line().max(1), self.place.column().max(1));
        ScriptError::Wrong { name: name.to_owned(), line, column, problem: self.text }
    }

    pub(super) fn from_yaml(error: &Error) -> Self {
        let error = error.without_snippet();
        Self { place: error.location().unwrap_or(Location::UNKNOWN), text: said(error) }
    }
}

/// What the YAML reader says, in our words where they help.
fn said(error: &Error) -> String {
    if let Error::AliasError { error, .. } = error {
        return said(error);
    }
    if let Error::SerdeUnknownField { field, expected, .. } = error {
        return format!("unknown key `{field}`: write one of {}", quoted(expected));
    }
    if let Error::SerdeUnknownVariant { variant, expected, .. } = error {
        return format!("unknown value `{variant}`: write one of {}", quoted(expected));
    }
    if let Error::SerdeMissingField { field, .. } = error {
        return format!("the key `{field}` is missing");
    }
    if let Error::DuplicateMappingKey { key: Some(key), .. } = error {
        return format!("duplicate key `{key}`");
    }
    if let Error::InvalidScalar { ty: "u64" | "u32" | "usize", .. } = error {
        return "expected a whole number, 0 or more".to_owned();
    }
    if let Error::Unexpected { expected, .. } = error {
        return format!("expected {}", plain(expected));
    }
    if let Error::Budget { breach: BudgetBreach::Depth { .. }, .. } = error {
        return format!("the script is nested more than {DEPTH_MAX} deep");
    }
    if let Error::AliasReplayLimitExceeded { .. } = error {
        return format!("aliases stand for more than {ALIASED_MAX} values");
    }
    UserMessageFormatter.format_message(error).into_owned()
}

/// What a YAML reader expects, as people call it.
fn plain(expected: &str) -> &str {
    match expected {
        "sequence start" => "a list",
        "mapping start" => "keys with values",
        "string scalar" => "a text",
        other => other,
    }
}

pub(super) fn check_millis(key: &str, ms: u64) -> Result<(), Problem> {
    if ms > limit::TIMEOUT_MS_MAX {
        return Err(Problem::new(format!("`{key}` is {ms}, at most {}", limit::TIMEOUT_MS_MAX)));
    }
    Ok(())
}
