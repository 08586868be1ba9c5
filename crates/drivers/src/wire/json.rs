//! JSON as strangers send it and as we send it: counts that may be nonsense, and objects whose raw parts stay as they are.

use serde::de::DeserializeOwned;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::fault::WireFault;

/// Reads one event or body.
pub(super) fn read<T: DeserializeOwned>(what: &str, text: &str) -> Result<T, WireFault> {
    serde_json::from_str(text).map_err(|error| WireFault::malformed(what, &error))
}

/// The kind of an event or a block, which decides whether the rest is read at all.
#[derive(Debug, Deserialize)]
pub(super) struct Kind {
    #[serde(default, rename = "type")]
    pub(super) kind: String,
}

/// A count. Anything else counts as missing: a strange number must not end an answer.
pub(super) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(Value::deserialize(deserializer)?.as_u64())
}

/// An object that is written in the order in which it is filled. Raw values in it keep their bytes, which those in a
/// [`Value`] do not.
#[derive(Debug, Default)]
pub(super) struct Object(Vec<Member>);

#[derive(Debug)]
struct Member {
    name: &'static str,
    value: Box<RawValue>,
}

impl Object {
    pub(super) fn put<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> serde_json::Result<()> {
        self.0.push(Member { name, value: to_raw_value(value)? });
        Ok(())
    }

    /// Nothing is written for what is missing.
    pub(super) fn put_some<T: Serialize>(
        &mut self,
        name: &'static str,
        value: Option<&T>,
    ) -> serde_json::Result<()> {
        value.map_or(Ok(()), |value| self.put(name, value))
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As a raw value.
    pub(super) fn raw(&self) -> serde_json::Result<Box<RawValue>> {
        to_raw_value(self)
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for member in &self.0 {
            map.serialize_entry(member.name, &member.value)?;
        }
        map.end()
    }
}
