//! The schema of an agent's answer, and how an answer fails to match it. The kernel treats a schema as text; the
//! runtime evaluates it and the verdict arrives with the report.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::definition::Refusal;
use crate::primitives::{TokenCount, cut, limit};

/// Replaces the request for a summary when an agent has a schema.
const WORDS: &str =
    "When you are done, answer with one JSON value that fits this JSON Schema, and with nothing else:\n";

/// How often a request may carry the schema.
const COPIES: u64 = 2;

/// The JSON Schema of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputSchema {
    /// Compact JSON.
    schema: String,
    /// The tokens that it adds to a request, if counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tokens: Option<TokenCount>,
}

impl OutputSchema {
    /// Parses JSON and removes insignificant white space.
    ///
    /// # Errors
    /// If it is not a JSON object, or too long. Does not check whether it is a valid schema.
    pub fn read(text: &str) -> Result<Self, Refusal> {
        let value: Value = serde_json::from_str(text).map_err(|error| bad(&error.to_string()))?;
        Self::from_value(&value)
    }

    /// # Errors
    /// If it is not a JSON object, or too long.
    pub fn from_value(value: &Value) -> Result<Self, Refusal> {
        let schema = Self { schema: value.to_string(), tokens: None };
        schema.check().map(|()| schema)
    }

    /// As a model writes it: the schema itself, or its JSON in a string.
    pub(crate) fn written(raw: &RawValue) -> Result<Self, Refusal> {
        match serde_json::from_str::<String>(raw.get()) {
            Ok(text) => Self::read(&text),
            Err(_) => Self::read(raw.get()),
        }
    }

    #[must_use]
    pub fn text(&self) -> &str {
        &self.schema
    }

    /// Counts everything that it adds to a request: the paragraph of the first message, and as much again, because a
    /// provider that shapes answers on its own is given the schema again and bills that as input.
    pub fn count(&mut self, tokens: &dyn Fn(&str) -> TokenCount) {
        self.tokens = Some(tokens(&self.paragraph()).times(COPIES));
    }

    /// Refuses anything except a JSON object within the size limit.
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

    /// The text in the agent's first message.
    pub(crate) fn paragraph(&self) -> String {
        format!("{WORDS}{}", self.schema)
    }

    /// The tokens that it adds: the count if there is one, else by the bytes of the paragraph.
    pub(crate) fn counted(&self) -> TokenCount {
        let bytes = WORDS.len() + self.schema.len();
        let most = bytes as u64 * COPIES;
        self.tokens.map_or(TokenCount::of_bytes(bytes), |tokens| tokens.at_most(most))
    }
}

fn bad(reason: &str) -> Refusal {
    Refusal::BadSchema { reason: cut(reason, limit::NOTICE_BYTES_MAX / 2) }
}

/// How an answer fails to match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mismatch {
    pub kind: MismatchKind,
    /// The first few mismatches.
    pub wrong: Vec<FieldMismatch>,
    /// The number of mismatches not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MismatchKind {
    /// It is not JSON, or has text beside it.
    NotJson,
    /// The schema rejects the value.
    Value,
    /// It is too long, or takes too long to check.
    TooMuch,
    /// The schema itself is invalid: no answer can match.
    Schema,
}

/// One mismatch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldMismatch {
    /// A JSON Pointer into the answer, or into the schema if that is invalid. Empty for the whole.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    pub expected: String,
}

impl Mismatch {
    /// A mismatch of the whole answer.
    #[must_use]
    pub fn whole(kind: MismatchKind, expected: impl Into<String>) -> Self {
        Self { kind, wrong: vec![FieldMismatch { path: String::new(), expected: expected.into() }], more: 0 }
    }

    /// Cut to the journal's limits: reports cannot be refused, so they are cut.
    pub(crate) fn bounded(&self) -> Self {
        let bounded = |wrong: &FieldMismatch| FieldMismatch {
            path: cut(&wrong.path, limit::NAME_BYTES_MAX),
            expected: cut(&wrong.expected, limit::MISMATCH_BYTES_MAX),
        };
        let wrong: Vec<FieldMismatch> =
            self.wrong.iter().take(limit::MISMATCHES_SHOWN_MAX).map(bounded).collect();
        let left = u32::try_from(self.wrong.len() - wrong.len()).unwrap_or(u32::MAX);
        Self { kind: self.kind, more: self.more.saturating_add(left), wrong }
    }

    #[must_use]
    pub fn describe(&self) -> String {
        let one = |wrong: &FieldMismatch| match wrong.path.as_str() {
            "" => wrong.expected.clone(),
            path => format!("at {path}: {}", wrong.expected),
        };
        let texts: Vec<String> = self.wrong.iter().map(one).collect();
        let texts = texts.join("; ");
        if self.more == 0 { texts } else { format!("{texts}; and {} more", self.more) }
    }

    /// The notice to the agent that gave such an answer.
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
