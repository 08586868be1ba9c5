//! A problem of a tree file with the line that it is about.

use std::fmt;
use std::path::Path;

use serde::Serialize;
use spinney::tree_file::{FileProblem, Severity};

use crate::tree_file::masked::masked;
use crate::tree_file::source::Text;

/// Longest part of a line that is shown.
const SHOWN_CHARS_MAX: usize = 100;

/// A problem, where it is, and what to write instead.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct CheckedProblem {
    /// How serious it is.
    pub severity: &'static str,
    /// The file that it is in.
    pub file: String,
    /// Its line; unknown if the file cannot be read.
    pub line: Option<usize>,
    /// Its column.
    pub column: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub remedy: Option<String>,
    /// The line, without anything that may be secret.
    pub text: Option<String>,
    /// The part of the line around the problem, and how many characters of it stand before the problem.
    #[serde(skip)]
    excerpt: Option<(String, usize)>,
}

impl CheckedProblem {
    pub(super) fn new(problem: &FileProblem, texts: &[Text]) -> Self {
        let what = &problem.what;
        let text = line(problem, texts);
        Self {
            severity: problem.severity.as_str(),
            file: what.file.clone(),
            line: Some(what.line),
            column: Some(what.column),
            message: what.message.clone(),
            remedy: what.help.clone(),
            text: text.map(|text| text.chars().take(SHOWN_CHARS_MAX).collect()),
            excerpt: excerpt(problem, texts),
        }
    }

    /// The whole file cannot be read.
    pub(super) fn unread(file: &Path, message: String) -> Self {
        Self {
            severity: Severity::Error.as_str(),
            file: file.display().to_string(),
            line: None,
            column: None,
            message,
            remedy: None,
            text: None,
            excerpt: None,
        }
    }
}

/// With the line that it is about, and what to write instead.
impl fmt::Display for CheckedProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { severity, file, message, .. } = self;
        let mut shown = file.clone();
        for number in [self.line, self.column].into_iter().flatten() {
            shown += &format!(":{number}");
        }
        shown += &format!(": {severity}: {message}");
        let help = self.remedy.as_deref().unwrap_or_default();
        match &self.excerpt {
            Some((text, at)) => {
                let number = self.line.unwrap_or_default().to_string();
                let (margin, before) = (" ".repeat(number.len()), " ".repeat(*at));
                shown += &format!("\n  {number} | {text}\n  {margin} | {before}^ {help}");
            }
            None if help.is_empty() => {}
            None => shown += &format!("\n    {help}"),
        }
        f.write_str(shown.trim_end())
    }
}

fn line(problem: &FileProblem, texts: &[Text]) -> Option<String> {
    let text = texts.iter().find(|text| text.name == problem.what.file)?;
    text.text.lines().nth(problem.what.line.checked_sub(1)?).map(masked)
}

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
