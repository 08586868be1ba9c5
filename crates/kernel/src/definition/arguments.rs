//! One argument of a tool call, read without the others. An object that has it twice is read differently by different
//! readers, so every value is returned.

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

/// Every value that an object has for a key, in order. `None` if the text is not an object.
pub(super) fn values(args: &str, key: &str) -> Option<Vec<Value>> {
    serde_json::Deserializer::from_str(args).deserialize_map(Values(key)).ok()
}

struct Values<'a>(&'a str);

impl<'de> Visitor<'de> for Values<'_> {
    type Value = Vec<Value>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<Value>, A::Error> {
        let mut found = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            if key == self.0 {
                found.push(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}
