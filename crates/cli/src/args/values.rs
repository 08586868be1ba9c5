//! Values on the command line, with errors that say what to write.

use spinney_kernel::words::{AgentId, CheckpointName, Topic};

/// Accepts the form that events show.
pub(super) fn question(text: &str) -> Result<u64, String> {
    let number = text.strip_prefix('#').unwrap_or(text);
    number.parse().map_err(|_| "expected the number of a question, such as 7".to_owned())
}

/// A whole number. The standard library's own error does not say what to write.
pub(super) fn count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "write a whole number, such as 20000".to_owned())
}

pub(super) fn input(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write its name and its value, such as topic=owls")?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(super) fn topic(text: &str) -> Result<Topic, String> {
    text.parse().map_err(|error| format!("{error}"))
}

pub(super) fn checkpoint(text: &str) -> Result<CheckpointName, String> {
    text.parse().map_err(|error| format!("{error}"))
}

/// Accepts a path as events show it: ids are unique in a tree.
pub(super) fn agent(text: &str) -> Result<AgentId, String> {
    let id = text.rsplit_once('/').map_or(text, |(_, last)| last);
    id.parse().map_err(|error| format!("{error}"))
}
