//! Values on the command line, with errors that say what to write.

use std::ffi::OsString;
use std::path::PathBuf;

use spinney_host::exec::run_values;
use spinney_kernel::budget::AMOUNT_MAX;
use spinney_kernel::primitives::{AgentId, CheckpointName, Topic};
use spinney_view::agents::{self, AgentPath};

use crate::hint::HOME_VARIABLE;

/// The parser's own error about an empty value does not name the variable.
pub(super) fn home(text: OsString) -> Result<PathBuf, String> {
    if text.is_empty() {
        return Err(format!("the value is empty: name a folder, or unset {HOME_VARIABLE}"));
    }
    Ok(text.into())
}

/// Also accepts `#7`, as events show it.
pub(super) fn question(text: &str) -> Result<u64, String> {
    let number = text.strip_prefix('#').unwrap_or(text);
    number.parse().map_err(|_| "expected the number of a question, such as 7".to_owned())
}

/// A whole number. The standard library's own error does not say what to write.
pub(super) fn count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "write a whole number, such as 20000".to_owned())
}

/// What is counted in an account.
pub(super) fn amount(text: &str) -> Result<u64, String> {
    match count(text)? {
        amount if amount > AMOUNT_MAX => {
            Err(format!("write a whole number of at most {AMOUNT_MAX}, such as 20000"))
        }
        amount => Ok(amount),
    }
}

pub(super) fn input(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE, such as topic=owls")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// A label of a tree. The file's own labels have the same bounds.
pub(super) fn tag(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE, such as pr=123")?;
    run_values::tag(name, value)?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(super) fn topic(text: &str) -> Result<Topic, String> {
    text.parse().map_err(|error| format!("{error}"))
}

pub(super) fn checkpoint(text: &str) -> Result<CheckpointName, String> {
    text.parse().map_err(|error| format!("{error}"))
}

/// An agent's id, or its path as events show it.
pub(super) fn agent(text: &str) -> Result<AgentPath, String> {
    text.parse().map_err(|error| format!("{error}"))
}

pub(super) fn agent_id(text: &str) -> Result<AgentId, String> {
    agents::id_of(text).map_err(|error| format!("{error}"))
}
