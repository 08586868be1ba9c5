//! An error in a value before its file is known, and serde's messages in our own words.

use std::fmt;

use serde::de::{self, Expected, Unexpected};

use super::error::{FileError, TextPosition};
use super::node::OwnedStep;
use super::{foreign_keys, nearest};

#[derive(Clone, Debug)]
pub(super) struct ValueError {
    place: Option<TextPosition>,
    message: String,
    help: String,
    /// The steps to the value that is wrong, the innermost first.
    inside_out: Vec<OwnedStep>,
    /// The required key that is not there.
    missing: Option<&'static str>,
    /// Whether a key is there twice.
    is_doubled: bool,
    subject: Subject,
}

/// What is wrong at the end of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Value,
    /// A key that nothing reads.
    UnknownKey,
    /// The name that a file gives to the value, and not the value.
    Name,
}

impl ValueError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            place: None,
            message: message.into(),
            help: String::new(),
            inside_out: Vec::new(),
            missing: None,
            is_doubled: false,
            subject: Subject::Value,
        }
    }

    pub(super) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }

    /// Sets the place, unless a more exact one is already known.
    pub(super) fn at(mut self, place: TextPosition) -> Self {
        self.place = self.place.or(Some(place));
        self
    }

    /// Adds the step that leads to the value that is wrong.
    pub(super) fn within(mut self, step: OwnedStep) -> Self {
        self.inside_out.push(step);
        self
    }

    /// The value that is wrong, from the root.
    pub(super) fn path(&self) -> Vec<OwnedStep> {
        self.inside_out.iter().rev().cloned().collect()
    }

    /// Names the key whose value is wrong, if the message does not.
    pub(super) fn naming_its_key(mut self) -> Self {
        let key = |step: &OwnedStep| match step {
            OwnedStep::Key(key) => Some(cut(key)),
            OwnedStep::Item(_) => None,
        };
        let keys: Vec<String> = self.path().iter().filter_map(key).collect();
        let is_named = keys.last().is_none_or(|last| self.message.contains(&format!("`{last}`")));
        if !is_named && self.missing.is_none() {
            self.message = format!("`{}`: {}", keys.join("."), self.message);
        }
        self
    }

    /// Says that a key is there twice. Without one of them the file can be read.
    pub(super) fn doubled(mut self) -> Self {
        self.is_doubled = true;
        self
    }

    pub(super) const fn is_doubled(&self) -> bool {
        self.is_doubled
    }

    /// Says that a key cannot be read. It is a name that the file gives, unless the file may have only certain keys here.
    pub(super) fn of_key(mut self) -> Self {
        if self.subject == Subject::Value {
            self.subject = Subject::Name;
        }
        self
    }

    /// Whether the value at the end of the path can be read under another name.
    pub(super) fn is_of_name(&self) -> bool {
        self.subject == Subject::Name
    }

    pub(super) fn place(&self) -> TextPosition {
        self.place.unwrap_or(TextPosition::START)
    }

    pub(super) const fn missing(&self) -> Option<&'static str> {
        self.missing
    }

    pub(super) fn in_file(self, file: &str) -> FileError {
        let help = self.missing.map_or(self.help, |key| format!("write `{key}: …`"));
        FileError::new(file, self.place.unwrap_or(TextPosition::START), self.message).with_help(help)
    }
}

impl std::error::Error for ValueError {}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl de::Error for ValueError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = match expected.to_string().as_str() {
            "a string" => "text".to_owned(),
            "a sequence" => "a list".to_owned(),
            "a boolean" => "`true` or `false`".to_owned(),
            other => other.to_owned(),
        };
        let (expected, example) = match expected.split_once(", such as ") {
            Some((expected, example)) => (expected.to_owned(), format!("write it like {example}")),
            None => (expected, String::new()),
        };
        let wrong = Self::new(format!("expected {expected}, found {}", shown(&found))).with_help(example);
        let is_scalar = matches!(
            found,
            Unexpected::Bool(_) | Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_)
        );
        if expected == "text" && is_scalar { wrong.with_help("put it in quotes") } else { wrong }
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        let ours = foreign_keys::ours(field).map(|ours| format!("here that is {ours}"));
        let help = ours.unwrap_or_else(|| nearest::help(field, known.iter().copied(), "keys"));
        let wrong = Self::new(format!("unknown key `{}`", cut(field))).with_help(help);
        Self { subject: Subject::UnknownKey, ..wrong }
    }

    fn unknown_variant(variant: &str, known: &'static [&'static str]) -> Self {
        let help = nearest::help(variant, known.iter().copied(), "values");
        Self::new(format!("unknown value `{}`", cut(variant))).with_help(help)
    }

    fn missing_field(field: &'static str) -> Self {
        Self { missing: Some(field), ..Self::new(format!("`{field}` is missing")) }
    }
}

fn shown(found: &Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => format!("`{value}`"),
        Unexpected::Unsigned(number) => format!("the number {number}"),
        Unexpected::Signed(number) => format!("the number {number}"),
        Unexpected::Float(number) => format!("the number {number}"),
        Unexpected::Str(text) => format!("text `{}`", cut(text)),
        Unexpected::Unit | Unexpected::Option => "nothing".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a map".to_owned(),
        Unexpected::Char(_)
        | Unexpected::Bytes(_)
        | Unexpected::NewtypeStruct
        | Unexpected::Enum
        | Unexpected::UnitVariant
        | Unexpected::NewtypeVariant
        | Unexpected::TupleVariant
        | Unexpected::StructVariant
        | Unexpected::Other(_) => found.to_string(),
    }
}

pub(super) fn cut(text: &str) -> String {
    let mut shown: String = text.chars().take(40).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}
