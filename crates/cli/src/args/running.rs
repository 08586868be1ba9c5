//! The command line of commands that run a tree, or prepare it.

use std::path::PathBuf;

use clap::{Args as Group, ValueEnum};
use spinney_kernel::definition::{ModelProvider, TimeSpan, Usd};

use super::TreeArg;
use super::values::input;

#[derive(Debug, Group)]
pub(crate) struct Run {
    /// The tree file: .yaml, .json or .toml
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) given: Given,
    /// Write each event as a line of JSON, and the result last
    #[arg(long)]
    pub(crate) json: bool,
    /// Print lines as things happen, also on a terminal, instead of the live view
    #[arg(long, conflicts_with = "json")]
    pub(crate) plain: bool,
}

/// What the command line adds to a tree file.
#[derive(Debug, Group)]
pub(crate) struct Given {
    /// The root's goal, instead of the one in the file
    #[arg(long)]
    pub(crate) goal: Option<String>,
    /// The value of an input of the file; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = input)]
    pub(crate) set: Vec<(String, String)>,
    /// The tree's cost ceiling, instead of the one in the file
    #[arg(long, value_name = "USD")]
    pub(crate) budget_usd: Option<Usd>,
    /// Allow scripts outside the tree file's folder
    #[arg(long)]
    pub(crate) allow_outside: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Check {
    /// The tree file: .yaml, .json or .toml
    #[arg(required_unless_present = "schema")]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) given: Given,
    /// Write one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the JSON Schema of tree files instead
    #[arg(long, conflicts_with = "file")]
    pub(crate) schema: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Init {
    /// The tree file to write, or a folder for it (default: tree.yaml)
    pub(crate) path: Option<PathBuf>,
    /// Call a model of this provider; without its key, the script answers
    #[arg(long, value_enum)]
    pub(crate) provider: Option<InitProvider>,
    /// Write the JSON Schema of tree files beside it and refer to it, for hints in editors
    #[arg(long)]
    pub(crate) schema: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum InitProvider {
    Openai,
    Anthropic,
    Gemini,
    Ollama,
}

impl InitProvider {
    pub(crate) const fn provider(self) -> ModelProvider {
        match self {
            Self::Openai => ModelProvider::OpenAi,
            Self::Anthropic => ModelProvider::Anthropic,
            Self::Gemini => ModelProvider::Gemini,
            Self::Ollama => ModelProvider::Ollama,
        }
    }
}

#[derive(Debug, Group)]
pub(crate) struct Resume {
    #[command(flatten)]
    pub(crate) tree: TreeArg,
    /// End every pause in it first
    #[arg(long)]
    pub(crate) unpause: bool,
    /// Write each event as a line of JSON, and the result last
    #[arg(long)]
    pub(crate) json: bool,
    /// Print lines as things happen, also on a terminal, instead of the live view
    #[arg(long, conflicts_with = "json")]
    pub(crate) plain: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Doctor {
    /// A tree file whose models to try (default: list the keys of all providers)
    pub(crate) file: Option<PathBuf>,
    /// Only check keys, and whether each server answers
    #[arg(long, requires = "file")]
    pub(crate) no_calls: bool,
    /// How long to wait for each model
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub(crate) timeout: TimeSpan,
    /// Allow scripts outside the tree file's folder
    #[arg(long)]
    pub(crate) allow_outside: bool,
    /// Write one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
