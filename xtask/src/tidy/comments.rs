//! Marks of unfinished work in comments, macros and attributes.
//!
//! A mark between backticks is talk about the mark, as on this line: `FIXME`.

use super::Finding;
use crate::workspace::{Source, Workspace};

const MACROS: [&str; 3] = ["dbg!", "todo!", "unimplemented!"];

pub(super) fn check(workspace: &Workspace) -> Vec<Finding> {
    workspace.sources.iter().flat_map(check_source).collect()
}

fn check_source(source: &Source) -> Vec<Finding> {
    let find = |line, item: &str, what: &str, remedy| Finding {
        path: source.path.clone(),
        line,
        rule: "comments",
        item: item.to_owned(),
        what: format!("`{item}` {what}"),
        remedy,
    };
    let mut findings = Vec::new();
    for comment in &source.scan.comments {
        let text: Vec<&str> = comment.text.split('`').step_by(2).collect();
        let text = text.join("`");
        for mark in ["FIXME", "XXX"] {
            if word_ends(&text, mark).next().is_some() {
                findings.push(find(comment.line, mark, "does not merge", "fix it, or open an issue"));
            }
        }
        if text.contains("dbg!(") {
            findings.push(find(comment.line, "dbg!", "does not merge", "delete the line"));
        }
        if word_ends(&text, "TODO").any(|end| !starts_with_issue(&text[end..])) {
            findings.push(find(comment.line, "TODO", "names no issue", "open one and write `TODO(#12)`"));
        }
    }
    for mention in &source.scan.mentions {
        if let Some(mark) = MACROS.iter().find(|mark| mention.is(mark)) {
            findings.push(find(mention.line, mark, "does not merge", "write what belongs there"));
        }
        if mention.is("#ignore") {
            findings.push(find(mention.line, "#[ignore]", "hides a test", "repair the test or delete it"));
        }
    }
    findings
}

/// Where each occurrence of the whole word ends.
fn word_ends<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = usize> {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).filter_map(move |(start, word)| {
        let end = start + word.len();
        let goes_on = text[..start].ends_with(is_letter) || text[end..].starts_with(is_letter);
        (!goes_on).then_some(end)
    })
}

/// `(#12)`.
fn starts_with_issue(text: &str) -> bool {
    let number = text.strip_prefix("(#").and_then(|rest| rest.split_once(')')).map(|(number, _)| number);
    number.is_some_and(|number| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()))
}
