//! What can be wrong with a script, and where.

use serde_saphyr::{Error, Location, MessageFormatter, UserMessageFormatter};
use spinney_kernel::limit;

use super::script::SCRIPT_BYTES_MAX;
use super::template::quoted;

/// Why a text is no script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// Nobody wrote that by hand.
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
    pub(super) const fn of(text: String) -> Self {
        Self { place: Location::UNKNOWN, text }
    }

    pub(super) const fn at(place: Location, text: String) -> Self {
        Self { place, text }
    }

    /// This, in a part of the script that stands at `place`.
    pub(super) fn within(self, label: &str, place: Location) -> Self {
        let place = if self.place == Location::UNKNOWN { place } else { self.place };
        Self { place, text: format!("{label}: {}", self.text) }
    }

    pub(super) fn named(self, name: &str) -> ScriptError {
        let (line, column) = (self.place.line().max(1), self.place.column().max(1));
        ScriptError::Wrong { name: name.to_owned(), line, column, problem: self.text }
    }

    /// What the YAML reader says, in our words where they help.
    pub(super) fn from_yaml(error: &Error) -> Self {
        let error = error.without_snippet();
        let text = if let Error::SerdeUnknownField { field, expected, .. } = error {
            format!("unknown key `{field}`: write one of {}", quoted(expected))
        } else if let Error::SerdeUnknownVariant { variant, expected, .. } = error {
            format!("unknown value `{variant}`: write one of {}", quoted(expected))
        } else {
            UserMessageFormatter.format_message(error).into_owned()
        };
        Self { place: error.location().unwrap_or(Location::UNKNOWN), text }
    }
}

/// Refuses a latency that nobody means.
pub(super) fn check_millis(key: &str, ms: u64) -> Result<(), Problem> {
    if ms > limit::TIMEOUT_MS_MAX {
        return Err(Problem::of(format!("`{key}` is {ms}, at most {}", limit::TIMEOUT_MS_MAX)));
    }
    Ok(())
}
