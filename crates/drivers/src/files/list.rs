//! `list_files`: lists what is below a folder of the agent.

use std::fmt::Write;
use std::io::ErrorKind;

use serde::Deserialize;

use super::advice::Refused;
use super::handle::{self, Listing};
use super::path::Top;
use super::place::{Place, Reach};

pub(super) const DESCRIPTION: &str = "list the files of your own folder {path?} with their bytes; everything in `outputs/` if no path is given";
pub(super) const SCHEMA: &str = r#"{"type":"object","properties":{"path":{"type":"string","description":"a folder: outputs, history, offload, or one below"}},"additionalProperties":false}"#;

/// The most entries of one answer.
const ENTRIES_MAX: usize = 200;
/// How many folders deep an answer goes.
const DEPTH_MAX: u32 = 32;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    path: Option<String>,
}

pub(super) fn act(args: &Args, reach: &Reach<'_>) -> Result<String, Refused> {
    let path = reach.place(args.path.as_deref().unwrap_or(Top::Outputs.as_str()))?;
    let folder = match reach.folder(&path, path.names()) {
        // Nothing was ever kept there.
        Err(error)
            if error.kind() == ErrorKind::NotFound && matches!(path, Place::Own(_)) && path.is_top() =>
        {
            return Ok(empty(&path));
        }
        opened => opened.map_err(|error| Refused::io(&path, &error))?,
    };
    let is_closed: fn(&str) -> bool = match &path {
        Place::Own(path) if path.top() != Top::Copy => |_| false,
        // A repository would fill the whole list.
        Place::Own(_) | Place::Granted(_) => |name| name == ".git",
    };
    let hidden = reach.hidden_ids(&path);
    let listing = Listing { most: ENTRIES_MAX, depth_max: DEPTH_MAX, hidden, is_closed };
    let entries = handle::list(&folder, &listing).map_err(|error| Refused::io(&path, &error))?;
    if entries.is_empty() {
        return Ok(empty(&path));
    }
    let mut told = String::new();
    for entry in entries.iter().take(ENTRIES_MAX) {
        let bytes = entry.bytes.map_or_else(String::new, |bytes| format!("  {bytes} bytes"));
        let _ = writeln!(told, "{path}/{}{bytes}", entry.path);
    }
    if entries.len() > ENTRIES_MAX {
        told += "and more: list one folder at a time";
    }
    Ok(told.trim_end().to_owned())
}

fn empty(path: &Place) -> String {
    format!("{path}/ is empty")
}
