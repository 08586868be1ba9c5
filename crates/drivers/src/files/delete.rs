//! `delete_file`: removes a file of the agent's outputs, or one of the user's.

use serde::Deserialize;
use spinney_kernel::primitives::{Durability, OutputPath};

use super::advice::Refused;
use super::granted;
use super::path::Top;
use super::place::{Place, Reach};
use crate::workspace::NotRemoved;

pub(super) const DESCRIPTION: &str =
    "delete a file {path} below `outputs/` of your own folder; folders that are empty without it go with it";
pub(super) const SCHEMA: &str = r#"{"type":"object","properties":{"path":{"type":"string","description":"such as outputs/draft.md"}},"required":["path"],"additionalProperties":false}"#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    path: String,
}

pub(super) fn act(
    args: &Args,
    reach: &Reach<'_>,
    durability: Durability,
) -> Result<(String, Option<OutputPath>), Refused> {
    let place = reach.place(&args.path)?;
    let said = format!("deleted {place}");
    let path = match &place {
        Place::Own(path) => path,
        Place::Granted(path) => {
            return granted::remove(reach, path, durability).map(|()| (said, None));
        }
    };
    let (removed, output) = match path.names().split_last().filter(|_| path.top() == Top::Copy) {
        Some((name, folders)) => (reach.workspace.remove_copy(folders, name, durability), None),
        None => {
            let output = path.output()?;
            (reach.workspace.remove_output(&output, durability), Some(output))
        }
    };
    match removed {
        Ok(()) => Ok((said, output)),
        Err(NotRemoved::NotPlain) => Err(Refused::not_plain(path)),
        Err(NotRemoved::Io(error)) => Err(Refused::io(path, &error)),
    }
}
