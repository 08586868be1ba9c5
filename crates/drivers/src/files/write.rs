//! `write_file`: writes a text file among the agent's outputs, atomically.

use serde::Deserialize;
use spinney_kernel::definition::OutputLimits;
use spinney_kernel::primitives::{Durability, WrittenFile};

use super::advice::Refused;
use super::path::FilePath;
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
) -> Result<(String, WrittenFile), Refused> {
    let path = FilePath::parse(&args.path)?;
    let file = WrittenFile { path: path.output()?, bytes: args.text.into_bytes() };
    put(&path, &file, workspace, limits, durability)?;
    Ok((format!("wrote {} bytes to {path}", file.bytes.len()), file))
}

/// Writes a file, or refuses before anything is written.
pub(super) fn put(
    path: &FilePath,
    file: &WrittenFile,
    workspace: &Workspace,
    limits: OutputLimits,
    durability: Durability,
) -> Result<(), Refused> {
    let written = workspace.write_output(&file.path, &file.bytes, limits, durability);
    written.map_err(|stopped| match stopped {
        Stopped::Io(error) => Refused::io(path, &error),
        Stopped::Limit { over, limit, used, asked } => Refused::new(format!(
            "{over} would be exceeded: limit {limit}, used {used}, asked {asked}: write less, or overwrite what is no longer needed"
        )),
    })
}
