//! A file that cannot be parsed cannot be judged, so it is a finding itself.

use super::Finding;
use crate::workspace::{Unreadable, Workspace};

pub(super) fn check(workspace: &Workspace) -> Vec<Finding> {
    let judge = |Unreadable { path, line, why }: &Unreadable| Finding {
        path: path.clone(),
        line: *line,
        rule: "syntax",
        item: path.clone(),
        what: format!("the file does not parse: {why}"),
        remedy: "make it compile first",
    };
    workspace.unreadable.iter().map(judge).collect()
}
