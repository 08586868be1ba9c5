//! SQL lives in the store: elsewhere no string may read like a statement.
//!
//! A keyword in capitals is enough. In small letters it may be English ("update the table"), so another word
//! that SQL wants must follow.

use super::Finding;
use crate::workspace::Workspace;

const HOME: &str = "crates/store/";

/// How a statement starts, and what else it has.
const STATEMENTS: [(&str, Sign); 6] = [
    ("SELECT", Sign::Later("FROM")),
    ("INSERT", Sign::Next("INTO")),
    ("UPDATE", Sign::Later("SET")),
    ("DELETE", Sign::Next("FROM")),
    ("CREATE", Sign::Next("TABLE")),
    ("PRAGMA", Sign::None),
];

enum Sign {
    Next(&'static str),
    Later(&'static str),
    None,
}

pub(super) fn check(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in workspace.sources.iter().filter(|source| !source.path.starts_with(HOME)) {
        for string in source.scan.strings.iter().filter(|string| is_statement(&string.text)) {
            let start: Vec<&str> = string.text.split_whitespace().take(3).collect();
            findings.push(Finding {
                path: source.path.clone(),
                line: string.line,
                rule: "sql",
                item: start.join(" "),
                what: format!("the string \"{} …\" is SQL", start.join(" ")),
                remedy: "give the store a method for it: only the store speaks SQL",
            });
        }
    }
    findings
}

fn is_statement(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [first, rest @ ..] = words.as_slice() else { return false };
    let has_sign = |sign: &Sign| match sign {
        Sign::Next(word) => rest.first().is_some_and(|next| next.eq_ignore_ascii_case(word)),
        Sign::Later(word) => rest.iter().any(|later| later.eq_ignore_ascii_case(word)),
        Sign::None => true,
    };
    let starts = |(keyword, sign): &(&str, Sign)| {
        first == keyword || first.eq_ignore_ascii_case(keyword) && has_sign(sign)
    };
    !rest.is_empty() && STATEMENTS.iter().any(starts)
}
