//! Reads TOML. A date is treated as text: no key takes one.

use std::borrow::Cow;

use serde_json::Number;
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::error::TextPosition;
use super::node::{self, Key, Kind, Node};
use super::source::Source;
use super::value_error::{ValueError, cut};

pub(super) fn read(text: &str) -> Result<Node, ValueError> {
    let source = Source::new(text);
    let table = DeTable::parse(text).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        let wrong = match (error.message(), text.get(span.clone())) {
            ("duplicate key", Some(key)) => {
                ValueError::new(format!("duplicate key `{}`", cut(key))).with_help("delete one of them")
            }
            (message, _) => ValueError::new(message.replace('\n', ", ")),
        };
        wrong.at(source.place(span.start))
    })?;
    let kind = Reader { source }.table(table.get_ref(), 0)?;
    Ok(Node { place: TextPosition::START, kind })
}

struct Reader<'a> {
    source: Source<'a>,
}

impl Reader<'_> {
    fn node(&self, value: &Spanned<DeValue<'_>>, level: usize) -> Result<Node, ValueError> {
        let place = self.source.value(value.span().start, level)?;
        let kind = match value.get_ref() {
            DeValue::String(text) => Kind::Text(text.to_string()),
            DeValue::Integer(number) => integer(number).map_err(|wrong| wrong.at(place))?,
            DeValue::Float(number) => {
                let text = number.as_str();
                let finite = text.parse().ok().and_then(Number::from_f64);
                finite.map_or_else(|| Kind::Text(text.to_owned()), Kind::Number)
            }
            DeValue::Boolean(value) => Kind::Bool(*value),
            DeValue::Datetime(date) => Kind::Text(date.to_string()),
            DeValue::Array(items) => {
                let nodes = items.iter().map(|item| self.node(item, level + 1));
                Kind::List(nodes.collect::<Result<_, ValueError>>()?)
            }
            DeValue::Table(table) => self.table(table, level)?,
        };
        Ok(Node { place, kind })
    }

    /// The parser sorts its tables; restore the file's order.
    fn table(&self, table: &DeTable<'_>, level: usize) -> Result<Kind, ValueError> {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let entry = |(key, value): (&Spanned<Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
            let place = self.source.place(key.span().start);
            let text = key.get_ref().to_string();
            Ok((Key { place, text }, self.node(value, level + 1)?))
        };
        node::map(entries.into_iter().map(entry).collect::<Result<_, ValueError>>()?)
    }
}

fn integer(number: &DeInteger<'_>) -> Result<Kind, ValueError> {
    let (text, radix) = (number.as_str(), number.radix());
    let positive = u64::from_str_radix(text, radix).ok().map(Number::from);
    let number = positive.or_else(|| i64::from_str_radix(text, radix).ok().map(Number::from));
    number.map(Kind::Number).ok_or_else(|| ValueError::new(format!("the number {text} is too large")))
}
