//! The command line of commands that only look.

use clap::{Args as Group, Subcommand, ValueEnum};

use super::TreeArg;

#[derive(Debug, Group)]
pub(crate) struct Top {
    /// List the trees once, without a live view
    #[arg(long)]
    pub(crate) once: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Attach {
    #[command(flatten)]
    pub(crate) tree: TreeArg,
    /// Print lines as things happen, also on a terminal, instead of the live view
    #[arg(long)]
    pub(crate) plain: bool,
}

#[derive(Debug, Group)]
pub(crate) struct TreeView {
    #[command(flatten)]
    pub(crate) tree: TreeArg,
    /// Write a graph for Graphviz
    #[arg(long, conflicts_with = "json")]
    pub(crate) dot: bool,
    /// Write each agent as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Costs {
    #[command(flatten)]
    pub(crate) tree: TreeArg,
    /// One table instead of agents and models
    #[arg(long, value_enum)]
    pub(crate) by: Option<CostsBy>,
    /// Write one JSON object with every table
    #[arg(long, conflicts_with = "by")]
    pub(crate) json: bool,
}

/// What spending is summed up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CostsBy {
    Agent,
    Role,
    /// Models, tools, and what was charged from outside
    Model,
    /// Steps of pipelines
    Step,
    /// What the tree spent itself, and what the tree that it branched off had spent before
    Branch,
    /// First attempts of calls, second ones and so on
    Attempt,
}

#[derive(Debug, Group)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Files {
    #[command(flatten)]
    pub(crate) tree: TreeArg,
    /// Write each file as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Option<FilesCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FilesCommand {
    /// Print a file
    Cat(FilesCat),
}

#[derive(Debug, Group)]
#[command(allow_missing_positional = true)]
pub(crate) struct FilesCat {
    #[command(flatten)]
    pub(crate) tree: TreeArg,
    /// Which file, as `files` lists it: AGENT/outputs/NAME, or any unique end of that
    pub(crate) file: String,
}

#[derive(Debug, Group)]
pub(crate) struct Completions {
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}
