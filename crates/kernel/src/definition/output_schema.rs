//! What an agent's answer must look like, and how one does not. The kernel knows a schema as text and tells it; whether
//! an answer fits is found out at the edge and arrives with the report, so that nothing here evaluates a schema.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::definition::Refusal;
use crate::words::{cut, limit};

/// What an agent with a schema is told instead of the request for a summary.
const WORDS: &str =
    "When you are done, answer with one JSON value that fits this JSON Schema, and with nothing else:\n";

/// What an answer must look like: a JSON Schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputSchema {
    /// The schema, as compact JSON.
    schema: String,
    /// How many tokens the words around it and the schema have at most, if somebody counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
}

impl OutputSchema {
    /// This JSON as a schema, without what is only for the eye.
    ///
    /// # Errors
    /// If it is no JSON object, or too long. Whether it is a schema is for others to say.
    pub fn read(text: &str) -> Result<Self, Refusal> {
        let value: Value = serde_json::from_str(text).map_err(|error| bad(&error.to_string()))?;
        Self::of(&value)
    }

    /// The same of a value that was read.
    ///
    /// # Errors
    /// If it is no JSON object, or too long.
    pub fn of(value: &Value) -> Result<Self, Refusal> {
        let schema = Self { schema: value.to_string(), tokens: None };
        schema.check().map(|()| schema)
    }

    /// As a model writes it: the schema itself, or its JSON as a text.
    pub(crate) fn written(raw: &RawValue) -> Result<Self, Refusal> {
        match serde_json::from_str::<String>(raw.get()) {
            Ok(text) => Self::read(&text),
            Err(_) => Self::read(raw.get()),
        }
    }

    /// The schema, as JSON.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.schema
    }

    /// Has everything counted that it adds to a first message.
    pub fn count(&mut self, tokens: &dyn Fn(&str) -> u64) {
        self.tokens = Some(tokens(&self.paragraph()));
    }

    /// Refuses what is no JSON object, or too long.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let (bytes, bytes_max) = (self.schema.len(), limit::SCHEMA_BYTES_MAX);
        if bytes > bytes_max {
            return Err(Refusal::TextTooLong { what: "output_schema".to_owned(), bytes, bytes_max });
        }
        match serde_json::from_str::<Value>(&self.schema) {
            Ok(Value::Object(_)) => Ok(()),
            Ok(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                Err(bad("it is not a JSON object"))
            }
            Err(error) => Err(bad(&error.to_string())),
        }
    }

    /// How an agent is told of it.
    pub(crate) fn paragraph(&self) -> String {
        format!("{WORDS}{}", self.schema)
    }

    /// The most tokens that this has: what was counted, or else its bytes.
    pub(crate) fn tokens_max(&self) -> u64 {
        let bytes = (WORDS.len() + self.schema.len()) as u64;
        self.tokens.map_or(bytes, |tokens| tokens.min(bytes))
    }
}

fn bad(reason: &str) -> Refusal {
    Refusal::BadSchema { reason: cut(reason, limit::NOTICE_BYTES_MAX / 2) }
}

/// How an answer does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mismatch {
    pub kind: MismatchKind,
    /// What is wrong and where, the first few.
    pub wrong: Vec<Wrong>,
    /// How much more is wrong.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u32,
}

/// In which way an answer does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MismatchKind {
    /// It is no JSON value, or something stands beside it.
    NotJson,
    /// It is another value than the schema asks for.
    Value,
    /// It is too long, or takes too long to check.
    TooMuch,
    /// The schema itself is wrong: no answer can fit.
    Schema,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wrong {
    /// Where: a JSON Pointer into the answer, or into the schema if that is what is wrong. Empty is the whole.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// What was expected there.
    pub expected: String,
}

impl Mismatch {
    /// One thing is wrong with the whole.
    #[must_use]
    pub fn whole(kind: MismatchKind, expected: impl Into<String>) -> Self {
        Self { kind, wrong: vec![Wrong { path: String::new(), expected: expected.into() }], more: 0 }
    }

    /// This, cut to what a journal takes. Reports are not refused, so they are cut.
    pub(crate) fn bounded(&self) -> Self {
        let bounded = |wrong: &Wrong| Wrong {
            path: cut(&wrong.path, limit::NAME_BYTES_MAX),
            expected: cut(&wrong.expected, limit::MISMATCH_BYTES_MAX),
        };
        let wrong: Vec<Wrong> = self.wrong.iter().take(limit::MISMATCHES_SHOWN_MAX).map(bounded).collect();
        let left = u32::try_from(self.wrong.len() - wrong.len()).unwrap_or(u32::MAX);
        Self { kind: self.kind, more: self.more.saturating_add(left), wrong }
    }

    /// What is wrong, in words.
    #[must_use]
    pub fn describe(&self) -> String {
        let one = |wrong: &Wrong| match wrong.path.as_str() {
            "" => wrong.expected.clone(),
            path => format!("at {path}: {}", wrong.expected),
        };
        let texts: Vec<String> = self.wrong.iter().map(one).collect();
        let texts = texts.join("; ");
        if self.more == 0 { texts } else { format!("{texts}; and {} more", self.more) }
    }

    /// What an agent is told that gave such an answer.
    pub(crate) fn note(&self) -> String {
        const BEFORE: &str = "Your answer does not fit the JSON Schema: ";
        const AFTER: &str = "\nAnswer again, with the whole JSON value and nothing else.";
        let room = limit::NOTICE_BYTES_MAX - BEFORE.len() - AFTER.len();
        format!("{BEFORE}{}{AFTER}", cut(&self.describe(), room))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}
