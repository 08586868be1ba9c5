//! What each filter gives.

use std::borrow::Cow;

use serde_json::{Number, Value};

use super::compare::{self, Decimal};
use super::evaluate::{Evaluated, Evaluation, Outcome, is_true, item, kind};
use super::filter::Filter;
use super::node::{Node, Span};
use crate::primitives::limit;

impl<'e> Evaluation<'e> {
    /// Its first argument in place of what is not defined and, with a true second one, of what is not true.
    pub(super) fn default(&mut self, found: Evaluated<'e>, arguments: &'e [Node]) -> Outcome<Evaluated<'e>> {
        let instead = match arguments.first() {
            Some(node) => self.node(node)?,
            None => Evaluated::owned(""),
        };
        let also_false = match arguments.get(1) {
            Some(node) => is_true(&*self.known_value(node)?),
            None => false,
        };
        match found {
            Evaluated::Known(value) if !also_false || is_true(&value) => Ok(Evaluated::Known(value)),
            Evaluated::Known(_) | Evaluated::Undefined(_) => Ok(instead),
        }
    }

    pub(super) fn filter(
        &mut self,
        filter: Filter,
        value: Cow<'e, Value>,
        arguments: &'e [Node],
        before: &Span,
        span: &Span,
    ) -> Outcome<Evaluated<'e>> {
        Ok(match filter {
            Filter::Default => Evaluated::Known(value),
            Filter::First => self.end(value, 0, before, span)?,
            Filter::Last => self.end(value, -1, before, span)?,
            Filter::Length => Evaluated::owned(match &*value {
                Value::String(text) => {
                    self.step_over(text)?;
                    text.chars().count()
                }
                Value::Array(items) => items.len(),
                Value::Object(members) => members.len(),
                other => return Err(self.wrong_kind(before, kind(other), "a text, a list or an object")),
            }),
            Filter::Lower => self.changed(&value, before, span, |text| text.to_lowercase())?,
            Filter::Upper => self.changed(&value, before, span, |text| text.to_uppercase())?,
            Filter::Trim => self.changed(&value, before, span, |text| text.trim().to_owned())?,
            Filter::Json => Evaluated::owned(self.json(&value, span, limit::EXPRESSION_VALUE_BYTES_MAX)?),
            Filter::Int => self.int(&value, arguments, before, span)?,
            Filter::Join => self.join(&value, arguments, before, span)?,
        })
    }

    /// The first or last item.
    fn end(
        &mut self,
        value: Cow<'e, Value>,
        place: i128,
        before: &Span,
        span: &Span,
    ) -> Outcome<Evaluated<'e>> {
        match &*value {
            Value::String(text) => self.step_over(text)?,
            Value::Array(_) => {}
            other => return Err(self.wrong_kind(before, kind(other), "a text or a list")),
        }
        Ok(item(value, place).map_or_else(|| Evaluated::Undefined(span.clone()), Evaluated::Known))
    }

    fn changed(
        &mut self,
        value: &Value,
        before: &Span,
        span: &Span,
        change: fn(&str) -> String,
    ) -> Outcome<Evaluated<'e>> {
        let text = self.text(value, before)?;
        self.step_over(text)?;
        // One character becomes at most three.
        if text.len() > limit::EXPRESSION_VALUE_BYTES_MAX {
            return Err(self.too_large(before, limit::EXPRESSION_VALUE_BYTES_MAX));
        }
        let changed = change(text);
        if changed.len() > limit::EXPRESSION_VALUE_BYTES_MAX {
            return Err(self.too_large(span, limit::EXPRESSION_VALUE_BYTES_MAX));
        }
        Ok(Evaluated::owned(changed))
    }

    /// Decimals lose their fraction. Texts are read as numbers; with an argument, that is what all others become.
    fn int(
        &mut self,
        value: &Value,
        arguments: &'e [Node],
        before: &Span,
        span: &Span,
    ) -> Outcome<Evaluated<'e>> {
        const WANTED: &str = "a number that fits 64 bits, or a text that is one";
        let integer = match value {
            Value::Null if arguments.is_empty() => Some(0),
            Value::Bool(truth) => Some(i128::from(*truth)),
            Value::Number(number) => compare::integer(number).or_else(|| compare::whole_part(number)),
            Value::String(text) if text.len() <= limit::NAME_BYTES_MAX => integer_of(text),
            Value::String(_) | Value::Null => None,
            Value::Array(_) | Value::Object(_) => return Err(self.wrong_kind(before, kind(value), WANTED)),
        };
        let number = integer.and_then(number_of);
        match (number, arguments.first()) {
            (Some(number), _) => Ok(Evaluated::owned(Value::Number(number))),
            (None, Some(instead)) => self.known_value(instead).map(Evaluated::Known),
            (None, None) => Err(self.wrong_kind(span, "no integer", WANTED)),
        }
    }

    /// Texts as they are, everything else as JSON.
    fn join(
        &mut self,
        value: &Value,
        arguments: &'e [Node],
        before: &Span,
        span: &Span,
    ) -> Outcome<Evaluated<'e>> {
        let Value::Array(items) = value else { return Err(self.wrong_kind(before, kind(value), "a list")) };
        let between = match arguments.first() {
            Some(node) => Some((self.known_value(node)?, node.span())),
            None => None,
        };
        let between = match &between {
            Some((value, span)) => self.text(value, span)?,
            None => "",
        };
        let mut joined = String::new();
        for (place, item) in items.iter().enumerate() {
            let left = limit::EXPRESSION_VALUE_BYTES_MAX - joined.len();
            let written = match item {
                Value::String(text) => Cow::Borrowed(text.as_str()),
                other => Cow::Owned(self.json(other, span, left)?),
            };
            let between = if place == 0 { "" } else { between };
            if between.len().saturating_add(written.len()) > left {
                return Err(self.too_large(span, limit::EXPRESSION_VALUE_BYTES_MAX));
            }
            self.step_over(between)?;
            self.step_over(&written)?;
            joined.push_str(between);
            joined.push_str(&written);
        }
        Ok(Evaluated::owned(joined))
    }
}

fn integer_of(text: &str) -> Option<i128> {
    text.parse().ok().or_else(|| Decimal::read(text)?.whole_part())
}

fn number_of(integer: i128) -> Option<Number> {
    i64::try_from(integer).map(Number::from).or_else(|_| u64::try_from(integer).map(Number::from)).ok()
}
