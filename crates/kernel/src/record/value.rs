//! A value with a name, as graphs and agents write and read it: JSON, or a text that stands for a JSON string.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::primitives::{Body, limit};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedValue {
    #[serde(default, skip_serializing_if = "ValueForm::is_text")]
    pub form: ValueForm,
    pub body: Body,
}

/// How the text of a value is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueForm {
    /// As it is: the value is a JSON string with this text.
    #[default]
    Text,
    Json,
}

impl ValueForm {
    const fn is_text(&self) -> bool {
        matches!(self, Self::Text)
    }

    pub(crate) const fn is_json(&self) -> bool {
        matches!(self, Self::Json)
    }

    pub(crate) const fn json() -> Self {
        Self::Json
    }
}

impl NamedValue {
    /// A text as an agent or a person wrote it. White space around it does not count.
    #[must_use]
    pub fn text(body: Body) -> Self {
        Self { form: ValueForm::Text, body }
    }

    #[must_use]
    pub fn json(body: Body) -> Self {
        Self { form: ValueForm::Json, body }
    }

    #[must_use]
    pub fn new(value: &Value) -> Self {
        match value {
            Value::String(text) => Self::text(Body::text(text.clone())),
            other => Self::json(Body::text(other.to_string())),
        }
    }

    /// The bytes that it takes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.body.text.len()
    }

    /// `None` if it is not all there: a long text is kept outside the tree's state.
    #[must_use]
    pub fn value(&self) -> Option<Value> {
        if self.body.rest().is_some() {
            return None;
        }
        match self.form {
            ValueForm::Text => Some(Value::String(self.body.text.clone())),
            ValueForm::Json => serde_json::from_str(&self.body.text).ok(),
        }
    }

    /// Its JSON; only the beginning of a text that is not all there.
    #[must_use]
    pub fn json_text(&self) -> Cow<'_, str> {
        match self.form {
            ValueForm::Text => Cow::Owned(Value::String(self.body.text.clone()).to_string()),
            ValueForm::Json => Cow::Borrowed(&self.body.text),
        }
    }

    /// For people and results: a text as it is, everything else as JSON.
    #[must_use]
    pub fn plain(&self) -> &str {
        &self.body.text
    }

    /// Whether it is small enough to be kept.
    #[must_use]
    pub const fn fits(&self) -> bool {
        self.bytes() <= limit::VALUE_BYTES_MAX
    }
}
