//! The chores from outside. Tidy: the real workspace, and for each rule a text to find and one to leave alone. Prices: the
//! committed table, and what becomes of each kind of price.

mod command_words;
mod comments;
mod dependencies;
mod edges;
mod exceptions;
mod homes;
mod kernel_dependencies;
mod layers;
mod machine_paths;
mod module_docs;
mod names;
mod pictures;
mod prices;
mod public_api;
mod public_names;
mod sizes;
mod sql;
mod syntax;
mod test_layout;
mod verbs;

use std::path::Path;

use xtask::tidy::{EXCEPTIONS, Finding, check, summary};
use xtask::workspace::{TextFile, Workspace};

#[test]
fn the_real_workspace_is_tidy() {
    let workspace = Workspace::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
    let findings = check(&workspace, &EXCEPTIONS);
    assert!(findings.is_empty(), "\n{}\n{}", lines(&findings).join("\n"), summary(&workspace, &findings));
}

#[test]
fn the_summary_counts_findings_and_files() {
    let tidy = workspace(&[("crates/store/src/lib.rs", "//! Remembers what happened to each tree.\n")]);
    assert_eq!(summary(&tidy, &check(&tidy, &EXCEPTIONS)), "tidy: 1 files are tidy");
    let untidy = workspace(&[("crates/store/src/lib.rs", ""), ("crates/store/src/journal.rs", "// XXX")]);
    assert_eq!(summary(&untidy, &check(&untidy, &EXCEPTIONS)), "tidy: 3 findings in 2 files");
}

const NOTHING: [&str; 0] = [];

fn workspace(files: &[(&str, &str)]) -> Workspace {
    let file = |(path, text): &(&str, &str)| TextFile { path: (*path).to_owned(), text: (*text).to_owned() };
    Workspace::from_files(files.iter().map(file).collect())
}

fn lines(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(Finding::to_string).collect()
}

/// What one rule finds in these files, as the lines that people see.
fn found(rule: &str, files: &[(&str, &str)]) -> Vec<String> {
    let mut findings = check(&workspace(files), &EXCEPTIONS);
    findings.retain(|finding| finding.rule == rule);
    lines(&findings)
}
