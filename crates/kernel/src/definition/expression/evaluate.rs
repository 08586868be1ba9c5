//! The value of an expression; `filtered.rs` has the filters. Every node, every element that is compared or copied and every few bytes of text cost a
//! step, and steps are bounded; so are the depth and the size of what is copied.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::io;

use serde_json::{Number, Value};

use super::filter::Filter;
use super::node::{Base, Chain, Compare, Comparison, LinkKind, Node, Span};
use super::parse::excerpt;
use super::{ExpressionFault, Piece, compare};
use crate::primitives::limit;

pub(super) type Outcome<T> = Result<T, ExpressionFault>;

/// The value of a node.
pub(super) enum Evaluated<'e> {
    /// What is missing.
    Undefined(Span),
    Known(Cow<'e, Value>),
}

impl Evaluated<'_> {
    pub(super) fn owned(value: impl Into<Value>) -> Self {
        Self::Known(Cow::Owned(value.into()))
    }
}

pub(super) struct Evaluation<'e> {
    source: &'e str,
    /// The values of the source's names, in their order.
    known: &'e [Option<Cow<'e, Value>>],
    steps: u64,
}

impl<'e> Evaluation<'e> {
    pub(super) const fn new(source: &'e str, known: &'e [Option<Cow<'e, Value>>]) -> Self {
        Self { source, known, steps: 0 }
    }

    pub(super) fn holds(mut self, node: &'e Node) -> Outcome<bool> {
        let value = self.known_value(node)?;
        Ok(is_true(&value))
    }

    pub(super) fn copy(mut self, node: &'e Node) -> Outcome<Value> {
        let value = self.known_value(node)?;
        // Its JSON is what is stored, so that is what is measured.
        self.json(&value, &node.span(), limit::EXPRESSION_VALUE_BYTES_MAX)?;
        Ok(value.into_owned())
    }

    pub(super) fn render(mut self, pieces: &'e [Piece]) -> Outcome<String> {
        let mut text = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(part) => {
                    self.push(&mut text, &self.source[part.clone()], &(0..self.source.len()))?;
                }
                Piece::Expression(node) => {
                    let value = self.known_value(node)?;
                    let span = node.span();
                    match &*value {
                        Value::String(part) => self.push(&mut text, part, &span)?,
                        other => {
                            let left = limit::TEXT_BYTES_MAX - text.len();
                            let part = self.json(other, &span, left)?;
                            self.push(&mut text, &part, &span)?;
                        }
                    }
                }
            }
        }
        Ok(text)
    }

    fn push(&mut self, text: &mut String, part: &str, span: &Span) -> Outcome<()> {
        if part.len() > limit::TEXT_BYTES_MAX - text.len() {
            return Err(self.too_large(span, limit::TEXT_BYTES_MAX));
        }
        self.step_over(part)?;
        text.push_str(part);
        Ok(())
    }

    pub(super) fn known_value(&mut self, node: &'e Node) -> Outcome<Cow<'e, Value>> {
        match self.node(node)? {
            Evaluated::Known(value) => Ok(value),
            Evaluated::Undefined(span) => {
                Err(ExpressionFault::NotDefined { part: excerpt(self.source, &span) })
            }
        }
    }

    pub(super) fn node(&mut self, node: &'e Node) -> Outcome<Evaluated<'e>> {
        self.step(1)?;
        match node {
            Node::Or(parts) => self.first_that_is(true, parts),
            Node::And(parts) => self.first_that_is(false, parts),
            Node::Not(inner) => {
                let value = self.known_value(inner)?;
                Ok(Evaluated::owned(!is_true(&value)))
            }
            Node::Compare(compared) => self.compare(compared).map(Evaluated::owned),
            Node::Chain(chain) => self.chain(chain),
        }
    }

    /// The first part that decides, or the last one.
    fn first_that_is(&mut self, deciding: bool, parts: &'e [Node]) -> Outcome<Evaluated<'e>> {
        let Some((last, others)) = parts.split_last() else { return Ok(Evaluated::owned(!deciding)) };
        for part in others {
            let value = self.known_value(part)?;
            if is_true(&value) == deciding {
                return Ok(Evaluated::Known(value));
            }
        }
        self.node(last)
    }

    fn compare(&mut self, compared: &'e Compare) -> Outcome<bool> {
        let Compare { left, by, right, span } = compared;
        let (first, second) = (self.known_value(left)?, self.known_value(right)?);
        match by {
            Comparison::Equal => self.equal(&first, &second, span, 0),
            Comparison::NotEqual => self.equal(&first, &second, span, 0).map(|equal| !equal),
            Comparison::Less => self.order(&first, &second, span).map(Ordering::is_lt),
            Comparison::LessOrEqual => self.order(&first, &second, span).map(Ordering::is_le),
            Comparison::Greater => self.order(&first, &second, span).map(Ordering::is_gt),
            Comparison::GreaterOrEqual => self.order(&first, &second, span).map(Ordering::is_ge),
            Comparison::In => self.contains(&second, &first, left, right),
            Comparison::NotIn => self.contains(&second, &first, left, right).map(|found| !found),
        }
    }

    /// Numbers by their value; `true` is 1 and `false` is 0, as in Jinja.
    fn equal(&mut self, left: &Value, right: &Value, span: &Span, depth: usize) -> Outcome<bool> {
        self.step(1)?;
        self.check_depth(depth, span)?;
        Ok(match (left, right) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(left), Value::Bool(right)) => left == right,
            (Value::Number(left), Value::Number(right)) => compare::numbers(left, right).is_eq(),
            (Value::Bool(truth), Value::Number(number)) | (Value::Number(number), Value::Bool(truth)) => {
                compare::numbers(number, &Number::from(u8::from(*truth))).is_eq()
            }
            (Value::String(left), Value::String(right)) => {
                self.step_over(if left.len() < right.len() { left } else { right })?;
                left == right
            }
            (Value::Array(left), Value::Array(right)) => {
                if left.len() != right.len() {
                    return Ok(false);
                }
                for (left, right) in left.iter().zip(right) {
                    if !self.equal(left, right, span, depth + 1)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Value::Object(left), Value::Object(right)) => {
                if left.len() != right.len() {
                    return Ok(false);
                }
                for (key, left) in left {
                    self.step_over(key)?;
                    let Some(right) = right.get(key) else { return Ok(false) };
                    if !self.equal(left, right, span, depth + 1)? {
                        return Ok(false);
                    }
                }
                true
            }
            _ => false,
        })
    }

    fn order(&mut self, left: &Value, right: &Value, span: &Span) -> Outcome<Ordering> {
        match (left, right) {
            (Value::Number(left), Value::Number(right)) => Ok(compare::numbers(left, right)),
            (Value::String(left), Value::String(right)) => {
                self.step_over(if left.len() < right.len() { left } else { right })?;
                Ok(left.cmp(right))
            }
            _ => Err(ExpressionFault::NoOrder {
                part: excerpt(self.source, span),
                left: kind(left),
                right: kind(right),
            }),
        }
    }

    fn contains(
        &mut self,
        whole: &Value,
        part: &Value,
        part_node: &Node,
        whole_node: &Node,
    ) -> Outcome<bool> {
        match whole {
            Value::Array(items) => {
                for item in items {
                    if self.equal(item, part, &part_node.span(), 0)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Value::String(whole) => {
                let part = self.text(part, &part_node.span())?;
                self.step_over(whole)?;
                self.step_over(part)?;
                Ok(whole.contains(part))
            }
            Value::Object(whole) => {
                let key = self.text(part, &part_node.span())?;
                self.step_over(key)?;
                Ok(whole.contains_key(key))
            }
            other => Err(self.wrong_kind(&whole_node.span(), kind(other), "a text, a list or an object")),
        }
    }

    fn chain(&mut self, chain: &'e Chain) -> Outcome<Evaluated<'e>> {
        let Chain { base, base_span, links } = chain;
        let mut found = match base {
            Base::Constant(value) => Evaluated::Known(Cow::Borrowed(value)),
            Base::Group(inner) => self.node(inner)?,
            Base::Name(place) => match self.known.get(*place).and_then(Option::as_ref) {
                Some(value) => Evaluated::Known(Cow::Borrowed(&**value)),
                None => Evaluated::Undefined(base_span.clone()),
            },
        };
        let mut before = base_span;
        for link in links {
            self.step(1)?;
            found = match &link.kind {
                LinkKind::IsDefined => Evaluated::owned(matches!(found, Evaluated::Known(_))),
                LinkKind::IsNotDefined => Evaluated::owned(matches!(found, Evaluated::Undefined(_))),
                LinkKind::Key(key) => self.key(found, key, &link.span)?,
                LinkKind::Index(index) => self.index(found, index, &link.span)?,
                LinkKind::Filter(Filter::Default, arguments) => self.default(found, arguments)?,
                LinkKind::Filter(filter, arguments) => match found {
                    Evaluated::Known(value) => self.filter(*filter, value, arguments, before, &link.span)?,
                    Evaluated::Undefined(span) => {
                        return Err(ExpressionFault::NotDefined { part: excerpt(self.source, &span) });
                    }
                },
            };
            before = &link.span;
        }
        Ok(found)
    }

    fn key(&mut self, of: Evaluated<'e>, key: &str, span: &Span) -> Outcome<Evaluated<'e>> {
        self.step_over(key)?;
        Ok(match of {
            Evaluated::Undefined(missing) => Evaluated::Undefined(missing),
            Evaluated::Known(value) => {
                member(value, key).map_or_else(|| Evaluated::Undefined(span.clone()), Evaluated::Known)
            }
        })
    }

    fn index(&mut self, of: Evaluated<'e>, index: &'e Node, span: &Span) -> Outcome<Evaluated<'e>> {
        let by = self.known_value(index)?;
        let value = match of {
            Evaluated::Undefined(missing) => return Ok(Evaluated::Undefined(missing)),
            Evaluated::Known(value) => value,
        };
        let item = match &*by {
            Value::String(key) => {
                self.step_over(key)?;
                member(value, key)
            }
            Value::Number(number) if compare::integer(number).is_some() => {
                if let Value::String(text) = &*value {
                    self.step_over(text)?;
                }
                compare::integer(number).and_then(|place| item(value, place))
            }
            other => return Err(self.wrong_kind(&index.span(), kind(other), "an integer or a text")),
        };
        Ok(item.map_or_else(|| Evaluated::Undefined(span.clone()), Evaluated::Known))
    }

    /// Compact JSON of at most so many bytes.
    pub(super) fn json(&mut self, value: &Value, span: &Span, bytes_max: usize) -> Outcome<String> {
        self.walk(value, span, 0)?;
        let mut bytes = Bounded { bytes: Vec::new(), bytes_max };
        match serde_json::to_writer(&mut bytes, value) {
            Ok(()) => Ok(String::from_utf8_lossy(&bytes.bytes).into_owned()),
            Err(_) => Err(self.too_large(span, bytes_max)),
        }
    }

    /// Pays for every element of a value before it is copied.
    fn walk(&mut self, value: &Value, span: &Span, depth: usize) -> Outcome<()> {
        self.step(1)?;
        self.check_depth(depth, span)?;
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
            Value::String(text) => self.step_over(text),
            Value::Array(items) => items.iter().try_for_each(|item| self.walk(item, span, depth + 1)),
            Value::Object(members) => members.iter().try_for_each(|(key, member)| {
                self.step_over(key)?;
                self.walk(member, span, depth + 1)
            }),
        }
    }

    pub(super) fn text<'t>(&self, value: &'t Value, span: &Span) -> Outcome<&'t str> {
        value.as_str().ok_or_else(|| self.wrong_kind(span, kind(value), "a text"))
    }

    pub(super) fn step_over(&mut self, text: &str) -> Outcome<()> {
        self.step(1 + (text.len() / limit::EXPRESSION_STEP_BYTES) as u64)
    }

    fn step(&mut self, steps: u64) -> Outcome<()> {
        self.steps += steps;
        if self.steps <= limit::EXPRESSION_STEPS_MAX {
            return Ok(());
        }
        Err(ExpressionFault::TooLong { steps_max: limit::EXPRESSION_STEPS_MAX })
    }

    fn check_depth(&self, depth: usize, span: &Span) -> Outcome<()> {
        if depth <= limit::EXPRESSION_VALUE_DEPTH_MAX {
            return Ok(());
        }
        let part = excerpt(self.source, span);
        Err(ExpressionFault::TooDeep { part, depth_max: limit::EXPRESSION_VALUE_DEPTH_MAX })
    }

    pub(super) fn too_large(&self, span: &Span, bytes_max: usize) -> ExpressionFault {
        ExpressionFault::TooLarge { part: excerpt(self.source, span), bytes_max }
    }

    pub(super) fn wrong_kind(
        &self,
        span: &Span,
        found: &'static str,
        wanted: &'static str,
    ) -> ExpressionFault {
        ExpressionFault::WrongKind { part: excerpt(self.source, span), found, wanted }
    }
}

/// Fails once it is full, so nothing large is ever built.
struct Bounded {
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        if part.len() > self.bytes_max - self.bytes.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(part);
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn member<'e>(value: Cow<'e, Value>, key: &str) -> Option<Cow<'e, Value>> {
    match value {
        Cow::Borrowed(value) => value.as_object()?.get(key).map(Cow::Borrowed),
        Cow::Owned(Value::Object(mut members)) => members.swap_remove(key).map(Cow::Owned),
        Cow::Owned(_) => None,
    }
}

/// Counted from the end if it is negative.
pub(super) fn item(value: Cow<'_, Value>, place: i128) -> Option<Cow<'_, Value>> {
    let place_in = |length: usize| {
        let from_start = if place < 0 { place + i128::try_from(length).ok()? } else { place };
        usize::try_from(from_start).ok().filter(|place| *place < length)
    };
    match value {
        Cow::Borrowed(Value::Array(items)) => items.get(place_in(items.len())?).map(Cow::Borrowed),
        Cow::Owned(Value::Array(mut items)) => {
            let place = place_in(items.len())?;
            Some(Cow::Owned(items.swap_remove(place)))
        }
        value => {
            let text = value.as_str()?;
            let letter = text.chars().nth(place_in(text.chars().count())?)?;
            Some(Cow::Owned(Value::String(letter.to_string())))
        }
    }
}

pub(super) fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Number(number) => compare::numbers(number, &Number::from(0)).is_ne(),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

pub(super) const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "none",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
