//! An error in a tree file with its place: one line that an editor can jump to.

use std::fmt;

use super::hint_format;

/// A place in a text; line and column start at one, and the column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TextPosition {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl TextPosition {
    pub(super) const START: Self = Self { line: 1, column: 1 };

    /// The place after this character.
    pub(super) fn after(self, c: char) -> Self {
        match c {
            '\n' => Self { line: self.line + 1, column: 1 },
            _ => Self { line: self.line, column: self.column + 1 },
        }
    }
}

/// Why a tree file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The file's name, as it was given.
    pub file: String,
    /// From one.
    pub line: usize,
    /// In characters, from one.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
}

impl FileError {
    pub(super) fn new(file: &str, place: TextPosition, message: impl Into<String>) -> Self {
        let TextPosition { line, column } = place;
        Self { file: file.to_owned(), line, column, message: printable(&message.into()), help: None }
    }

    /// An error at a line and a column of a file, for what a tree file names.
    #[must_use]
    pub fn at(file: &str, place: (u64, u64), message: impl Into<String>) -> Self {
        let count = |number| usize::try_from(number).unwrap_or(usize::MAX);
        Self::new(file, TextPosition { line: count(place.0), column: count(place.1) }, message)
    }

    /// The file has nothing except comments.
    pub(super) fn empty(file: &str, place: TextPosition) -> Self {
        Self::new(file, place, "the file is empty").with_help("a tree needs a name, models and agents")
    }

    /// Adds what to write instead: YAML in backticks is shown in the format of the file.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        let help = hint_format::for_file(&self.file, &help.into());
        self.help = Some(printable(&help)).filter(|help| !help.is_empty());
        self
    }
}

impl std::error::Error for FileError {}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, message, help } = self;
        write!(f, "{file}:{line}:{column}: {message}")?;
        help.iter().try_for_each(|help| write!(f, ": {help}"))
    }
}

/// Everything that is wrong with a file, by place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileErrors {
    /// At least one, except beside a file that could be read.
    pub errors: Vec<FileError>,
}

impl FileErrors {
    /// Sorts them. An alias repeats the errors of what it stands for; each is kept once.
    pub(super) fn new(mut errors: Vec<FileError>) -> Self {
        errors.sort_by(|a, b| (a.line, a.column, &a.message).cmp(&(b.line, b.column, &b.message)));
        errors.dedup();
        Self { errors }
    }
}

impl std::error::Error for FileErrors {}

impl fmt::Display for FileErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut between = "";
        for error in &self.errors {
            write!(f, "{between}{error}")?;
            between = "\n";
        }
        Ok(())
    }
}

/// On one line: a message repeats the input, which may contain anything.
fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}
