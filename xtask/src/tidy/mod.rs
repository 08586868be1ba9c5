//! The project's taste as a test: one file per rule, each reads the workspace and answers with findings.
//!
//! A new rule is one new file here, one line in `RULES`, and two tests: a text to find and one to pass.

mod command_words;
mod comments;
mod edges;
mod exceptions;
mod finding;
mod homes;
mod kernel_dependencies;
mod layers;
mod machine_paths;
mod module_docs;
mod names;
mod pictures;
mod public_names;
mod sizes;
mod sql;
mod syntax;
mod test_layout;
mod verbs;

use std::collections::BTreeSet;

use crate::workspace::Workspace;

pub use exceptions::{EXCEPTIONS, Exception};
pub use finding::Finding;

type Rule = fn(&Workspace) -> Vec<Finding>;

const RULES: [Rule; 16] = [
    syntax::check,
    edges::check,
    layers::check,
    kernel_dependencies::check,
    sizes::check,
    module_docs::check,
    names::check,
    pictures::check,
    public_names::check,
    homes::check,
    sql::check,
    comments::check,
    command_words::check,
    test_layout::check,
    machine_paths::check,
    verbs::check,
];

/// Everything that is untidy and not excepted, in the order of the files.
pub fn check(workspace: &Workspace, exceptions: &[Exception]) -> Vec<Finding> {
    let findings: Vec<Finding> = RULES.iter().flat_map(|rule| rule(workspace)).collect();
    let mut findings = exceptions::except(&findings, exceptions);
    findings.sort();
    findings
}

/// The last line of the output.
pub fn summary(workspace: &Workspace, findings: &[Finding]) -> String {
    let untidy: BTreeSet<&str> = findings.iter().map(|finding| finding.path.as_str()).collect();
    match findings.len() {
        0 => format!("tidy: {} files are tidy", workspace.files.len()),
        count => format!("tidy: {count} findings in {} files", untidy.len()),
    }
}
