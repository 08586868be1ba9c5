//! From nodes to typed keys: a serde deserializer whose errors know their place.
//!
//! It is stricter than most: a key without a value is an error, because its author meant something, and a map is
//! never read from a list.

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::node::{Key, Kind, Node, OwnedStep};
use super::value_error::{ValueError, cut};

impl Node {
    fn unexpected(&self) -> Unexpected<'_> {
        match &self.kind {
            Kind::Empty => Unexpected::Unit,
            Kind::Bool(value) => Unexpected::Bool(*value),
            Kind::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => Unexpected::Unsigned(number),
                (None, Some(number)) => Unexpected::Signed(number),
                (None, None) => Unexpected::Float(number.as_f64().unwrap_or_default()),
            },
            Kind::Text(text) => Unexpected::Str(text),
            Kind::List(_) => Unexpected::Seq,
            Kind::Map(_) => Unexpected::Map,
        }
    }
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = ValueError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        let value = match &self.kind {
            Kind::Empty => visitor.visit_unit(),
            Kind::Bool(value) => visitor.visit_bool(*value),
            Kind::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => visitor.visit_u64(number),
                (None, Some(number)) => visitor.visit_i64(number),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or_default()),
            },
            Kind::Text(text) => visitor.visit_borrowed_str(text),
            Kind::List(items) => visitor.visit_seq(Items { rest: items.iter().enumerate() }),
            Kind::Map(entries) => visitor.visit_map(Entries { rest: entries.iter(), entry: None }),
        };
        value.map_err(|wrong| wrong.at(self.place))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match &self.kind {
            Kind::Empty => {
                Err(ValueError::new("the value is missing").with_help("write a value, or delete the key"))
            }
            Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::List(_) | Kind::Map(_) => {
                visitor.visit_some(self)
            }
        }
        .map_err(|wrong| wrong.at(self.place))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        if let Kind::Map(_) = &self.kind {
            return self.deserialize_any(visitor);
        }
        Err(ValueError::invalid_type(self.unexpected(), &visitor).at(self.place))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        let variant = match &self.kind {
            Kind::Text(text) => Some(Variant { name: text, value: None }),
            Kind::Map(entries) => match entries.as_slice() {
                [(key, value)] => Some(Variant { name: &key.text, value: Some(value) }),
                _ => None,
            },
            Kind::Empty | Kind::Bool(_) | Kind::Number(_) | Kind::List(_) => None,
        };
        let expected = format!("one of {}", known.join(", "));
        variant
            .ok_or_else(|| ValueError::invalid_type(self.unexpected(), &expected.as_str()))
            .and_then(|variant| visitor.visit_enum(variant))
            .map_err(|wrong| wrong.at(self.place))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map identifier ignored_any
    }
}

struct Items<'de> {
    rest: std::iter::Enumerate<std::slice::Iter<'de, Node>>,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = ValueError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ValueError> {
        let Some((at, item)) = self.rest.next() else { return Ok(None) };
        let read = seed.deserialize(item).map(Some);
        read.map_err(|wrong| wrong.at(item.place).within(OwnedStep::Item(at)))
    }
}

struct Entries<'de> {
    rest: std::slice::Iter<'de, (Key, Node)>,
    entry: Option<&'de (Key, Node)>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = ValueError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ValueError> {
        let Some(entry) = self.rest.next() else { return Ok(None) };
        self.entry = Some(entry);
        let (key, _) = entry;
        let text: StrDeserializer<'_, ValueError> = key.text.as_str().into_deserializer();
        let read = seed.deserialize(text).map(Some);
        read.map_err(|wrong| wrong.of_key().at(key.place).within(OwnedStep::Key(key.text.clone())))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ValueError> {
        let (key, value) =
            self.entry.take().ok_or_else(|| ValueError::new("a value was read before its key"))?;
        let read = seed.deserialize(value);
        read.map_err(|wrong| wrong.at(value.place).within(OwnedStep::Key(key.text.clone())))
    }
}

/// A variant's name, or its name and value.
struct Variant<'de> {
    name: &'de str,
    value: Option<&'de Node>,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = ValueError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), ValueError> {
        let name: StrDeserializer<'_, ValueError> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = ValueError;

    fn unit_variant(self) -> Result<(), ValueError> {
        let Some(value) = self.value else { return Ok(()) };
        Err(ValueError::new(format!("`{}` takes no value", cut(self.name))).at(value.place))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ValueError> {
        let name = self.name;
        let value = self.value.ok_or_else(|| {
            ValueError::new(format!("`{name}` needs a value")).with_help(format!("write `{{ {name}: … }}`"))
        })?;
        let read = seed.deserialize(value);
        read.map_err(|wrong| wrong.at(value.place).within(OwnedStep::Key(name.to_owned())))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, ValueError> {
        Err(ValueError::invalid_type(Unexpected::TupleVariant, &visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        Err(ValueError::invalid_type(Unexpected::StructVariant, &visitor))
    }
}
