//! Each file opens with `//!` lines that say what it owns, and at least one of them says something.

use super::Finding;
use crate::workspace::{Source, Workspace};

const LINE_CHARS_MIN: usize = 20;

pub(super) fn check(workspace: &Workspace) -> Vec<Finding> {
    workspace.sources.iter().filter_map(check_source).collect()
}

fn check_source(source: &Source) -> Option<Finding> {
    let opening: Vec<&str> = source.text.lines().map_while(|line| line.strip_prefix("//!")).collect();
    let says_something = opening.iter().any(|line| line.trim().chars().count() >= LINE_CHARS_MIN);
    let what = match (opening.is_empty(), says_something) {
        (true, _) => "the file does not open with `//!` lines".to_owned(),
        (false, false) => format!("no opening `//!` line has {LINE_CHARS_MIN} characters"),
        (false, true) => return None,
    };
    Some(Finding {
        path: source.path.clone(),
        line: 1,
        rule: "module-docs",
        item: source.file_name().to_owned(),
        what,
        remedy: "say on the first lines what the file owns and what it must not know",
    })
}
