//! Reads JSON. The parser gives no places, but returns slices of the file's text for values, whose offset is their
//! place.

use std::fmt;

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Deserializer, Error};

use super::node::{self, Key, Kind, Node};
use super::source::Source;
use super::value_error::ValueError;

pub(super) fn read(text: &str) -> Result<Node, ValueError> {
    let source = Source::new(text);
    let whole: &RawValue = serde_json::from_str(text).map_err(|error| {
        let lines_before = error.line().saturating_sub(1);
        let line_start: usize = text.split_inclusive('\n').take(lines_before).map(str::len).sum();
        ValueError::new(described(&error)).at(source.place(line_start + error.column().saturating_sub(1)))
    })?;
    Reader { source }.node(whole, 0)
}

struct Reader<'a> {
    source: Source<'a>,
}

impl<'a> Reader<'a> {
    fn node(&self, value: &'a RawValue, level: usize) -> Result<Node, ValueError> {
        let place = self.source.value(self.source.offset(value.get()), level)?;
        let kind = self.kind(value.get(), level).map_err(|wrong| wrong.at(place))?;
        Ok(Node { place, kind })
    }

    fn kind(&self, json: &'a str, level: usize) -> Result<Kind, ValueError> {
        match json.as_bytes().first() {
            Some(b'{') => {
                let entries = Deserializer::from_str(json).deserialize_map(Entries)?;
                let entry = |(key, value): (&'a RawValue, &'a RawValue)| {
                    let text: String = serde_json::from_str(key.get())?;
                    let place = self.source.place(self.source.offset(key.get()));
                    Ok((Key { place, text }, self.node(value, level + 1)?))
                };
                node::map(entries.into_iter().map(entry).collect::<Result<_, ValueError>>()?)
            }
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(json)?;
                let nodes = items.into_iter().map(|item| self.node(item, level + 1));
                nodes.collect::<Result<_, ValueError>>().map(Kind::List)
            }
            Some(b'"') => serde_json::from_str(json).map(Kind::Text).map_err(ValueError::from),
            Some(b't') => Ok(Kind::Bool(true)),
            Some(b'f') => Ok(Kind::Bool(false)),
            Some(b'n') => Ok(Kind::Empty),
            Some(_) | None => serde_json::from_str(json).map(Kind::Number).map_err(ValueError::from),
        }
    }
}

impl From<Error> for ValueError {
    fn from(error: Error) -> Self {
        Self::new(described(&error))
    }
}

/// The message without the parser's own place.
fn described(error: &Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Vec<(&'de RawValue, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(entries)
    }
}
