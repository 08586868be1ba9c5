//! The command line of commands that only read.

use std::path::PathBuf;

use clap::{Args as Group, Subcommand, ValueEnum};
use spinney_host::home::ids::LAST;
use spinney_kernel::primitives::Topic;
use spinney_view::agents::AgentPath;
use spinney_view::costs::CostsBy;
use spinney_view::costs::home::HomeCostsBy;
use spinney_view::visibility::WatchRight;

use super::TreeArg;
use super::values::{agent, count, topic};

#[derive(Debug, Group)]
pub(crate) struct Top {
    /// List the trees once, without a live view
    #[arg(long)]
    pub(crate) once: bool,
    /// Write each tree as a line of JSON, once
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Attach {
    #[command(flatten)]
    pub(crate) tree: TreeArg,
    /// Print a line for each event instead of the live view, even on a terminal
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
    /// Show this table instead of agents and models
    #[arg(long, value_enum)]
    pub(crate) by: Option<CostsTable>,
    /// Write one JSON object: every table of the tree, or the table of the home
    #[arg(long)]
    pub(crate) json: bool,
}

impl Costs {
    /// The tree whose home is searched for; none for all trees of a home.
    pub(super) fn tree(&self) -> Option<&str> {
        match self.by.map(CostsOf::from) {
            Some(CostsOf::Home(_)) => None,
            Some(CostsOf::Tree(_)) | None => Some(self.tree.text()),
        }
    }
}

/// What spending is grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CostsTable {
    Agent,
    Role,
    /// Models, tools, and outside charges
    Model,
    /// Steps of pipelines
    Step,
    /// What the tree itself spent, and what the tree it branched from had spent before
    Branch,
    /// First attempts of calls, second attempts and so on
    Attempt,
    /// All trees of the home, by tag
    Tag,
    /// All trees of the home, by program or name
    Program,
    /// All trees of the home, by day (UTC)
    Day,
}

/// A table of one tree, or of all trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CostsOf {
    Tree(CostsBy),
    Home(HomeCostsBy),
}

impl From<CostsTable> for CostsOf {
    fn from(table: CostsTable) -> Self {
        match table {
            CostsTable::Agent => Self::Tree(CostsBy::Agent),
            CostsTable::Role => Self::Tree(CostsBy::Role),
            CostsTable::Model => Self::Tree(CostsBy::Model),
            CostsTable::Step => Self::Tree(CostsBy::Step),
            CostsTable::Branch => Self::Tree(CostsBy::Branch),
            CostsTable::Attempt => Self::Tree(CostsBy::Attempt),
            CostsTable::Tag => Self::Home(HomeCostsBy::Tag),
            CostsTable::Program => Self::Home(HomeCostsBy::Program),
            CostsTable::Day => Self::Home(HomeCostsBy::Day),
        }
    }
}

#[derive(Debug, Group)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Files {
    #[command(flatten)]
    pub(crate) tree: TreeArg,
    /// Show what each agent changed in its working copy instead
    #[arg(long)]
    pub(crate) diff: bool,
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
    /// The file, as `files` lists it: AGENT/outputs/NAME, or any unique suffix of it
    pub(crate) file: String,
}

#[derive(Debug, Group)]
pub(crate) struct Completions {
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

#[derive(Debug, Group)]
pub(crate) struct Man {
    /// The command (default: the program itself)
    pub(crate) command: Vec<String>,
    /// Write the pages of all commands into this folder instead
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub(crate) all: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

#[derive(Debug, Group)]
pub(crate) struct Ps {
    /// Write each tree as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Models {
    /// List only models whose `provider/model` contains all of these words
    pub(crate) filter: Vec<String>,
    /// Also list models without a price, deprecated ones, and those that a newer version replaced
    #[arg(long)]
    pub(crate) all: bool,
    /// Write each model as a line of JSON, current or not
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Events {
    #[command(flatten)]
    pub(crate) tree: TreeArg,
    /// The first event to show
    #[arg(long, value_name = "SEQ", default_value_t = 1, value_parser = count)]
    pub(crate) from: u64,
    /// Show only this agent's events
    #[arg(long, value_parser = agent)]
    pub(crate) agent: Option<AgentPath>,
    /// Show only events of this topic or below it: `agent` includes `agent.spawn`
    #[arg(long, value_parser = topic)]
    pub(crate) topic: Option<Topic>,
    /// Follow the tree until it ends
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// With --follow and --json, also write the text that models and tools stream, as it comes
    #[arg(long, requires_all = ["follow", "json"])]
    pub(crate) text: bool,
    /// Write each event as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// With --json, show what a watcher with this right is shown
    #[arg(long = "as", value_name = "RIGHT", requires = "json", default_value = "owner")]
    pub(crate) right: WatcherRight,
}

/// The right of a watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum WatcherRight {
    Owner,
    Steer,
    Read,
}

impl From<WatcherRight> for WatchRight {
    fn from(right: WatcherRight) -> Self {
        match right {
            WatcherRight::Owner => Self::Owner,
            WatcherRight::Steer => Self::Steer,
            WatcherRight::Read => Self::Read,
        }
    }
}

#[derive(Debug, Group)]
pub(crate) struct Questions {
    #[command(flatten)]
    pub(crate) tree: TreeArg,
    /// Write each question as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Shared {
    #[command(flatten)]
    tree: TreeArg,
    /// The value to print, as JSON. A single word is a value of the last tree, unless it names a tree
    key: Option<String>,
    /// Write each value as a line of JSON, with its version, author and time
    #[arg(long)]
    pub(crate) json: bool,
    /// Set the value: JSON, or text if it is not valid JSON
    #[arg(long, value_name = "VALUE", conflicts_with = "json")]
    pub(crate) set: Option<String>,
    /// With --set: the version it must have now (0: it must not exist)
    #[arg(long, value_name = "N", requires = "set", value_parser = count)]
    pub(crate) expect_version: Option<u64>,
}

/// What the arguments of `shared` mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SharedWords<'a> {
    /// All values of the last tree.
    None,
    /// A value of the last tree, or a tree.
    One(&'a str),
    /// A tree and a value of it.
    Both { tree: &'a str, key: &'a str },
}

impl Shared {
    pub(crate) fn words(&self) -> SharedWords<'_> {
        match (self.tree.given(), &self.key) {
            (None, _) => SharedWords::None,
            (Some(word), None) => SharedWords::One(word),
            (Some(tree), Some(key)) => SharedWords::Both { tree, key },
        }
    }

    /// The tree whose home is searched for. A single word is resolved later.
    pub(super) fn tree(&self) -> &str {
        match self.words() {
            SharedWords::None | SharedWords::One(_) => LAST,
            SharedWords::Both { tree, .. } => tree,
        }
    }
}

#[derive(Debug, Group)]
pub(crate) struct Show {
    #[command(flatten)]
    pub(crate) whom: WhoseContext,
    /// Show long texts in full
    #[arg(long)]
    pub(crate) full: bool,
    /// Show each call of a program that `exec` runs, with its bytes, instead of the conversation
    #[arg(long)]
    pub(crate) calls: bool,
}

#[derive(Debug, Group)]
#[command(allow_missing_positional = true)]
pub(crate) struct WhoseContext {
    #[command(flatten)]
    tree: TreeArg,
    /// The agent, by id or path
    #[arg(value_parser = agent)]
    pub(crate) agent: AgentPath,
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl WhoseContext {
    pub(crate) fn tree(&self) -> &str {
        self.tree.text()
    }
}

#[derive(Debug, Group)]
pub(crate) struct Replay {
    #[command(flatten)]
    pub(crate) tree: TreeArg,
    /// Check the hash chain and repeat every decision from the stored inputs
    #[arg(long)]
    pub(crate) verify: bool,
    /// The hash that the journal must end with; implies --verify
    #[arg(long, value_name = "HASH")]
    pub(crate) expect: Option<String>,
    /// Write each event as a line of JSON, then the result; with --verify or --expect, only the result
    #[arg(long)]
    pub(crate) json: bool,
}
