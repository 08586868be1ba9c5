//! Problems of a tree file: as an error that stops a command, and with the lines that they are about.

use std::fmt;
use std::path::Path;

use serde_json::{Value, json};
use spinney::tree_file::{FileProblem, Severity};

use super::source::Text;
use crate::hint;

/// Longest part of a line that is shown.
const SHOWN_CHARS_MAX: usize = 100;

/// The errors of a file, one on each line.
#[derive(Debug)]
pub(crate) struct Problems {
    file: String,
    errors: Vec<FileProblem>,
    /// The command that shows them with their lines.
    check: String,
}

impl Problems {
    /// Leaves out what does not stop a run.
    pub(crate) fn errors_of(home: &Path, file: &Path, mut problems: Vec<FileProblem>) -> Self {
        problems.retain(|problem| problem.severity == Severity::Error);
        sort(&mut problems);
        let file = file.display().to_string();
        let check = hint::command(home, &["check", &file]);
        Self { file, errors: problems, check }
    }
}

impl std::error::Error for Problems {}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, errors, check } = self;
        if let [only] = errors.as_slice() {
            return write!(f, "{}", only.what);
        }
        write!(f, "{file} has {} errors; to see their lines: {check}", errors.len())?;
        errors.iter().try_for_each(|error| write!(f, "\n{}", error.what))
    }
}

/// Errors first, then by place. What several models or aliases repeat is kept once.
pub(crate) fn sort(problems: &mut Vec<FileProblem>) {
    let key = |problem: &FileProblem| {
        let what = &problem.what;
        (problem.severity, what.file.clone(), what.line, what.column, what.message.clone())
    };
    problems.sort_by_key(key);
    problems.dedup();
}

/// A problem with the line that it is about, and what to write instead.
pub(crate) fn shown(problem: &FileProblem, texts: &[Text]) -> String {
    let what = &problem.what;
    let (file, line, column) = (&what.file, what.line, what.column);
    let mut shown = format!("{file}:{line}:{column}: {}: {}", problem.severity.word(), what.message);
    let help = what.help.as_deref().unwrap_or_default();
    match excerpt(problem, texts) {
        Some((text, at)) => {
            let number = line.to_string();
            let (margin, before) = (" ".repeat(number.len()), " ".repeat(at));
            shown += &format!("\n  {number} | {text}\n  {margin} | {before}^ {help}");
        }
        None if help.is_empty() => {}
        None => shown += &format!("\n    {help}"),
    }
    shown.truncate(shown.trim_end().len());
    shown
}

/// A problem for programs.
pub(crate) fn json(problem: &FileProblem, texts: &[Text]) -> Value {
    let what = &problem.what;
    json!({
        "severity": problem.severity.word(),
        "file": what.file,
        "line": what.line,
        "column": what.column,
        "message": what.message,
        "remedy": what.help,
        "text": line(problem, texts).map(|text| text.chars().take(SHOWN_CHARS_MAX).collect::<String>()),
    })
}

fn line<'t>(problem: &FileProblem, texts: &'t [Text]) -> Option<&'t str> {
    let text = texts.iter().find(|text| text.name == problem.what.file)?;
    text.text.lines().nth(problem.what.line.checked_sub(1)?)
}

/// The part of the line around the problem, and how many characters of it stand before the problem.
fn excerpt(problem: &FileProblem, texts: &[Text]) -> Option<(String, usize)> {
    let line = line(problem, texts)?;
    let column = problem.what.column.saturating_sub(1);
    // A long line is shown from a little before the problem.
    let skipped = if column < SHOWN_CHARS_MAX - 20 { 0 } else { column - 20 };
    let plain = |c: char| if c.is_whitespace() { ' ' } else { c };
    let mut text: String = line.chars().skip(skipped).take(SHOWN_CHARS_MAX).map(plain).collect();
    let is_cut = line.chars().nth(skipped + SHOWN_CHARS_MAX).is_some();
    if is_cut {
        text.push('…');
    }
    let (text, at) = match skipped {
        0 => (text, column),
        _ => (format!("…{text}"), column - skipped + 1),
    };
    // A line may end before the place, such as where a value is missing.
    let at = at.min(text.chars().count());
    (!text.trim().is_empty()).then_some((text, at))
}
