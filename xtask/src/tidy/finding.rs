//! One thing that is untidy: which rule it breaks, where, and what to do about it.

use std::fmt;

/// What a rule found. The order is that of reading: by file, then by line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file.
    pub path: String,
    /// The line in it; 1 for the file as a whole.
    pub line: usize,
    /// The rule's name, which an [`Exception`](super::Exception) repeats.
    pub rule: &'static str,
    /// The function, type, file or package that is at fault.
    pub item: String,
    /// What is wrong, with the numbers.
    pub what: String,
    /// What to do about it.
    pub remedy: &'static str,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, rule, what, remedy, item: _ } = self;
        write!(f, "{path}:{line}: {rule}: {what}; {remedy}")
    }
}
