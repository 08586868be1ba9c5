//! What may be written on the command line. Nothing is decided here.

use std::path::PathBuf;

use clap::{ArgGroup, Args as Group, Parser, Subcommand, ValueEnum};
use spinney_kernel::definition::{ModelProvider, TimeSpan, Usd};
use spinney_kernel::words::{AgentId, Category, CheckpointName, Topic};

use crate::hint;

/// Runs trees of AI agents under budgets that hold.
#[derive(Debug, Parser)]
#[command(name = "spinney", version, propagate_version = true)]
pub(crate) struct Args {
    /// The home folder, where trees are stored
    #[arg(long, global = true, env = hint::HOME_VARIABLE, default_value = hint::HOME, value_name = "DIR")]
    pub(crate) home: PathBuf,
    /// Continue although confirmed commits are missing from the journal; keeps a copy of what was found
    #[arg(long, global = true)]
    pub(crate) accept_loss: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// An ID is any unique prefix of a tree's id, or `last`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a tree file to its end
    Run(Run),
    /// Check a tree file: everything that is wrong with it, what it looks like, and the most it can spend
    Check(Check),
    /// Write a small tree file with its script, to start from; runs without an account
    Init(Init),
    /// Resume a tree where it stopped
    Resume(Resume),
    /// List every tree
    Ps(Ps),
    /// Show what happened in a tree
    Events(Events),
    /// Show everything an agent has read and said, including what its window leaves out
    Show(Show),
    /// Show how large an agent's window is, and what is in it
    Window(WhoseContext),
    /// Show open questions, with everything that a yes would allow
    Questions(Questions),
    /// Show the values that the agents of a tree share, or one of them
    Shared(Shared),
    /// Cancel a tree, or one agent and everything below it
    Cancel(Cancel),
    /// Answer a question that an agent asked
    Answer(Answer),
    /// Send a message to an agent
    Send(Send),
    /// Share with an agent what its parent knows now
    Refresh(Refresh),
    /// Share what one agent knows with several others
    Broadcast(Broadcast),
    /// Pause a tree or an agent: running calls finish, nothing new starts
    Pause(Whom),
    /// End a pause
    Unpause(Whom),
    /// Raise the ceilings of a tree
    Budget(Budget),
    /// Make, list and branch from checkpoints
    #[command(subcommand)]
    Checkpoint(Checkpoint),
    /// List models with their context sizes and prices
    Models(Models),
    /// Show what works here: the home, the keys of providers, and the models of a tree file.
    ///
    /// With a file, each of its models is called once, with a tiny prompt and the least output that the provider
    /// allows. That costs a fraction of a cent per model, outside any budget; --no-calls makes no call.
    Doctor(Doctor),
    /// Remove a tree, its workspaces and its checkpoints
    Rm(Rm),
    /// Print what happened in a tree from its journal, or verify it; calls no model and no tool
    Replay(Replay),
}

impl Command {
    /// Whether its output is JSON and its last line a result, whatever happens.
    pub(crate) const fn ends_in_a_result(&self) -> bool {
        matches!(
            self,
            Self::Run(Run { json: true, .. })
                | Self::Resume(Resume { json: true, .. })
                | Self::Replay(Replay { json: true, .. })
        )
    }
}

#[derive(Debug, Group)]
pub(crate) struct Run {
    /// The tree file: .yaml, .json or .toml
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) given: Given,
    /// Write each event as a line of JSON, and the result last
    #[arg(long)]
    pub(crate) json: bool,
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
    /// Which tree
    pub(crate) id: String,
    /// End every pause in it first
    #[arg(long)]
    pub(crate) unpause: bool,
    /// Write each event as a line of JSON, and the result last
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Ps {
    /// Write each tree as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Models {
    /// Only models whose `provider/model` has all of these words
    pub(crate) filter: Vec<String>,
    /// Write each model as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
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

#[derive(Debug, Group)]
pub(crate) struct Events {
    /// Which tree
    pub(crate) id: String,
    /// The first event to show
    #[arg(long, value_name = "SEQ", default_value_t = 1)]
    pub(crate) from: u64,
    /// Show only this agent's events
    #[arg(long, value_parser = agent)]
    pub(crate) agent: Option<AgentId>,
    /// Show only events about this topic, or below it: `agent` covers `agent.spawn`
    #[arg(long, value_parser = topic)]
    pub(crate) topic: Option<Topic>,
    /// Follow the tree until it ends
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Write each event as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Questions {
    /// Which tree (default: the one started last)
    pub(crate) id: Option<String>,
    /// Write each question as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Shared {
    /// Which tree (default: the one started last)
    pub(crate) id: Option<String>,
    /// Which value; its JSON alone is printed
    pub(crate) key: Option<String>,
    /// Write each value as a line of JSON, with its version, author and time
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Show {
    #[command(flatten)]
    pub(crate) whom: WhoseContext,
    /// Show long texts whole
    #[arg(long)]
    pub(crate) full: bool,
}

#[derive(Debug, Group)]
#[command(allow_missing_positional = true)]
pub(crate) struct WhoseContext {
    /// Which tree (default: the one started last)
    id: Option<String>,
    /// Which agent
    #[arg(value_parser = agent)]
    pub(crate) agent: AgentId,
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl WhoseContext {
    /// How the tree is named.
    pub(crate) fn tree(&self) -> &str {
        self.id.as_deref().unwrap_or("last")
    }
}

#[derive(Debug, Group)]
pub(crate) struct Cancel {
    /// Which tree
    pub(crate) id: String,
    /// Which agent (default: the root)
    #[arg(value_parser = agent)]
    pub(crate) agent: Option<AgentId>,
    /// Why; recorded in the journal
    #[arg(long, default_value = "a person cancelled it")]
    pub(crate) reason: String,
}

#[derive(Debug, Group)]
pub(crate) struct Answer {
    /// Which tree
    pub(crate) id: String,
    /// The question's number
    #[arg(value_parser = question)]
    pub(crate) question: u64,
    /// The answer
    pub(crate) text: String,
}

#[derive(Debug, Group)]
pub(crate) struct Send {
    /// Which tree
    pub(crate) id: String,
    /// Which agent
    #[arg(value_parser = agent)]
    pub(crate) agent: AgentId,
    /// The message
    pub(crate) text: String,
    /// An image or file to attach; may be repeated
    #[arg(long = "file", value_name = "PATH")]
    pub(crate) files: Vec<PathBuf>,
    /// How the message is treated: dialog is dropped before context when the window is full
    #[arg(long, value_enum, default_value_t = Purpose::Dialog)]
    pub(crate) category: Purpose,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Purpose {
    /// Background that the agent should keep
    Context,
    /// Part of the conversation
    Dialog,
}

impl Purpose {
    pub(crate) const fn category(self) -> Category {
        match self {
            Self::Context => Category::Context,
            Self::Dialog => Category::Dialog,
        }
    }
}

#[derive(Debug, Group)]
pub(crate) struct Refresh {
    /// Which tree
    pub(crate) id: String,
    /// Which agent
    #[arg(value_parser = agent)]
    pub(crate) agent: AgentId,
    /// Replace what it received before instead of adding to it
    #[arg(long)]
    pub(crate) replace: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Broadcast {
    /// Which tree
    pub(crate) id: String,
    /// The agent whose knowledge is shared
    #[arg(long, value_parser = agent, value_name = "AGENT")]
    pub(crate) from: AgentId,
    /// An agent to share it with; may be repeated
    #[arg(long, value_parser = agent, value_name = "AGENT", required = true)]
    pub(crate) to: Vec<AgentId>,
    /// What to share; may be repeated
    #[arg(long, value_enum, default_value = "context")]
    pub(crate) category: Vec<Knowledge>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Knowledge {
    /// Its context messages
    Context,
    /// Its system message
    System,
}

impl Knowledge {
    pub(crate) const fn category(self) -> Category {
        match self {
            Self::Context => Category::Context,
            Self::System => Category::System,
        }
    }
}

#[derive(Debug, Group)]
pub(crate) struct Whom {
    /// Which tree
    pub(crate) id: String,
    /// Which agent (default: the root)
    #[arg(value_parser = agent)]
    pub(crate) agent: Option<AgentId>,
}

#[derive(Debug, Group)]
#[command(group = ArgGroup::new("add").required(true).multiple(true))]
pub(crate) struct Budget {
    /// Which tree
    pub(crate) id: String,
    /// Whose ceilings (default: the root's)
    #[arg(value_parser = agent)]
    pub(crate) agent: Option<AgentId>,
    /// Dollars to add
    #[arg(long, group = "add", value_name = "USD")]
    pub(crate) add_usd: Option<Usd>,
    /// Tokens to add
    #[arg(long, group = "add", value_name = "COUNT")]
    pub(crate) add_tokens: Option<u64>,
    /// Model turns to add
    #[arg(long, group = "add", value_name = "COUNT")]
    pub(crate) add_steps: Option<u64>,
    /// Tool calls to add
    #[arg(long, group = "add", value_name = "COUNT")]
    pub(crate) add_tool_calls: Option<u64>,
    /// Retries to add
    #[arg(long, group = "add", value_name = "COUNT")]
    pub(crate) add_retries: Option<u64>,
    /// Time to add before the timeout, such as 90s or 5m
    #[arg(long, group = "add", value_name = "TIME")]
    pub(crate) add_time: Option<TimeSpan>,
}

#[derive(Debug, Group)]
pub(crate) struct Replay {
    /// Which tree
    pub(crate) id: String,
    /// Check the hash chain and decide every stored input again
    #[arg(long)]
    pub(crate) verify: bool,
    /// The hash that the journal must end with; implies --verify
    #[arg(long, value_name = "HASH")]
    pub(crate) expect: Option<String>,
    /// Write each event as a line of JSON, and the result last; only the result with --verify or --expect
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Rm {
    /// Which tree
    pub(crate) id: String,
    /// Remove it even if it has not ended or branches use it; branches keep the shared part and are notified
    #[arg(long)]
    pub(crate) force: bool,
}

/// What to do with checkpoints.
#[derive(Debug, Subcommand)]
pub(crate) enum Checkpoint {
    /// Name an agent's context as it is now
    Make(CheckpointMake),
    /// List every checkpoint of the home
    Ls(CheckpointLs),
    /// Create a tree from a checkpoint, with its own budget
    Branch(CheckpointBranch),
    /// Restore an agent's context from a checkpoint and continue from there
    Rollback(CheckpointRollback),
    /// Remove expired automatic checkpoints
    Clean,
}

#[derive(Debug, Group)]
pub(crate) struct CheckpointMake {
    /// Which agent
    #[arg(value_parser = agent)]
    pub(crate) agent: AgentId,
    /// Its name, unique in the home (default: generated)
    #[arg(long, value_parser = checkpoint)]
    pub(crate) name: Option<CheckpointName>,
    /// Which tree
    #[arg(long, value_name = "ID", default_value = "last")]
    pub(crate) tree: String,
}

#[derive(Debug, Group)]
#[command(group = ArgGroup::new("budget").required(true).multiple(true))]
pub(crate) struct CheckpointBranch {
    /// Which checkpoint, by any unique prefix of its name
    pub(crate) name: String,
    /// The most the branch may cost
    #[arg(long, group = "budget", value_name = "USD")]
    pub(crate) budget_usd: Option<Usd>,
    /// The most tokens it may use
    #[arg(long, group = "budget", value_name = "COUNT")]
    pub(crate) budget_tokens: Option<u64>,
    /// The most model turns it may take
    #[arg(long, group = "budget", value_name = "COUNT")]
    pub(crate) budget_steps: Option<u64>,
}

#[derive(Debug, Group)]
pub(crate) struct CheckpointRollback {
    /// Which checkpoint, by any unique prefix of its name
    pub(crate) name: String,
    /// Restore it into this other agent of the same tree
    #[arg(long, value_name = "AGENT", value_parser = agent)]
    pub(crate) into: Option<AgentId>,
}

#[derive(Debug, Group)]
pub(crate) struct CheckpointLs {
    /// Only checkpoints of agents with this id, in any tree
    #[arg(long, value_parser = agent)]
    pub(crate) agent: Option<AgentId>,
    /// Write each checkpoint as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Accepts the form that events show.
fn question(text: &str) -> Result<u64, String> {
    let number = text.strip_prefix('#').unwrap_or(text);
    number.parse().map_err(|_| "expected the number of a question, such as 7".to_owned())
}

fn input(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected name=value")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn topic(text: &str) -> Result<Topic, String> {
    text.parse().map_err(|error| format!("{error}"))
}

fn checkpoint(text: &str) -> Result<CheckpointName, String> {
    text.parse().map_err(|error| format!("{error}"))
}

/// Accepts a path as events show it: ids are unique in a tree.
fn agent(text: &str) -> Result<AgentId, String> {
    let id = text.rsplit_once('/').map_or(text, |(_, last)| last);
    id.parse().map_err(|error| format!("{error}"))
}
