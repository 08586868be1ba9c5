//! The structure of a schema: its parts, and which part of a value each applies to. References out of the schema, and
//! keywords whose reach is unknown in advance, are refused.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use spinney_kernel::definition::FieldMismatch;

/// The parts of a schema. The first is the whole.
pub(super) struct Plan(pub(super) Vec<Part>);

/// One part, with the indices of the parts that it leads to.
#[derive(Default)]
pub(super) struct Part {
    /// For the same value.
    pub(super) same: Vec<usize>,
    /// Alternatives for the same value: the errors of each are kept until one matches.
    pub(super) one_of: Vec<usize>,
    /// For all items of a list, or the one at an index.
    pub(super) items: Vec<(Option<usize>, usize)>,
    pub(super) members: Vec<(Which, usize)>,
    pub(super) keys: Vec<usize>,
    /// How many values it compares with.
    pub(super) compares: usize,
    /// The length of its pattern.
    pub(super) pattern: Option<usize>,
    /// Whether items must be unique.
    pub(super) unique: bool,
}

pub(super) enum Which {
    /// All, or all that no other part names.
    All,
    Named(String),
    /// Those that match a pattern of this length.
    Found(usize),
}

/// Keywords with parts that apply to the same value.
const SAME: [&str; 7] = ["allOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"];
const ONE_OF: [&str; 2] = ["anyOf", "oneOf"];
const ITEMS: [&str; 4] = ["items", "prefixItems", "additionalItems", "contains"];
const MEMBERS: [&str; 3] = ["properties", "patternProperties", "additionalProperties"];
/// Keywords with parts that others refer to.
const STORES: [&str; 3] = ["$defs", "definitions", "contentSchema"];
/// Keywords whose parts have names.
const NAMED: [&str; 6] =
    ["dependentSchemas", "dependencies", "properties", "patternProperties", "$defs", "definitions"];
const COMPARES: [&str; 4] = ["enum", "const", "required", "dependentRequired"];

/// Keywords whose reach only an evaluation can tell, and what to write instead.
const REFUSED: [(&str, &str); 6] = [
    ("$dynamicRef", "`$ref`"),
    ("$recursiveRef", "`$ref`"),
    ("$anchor", "a `$ref` that names the place, such as `#/$defs/name`"),
    ("$dynamicAnchor", "a `$ref` that names the place, such as `#/$defs/name`"),
    ("unevaluatedProperties", "`additionalProperties`"),
    ("unevaluatedItems", "`items`"),
];

impl Plan {
    /// # Errors
    /// What is refused, and where.
    pub(super) fn new(schema: &Value) -> Result<Self, FieldMismatch> {
        let mut reader = Reader::default();
        reader.add("", schema)?;
        let Reader { mut parts, places, references } = reader;
        for (from, place, to) in references {
            let found = match to.strip_prefix('#') {
                Some(pointer) => {
                    places.get(pointer).ok_or("expected a reference to a part of this schema: there is none")
                }
                None => {
                    Err("expected a reference inside the schema, such as `#/$defs/name`: nothing is fetched")
                }
            };
            let found =
                found.map_err(|expected| FieldMismatch { path: place, expected: expected.to_owned() })?;
            parts[from].same.push(*found);
        }
        let plan = Self(parts);
        let mut marks = vec![Mark::New; plan.0.len()];
        if (0..plan.0.len()).any(|at| plan.circles(at, &mut marks)) {
            let expected =
                "a part refers to itself and says nothing of the value: put something between".to_owned();
            return Err(FieldMismatch { path: String::new(), expected });
        }
        Ok(plan)
    }

    /// Whether a part leads back to itself for the same value.
    fn circles(&self, at: usize, marks: &mut [Mark]) -> bool {
        match marks[at] {
            Mark::Open => return true,
            Mark::Over => return false,
            Mark::New => marks[at] = Mark::Open,
        }
        let Part { same, one_of, .. } = &self.0[at];
        let circles = same.iter().chain(one_of).any(|to| self.circles(*to, marks));
        marks[at] = Mark::Over;
        circles
    }
}

/// The state of a part in the search for cycles.
#[derive(Clone, Copy)]
enum Mark {
    New,
    Open,
    Over,
}

/// A part in a keyword: the keyword, its name or index, and the part.
type Led<'w> = (&'w str, Option<String>, usize);

#[derive(Default)]
struct Reader {
    parts: Vec<Part>,
    /// Each part by its JSON pointer.
    places: BTreeMap<String, usize>,
    /// The referring part, its pointer, and the target.
    references: Vec<(usize, String, String)>,
}

impl Reader {
    fn add(&mut self, place: &str, value: &Value) -> Result<usize, FieldMismatch> {
        let at = self.parts.len();
        self.parts.push(Part::default());
        self.places.insert(place.to_owned(), at);
        let Value::Object(keys) = value else { return Ok(at) };
        check(place, keys)?;
        if let Some(to) = keys.get("$ref").and_then(Value::as_str) {
            self.references.push((at, format!("{place}/$ref"), to.to_owned()));
        }
        let mut part = Part {
            compares: COMPARES.iter().filter_map(|word| keys.get(*word)).map(nodes).sum(),
            pattern: keys.get("pattern").and_then(Value::as_str).map(str::len),
            unique: keys.get("uniqueItems") == Some(&Value::Bool(true)),
            ..Part::default()
        };
        part.same = self.lead(place, keys, &SAME)?.into_iter().map(|(_, _, to)| to).collect();
        part.one_of = self.lead(place, keys, &ONE_OF)?.into_iter().map(|(_, _, to)| to).collect();
        let items = self.lead(place, keys, &ITEMS)?.into_iter();
        part.items = items.map(|(_, name, to)| (name.and_then(|at| at.parse().ok()), to)).collect();
        let which = |word: &str, name: Option<String>| match (word, name) {
            ("properties", Some(name)) => Which::Named(name),
            ("patternProperties", Some(pattern)) => Which::Found(pattern.len()),
            (_, _) => Which::All,
        };
        let members = self.lead(place, keys, &MEMBERS)?.into_iter();
        part.members = members.map(|(word, name, to)| (which(word, name), to)).collect();
        part.keys = self.lead(place, keys, &["propertyNames"])?.into_iter().map(|(_, _, to)| to).collect();
        self.lead(place, keys, &STORES)?;
        self.parts[at] = part;
        Ok(at)
    }

    fn lead<'w>(
        &mut self,
        place: &str,
        keys: &Map<String, Value>,
        words: &[&'w str],
    ) -> Result<Vec<Led<'w>>, FieldMismatch> {
        let mut led = Vec::new();
        for word in words {
            for (name, part) in inside(keys.get(*word), NAMED.contains(word)) {
                let step = name.as_ref().map(|name| format!("/{}", escaped(name))).unwrap_or_default();
                led.push((*word, name, self.add(&format!("{place}/{word}{step}"), part)?));
            }
        }
        Ok(led)
    }
}

/// Refuses keywords whose reach is unknown.
fn check(place: &str, keys: &Map<String, Value>) -> Result<(), FieldMismatch> {
    if let Some((word, instead)) = REFUSED.iter().find(|(word, _)| keys.contains_key(*word)) {
        let expected = format!("expected {instead}: `{word}` is not supported here");
        return Err(FieldMismatch { path: format!("{place}/{word}"), expected });
    }
    if !place.is_empty() && keys.get("$id").is_some_and(Value::is_string) {
        let expected = "an `$id` inside a schema makes another of it: delete it".to_owned();
        return Err(FieldMismatch { path: format!("{place}/$id"), expected });
    }
    Ok(())
}

/// The parts in a keyword, each with its name or index if there are several.
fn inside(held: Option<&Value>, is_named: bool) -> Vec<(Option<String>, &Value)> {
    match held {
        Some(Value::Object(parts)) if is_named => {
            parts.iter().map(|(name, part)| (Some(name.clone()), part)).collect()
        }
        Some(Value::Array(parts)) if !is_named => {
            parts.iter().enumerate().map(|(at, part)| (Some(at.to_string()), part)).collect()
        }
        Some(part @ (Value::Object(_) | Value::Bool(_))) if !is_named => vec![(None, part)],
        Some(_) | None => Vec::new(),
    }
}

/// Escaped for a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The number of values in one, itself included.
pub(super) fn nodes(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(nodes).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(nodes).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}
