//! Conditions, templates and values of graphs: a small part of minijinja's language, with a parser and an evaluator of
//! our own. They may come from a model and run inside decisions, so their source, nesting, work and output have bounds
//! (`words/limit.rs`), and nothing in the language builds a value that is larger than what it reads.
//!
//! What a name means is up to the caller, by [`Values`]. Decision 0035 says why minijinja is not used here.

mod compare;
mod evaluate;
mod filter;
mod filtered;
mod node;
mod parse;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::primitives::limit;
use evaluate::Evaluation;
use node::{Node, Span};
use parse::Parser;

/// What the names in an expression stand for.
pub trait Values {
    /// The value of a name, or `None` if it is not defined. Asked at most once for each name of an expression.
    fn value(&self, name: &str) -> Option<Cow<'_, Value>>;
}

impl Values for Map<String, Value> {
    fn value(&self, name: &str) -> Option<Cow<'_, Value>> {
        self.get(name).map(Cow::Borrowed)
    }
}

impl Values for BTreeMap<String, Value> {
    fn value(&self, name: &str) -> Option<Cow<'_, Value>> {
        self.get(name).map(Cow::Borrowed)
    }
}

/// Why a source is not an expression or template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found {found} at byte {at}: {expected}")]
pub struct ExpressionError {
    /// Where in the source, in bytes.
    pub at: usize,
    /// What is there.
    pub found: String,
    /// What can stand there, or what to write instead.
    pub expected: String,
}

/// Why an expression has no value. `part` is the part of the source that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionFault {
    #[error("`{part}` is not defined: test it with `is defined`, or give it a value with `| default(…)`")]
    NotDefined { part: String },
    #[error("`{part}` is {found}, not {wanted}")]
    WrongKind { part: String, found: &'static str, wanted: &'static str },
    #[error("`{part}` compares {left} with {right}: only two numbers or two texts have an order")]
    NoOrder { part: String, left: &'static str, right: &'static str },
    #[error("`{part}` is larger than {bytes_max} bytes: use a part of it, as in `name.key` or `name[0]`")]
    TooLarge { part: String, bytes_max: usize },
    #[error("`{part}` is nested deeper than {depth_max}: use a part of it, as in `name.key` or `name[0]`")]
    TooDeep { part: String, depth_max: usize },
    #[error("the expression takes more than {steps_max} steps: compare smaller parts of its values")]
    TooLong { steps_max: u64 },
}

/// An expression and where it came from. Two of them are equal if their sources are.
#[derive(Clone)]
struct Parsed<T> {
    source: String,
    tree: T,
    /// Top-level names, each once, in the order of their first use.
    names: Vec<String>,
}

impl<T> Parsed<T> {
    fn known<'v>(&self, values: &'v dyn Values) -> Vec<Option<Cow<'v, Value>>> {
        self.names.iter().map(|name| values.value(name)).collect()
    }
}

/// An expression for its value: what `choose` and `map` read.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Expression(Parsed<Node>);

impl Expression {
    /// # Errors
    /// If the source is not in the language, or passes one of its limits.
    pub fn parse(source: &str) -> Result<Self, ExpressionError> {
        let mut parser = Parser::new(source, limit::EXPRESSION_BYTES_MAX)?;
        let tree = parser.expression()?;
        Ok(Self(Parsed { source: source.to_owned(), tree, names: parser.into_names() }))
    }

    /// A copy of its value, of at most [`limit::EXPRESSION_VALUE_BYTES_MAX`] bytes.
    ///
    /// # Errors
    /// If it has no value, or passes a limit.
    pub fn value(&self, values: &dyn Values) -> Result<Value, ExpressionFault> {
        let known = self.0.known(values);
        Evaluation::new(&self.0.source, &known).copy(&self.0.tree)
    }
}

/// An expression that holds or does not hold: `when` and `until`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Condition(Expression);

impl Condition {
    /// # Errors
    /// If the source is not in the language, or passes one of its limits.
    pub fn parse(source: &str) -> Result<Self, ExpressionError> {
        Expression::parse(source).map(Self)
    }

    #[must_use]
    pub fn source(&self) -> &str {
        self.0.source()
    }

    /// The top-level names that it reads, each once.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.names()
    }

    /// Whether its value is true. False are: `false`, `none`, 0, and empty texts, lists and objects.
    ///
    /// # Errors
    /// If it has no value, or passes a limit.
    pub fn holds(&self, values: &dyn Values) -> Result<bool, ExpressionFault> {
        let known = self.0.0.known(values);
        Evaluation::new(&self.0.0.source, &known).holds(&self.0.0.tree)
    }
}

/// Text with `{{ expression }}` in it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Template(Parsed<Vec<Piece>>);

#[derive(Clone)]
enum Piece {
    /// A part of the source.
    Text(Span),
    Expression(Node),
}

impl Template {
    /// # Errors
    /// If the source is not in the language, or passes one of its limits.
    pub fn parse(source: &str) -> Result<Self, ExpressionError> {
        let mut parser = Parser::new(source, limit::TEXT_BYTES_MAX)?;
        let tree = parser.template()?;
        Ok(Self(Parsed { source: source.to_owned(), tree, names: parser.into_names() }))
    }

    /// The text with the values in it: texts as they are, everything else as JSON. At most
    /// [`limit::TEXT_BYTES_MAX`] bytes.
    ///
    /// # Errors
    /// If one of its expressions has no value, or a limit is passed.
    pub fn render(&self, values: &dyn Values) -> Result<String, ExpressionFault> {
        let known = self.0.known(values);
        Evaluation::new(&self.0.source, &known).render(&self.0.tree)
    }
}

/// The parts that are the same for sources of both kinds.
macro_rules! as_its_source {
    ($kind:ident) => {
        impl $kind {
            #[must_use]
            pub fn source(&self) -> &str {
                &self.0.source
            }

            /// The top-level names that it reads, each once.
            pub fn names(&self) -> impl Iterator<Item = &str> {
                self.0.names.iter().map(String::as_str)
            }
        }

        impl PartialEq for $kind {
            fn eq(&self, other: &Self) -> bool {
                self.source() == other.source()
            }
        }

        impl Eq for $kind {}

        impl TryFrom<String> for $kind {
            type Error = ExpressionError;

            fn try_from(source: String) -> Result<Self, ExpressionError> {
                Self::parse(&source)
            }
        }

        impl From<$kind> for String {
            fn from(parsed: $kind) -> Self {
                parsed.0.source
            }
        }
    };
}

as_its_source!(Expression);
as_its_source!(Template);

/// Derived ones would print the tree behind the source.
macro_rules! shown_as_its_source {
    ($($kind:ident)*) => {$(
        impl fmt::Debug for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($kind)).field(&self.source()).finish()
            }
        }

        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.source())
            }
        }
    )*};
}

shown_as_its_source!(Expression Condition Template);

#[cfg(test)]
mod tests;
