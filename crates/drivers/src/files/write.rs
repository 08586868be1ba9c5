//! `write_file`: writes a text file among the agent's outputs, atomically.

use serde::Deserialize;
use spinney_kernel::definition::OutputLimits;
use spinney_kernel::primitives::{Durability, WrittenFile};

use super::advice::Refused;
use super::handle;
use super::path::{FilePath, Top};
use crate::workspace::{Stopped, Workspace};

pub(super) const DESCRIPTION: &str = "write a text file {path, text} below `outputs/` of your own folder, in place of what is there; use it for results that are too long to say, and name the file in your answer";
pub(super) const SCHEMA: &str = r#"{"type":"object","properties":{"path":{"type":"string","description":"such as outputs/report.md"},"text":{"type":"string","description":"the whole of the file"}},"required":["path","text"],"additionalProperties":false}"#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    path: String,
    text: String,
}

pub(super) fn act(
    args: Args,
    workspace: &Workspace,
    limits: OutputLimits,
    durability: Durability,
) -> Result<(String, Option<WrittenFile>), Refused> {
    let path = FilePath::parse(&args.path)?;
    let bytes = args.text.into_bytes();
    let said = format!("wrote {} bytes to {path}", bytes.len());
    Ok((said, put(&path, bytes, workspace, limits, durability)?))
}

/// Writes a file, or refuses before anything is written. Returns what the journal gets: nothing of a working copy.
pub(super) fn put(
    path: &FilePath,
    bytes: Vec<u8>,
    workspace: &Workspace,
    limits: OutputLimits,
    durability: Durability,
) -> Result<Option<WrittenFile>, Refused> {
    if path.top() == Top::Copy {
        let (folders, name) =
            path.split().ok_or_else(|| Refused::new("`copy` is a folder: name a file in it"))?;
        let written = workspace.write_copy(folders, name, &bytes, durability);
        return written.map(|()| None).map_err(|error| handle::linked(path, &error));
    }
    let file = WrittenFile { path: path.output()?, bytes };
    let written = workspace.write_output(&file.path, &file.bytes, limits, durability);
    written.map_err(|stopped| match stopped {
        Stopped::Io(error) => Refused::io(path, &error),
        Stopped::Limit { over, limit, used, asked } => Refused::new(format!(
            "{over} would be exceeded: limit {limit}, used {used}, asked {asked}: write less, or overwrite what is no longer needed"
        )),
    })?;
    Ok(Some(file))
}
