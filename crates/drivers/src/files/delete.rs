//! `delete_file`: removes a file of the agent's outputs.

use serde::Deserialize;
use spinney_kernel::primitives::{Durability, OutputPath};

use super::advice::Refused;
use super::path::{FilePath, Top};
use crate::workspace::{NotRemoved, Workspace};

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
    workspace: &Workspace,
    durability: Durability,
) -> Result<(String, Option<OutputPath>), Refused> {
    let path = FilePath::parse(&args.path)?;
    let (removed, output) = match (path.top(), path.split()) {
        (Top::Copy, Some((folders, name))) => (workspace.remove_copy(folders, name, durability), None),
        _ => {
            let output = path.output()?;
            (workspace.remove_output(&output, durability), Some(output))
        }
    };
    match removed {
        Ok(()) => Ok((format!("deleted {path}"), output)),
        Err(NotRemoved::NotPlain) => Err(Refused::not_plain(&path)),
        Err(NotRemoved::Io(error)) => Err(Refused::io(&path, &error)),
    }
}
