//! An expression as it was parsed. Whatever can be long is a list, so its depth is what parentheses and brackets
//! make it, and that is bounded.

use std::ops::Range;

use serde_json::Value;

use super::filter::Filter;

/// A place in the source, in bytes.
pub(super) type Span = Range<usize>;

#[derive(Clone)]
pub(super) enum Node {
    /// `a or b or c`: the first that is true, or the last.
    Or(Vec<Node>),
    /// `a and b and c`: the first that is false, or the last.
    And(Vec<Node>),
    Not(Box<Node>),
    Compare(Box<Compare>),
    Chain(Chain),
}

#[derive(Clone)]
pub(super) struct Compare {
    pub(super) left: Node,
    pub(super) by: Comparison,
    pub(super) right: Node,
    pub(super) span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
}

/// A value and what is done to it, from left to right.
#[derive(Clone)]
pub(super) struct Chain {
    pub(super) base: Base,
    pub(super) base_span: Span,
    pub(super) links: Vec<Link>,
}

#[derive(Clone)]
pub(super) enum Base {
    Constant(Value),
    /// Its place among the names of the source.
    Name(usize),
    Group(Box<Node>),
}

#[derive(Clone)]
pub(super) struct Link {
    pub(super) kind: LinkKind,
    /// From the start of the chain to the end of this link.
    pub(super) span: Span,
}

#[derive(Clone)]
pub(super) enum LinkKind {
    Key(String),
    Index(Node),
    Filter(Filter, Vec<Node>),
    IsDefined,
    IsNotDefined,
}

impl Node {
    pub(super) fn span(&self) -> Span {
        match self {
            Self::Or(parts) | Self::And(parts) => match (parts.first(), parts.last()) {
                (Some(first), Some(last)) => first.span().start..last.span().end,
                _ => 0..0,
            },
            Self::Not(inner) => inner.span(),
            Self::Compare(compare) => compare.span.clone(),
            Self::Chain(chain) => chain.links.last().map_or(&chain.base_span, |link| &link.span).clone(),
        }
    }
}
