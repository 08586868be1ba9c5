//! Reads YAML 1.2. Aliases and merge keys are followed within limits; tags have no meaning here and are refused.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Error, Location, MessageFormatter, Spanned, UserMessageFormatter};

use super::error::TextPosition;
use super::node::{Key, Kind, Node};
use super::value_error::{ValueError, cut};
use super::{NESTING_MAX, VALUES_MAX};

/// Most aliases in one file.
const ALIASES_MAX: usize = 1_000;

pub(super) fn read(text: &str) -> Result<Node, ValueError> {
    read_with(text, DuplicateKeyPolicy::Error)
}

/// Reads a file in which keys are there twice, to find what else is wrong with it.
pub(super) fn read_with_doubled_keys(text: &str) -> Result<Node, ValueError> {
    read_with(text, DuplicateKeyPolicy::FirstWins)
}

fn read_with(text: &str, doubled: DuplicateKeyPolicy) -> Result<Node, ValueError> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: NESTING_MAX,
            max_nodes: VALUES_MAX,
            max_aliases: ALIASES_MAX,
            max_anchors: ALIASES_MAX,
            max_merge_keys: ALIASES_MAX,
            max_documents: 2,
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: VALUES_MAX,
            max_replay_stack_depth: NESTING_MAX,
        },
        duplicate_keys: doubled,
        strict_booleans: true,
        reject_unsupported_tags: true,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        with_snippet: false,
    };
    let node: Result<Spanned<Value>, Error> = serde_saphyr::from_str_with_options(text, options);
    node.map(Node::from).map_err(|error| wrong(&error, text))
}

fn wrong(error: &Error, text: &str) -> ValueError {
    let error = error.without_snippet();
    let place = error.location().map_or(TextPosition::START, place);
    // An error in an alias is reported at the alias.
    let inner = if let Error::AliasError { error, .. } = error { error } else { error };
    described(inner, text, place).at(place)
}

/// Rewords messages that mention parser internals.
fn described(error: &Error, text: &str, place: TextPosition) -> ValueError {
    let passes_a_bound = matches!(
        error,
        Error::Budget { .. }
            | Error::AliasReplayLimitExceeded { .. }
            | Error::AliasReplayStackDepthExceeded { .. }
    );
    if passes_a_bound {
        let bounds = format!("{VALUES_MAX} values, {NESTING_MAX} levels or {ALIASES_MAX} aliases");
        ValueError::new(format!("more than {bounds}")).with_help("a tree file needs far less")
    } else if let Error::DuplicateMappingKey { key, .. } = error {
        let key = cut(key.as_deref().unwrap_or_default());
        ValueError::new(format!("duplicate key `{key}`")).with_help("delete one of them").doubled()
    } else if let Error::MultipleDocuments { .. } = error {
        ValueError::new("a second document begins here").with_help("keep one")
    } else if let Error::UnsupportedTag { tag, .. } = error {
        ValueError::new(format!("unknown tag `{}`", cut(tag))).with_help("delete it")
    } else if let Error::UnknownAnchor { .. } = error {
        ValueError::new("unknown alias").with_help("no `&` with this name comes before it")
    } else if let Error::Unexpected { expected: "string scalar", .. } | Error::NullIntoString { .. } = error {
        ValueError::new("a key must be text")
    } else {
        let message = UserMessageFormatter.format_message(error);
        match tab(text, place, &message) {
            Some(tab) => ValueError::new("a tab indents this line").with_help("indent with spaces").at(tab),
            None => ValueError::new(message),
        }
    }
}

/// The tab that an error is about. The parser places the error behind the tab, or where the text begins that the tab
/// interrupts; and of a tab that ends a text block it knows nothing.
fn tab(text: &str, place: TextPosition, message: &str) -> Option<TextPosition> {
    let mut lines = text.lines().enumerate().skip(place.line - 1).map(|(before, line)| (before + 1, line));
    let of_indentation = |(number, line): (usize, &str)| {
        let column = line.chars().take_while(|c| c.is_whitespace()).position(|c| c == '\t')? + 1;
        Some(TextPosition { line: number, column })
    };
    let own = lines.next()?;
    if let Some(tab) = of_indentation(own) {
        return Some(tab);
    }
    if !message.contains("tab") {
        return None;
    }
    let column = own.1.chars().take(place.column).position(|c| c == '\t').map(|before| before + 1);
    column.map(|column| TextPosition { line: own.0, column }).or_else(|| lines.find_map(of_indentation))
}

fn place(location: Location) -> TextPosition {
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX).max(1);
    TextPosition { line: count(location.line()), column: count(location.column()) }
}

enum Value {
    Plain(Kind),
    List(Vec<Spanned<Value>>),
    Map(Vec<(Spanned<String>, Spanned<Value>)>),
}

impl From<Spanned<Value>> for Node {
    /// The place is where the value was written, not where an alias repeats it.
    fn from(value: Spanned<Value>) -> Self {
        let kind = match value.value {
            Value::Plain(kind) => kind,
            Value::List(items) => Kind::List(items.into_iter().map(Self::from).collect()),
            Value::Map(entries) => {
                let key = |key: Spanned<String>| Key { place: place(key.defined), text: key.value };
                Kind::Map(entries.into_iter().map(|(name, value)| (key(name), Self::from(value))).collect())
            }
        };
        Self { place: place(value.defined), kind }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Plain(Kind::Empty))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Plain(Kind::Bool(value)))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Plain(Kind::Number(number.into())))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Plain(Kind::Number(number.into())))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        let text = || Kind::Text(number.to_string());
        Ok(Value::Plain(Number::from_f64(number).map_or_else(text, Kind::Number)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Plain(Kind::Text(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Value::Map(map))
    }
}
