//! How long a file may be. The number is a smoke alarm; the rule is one file, one idea. Clippy watches functions.
//!
//! Test code does not count.

use super::Finding;
use crate::workspace::{Source, Workspace};

const FILE_LINES_MAX: usize = 800;

pub(super) fn check(workspace: &Workspace) -> Vec<Finding> {
    workspace.sources.iter().filter_map(check_source).collect()
}

fn check_source(source: &Source) -> Option<Finding> {
    let lines = (1..=source.text.lines().count()).filter(|line| !source.is_test(*line)).count();
    if source.is_bench() || lines <= FILE_LINES_MAX {
        return None;
    }
    let item = source.file_name().to_owned();
    Some(Finding {
        path: source.path.clone(),
        line: 1,
        rule: "file-lines",
        what: format!("`{item}` has {lines} lines, at most {FILE_LINES_MAX}"),
        item,
        remedy: "find the second idea in it and give it a file of its own",
    })
}
