//! `write_file`: writes a text file among the agent's outputs, atomically.

use serde::Deserialize;
use spinney_kernel::definition::OutputLimits;
use spinney_kernel::primitives::{Durability, WrittenFile};

use super::advice::Refused;
use super::path::{FilePath, Top};
use super::place::{Place, Reach};
use super::{granted, handle};
use crate::workspace::Stopped;

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
    reach: &Reach<'_>,
    limits: OutputLimits,
    durability: Durability,
) -> Result<(String, Option<WrittenFile>), Refused> {
    let (path, bytes) = (reach.place(&args.path)?, args.text.into_bytes());
    let said = format!("wrote {} bytes to {path}", bytes.len());
    Ok((said, put(reach, &path, bytes, limits, durability)?))
}

/// Writes a file, or refuses before anything is written. One of the agent's own is returned, to be kept.
pub(super) fn put(
    reach: &Reach<'_>,
    place: &Place,
    bytes: Vec<u8>,
    limits: OutputLimits,
    durability: Durability,
) -> Result<Option<WrittenFile>, Refused> {
    let path = match place {
        Place::Own(path) if path.top() == Top::Copy => return put_copied(reach, path, &bytes, durability),
        Place::Own(path) => path,
        Place::Granted(path) => return granted::write(reach, path, &bytes, durability).map(|()| None),
    };
    let file = WrittenFile { path: path.output()?, bytes };
    let written = reach.workspace.write_output(&file.path, &file.bytes, limits, durability);
    written.map(|()| Some(file)).map_err(|stopped| match stopped {
        Stopped::Io(error) => Refused::io(path, &error),
        Stopped::Limit { over, limit, used, asked } => Refused::new(format!(
            "{over} would be exceeded: limit {limit}, used {used}, asked {asked}: write less, or overwrite what is no longer needed"
        )),
    })
}

/// Writes a file of the working copy, of which the journal gets nothing.
fn put_copied(
    reach: &Reach<'_>,
    path: &FilePath,
    bytes: &[u8],
    durability: Durability,
) -> Result<Option<WrittenFile>, Refused> {
    let names = path.names().split_last();
    let (name, folders) = names.ok_or_else(|| Refused::new("`copy` is a folder: name a file in it"))?;
    let written = reach.workspace.write_copy(folders, name, bytes, durability);
    written.map(|()| None).map_err(|error| handle::linked(path, &error))
}
