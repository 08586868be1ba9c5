//! Problems of a tree file, as an error that stops its start.

use std::fmt;
use std::path::{Path, PathBuf};

use spinney::tree_file::{FileProblem, Severity};

/// The errors of a file, one on each line.
#[derive(Debug)]
pub struct TreeFileProblems {
    /// The home that it was read for.
    pub home: PathBuf,
    /// The tree file.
    pub file: PathBuf,
    /// What is wrong, sorted.
    pub errors: Vec<FileProblem>,
    /// What they are about.
    pub kind: ProblemsKind,
}

/// What stops a tree file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemsKind {
    /// Something in the file or its scripts.
    InFile,
    /// Keys that are not set here.
    MissingKeys,
}

impl TreeFileProblems {
    /// Leaves out what does not stop a run.
    #[must_use]
    pub fn new(home: &Path, file: &Path, mut problems: Vec<FileProblem>, kind: ProblemsKind) -> Self {
        problems.retain(|problem| problem.severity == Severity::Error);
        sort(&mut problems);
        Self { home: home.to_owned(), file: file.to_owned(), errors: problems, kind }
    }
}

impl std::error::Error for TreeFileProblems {}

impl fmt::Display for TreeFileProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, errors, kind, .. } = self;
        let (file, count) = (file.display(), errors.len());
        if let [only] = errors.as_slice() {
            return write!(f, "{}", only.what);
        }
        match kind {
            ProblemsKind::InFile => write!(f, "{file} has {count} errors")?,
            ProblemsKind::MissingKeys => write!(f, "{file} cannot run here: {count} keys are missing")?,
        }
        errors.iter().try_for_each(|error| write!(f, "\n{}", error.what))
    }
}

/// Errors first, then by place. What several models or aliases repeat is kept once.
pub fn sort(problems: &mut Vec<FileProblem>) {
    let key = |problem: &FileProblem| {
        let what = &problem.what;
        (problem.severity, what.file.clone(), what.line, what.column, what.message.clone())
    };
    problems.sort_by_key(key);
    problems.dedup();
}
