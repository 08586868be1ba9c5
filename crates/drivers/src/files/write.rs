//! `write_file`: writes a text file among the agent's outputs, atomically.

use serde::Deserialize;
use spinney_kernel::definition::OutputLimits;
use spinney_kernel::primitives::{Durability, WrittenFile};

use super::advice::Refused;
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
) -> Result<(String, WrittenFile), Refused> {
    let path = FilePath::parse(&args.path)?;
    if path.top() != Top::Outputs {
        return Err(Refused::new(format!("`{path}` is not yours to write: write below `outputs/`")));
    }
    let Some(output) = path.output() else {
        return Err(Refused::new("`outputs` is a folder: name a file in it, such as `outputs/report.md`"));
    };
    let Args { text, .. } = args;
    match workspace.write_output(&output, text.as_bytes(), limits, durability) {
        Ok(()) => {
            let said = format!("wrote {} bytes to {path}", text.len());
            Ok((said, WrittenFile { path: output, bytes: text.into_bytes() }))
        }
        Err(Stopped::Io(error)) => Err(Refused::io(&path, &error)),
        Err(Stopped::Limit { over, limit, used, asked }) => Err(Refused::new(format!(
            "{over} would be passed: limit {limit}, there {used}, asked {asked}: write less, or write over what is not needed"
        ))),
    }
}
