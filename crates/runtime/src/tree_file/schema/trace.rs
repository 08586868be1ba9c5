//! Follows the `Deserialize` implementations of the keys and writes down what they ask for: the names and types of
//! fields, the words of an enum, what is required. So the schema cannot differ from what is read.
//!
//! A value that takes several forms does not say so to a deserializer; such types are in [`leaves`](super::leaves), by
//! their name, with an example that lets the tracing continue.

use std::any::type_name;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::Value;

use super::leaves::leaf;

/// What a type takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Written as it is in the schema.
    Leaf(Value),
    Bool,
    Whole,
    Text,
    List(Box<Shape>),
    /// Any keys, with values of one shape.
    Map(Box<Shape>),
    /// A struct or an enum, by its name in [`Traced`].
    Named(&'static str),
}

/// The structs and enums of a type.
#[derive(Debug, Default)]
pub(super) struct Traced {
    pub(super) structs: BTreeMap<&'static str, Fields>,
    pub(super) enums: BTreeMap<&'static str, Vec<Word>>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Fields {
    /// In the order of the struct.
    pub(super) shapes: Vec<(&'static str, Shape)>,
    pub(super) required: BTreeSet<&'static str>,
}

/// A variant of an enum.
#[derive(Clone, Debug)]
pub(super) struct Word {
    pub(super) name: &'static str,
    /// What follows it, if anything.
    pub(super) value: Option<Shape>,
}

/// What one pass tries.
#[derive(Clone, Copy, Debug, Default)]
struct Trial {
    /// A field that is left out.
    without: Option<(&'static str, &'static str)>,
    /// The variant that an enum takes, by its place; the first if absent.
    variant: Option<(&'static str, usize)>,
}

/// Why a pass ended early.
#[derive(Debug)]
pub(super) enum Untraced {
    Missing,
    /// A struct is inside itself.
    Recursive,
    Other(String),
}

impl fmt::Display for Untraced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("a field is missing"),
            Self::Recursive => f.write_str("a struct is inside itself"),
            Self::Other(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Untraced {}

impl de::Error for Untraced {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Other(message.to_string())
    }

    fn missing_field(_: &'static str) -> Self {
        Self::Missing
    }
}

/// The shape of a type, and of every struct and enum in it.
pub(super) fn trace<'de, T: Deserialize<'de>>() -> Result<(Shape, Traced), Untraced> {
    let tracer = Tracer::default();
    let shape = tracer.pass::<T>(Trial::default())?;
    // Each pass may find more of them: an enum's other words have their own shapes.
    let mut tried: BTreeSet<(&'static str, usize)> = BTreeSet::new();
    loop {
        let known: Vec<(&'static str, usize)> = {
            let traced = tracer.traced.borrow();
            let places = traced.enums.iter().flat_map(|(name, words)| (1..words.len()).map(|at| (*name, at)));
            places.filter(|place| !tried.contains(place)).collect()
        };
        if known.is_empty() {
            break;
        }
        for place in known {
            tried.insert(place);
            tracer.pass::<T>(Trial { variant: Some(place), ..Trial::default() })?;
        }
    }
    let fields: Vec<(&'static str, &'static str)> = {
        let traced = tracer.traced.borrow();
        let fields = |(name, fields): (&&'static str, &Fields)| {
            let name = *name;
            fields.shapes.iter().map(|(field, _)| (name, *field)).collect::<Vec<_>>()
        };
        traced.structs.iter().flat_map(fields).collect()
    };
    for (name, field) in fields {
        match tracer.pass::<T>(Trial { without: Some((name, field)), ..Trial::default() }) {
            Ok(_) => {}
            Err(Untraced::Missing) => {
                let mut traced = tracer.traced.borrow_mut();
                traced.structs.entry(name).or_default().required.insert(field);
            }
            Err(other) => return Err(other),
        }
    }
    Ok((shape, tracer.traced.into_inner()))
}

#[derive(Default)]
struct Tracer {
    trial: RefCell<Trial>,
    traced: RefCell<Traced>,
    /// The structs around the current value.
    around: RefCell<Vec<&'static str>>,
    /// Fields that hold their own struct and are left out.
    recursive: RefCell<BTreeSet<(&'static str, &'static str)>>,
}

impl Tracer {
    fn pass<'de, T: Deserialize<'de>>(&self, trial: Trial) -> Result<Shape, Untraced> {
        loop {
            self.trial.replace(trial);
            self.around.borrow_mut().clear();
            let recursive = self.recursive.borrow().len();
            let mut shape = None;
            let read = T::deserialize(At { tracer: self, shape: &mut shape });
            match read {
                Err(Untraced::Recursive) if self.recursive.borrow().len() > recursive => {}
                Err(other) => return Err(other),
                Ok(_) => return shape.ok_or_else(|| Untraced::Other("nothing was read".to_owned())),
            }
        }
    }

    /// Traces one value.
    fn value<'de, S: DeserializeSeed<'de>>(&self, seed: S) -> (Option<Shape>, Result<S::Value, Untraced>) {
        if let Some((schema, example)) = leaf(type_name::<S::Value>()) {
            let read = seed.deserialize(example).map_err(|error| Untraced::Other(error.to_string()));
            return (Some(Shape::Leaf(schema)), read);
        }
        let mut shape = None;
        let read = seed.deserialize(At { tracer: self, shape: &mut shape });
        (shape, read)
    }
}

/// A place in the traced type.
struct At<'t, 's> {
    tracer: &'t Tracer,
    shape: &'s mut Option<Shape>,
}

impl<'de> Deserializer<'de> for At<'_, '_> {
    type Error = Untraced;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Untraced> {
        let name = type_name::<V::Value>();
        Err(Untraced::Other(format!("`{name}` takes several forms and is not among the leaves")))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Untraced> {
        *self.shape = Some(Shape::Bool);
        visitor.visit_bool(false)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Untraced> {
        *self.shape = Some(Shape::Whole);
        visitor.visit_i64(1)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Untraced> {
        *self.shape = Some(Shape::Whole);
        visitor.visit_u64(1)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Untraced> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Untraced> {
        *self.shape = Some(Shape::Text);
        visitor.visit_str("a")
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Untraced> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Untraced> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Untraced> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Untraced> {
        let mut item = None;
        let read = visitor.visit_seq(One { tracer: self.tracer, shape: &mut item, is_read: false });
        *self.shape = item.map(|item| Shape::List(Box::new(item)));
        read
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Untraced> {
        let mut value = None;
        let read = visitor.visit_map(One { tracer: self.tracer, shape: &mut value, is_read: false });
        *self.shape = value.map(|value| Shape::Map(Box::new(value)));
        read
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Untraced> {
        *self.shape = Some(Shape::Named(name));
        let tracer = self.tracer;
        if tracer.around.borrow().contains(&name) {
            return Err(Untraced::Recursive);
        }
        tracer.around.borrow_mut().push(name);
        tracer.traced.borrow_mut().structs.entry(name).or_default();
        let read = visitor.visit_map(Struct { tracer, name, rest: fields.iter(), field: None });
        tracer.around.borrow_mut().pop();
        read
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Untraced> {
        *self.shape = Some(Shape::Named(name));
        let all = words.iter().map(|name| Word { name, value: None });
        self.tracer.traced.borrow_mut().enums.entry(name).or_insert_with(|| all.collect());
        let place = match self.tracer.trial.borrow().variant {
            Some((tried, place)) if tried == name => place,
            Some(_) | None => 0,
        };
        let word = words.get(place).copied().unwrap_or_default();
        visitor.visit_enum(Variant { tracer: self.tracer, name, place, word })
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i128 u8 u16 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct identifier
        ignored_any
    }
}

/// One item of a list, or one entry of a map with any keys.
struct One<'t, 's> {
    tracer: &'t Tracer,
    shape: &'s mut Option<Shape>,
    is_read: bool,
}

impl<'de> SeqAccess<'de> for One<'_, '_> {
    type Error = Untraced;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Untraced> {
        if std::mem::replace(&mut self.is_read, true) {
            return Ok(None);
        }
        let (shape, read) = self.tracer.value(seed);
        *self.shape = shape;
        match read {
            // A list may be empty.
            Err(Untraced::Recursive) => Ok(None),
            read => read.map(Some),
        }
    }
}

impl<'de> MapAccess<'de> for One<'_, '_> {
    type Error = Untraced;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Untraced> {
        if std::mem::replace(&mut self.is_read, true) {
            return Ok(None);
        }
        let key: StrDeserializer<'_, Untraced> = "a".into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Untraced> {
        let (shape, read) = self.tracer.value(seed);
        *self.shape = shape;
        read
    }
}

struct Struct<'t> {
    tracer: &'t Tracer,
    name: &'static str,
    rest: std::slice::Iter<'static, &'static str>,
    field: Option<&'static str>,
}

impl<'de> MapAccess<'de> for Struct<'_> {
    type Error = Untraced;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Untraced> {
        let left_out = self.tracer.trial.borrow().without;
        let name = self.name;
        let is_given = |field: &&&'static str| {
            let place = (name, **field);
            left_out != Some(place) && !self.tracer.recursive.borrow().contains(&place)
        };
        let Some(field) = self.rest.by_ref().find(is_given) else { return Ok(None) };
        self.field = Some(field);
        let key: StrDeserializer<'_, Untraced> = (*field).into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Untraced> {
        let (shape, read) = self.tracer.value(seed);
        let field = self.field.take().unwrap_or_default();
        if let Some(shape) = shape {
            let mut traced = self.tracer.traced.borrow_mut();
            let shapes = &mut traced.structs.entry(self.name).or_default().shapes;
            if !shapes.iter().any(|(known, _)| *known == field) {
                shapes.push((field, shape));
            }
        }
        if matches!(read, Err(Untraced::Recursive)) {
            self.tracer.recursive.borrow_mut().insert((self.name, field));
        }
        read
    }
}

struct Variant<'t> {
    tracer: &'t Tracer,
    name: &'static str,
    place: usize,
    word: &'static str,
}

impl<'de> EnumAccess<'de> for Variant<'_> {
    type Error = Untraced;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Untraced> {
        let word: StrDeserializer<'_, Untraced> = self.word.into_deserializer();
        Ok((seed.deserialize(word)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_> {
    type Error = Untraced;

    fn unit_variant(self) -> Result<(), Untraced> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Untraced> {
        let (shape, read) = self.tracer.value(seed);
        let mut traced = self.tracer.traced.borrow_mut();
        if let Some(word) = traced.enums.get_mut(self.name).and_then(|words| words.get_mut(self.place)) {
            word.value = shape;
        }
        read
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Untraced> {
        Err(Untraced::Other(format!("`{}` of `{}` is a tuple", self.word, self.name)))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, Untraced> {
        Err(Untraced::Other(format!("`{}` of `{}` is a struct", self.word, self.name)))
    }
}
