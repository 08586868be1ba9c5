//! No file names a folder that exists on one person's machine only.

use super::Finding;
use crate::workspace::Workspace;

/// Written in two parts, so this file does not break its own rule.
const FOLDERS: [&str; 3] = [concat!("/", "home/"), concat!("/", "root/"), concat!("/", "work/")];

pub(super) fn check(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &workspace.files {
        for (index, line) in file.text.lines().enumerate() {
            findings.extend(machine_path(line).map(|folder| Finding {
                path: file.path.clone(),
                line: index + 1,
                rule: "machine-paths",
                item: folder.to_owned(),
                what: format!("the line names a path under `{folder}`"),
                remedy: "name it relative to the workspace, or take it as an argument",
            }));
        }
    }
    findings
}

fn machine_path(line: &str) -> Option<&'static str> {
    FOLDERS.into_iter().find(|folder| {
        line.match_indices(folder).any(|(start, _)| {
            // What has a name or a variable before it is relative to something.
            let is_inner = |c: char| c.is_alphanumeric() || "_-.~*})>]".contains(c);
            let is_name = |c: char| c.is_alphanumeric() || c == '_';
            let is_relative = line[..start].ends_with(is_inner);
            let has_name = line[start + folder.len()..].starts_with(is_name);
            !is_relative && (has_name || *folder != FOLDERS[0])
        })
    })
}
