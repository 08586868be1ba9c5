//! Inputs: values that a file asks for by name and that are given when a tree is started. A file that declares some may
//! use them in its goal and its prompts, as `{{ inputs.topic }}`; in other files such text has no meaning. Steps of a
//! pipeline read them by name, as they read the outputs of other steps.
//!
//! Inputs become part of texts that the journal keeps. Do not use them for API keys.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use spinney_kernel::definition::{Definition, ExpressionFault, Graph, Template};
use spinney_kernel::primitives::{Body, limit};

use super::definition::Reader;
use super::error::FileError;
use super::keys::{InputKeys, InputValue, InputWord};
use super::nearest;
use super::node::Step;
use super::value_error::cut;

/// Most inputs of one file.
const INPUTS_MAX: usize = 64;
/// Longest name of an input, in bytes.
const NAME_BYTES_MAX: usize = 64;
/// The name under which texts know them.
const NAME: &str = "inputs";

/// The inputs of a file, by name.
pub type InputSpecs = BTreeMap<String, InputSpec>;

/// An input that a file asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct InputSpec {
    /// How its value is written.
    pub kind: InputType,
    /// Its value if none is given.
    pub default: Option<Value>,
    /// The environment variable with its value, if none is given.
    pub env: Option<String>,
    /// What to give, for people.
    pub description: String,
}

/// How the value of an input is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InputType {
    /// As it is.
    #[default]
    Text,
    /// As JSON; texts can read its parts.
    Json,
}

/// Why the given inputs do not fit the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// The file does not ask for it.
    #[error("the file has no input `{name}`: {help}")]
    Unknown {
        /// As it was given.
        name: String,
        /// The nearest name, or all of them.
        help: String,
    },
    /// It was given more than once.
    #[error("input `{name}` is given twice: keep one")]
    Doubled {
        /// Its name.
        name: String,
    },
    /// It has no default and was not given.
    #[error(
        "input `{name}` has no value: give it one{}{}",
        .env.iter().map(|variable| format!(", or set {variable} in the environment")).collect::<String>(),
        described(.description)
    )]
    Missing {
        /// Its name.
        name: String,
        /// The variable that it is read from, if it has one.
        env: Option<String>,
        /// What it is for; may be empty.
        description: String,
    },
    /// It is not JSON.
    #[error("input `{name}` is not JSON: {reason}; write JSON in quotes, such as '[1, 2]' or '\"text\"'")]
    NotJson {
        /// Its name.
        name: String,
        /// What the parser says.
        reason: String,
    },
    /// It is too long.
    #[error("input `{name}` has {bytes} bytes, more than {bytes_max}")]
    TooLong {
        /// Its name.
        name: String,
        /// Its length.
        bytes: usize,
        /// The longest allowed.
        bytes_max: usize,
    },
    /// A text cannot be made from the values.
    #[error("{place}: {reason}")]
    Text {
        /// The goal, or the prompt of an agent.
        place: String,
        /// What is wrong.
        reason: String,
    },
}

/// The value of every input.
pub(super) fn values(
    specs: &InputSpecs,
    given: &[(String, String)],
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Map<String, Value>, Vec<InputError>> {
    let mut errors = Vec::new();
    for (at, (name, _)) in given.iter().enumerate() {
        if !specs.contains_key(name) {
            let help = nearest::help(name, specs.keys().map(String::as_str), NAME);
            errors.push(InputError::Unknown { name: cut(name), help });
        } else if given[..at].iter().any(|(known, _)| known == name) {
            errors.push(InputError::Doubled { name: name.clone() });
        }
    }
    let mut values = Map::new();
    for (name, spec) in specs {
        let written = given.iter().find(|(known, _)| known == name).map(|(_, text)| text.clone());
        let from_env = || spec.env.as_deref().and_then(env);
        let value = match written.or_else(from_env) {
            Some(text) => spec.value(name, text),
            None => spec.default.clone().ok_or_else(|| spec.missing(name)),
        };
        match value {
            Ok(value) => drop(values.insert(name.clone(), value)),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(values) } else { Err(errors) }
}

impl InputSpec {
    fn value(&self, name: &str, text: String) -> Result<Value, InputError> {
        let name = name.to_owned();
        if text.len() > limit::TEXT_BYTES_MAX {
            let (bytes, bytes_max) = (text.len(), limit::TEXT_BYTES_MAX);
            return Err(InputError::TooLong { name, bytes, bytes_max });
        }
        match self.kind {
            InputType::Text => Ok(Value::String(text)),
            InputType::Json => serde_json::from_str(&text)
                .map_err(|error| InputError::NotJson { name, reason: error.to_string() }),
        }
    }

    fn missing(&self, name: &str) -> InputError {
        let (name, env, description) = (name.to_owned(), self.env.clone(), self.description.clone());
        InputError::Missing { name, env, description }
    }
}

/// What an input is for, behind a text.
fn described(description: &str) -> String {
    if description.is_empty() { String::new() } else { format!(" ({description})") }
}

/// Puts the values into the goal and the prompts.
pub(super) fn fill(definition: &mut Definition, values: Map<String, Value>) -> Result<(), Vec<InputError>> {
    let mut errors = Vec::new();
    // Steps of graphs read them by their names. A file with a name that is none has an error already.
    let named = values.iter().filter_map(|(name, value)| Some((name.parse().ok()?, value.clone())));
    definition.inputs = named.collect();
    let values: Map<String, Value> = [(NAME.to_owned(), Value::Object(values))].into_iter().collect();
    let mut filled = |text: &str, place: &dyn Fn() -> String| {
        let wrong = |reason: String| InputError::Text { place: place(), reason };
        let template = Template::parse(text).map_err(|error| wrong(error.to_string()));
        let text = template.and_then(|text| text.render(&values).map_err(|fault| wrong(fault.to_string())));
        text.map_err(|error| errors.push(error)).ok()
    };
    if let Some(goal) = filled(&definition.goal, &|| "the goal".to_owned()) {
        definition.goal = goal;
    }
    for (name, role) in &mut definition.roles {
        if let Some(program) = &mut role.program
            && let Some(prompt) = filled(&program.prompt, &|| format!("the prompt of `{name}`"))
        {
            program.prompt = prompt;
        }
        let Some(turns) = &mut role.turns else { continue };
        if let Some(prompt) = filled(&turns.prompt.text, &|| format!("the prompt of `{name}`")) {
            turns.prompt = Body::text(prompt);
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

impl Reader<'_> {
    pub(super) fn inputs(&self, keys: &BTreeMap<String, InputKeys>) -> InputSpecs {
        let at = Step::Key(NAME);
        if keys.len() > INPUTS_MAX {
            let message = format!("`{NAME}` has {} entries, more than {INPUTS_MAX}", keys.len());
            self.note(self.wrong(&[at], message));
        }
        keys.iter().map(|(name, keys)| (name.clone(), self.input(name, keys))).collect()
    }

    fn input(&self, name: &str, keys: &InputKeys) -> InputSpec {
        let at = |key| [Step::Key(NAME), Step::Key(name), Step::Key(key)];
        if !is_name(name) {
            let error = self.wrong_key(&at("")[..2], format!("`{}` is not a valid input name", cut(name)));
            self.note(error.with_help("write letters, digits and _, with a letter first"));
        }
        if self.keys.pipeline.is_some() && Graph::is_builtin(name) {
            let message = format!("`{name}` is reserved in pipelines");
            self.note(self.wrong_key(&at("")[..2], message).with_help("choose another name"));
        }
        let kind = match keys.kind {
            Some(InputWord::Json) => InputType::Json,
            Some(InputWord::Text) | None => InputType::Text,
        };
        if let Some(InputValue(default)) = &keys.default {
            let bytes = default.as_str().map_or_else(|| default.to_string().len(), str::len);
            if kind == InputType::Text && !default.is_string() {
                let error = self.wrong(&at("default"), format!("the default of text `{name}` is not text"));
                self.note(error.with_help("put it in quotes, or write `type: json`"));
            } else if bytes > limit::TEXT_BYTES_MAX {
                let message = format!("`default` has {bytes} bytes, more than {}", limit::TEXT_BYTES_MAX);
                self.note(self.wrong(&at("default"), message));
            }
        }
        if let Some(variable) = &keys.env {
            self.noted(self.names_a_variable(&at("env"), variable));
        }
        if let Some(description) = &keys.description {
            self.noted(self.short(&at("description"), description, limit::NOTE_BYTES_MAX));
        }
        InputSpec {
            kind,
            default: keys.default.as_ref().map(|default| default.0.clone()),
            env: keys.env.clone(),
            description: keys.description.clone().unwrap_or_default(),
        }
    }

    /// Refuses a text that uses what is not declared. Only files with inputs have templates.
    pub(super) fn template(&self, path: &[Step<'_>], text: &str) -> Result<(), FileError> {
        let specs = &self.keys.inputs;
        if specs.is_empty() {
            return Ok(());
        }
        let help = "write {{ inputs.name }}; `docs/expressions.md` has the rest";
        let template = Template::parse(text)
            .map_err(|error| self.wrong(path, format!("bad template: {error}")).with_help(help))?;
        if let Some(name) = template.names().find(|name| *name != NAME) {
            let error = self.wrong(path, format!("unknown name `{}`", cut(name)));
            return Err(match specs.contains_key(name) {
                true => error.with_help(format!("write `{NAME}.{name}`")),
                false => error.with_help(format!("known names: {NAME}")),
            });
        }
        // What a text input holds does not matter; parts of a JSON input are known when it is given.
        let object = specs.keys().map(|name| (name.clone(), Value::String(String::new()))).collect();
        let values: Map<String, Value> = [(NAME.to_owned(), Value::Object(object))].into_iter().collect();
        let Err(ExpressionFault::NotDefined { part }) = template.render(&values) else { return Ok(()) };
        let name = part.strip_prefix("inputs.").unwrap_or_default();
        let name = name.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        if name.is_empty() || specs.contains_key(name) || self.is_lost(&[NAME, name]) {
            return Ok(());
        }
        let help = nearest::help(name, specs.keys().map(String::as_str), NAME);
        Err(self.wrong(path, format!("unknown input `{}`", cut(name))).with_help(help))
    }
}

fn is_name(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    begins && name.len() <= NAME_BYTES_MAX && name.bytes().all(is_inner)
}
