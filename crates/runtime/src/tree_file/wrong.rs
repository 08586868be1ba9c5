//! An error in a value before its file is known, and serde's messages in our own words.

use std::fmt;

use serde::de::{self, Expected, Unexpected};

use super::error::{FileError, Place};
use super::node::OwnedStep;
use super::{nearest, other_words};

#[derive(Clone, Debug)]
pub(super) struct Wrong {
    place: Option<Place>,
    message: String,
    help: String,
    /// The steps to the value that is wrong, the innermost first.
    inside_out: Vec<OwnedStep>,
    /// The required key that is not there.
    missing: Option<&'static str>,
    /// Whether a key is there twice.
    is_doubled: bool,
}

impl Wrong {
    pub(super) fn new(message: impl Into<String>) -> Self {
        let (message, help) = (message.into(), String::new());
        Self { place: None, message, help, inside_out: Vec::new(), missing: None, is_doubled: false }
    }

    pub(super) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }

    /// Sets the place, unless a more exact one is already known.
    pub(super) fn at(mut self, place: Place) -> Self {
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

    /// Says that a key is there twice. Without one of them the file can be read.
    pub(super) fn doubled(mut self) -> Self {
        self.is_doubled = true;
        self
    }

    pub(super) const fn is_doubled(&self) -> bool {
        self.is_doubled
    }

    pub(super) fn place(&self) -> Place {
        self.place.unwrap_or(Place::START)
    }

    pub(super) const fn missing(&self) -> Option<&'static str> {
        self.missing
    }

    pub(super) fn in_file(self, file: &str) -> FileError {
        FileError::new(file, self.place(), self.message).with_help(self.help)
    }
}

impl std::error::Error for Wrong {}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl de::Error for Wrong {
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
        let wrong = Self::new(format!("expected {expected}, found {}", shown(&found)));
        let is_scalar = matches!(
            found,
            Unexpected::Bool(_) | Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_)
        );
        if expected == "text" && is_scalar { wrong.with_help("put it in quotes") } else { wrong }
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        let ours = other_words::ours(field).map(|ours| format!("here that is {ours}"));
        let help = ours.unwrap_or_else(|| nearest::help(field, known.iter().copied(), "keys"));
        Self::new(format!("unknown key `{}`", cut(field))).with_help(help)
    }

    fn unknown_variant(variant: &str, known: &'static [&'static str]) -> Self {
        let help = nearest::help(variant, known.iter().copied(), "words");
        Self::new(format!("unknown word `{}`", cut(variant))).with_help(help)
    }

    fn missing_field(field: &'static str) -> Self {
        let help = format!("write `{field}: …`");
        Self { missing: Some(field), ..Self::new(format!("`{field}` is missing")).with_help(help) }
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
