//! The tree file: what people write to describe a tree of agents, in YAML, JSON or TOML.
//!
//! Text in, [`Definition`] out. Nothing here opens a file: the caller supplies the text and resolves the scripts that
//! it names. A file is read whole or refused with the place, the reason and what to write instead.
//!
//! ```text
//! text ─► node (yaml, json, toml) ─► keys (serde) ─► definition, every name checked
//! ```

mod definition;
mod error;
mod json;
mod keys;
mod model;
mod node;
mod other_words;
mod pipeline;
mod source;
mod toml;
mod typed;
mod wrong;
mod yaml;

use std::fmt;

use spinney_kernel::budget::Resource;
use spinney_kernel::definition::{Allow, BudgetSpec, Definition, Refusal, Unpriced};
use spinney_kernel::words::{ByName, ModelName, RoleName, ToolName};

pub use error::FileError;
pub use model::{ModelCatalog, ModelParams, ModelSource, NoCatalog, ProviderSource};
pub use spinney_kernel::definition::{CacheTime, ModelProvider, Thinking};
pub use spinney_kernel::words::nearest;

use error::Place;
use node::{Node, Step};

/// Largest tree file, in bytes: a pipeline of the most steps, with short tasks.
pub const FILE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Deepest nesting of lists and maps: groups of a pipeline as deep as they may be, each a map and a list.
const NESTING_MAX: usize = 48;
/// Most values in one file, repetitions by aliases included.
const VALUES_MAX: usize = 1_000_000;

/// A parsed tree file. The definition's tools are empty: only the caller knows which ones exist.
#[derive(Clone, Debug)]
pub struct TreeFile {
    /// The definition. The goal is empty if the file has none.
    pub definition: Definition,
    /// Where each model's answers come from.
    pub models: ByName<ModelName, ModelSource>,
    file: String,
    root: Node,
}

impl TreeFile {
    /// Parses the text of a file. The extension of `name` selects the format: `.yaml`, `.yml`, `.json` or `.toml`.
    ///
    /// # Errors
    /// Names the place, what is wrong there and what to write instead.
    pub fn parse(name: &str, text: &str) -> Result<Self, FileError> {
        Self::parse_with(name, text, &NoCatalog)
    }

    /// The same, with what is known of models: prices and sizes that the file does not write itself.
    ///
    /// # Errors
    /// Names the place, what is wrong there and what to write instead.
    pub fn parse_with(name: &str, text: &str, catalog: &dyn ModelCatalog) -> Result<Self, FileError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.len() > FILE_BYTES_MAX {
            let message = format!("the file has {} bytes, more than {FILE_BYTES_MAX}", text.len());
            return Err(FileError::new(name, Place::START, message));
        }
        if text.trim().is_empty() {
            return Err(FileError::empty(name, Place::START));
        }
        let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        let root = match ending.as_deref() {
            Some("yaml" | "yml") => yaml::read(text),
            Some("json") => json::read(text),
            Some("toml") => toml::read(text),
            Some(_) | None => {
                let error = FileError::new(name, Place::START, "the file's name does not tell its format");
                return Err(error.with_help("end it in .yaml, .yml, .json or .toml"));
            }
        };
        let root = root.map_err(|wrong| wrong.in_file(name))?;
        definition::read(name, root, catalog)
    }

    /// Replaces the goal, for example by the one from the command line.
    #[must_use]
    pub fn with_goal(mut self, goal: impl Into<String>) -> Self {
        self.definition.goal = goal.into();
        self
    }

    /// Refuses models without a price that agents would use under a cost ceiling. The kernel refuses each of their
    /// calls; this reports it before anything starts. `definition` is this file's, possibly changed by the caller.
    ///
    /// # Errors
    /// Names the model, its place and what to write.
    pub fn check_prices(&self, definition: &Definition) -> Result<(), FileError> {
        let is_limited = |budget: &BudgetSpec| budget.limit.of(Resource::Cost).is_some();
        let whole = is_limited(&definition.budget);
        let limited = definition.roles.values().filter(|role| whole || is_limited(&role.budget));
        let unpriced = limited.map(|role| &role.model).find(|model| definition.price(model).is_none());
        match unpriced {
            Some(model) if definition.unpriced == Unpriced::Refuse => {
                let path = [Step::Key("models"), Step::Key(model.as_str())];
                let refusal = Refusal::Unpriced { model: model.clone() };
                Err(FileError::new(&self.file, self.root.place_of(&path), refusal.to_string()))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Every tool that a role names, for the caller to look up.
    pub fn tools(&self) -> impl Iterator<Item = (&RoleName, &ToolName)> {
        self.definition.roles.iter().flat_map(|(name, role)| {
            let tools = match &role.caps.tools {
                Allow::Only(tools) => Some(tools),
                Allow::All => None,
            };
            let approvals = role.turns.iter().flat_map(|turns| turns.approvals.keys());
            tools.into_iter().flatten().chain(approvals).map(move |tool| (name, tool))
        })
    }

    /// The error for a tool that does not exist, at the place where the role names it.
    #[must_use]
    pub fn unknown_tool(&self, role: &RoleName, tool: &ToolName, known: &[ToolName]) -> FileError {
        let at = |key| [Step::Key("agents"), Step::Key(role.as_str()), Step::Key(key)];
        let is_listed = self.definition.roles.get(role).is_some_and(|role| role.caps.tools.has(tool));
        let place = if is_listed {
            self.root.place_of_item(&at("tools"), tool.as_str())
        } else {
            let [agents, role, approvals] = at("approvals");
            self.root.place_of(&[agents, role, approvals, Step::Key(tool.as_str())])
        };
        let help = nearest::help(tool.as_str(), known.iter().map(ToolName::as_str), "tools");
        FileError::new(&self.file, place, format!("unknown tool `{tool}`")).with_help(help)
    }

    /// The error for a model that cannot be used because of what one of its keys says, at the place of that key.
    #[must_use]
    pub fn bad_model(&self, model: &ModelName, key: &str, reason: impl fmt::Display) -> FileError {
        let path = [Step::Key("models"), Step::Key(model.as_str()), Step::Key(key)];
        FileError::new(&self.file, self.root.place_of(&path), reason.to_string())
    }
}
