//! What is wrong with a graph, with its place.

use std::fmt;

use crate::primitives::limit;

/// One problem of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphProblem {
    pub code: ProblemCode,
    /// Where, from the graph down.
    pub path: Vec<PathStep>,
    pub message: String,
    /// What to write instead, if anything better than the opposite is known.
    pub help: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    Key(String),
    Item(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemCode {
    /// Not the kind of value that belongs there, or out of bounds.
    BadValue,
    UnknownField,
    /// A field that must be there is not.
    MissingField,
    UnknownAgent,
    DuplicateId,
    DuplicateOutput,
    /// A name that is read and never written before.
    MissingInput,
    Cycle,
    BadExpression,
    EmptyGroup,
    TooLarge,
}

impl fmt::Display for GraphProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, step) in self.path.iter().enumerate() {
            match step {
                PathStep::Key(key) if place == 0 => f.write_str(key)?,
                PathStep::Key(key) => write!(f, ".{key}")?,
                PathStep::Item(item) => write!(f, "[{item}]")?,
            }
        }
        if !self.path.is_empty() {
            f.write_str(": ")?;
        }
        f.write_str(&self.message)?;
        if self.help.is_empty() { Ok(()) } else { write!(f, ": {}", self.help) }
    }
}

/// The problems so far. Beyond the limit they are only counted.
#[derive(Default)]
pub(super) struct Problems {
    found: Vec<GraphProblem>,
    more: usize,
}

impl Problems {
    pub(super) fn add(
        &mut self,
        code: ProblemCode,
        path: impl FnOnce() -> Vec<PathStep>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        if self.found.len() < limit::GRAPH_PROBLEMS_MAX {
            let (message, help) = (message.into(), help.into());
            self.found.push(GraphProblem { code, path: path(), message, help });
        } else {
            self.more += 1;
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(super) fn into_all(mut self) -> Vec<GraphProblem> {
        if let Some(last) = self.found.last_mut().filter(|_| self.more > 0) {
            last.message = format!("{} (and {} more problems)", last.message, self.more);
        }
        self.found
    }
}
