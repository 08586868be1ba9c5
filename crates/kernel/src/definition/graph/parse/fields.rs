//! The fields of steps and groups: each is read with its own rule, and a problem has the place of its key.

use serde::Deserialize;
use serde::de::{Error as _, Unexpected};
use serde_json::{Error, Value};

use super::{Fields, Reader, kind_of, shown};
use crate::definition::graph::keys::UNDO;
use crate::definition::graph::{InputSource, NodeIx, OnMissing, ProblemCode, StepInput, Undo};
use crate::definition::{BudgetKeys, BudgetSpec, OutputSchema, TimeSpan, Timeout};
use crate::definition::{ExpressionError, Template};
use crate::primitives::{RoleName, ValueName, limit, nearest};

impl<'v> Reader<'v, '_> {
    pub(super) fn inputs(&mut self, ix: NodeIx, keys: Fields<'v>) -> Vec<StepInput> {
        let names: Vec<&Value> = match keys.get("input_from") {
            None => return Vec::new(),
            Some(Value::Array(names)) => names.iter().collect(),
            Some(name) => vec![name],
        };
        if names.len() > limit::GRAPH_INPUTS_MAX {
            let message = format!("`input_from` has {} names", names.len());
            let help = format!("write at most {}", limit::GRAPH_INPUTS_MAX);
            self.add(ProblemCode::TooLarge, ix, "input_from", message, help);
            return Vec::new();
        }
        let mut inputs: Vec<StepInput> = Vec::with_capacity(names.len());
        for value in names {
            let Some(text) = value.as_str() else {
                let message = format!("an input cannot be {}", kind_of(value));
                self.add(
                    ProblemCode::BadValue,
                    ix,
                    "input_from",
                    message,
                    "write the name that an earlier step gives its output",
                );
                continue;
            };
            let (name, optional) = text.strip_suffix('?').map_or((text, false), |name| (name, true));
            let shared = name.strip_prefix(StepInput::SHARED_PREFIX).filter(|_| self.has_shared);
            let (name, source) = match shared {
                Some(key) => (key, InputSource::Shared),
                None => (name, InputSource::Output),
            };
            match name.parse::<ValueName>().map(|name| StepInput { name, optional, source }) {
                Ok(input)
                    if inputs.iter().any(|other| (&other.name, other.source) == (&input.name, source)) =>
                {
                    self.add(
                        ProblemCode::BadValue,
                        ix,
                        "input_from",
                        format!("`{input}` is there twice"),
                        "write it once",
                    );
                }
                Ok(input) => inputs.push(input),
                Err(error) => self.add(ProblemCode::BadValue, ix, "input_from", error.to_string(), ""),
            }
        }
        inputs
    }

    /// What happens if a shared value among these is missing.
    pub(super) fn on_missing(&mut self, ix: NodeIx, keys: Fields<'v>, inputs: &[StepInput]) -> OnMissing {
        let Some(on_missing) = self.word(ix, keys, "on_missing") else { return OnMissing::default() };
        let may_wait = |input: &StepInput| input.source == InputSource::Shared && !input.optional;
        if !inputs.iter().any(may_wait) {
            self.add(
                ProblemCode::BadValue,
                ix,
                "on_missing",
                "`on_missing` without a shared value to wait for",
                "it is about names such as `shared.plan` in `input_from`; leave it out",
            );
        }
        on_missing
    }

    pub(super) fn undo(&mut self, ix: NodeIx, keys: Fields<'v>, own: Option<&RoleName>) -> Option<Box<Undo>> {
        let at = |problem: &mut Self, message: String| {
            problem.add(
                ProblemCode::BadValue,
                ix,
                "undo",
                message,
                "write `agent_id` and `task_description`, or the task alone",
            );
        };
        let (agent, task) = match keys.get("undo")? {
            Value::String(task) => (None, Some(task.as_str())),
            Value::Object(undo) => {
                let known = &UNDO;
                if let Some(key) = undo.keys().find(|key| !known.contains(&key.as_str())) {
                    let help = nearest::help(key, known.iter().copied(), "keys");
                    self.add(
                        ProblemCode::UnknownField,
                        ix,
                        "undo",
                        format!("unknown key `{}`", shown(key)),
                        help,
                    );
                }
                let agent = undo.get("agent_id").map(|agent| agent.as_str().unwrap_or_default());
                (agent, undo.get("task_description").and_then(Value::as_str))
            }
            other => {
                at(self, format!("`undo` cannot be {}", kind_of(other)));
                return None;
            }
        };
        let Some(task) = task.filter(|task| !task.trim().is_empty()) else {
            at(self, "`undo` has no task".to_owned());
            return None;
        };
        let agent_id = match agent.map(str::parse) {
            None => own?.clone(),
            Some(Ok(agent)) => agent,
            Some(Err(error)) => {
                at(self, format!("{error}"));
                return None;
            }
        };
        let task = self.expression(ix, "undo", Template::parse(task))?;
        Some(Box::new(Undo { agent_id, task }))
    }

    pub(super) fn schema(
        &mut self,
        ix: NodeIx,
        keys: Fields<'v>,
        key: &'static str,
    ) -> Option<Box<OutputSchema>> {
        let read = match keys.get(key)? {
            Value::String(text) => OutputSchema::read(text),
            value => OutputSchema::from_value(value),
        };
        match read {
            Ok(schema) => Some(Box::new(schema)),
            Err(refusal) => {
                self.add(ProblemCode::BadValue, ix, key, refusal.to_string(), "");
                None
            }
        }
    }

    /// A list of texts.
    pub(super) fn texts(&mut self, ix: NodeIx, keys: Fields<'v>, key: &'static str) -> Option<Vec<String>> {
        let value = keys.get(key)?;
        let texts = value.as_array().and_then(|texts| {
            texts.iter().map(|text| text.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        if texts.is_none() {
            let message = format!("`{key}` is not a list of texts");
            self.add(ProblemCode::BadValue, ix, key, message, "write [text, text]; put numbers into quotes");
        }
        texts
    }

    /// Its ceilings, and its timeout as part of them.
    pub(super) fn budget(&mut self, ix: NodeIx, keys: Fields<'v>) -> Option<Box<BudgetSpec>> {
        let written = keys.get("budget").map(budget_keys);
        let mut spec = match written {
            None => None,
            Some(Ok(keys)) => Some(keys.spec()),
            Some(Err(error)) => {
                self.add(ProblemCode::BadValue, ix, "budget", error.to_string(), "");
                None
            }
        };
        if let Some(refusal) = spec.as_ref().and_then(|spec| spec.check().err()) {
            self.add(ProblemCode::BadValue, ix, "budget", refusal.to_string(), "");
        }
        if let Some(timeout) = keys.get("timeout") {
            match Timeout::deserialize(timeout) {
                Ok(timeout) => {
                    let spec = spec.get_or_insert_default();
                    (spec.timeout_ms, spec.timeout_wall) = (Some(timeout.span.ms()), timeout.is_wall);
                }
                Err(error) => self.add(ProblemCode::BadValue, ix, "timeout", error.to_string(), ""),
            }
        }
        spec.map(Box::new)
    }

    pub(super) fn span(&mut self, ix: NodeIx, keys: Fields<'v>, key: &str) -> Option<u64> {
        match TimeSpan::deserialize(keys.get(key)?) {
            Ok(span) => Some(span.ms()),
            Err(error) => {
                self.add(ProblemCode::BadValue, ix, key, error.to_string(), "");
                None
            }
        }
    }

    pub(super) fn count(
        &mut self,
        ix: NodeIx,
        keys: Fields<'v>,
        key: &str,
        least: u32,
        most: u32,
    ) -> Option<u32> {
        let value = keys.get(key)?;
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        let bounded = number.filter(|number| (least..=most).contains(number));
        if bounded.is_none() {
            let message = format!("`{key}` of {} is out of bounds", shown(&value.to_string()));
            self.add(
                ProblemCode::BadValue,
                ix,
                key,
                message,
                format!("write a whole number from {least} to {most}"),
            );
        }
        bounded
    }

    /// One of the words of an enum.
    pub(super) fn word<T: for<'de> Deserialize<'de>>(
        &mut self,
        ix: NodeIx,
        keys: Fields<'v>,
        key: &str,
    ) -> Option<T> {
        match T::deserialize(keys.get(key)?) {
            Ok(word) => Some(word),
            Err(error) => {
                self.add(ProblemCode::BadValue, ix, key, format!("bad `{key}`: {error}"), "");
                None
            }
        }
    }

    pub(super) fn name<T: std::str::FromStr<Err: std::fmt::Display>>(
        &mut self,
        ix: NodeIx,
        keys: Fields<'v>,
        key: &str,
    ) -> Option<T> {
        let text = self.text(ix, keys, key)?;
        match text.parse() {
            Ok(name) => Some(name),
            Err(error) => {
                self.add(ProblemCode::BadValue, ix, key, format!("{error}"), "");
                None
            }
        }
    }

    pub(super) fn text(&mut self, ix: NodeIx, keys: Fields<'v>, key: &str) -> Option<&'v str> {
        match keys.get(key)? {
            Value::String(text) => Some(text),
            other => {
                let message = format!("`{key}` cannot be {}", kind_of(other));
                self.add(ProblemCode::BadValue, ix, key, message, "write text");
                None
            }
        }
    }

    /// The source of a template or an expression, which must be there.
    pub(super) fn source<T>(
        &mut self,
        ix: NodeIx,
        keys: Fields<'v>,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, ExpressionError>,
    ) -> Option<T> {
        if !keys.has(key) {
            let help = format!("write `{key}: …`");
            self.add(ProblemCode::MissingField, ix, "", format!("`{key}` is missing"), help);
            return None;
        }
        let text = self.text(ix, keys, key)?;
        if text.trim().is_empty() {
            self.add(ProblemCode::BadValue, ix, key, format!("`{key}` is empty"), "say something");
            return None;
        }
        self.expression(ix, key, parse(text))
    }

    fn expression<T>(&mut self, ix: NodeIx, key: &str, parsed: Result<T, ExpressionError>) -> Option<T> {
        match parsed {
            Ok(parsed) => Some(parsed),
            Err(error) => {
                self.add(ProblemCode::BadExpression, ix, key, format!("bad `{key}`: {error}"), "");
                None
            }
        }
    }

    pub(super) fn unknown_keys(&mut self, ix: NodeIx, keys: Fields<'v>, known: &[&str]) {
        for key in keys.names().filter(|key| !known.contains(key)) {
            let help = nearest::help(key, known.iter().copied(), "keys");
            self.add(ProblemCode::UnknownField, ix, key, format!("unknown key `{}`", shown(key)), help);
        }
    }

    pub(super) fn add(
        &mut self,
        code: ProblemCode,
        ix: NodeIx,
        key: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        let places = &self.places;
        self.problems.add(code, || places.path(ix, key), message, help);
    }
}

/// An expression is also accepted in the braces of a template.
pub(super) fn bare<T>(
    parse: fn(&str) -> Result<T, ExpressionError>,
) -> impl FnOnce(&str) -> Result<T, ExpressionError> {
    move |text| {
        let inner = text.trim().strip_prefix("{{").and_then(|text| text.strip_suffix("}}"));
        parse(inner.filter(|inner| !inner.contains("{{")).map_or(text, str::trim))
    }
}

/// The keys of a budget. serde would read a list as the keys in their order.
fn budget_keys(value: &Value) -> Result<BudgetKeys, Error> {
    let refused = |expected: &str| Err(Error::invalid_type(Unexpected::Seq, &expected));
    if value.is_array() {
        return refused("the keys of a budget");
    }
    if value.get("repeats").is_some_and(Value::is_array) {
        return refused("the keys of `repeats`, such as `{ notice: 3, end: 6 }`");
    }
    BudgetKeys::deserialize(value)
}
