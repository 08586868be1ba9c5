//! The tree file: what people write to describe a tree of agents, in YAML, JSON or TOML.
//!
//! Text in, [`Definition`] out. Nothing here opens a file: the caller supplies the text and resolves the scripts and
//! folders that it names. A file is read whole or refused with the place, the reason and what to write instead.
//!
//! ```text
//! text ─► node (yaml, json, toml) ─► keys (serde) ─► definition, every name checked
//! ```

mod boxes;
mod check;
mod command_tools;
mod definition;
mod error;
mod folders;
mod foreign_keys;
mod hint_format;
mod inputs;
mod json;
mod key_file;
mod keys;
mod model;
mod node;
mod pipeline;
mod pipeline_bound;
mod problem;
mod programs;
mod reach;
mod recover;
mod redact;
mod schema;
mod servers;
mod source;
mod toml;
mod typed;
mod value_error;
mod working_copies;
mod worst_case;
mod yaml;

use std::collections::BTreeMap;
use std::fmt;

use spinney_kernel::definition::{Allow, Definition};
use spinney_kernel::primitives::{ByName, ModelName, RoleName, ToolName};

pub use command_tools::{CommandTool, SavedOutputs};
pub use error::{FileError, FileErrors};
pub use inputs::{InputError, InputSpec, InputSpecs, InputType};
pub use key_file::KeyFile;
pub use model::{ModelCatalog, ModelParams, ModelSource, NoCatalog, ProviderSource};
pub use pipeline_bound::{PipelineBound, RunFactor, StepBound, UnboundedHold};
pub use problem::{FileProblem, Severity};
pub use reach::Reach;
pub use spinney_kernel::definition::{CacheTime, ModelProvider, Thinking};
pub use spinney_kernel::primitives::nearest;
pub use worst_case::{CallBound, SpendBound, WorstCase};

use error::TextPosition;
use folders::FolderLists;
use node::{Kind, Node, Step};
use value_error::ValueError;
use working_copies::WrittenCopies;

/// Largest tree file, in bytes: a pipeline of the most steps, with short tasks.
pub const FILE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Deepest nesting of lists and maps: groups of a pipeline as deep as they may be, each a map and a list.
const NESTING_MAX: usize = 48;
/// Most errors that are reported at once: more are not read, and each costs another look at the file.
pub const ERRORS_MAX: usize = 50;
/// Most values in one file, repetitions by aliases included.
const VALUES_MAX: usize = 1_000_000;

type Format = fn(&str) -> Result<Node, ValueError>;

/// The format that the ending of a name selects, for a text that is not too long.
fn format(name: &str, text: &str) -> Result<Format, FileError> {
    if text.len() > FILE_BYTES_MAX {
        let message = format!("the file has {} bytes, more than {FILE_BYTES_MAX}", text.len());
        return Err(FileError::new(name, TextPosition::START, message));
    }
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    match ending.as_deref() {
        Some("yaml" | "yml") => Ok(yaml::read),
        Some("json") => Ok(json::read),
        Some("toml") => Ok(toml::read),
        Some(_) | None => {
            let error = FileError::new(name, TextPosition::START, "the file's name does not show its format");
            Err(error.with_help("end it in .yaml, .yml, .json or .toml"))
        }
    }
}

/// Without the mark of its byte order, which some editors write.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// A parsed tree file. The definition's tools are empty: only the caller knows which ones exist.
#[derive(Clone, Debug)]
pub struct TreeFile {
    /// The definition. The goal is empty if the file has none.
    pub definition: Definition,
    /// Where each model's answers come from.
    pub models: ByName<ModelName, ModelSource>,
    /// What the file asks for. Its goal and prompts are templates until [`with_inputs`](Self::with_inputs) fills them.
    pub inputs: InputSpecs,
    /// The tools that it defines.
    pub command_tools: BTreeMap<ToolName, CommandTool>,
    folders: FolderLists,
    working_copies: WrittenCopies,
    file: String,
    root: Node,
    /// What models at a URL of their own cost at their providers, by the names of the catalog.
    usual_prices: ByName<ModelName, String>,
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
        match Self::read(name, text, catalog) {
            (Some(file), errors) if errors.is_empty() => Ok(file),
            (_, errors) => {
                Err(errors.into_iter().next().unwrap_or_else(|| FileError::empty(name, TextPosition::START)))
            }
        }
    }

    /// The same, with everything that is wrong, at most [`ERRORS_MAX`] errors of each kind. A text that is not in its
    /// format at all has one error, because nothing after it can be read.
    ///
    /// # Errors
    /// By their places.
    pub fn parse_whole(name: &str, text: &str, catalog: &dyn ModelCatalog) -> Result<Self, FileErrors> {
        match Self::read(name, text, catalog) {
            (Some(file), errors) if errors.is_empty() => Ok(file),
            (_, errors) => Err(FileErrors::new(errors)),
        }
    }

    /// What can be read of a text, and everything that is wrong with it. What is wrong is missing in the definition, so
    /// it is only good for finding more problems.
    #[must_use]
    pub fn parse_partly(name: &str, text: &str, catalog: &dyn ModelCatalog) -> (Option<Self>, FileErrors) {
        let (file, errors) = Self::read(name, text, catalog);
        (file, FileErrors::new(errors))
    }

    /// The errors are in the order in which they were found. Without a file there is at least one.
    fn read(name: &str, text: &str, catalog: &dyn ModelCatalog) -> (Option<Self>, Vec<FileError>) {
        let text = without_mark(text);
        let read = match format(name, text) {
            Ok(_) if text.trim().is_empty() => {
                return (None, vec![FileError::empty(name, TextPosition::START)]);
            }
            Ok(read) => read,
            Err(error) => return (None, vec![error]),
        };
        match read(text) {
            Ok(root) => definition::read(name, root, catalog),
            Err(wrong) => {
                let again = wrong.is_doubled().then(|| yaml::read_with_doubled_keys(text).ok()).flatten();
                let (file, more) =
                    again.map_or((None, Vec::new()), |root| definition::read(name, root, catalog));
                (file, [vec![wrong.in_file(name)], more].concat())
            }
        }
    }

    /// The JSON Schema of tree files, for editors. `docs/tree-file.schema.json` is this.
    #[must_use]
    pub fn json_schema() -> serde_json::Value {
        schema::schema()
    }

    /// Fills the inputs into the goal and the prompts: what is given first, then what `env` knows of the variables that
    /// the file names, then the defaults. Nothing changes in a file without inputs.
    ///
    /// # Errors
    /// Everything that is wrong with what is given.
    pub fn with_inputs(
        mut self,
        given: &[(String, String)],
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Vec<InputError>> {
        let values = inputs::values(&self.inputs, given, env)?;
        if !self.inputs.is_empty() {
            inputs::fill(&mut self.definition, values)?;
        }
        Ok(self)
    }

    /// Replaces the goal, for example by the one from the command line.
    #[must_use]
    pub fn with_goal(mut self, goal: impl Into<String>) -> Self {
        self.definition.goal = goal.into();
        self
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

    /// The error for an agent that cannot work because of what one of its keys says, at the place of that key.
    #[must_use]
    pub fn bad_agent(&self, agent: &RoleName, key: &str, reason: impl fmt::Display) -> FileError {
        let path = [Step::Key("agents"), Step::Key(agent.as_str()), Step::Key(key)];
        FileError::new(&self.file, self.root.place_of(&path), reason.to_string())
    }

    /// Whether the file itself says what a model costs.
    #[must_use]
    pub fn writes_price(&self, model: &ModelName) -> bool {
        let keys = &self.root.follow(&[Step::Key("models"), Step::Key(model.as_str())]).kind;
        matches!(keys, Kind::Map(entries) if entries.iter().any(|(key, _)| key.text == "price"))
    }

    /// The error for a key of the tree itself, at its place.
    #[must_use]
    pub fn bad_key(&self, key: &str, reason: impl fmt::Display) -> FileError {
        FileError::new(&self.file, self.root.place_of_key(&[Step::Key(key)]), reason.to_string())
    }
}
