//! Values on the command line, with errors that say what to write.

use std::ffi::OsString;
use std::path::PathBuf;

use spinney_kernel::words::{AgentId, CheckpointName, Topic};
use spinney_view::agents::AgentPath;

use crate::hint::HOME_VARIABLE;

/// The parser's own error about an empty value does not name the variable.
pub(super) fn home(text: OsString) -> Result<PathBuf, String> {
    if text.is_empty() {
        return Err(format!("it is empty: name a folder, or unset {HOME_VARIABLE}"));
    }
    Ok(text.into())
}

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

/// An agent's id, or its path as events show it.
pub(super) fn agent(text: &str) -> Result<AgentPath, String> {
    let (above, id) = text.rsplit_once('/').map_or((None, text), |(above, id)| (Some(above), id));
    let above =
        above.into_iter().flat_map(|above| above.split('/')).map(agent_id).collect::<Result<_, _>>()?;
    Ok(AgentPath { above, id: agent_id(id)? })
}

pub(super) fn agent_id(text: &str) -> Result<AgentId, String> {
    let id = agent_of_step(text).unwrap_or_else(|| text.to_owned());
    id.parse().map_err(|error| format!("{error}"))
}

/// The agent of a step as journals name it: `read-3` for `read[3]`, `draft-r2` for `draft#2`.
fn agent_of_step(name: &str) -> Option<String> {
    let (step, mut rest) = name.split_at(name.find(['[', '#'])?);
    let mut agent = step.to_owned();
    while !rest.is_empty() {
        let (mark, after) = match rest.strip_prefix('[') {
            Some(item) => ("-", item.split_once(']')?),
            None => {
                let round = rest.strip_prefix('#')?;
                ("-r", round.split_at(round.find(['[', '#']).unwrap_or(round.len())))
            }
        };
        let number: u32 = after.0.parse().ok()?;
        agent += &format!("{mark}{number}");
        rest = after.1;
    }
    Some(agent)
}
