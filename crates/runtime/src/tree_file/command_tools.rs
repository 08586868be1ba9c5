//! `tools`: a team's own scripts as tools. Each is a command with places for the arguments of a call.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use spinney_kernel::definition::{CommandTemplate, CommandTemplateError, TimeSpan};
use spinney_kernel::primitives::{ToolName, limit};

use super::definition::Reader;
use super::error::FileError;
use super::keys::CommandToolKeys;
use super::node::Step;

const TIMEOUT_MS_DEFAULT: u64 = 120_000;
const TIMEOUT_MS: RangeInclusive<u64> = 1..=3_600_000;
const EXTENSION_DEFAULT: &str = "txt";
const KIND_BYTES_MAX: usize = 32;
const EXTENSION_BYTES_MAX: usize = 8;
/// Of a tool that takes no arguments.
const NO_ARGUMENTS: &str = r#"{"type":"object","properties":{},"additionalProperties":false}"#;

/// A tool that a tree file defines. A caller that knows the file's folder completes its command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandTool {
    /// What it does and when to use it, for the model.
    pub description: String,
    /// The JSON Schema of its arguments, as text.
    pub args: String,
    /// What is run.
    pub command: CommandTemplate,
    /// Whether a call that was lost may be made again.
    #[serde(default)]
    pub repeatable: bool,
    /// How long one call may take.
    pub timeout_ms: u64,
    /// What kind of outputs it makes, if they are saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saves: Option<SavedOutputs>,
}

/// What the files are called in which a tool's outputs are saved: `{kind}_{NNN}.{extension}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedOutputs {
    /// The beginning of their names.
    pub kind: String,
    /// The end of their names, without a dot.
    pub extension: String,
}

impl Reader<'_> {
    pub(super) fn command_tools(&self) -> BTreeMap<ToolName, CommandTool> {
        self.noted(self.few(&[Step::Key("tools")], self.keys.tools.len()));
        let tools = self.keys.tools.iter();
        tools.filter_map(|(name, keys)| Some((name.clone(), self.command_tool(name, keys)?))).collect()
    }

    fn command_tool(&self, name: &ToolName, keys: &CommandToolKeys) -> Option<CommandTool> {
        let at = |key| [Step::Key("tools"), Step::Key(name.as_str()), Step::Key(key)];
        self.noted(self.said(&at("description"), &keys.description, limit::TEXT_BYTES_MAX));
        let args = self.arguments(&at("args"), keys.args.as_ref());
        let timeout_ms = keys.timeout.map_or(TIMEOUT_MS_DEFAULT, TimeSpan::ms);
        if !TIMEOUT_MS.contains(&timeout_ms) {
            let error = self.wrong(&at("timeout"), "`timeout` is out of bounds");
            self.note(error.with_help("write from 1ms to 1h"));
        }
        let command = match CommandTemplate::new(&keys.command) {
            Ok(command) => command,
            Err(error) => {
                let at = at("command");
                let word = error.word().map(Step::Item);
                let path: Vec<Step<'_>> = at.into_iter().chain(word).collect();
                let help = match error {
                    CommandTemplateError::Shell { .. } => SHELL_HELP,
                    _ => COMMAND_HELP,
                };
                self.note(self.wrong(&path, error.to_string()).with_help(help));
                return None;
            }
        };
        let (args, names) = args?;
        for (word, argument) in command.arguments() {
            if !names.contains(argument) {
                let path: Vec<Step<'_>> = at("command").into_iter().chain([Step::Item(word)]).collect();
                let error = self.wrong(&path, format!("`{argument}` is not among the `args`"));
                self.note(error.with_help(format!(
                    "write `args: {{ type: object, properties: {{ {argument}: {{ type: string }} }} }}`"
                )));
            }
        }
        let (description, repeatable) = (keys.description.clone(), keys.repeatable);
        let saves = self.saves(&at("kind"), &at("extension"), keys);
        Some(CommandTool { description, args, command, repeatable, timeout_ms, saves })
    }

    fn saves(
        &self,
        kind_at: &[Step<'_>],
        extension_at: &[Step<'_>],
        keys: &CommandToolKeys,
    ) -> Option<SavedOutputs> {
        let extension = keys.extension.as_deref().unwrap_or(EXTENSION_DEFAULT);
        let is_word = |text: &str, bytes_max: usize, others: &str| {
            let is_known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || others.contains(c);
            (1..=bytes_max).contains(&text.len()) && text.chars().all(is_known)
        };
        let Some(kind) = keys.kind.as_deref() else {
            if keys.extension.is_some() {
                let error = self.wrong(extension_at, "`extension` without `kind`");
                self.note(
                    error.with_help("write `kind: page` to save its outputs as page_001.html and so on"),
                );
            }
            return None;
        };
        if !is_word(kind, KIND_BYTES_MAX, "-") || kind.starts_with('-') {
            let error = self.wrong(kind_at, format!("bad kind of outputs `{}`", kind.escape_debug()));
            self.note(error.with_help("write up to 32 of a-z, 0-9 and `-`, such as `search`"));
        }
        if !is_word(extension, EXTENSION_BYTES_MAX, "") {
            let error = self.wrong(extension_at, format!("bad extension `{}`", extension.escape_debug()));
            self.note(error.with_help("write up to 8 of a-z and 0-9, without a dot, such as `json`"));
        }
        Some(SavedOutputs { kind: kind.to_owned(), extension: extension.to_owned() })
    }

    /// The schema of the arguments, and their names.
    fn arguments(&self, path: &[Step<'_>], written: Option<&Value>) -> Option<(String, BTreeSet<String>)> {
        let Some(written) = written else { return Some((NO_ARGUMENTS.to_owned(), BTreeSet::new())) };
        let schema = self.noted(self.output_schema(path, Some(written)))?;
        let value: Value = serde_json::from_str(schema.text()).ok()?;
        if value.get("type").and_then(Value::as_str) != Some("object") {
            let error = self.wrong(path, "the arguments of a call are an object");
            self.note(error.with_help("write `type: object` and its `properties`"));
            return None;
        }
        let properties = value.get("properties").and_then(Value::as_object);
        let names = properties.into_iter().flatten().map(|(name, _)| name.clone()).collect();
        Some((schema.text().to_owned(), names))
    }
}

const COMMAND_HELP: &str =
    "write the program and its arguments as a list, such as [python3, ./count.py, \"{{ text }}\"]";

const SHELL_HELP: &str = "give it to the shell as an argument: [sh, -c, 'wc \"$1\"', sh, \"{{ text }}\"]";

impl super::TreeFile {
    /// Replaces words of commands without a place for an argument, such as names of files by their whole paths.
    pub fn complete_commands(&mut self, change: &dyn Fn(&str) -> Option<String>) {
        let tools = std::mem::take(&mut self.command_tools);
        let completed = tools.into_iter().map(|(name, tool)| {
            let command = tool.command.with_fixed_words(change);
            (name, CommandTool { command, ..tool })
        });
        self.command_tools = completed.collect();
    }

    /// The error for a tool whose key says what cannot be, at the place of that key.
    #[must_use]
    pub fn bad_tool(&self, tool: &ToolName, key: &str, reason: impl std::fmt::Display) -> FileError {
        let path = [Step::Key("tools"), Step::Key(tool.as_str()), Step::Key(key)];
        FileError::new(&self.file, self.root.place_of(&path), reason.to_string())
    }

    /// The error for a tool whose name is taken.
    #[must_use]
    pub fn taken_tool(&self, tool: &ToolName) -> FileError {
        let path = [Step::Key("tools"), Step::Key(tool.as_str())];
        let message = format!("there is a tool `{tool}` already");
        FileError::new(&self.file, self.root.place_of_key(&path), message).with_help("choose another name")
    }
}
