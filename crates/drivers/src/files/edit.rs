//! `edit_file`: replaces a text in a file of the agent's outputs, and shows the difference.

use serde::Deserialize;
use spinney_kernel::definition::OutputLimits;
use spinney_kernel::primitives::limit::BLOB_BYTES_MAX;
use spinney_kernel::primitives::{Durability, WrittenFile};

use super::advice::Refused;
use super::diff::{self, Replaced};
use super::path::Top;
use super::place::{Place, Reach};
use super::{handle, write};

pub(super) const DESCRIPTION: &str = "replace text in a file below `outputs/` of your own folder {path, old_text, new_text, replace_all?}: `old_text` must be in the file exactly once, character by character, unless `replace_all` is set; shows the difference";
pub(super) const SCHEMA: &str = r#"{"type":"object","properties":{"path":{"type":"string","description":"such as outputs/report.md"},"old_text":{"type":"string","description":"what to replace, exactly as it is in the file, with enough around it to be there only once"},"new_text":{"type":"string","description":"what to put in its place; empty to remove it"},"replace_all":{"type":"boolean","description":"replace every occurrence; false if left out"}},"required":["path","old_text","new_text"],"additionalProperties":false}"#;

/// How many lines a refusal names.
const LINES_NAMED: usize = 5;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    path: String,
    old_text: String,
    new_text: String,
    #[serde(default)]
    replace_all: bool,
}

pub(super) fn act(
    args: &Args,
    reach: &Reach<'_>,
    limits: OutputLimits,
    durability: Durability,
) -> Result<(String, Option<WrittenFile>), Refused> {
    let path = reach.place(&args.path)?;
    let (bytes_max, of_what) = match &path {
        Place::Own(path) if path.top() == Top::Copy => (BLOB_BYTES_MAX as u64, "a file that is edited"),
        Place::Own(path) => {
            path.output()?;
            (limits.bytes_max, "all of your outputs")
        }
        Place::Granted(path) => {
            reach.check_write(path)?;
            (BLOB_BYTES_MAX as u64, "a file that is edited")
        }
    };
    let before = text(&path, reach)?;
    let replaced = replaced(args, &path, &before)?;
    // Computed before it is made: many short texts can become many long ones.
    let bytes = replaced.bytes_after();
    if bytes > bytes_max {
        return Err(Refused::new(format!(
            "`{path}` would have {bytes} bytes, and {of_what} may have {bytes_max}: replace it with less"
        )));
    }
    let file = write::put(reach, &path, replaced.after().into_bytes(), limits, durability)?;
    let times = match replaced.at.len() {
        1 => "once".to_owned(),
        times => format!("{times} times"),
    };
    Ok((format!("replaced {times}\n{}", diff::unified(&path.to_string(), &replaced)), file))
}

/// The whole of a text file.
fn text(path: &Place, reach: &Reach<'_>) -> Result<String, Refused> {
    let part = handle::read(reach, path, 0, BLOB_BYTES_MAX as u64)?;
    if part.whole > part.bytes.len() as u64 {
        return Err(Refused::new(format!("`{path}` has {} bytes: too many to edit", part.whole)));
    }
    let no_text = |_| Refused::new(format!("`{path}` is not a text: only texts are edited"));
    String::from_utf8(part.bytes).map_err(no_text)
}

/// Where the old text is, if that is what was asked for.
fn replaced<'a>(args: &'a Args, path: &Place, before: &'a str) -> Result<Replaced<'a>, Refused> {
    let Args { old_text: old, new_text: new, replace_all, .. } = args;
    if old.is_empty() {
        return Err(Refused::new(
            "`old_text` is empty: give the text to replace, or write the whole file with `write_file`",
        ));
    }
    if old == new {
        return Err(Refused::new("`old_text` and `new_text` are the same: nothing would change"));
    }
    let at: Vec<usize> = before.match_indices(old.as_str()).map(|(at, _)| at).collect();
    match at.len() {
        0 => Err(Refused::new(format!(
            "`old_text` is not in `{path}`: read the file and copy the text exactly, with its spaces and line breaks"
        ))),
        2.. if !replace_all => Err(Refused::new(format!(
            "`old_text` is in `{path}` {} times, {}: add what is around the one you mean, or set `replace_all`",
            at.len(),
            lines(before, &at)
        ))),
        _ => Ok(Replaced { before, at, old, new }),
    }
}

fn lines(text: &str, at: &[usize]) -> String {
    let line = |at: &usize| (text[..*at].matches('\n').count() + 1).to_string();
    let named: Vec<String> = at.iter().take(LINES_NAMED).map(line).collect();
    let more = if at.len() > LINES_NAMED { " …" } else { "" };
    format!("at lines {}{more}", named.join(", "))
}
