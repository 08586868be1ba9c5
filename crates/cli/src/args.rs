//! What may be written on the command line. Nothing is decided here.

use std::path::PathBuf;

use clap::{ArgGroup, Args as Group, Parser, Subcommand, ValueEnum};
use spinney_kernel::definition::{TimeSpan, Usd};
use spinney_kernel::words::{AgentId, Category, CheckpointName, Topic};

use crate::hint;

/// Runs trees of AI agents under budgets that hold.
#[derive(Debug, Parser)]
#[command(name = "spinney", version, propagate_version = true)]
pub(crate) struct Args {
    /// Where trees are kept
    #[arg(long, global = true, env = hint::HOME_VARIABLE, default_value = hint::HOME, value_name = "DIR")]
    pub(crate) home: PathBuf,
    /// Continue although confirmed commits are missing from the journal; keeps a copy of what was found
    #[arg(long, global = true)]
    pub(crate) accept_loss: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do. An ID is any unique beginning of a tree's id, or `last`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a tree file to its end
    Run(Run),
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
    /// What the root is to do, instead of the file's goal
    #[arg(long)]
    pub(crate) goal: Option<String>,
    /// The most the whole tree may cost, instead of the file's
    #[arg(long, value_name = "USD")]
    pub(crate) budget_usd: Option<Usd>,
    /// Read scripts that the file names outside its own folder
    #[arg(long)]
    pub(crate) allow_outside: bool,
    /// Write each event as a line of JSON, and the result last
    #[arg(long)]
    pub(crate) json: bool,
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
    /// Which tree; the one that started last if left out
    pub(crate) id: Option<String>,
    /// Write each question as a line of JSON
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
    /// Which tree; the one that started last if left out
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
    /// Which agent; the root if left out
    #[arg(value_parser = agent)]
    pub(crate) agent: Option<AgentId>,
    /// Why; it stands in the journal
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
    /// To which agent
    #[arg(value_parser = agent)]
    pub(crate) agent: AgentId,
    /// What
    pub(crate) text: String,
    /// An image or a file to send along; may be given several times
    #[arg(long = "file", value_name = "PATH")]
    pub(crate) files: Vec<PathBuf>,
    /// What it is for: what is said goes out of a full window before what is to be known
    #[arg(long, value_enum, default_value_t = Purpose::Dialog)]
    pub(crate) category: Purpose,
}

/// What a person's message is for.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Purpose {
    /// Something to know
    Context,
    /// Something that is said
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
    /// Let it forget what it was told before, so that only what is true now is there
    #[arg(long)]
    pub(crate) replace: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Broadcast {
    /// Which tree
    pub(crate) id: String,
    /// Whose knowledge
    #[arg(long, value_parser = agent, value_name = "AGENT")]
    pub(crate) from: AgentId,
    /// Who is told; may be written more than once
    #[arg(long, value_parser = agent, value_name = "AGENT", required = true)]
    pub(crate) to: Vec<AgentId>,
    /// What is told; may be written more than once
    #[arg(long, value_enum, default_value = "context")]
    pub(crate) category: Vec<Knowledge>,
}

/// What an agent can tell others.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Knowledge {
    /// What it was given to know
    Context,
    /// Its first message, too
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
    /// Which agent; the root if left out
    #[arg(value_parser = agent)]
    pub(crate) agent: Option<AgentId>,
}

#[derive(Debug, Group)]
#[command(group = ArgGroup::new("add").required(true).multiple(true))]
pub(crate) struct Budget {
    /// Which tree
    pub(crate) id: String,
    /// Whose ceilings; the root's if left out
    #[arg(value_parser = agent)]
    pub(crate) agent: Option<AgentId>,
    /// So many dollars more
    #[arg(long, group = "add", value_name = "USD")]
    pub(crate) add_usd: Option<Usd>,
    /// So many tokens more
    #[arg(long, group = "add", value_name = "COUNT")]
    pub(crate) add_tokens: Option<u64>,
    /// So many model turns more
    #[arg(long, group = "add", value_name = "COUNT")]
    pub(crate) add_steps: Option<u64>,
    /// So many tool calls more
    #[arg(long, group = "add", value_name = "COUNT")]
    pub(crate) add_tool_calls: Option<u64>,
    /// So many retries more
    #[arg(long, group = "add", value_name = "COUNT")]
    pub(crate) add_retries: Option<u64>,
    /// More time before its timeout, such as 90s or 5m
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
    /// The hash that its journal must end with; checks it as --verify does
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
    /// Remove it although branches use it; they keep what they share with it, and are told
    #[arg(long)]
    pub(crate) force: bool,
}

/// What to do with checkpoints.
#[derive(Debug, Subcommand)]
pub(crate) enum Checkpoint {
    /// Give an agent's context, as it is now, a name
    Make(CheckpointMake),
    /// List every checkpoint of the home
    Ls(CheckpointLs),
    /// Make a new tree that shares everything up to a checkpoint, with a budget of its own
    Branch(CheckpointBranch),
    /// Have an agent know what it knew at a checkpoint, and go on from there
    Rollback(CheckpointRollback),
    /// Remove automatic checkpoints that have expired
    Clean,
}

#[derive(Debug, Group)]
pub(crate) struct CheckpointMake {
    /// Which agent
    #[arg(value_parser = agent)]
    pub(crate) agent: AgentId,
    /// What to call it, in the whole home; one is drawn if left out
    #[arg(long, value_parser = checkpoint)]
    pub(crate) name: Option<CheckpointName>,
    /// In which tree
    #[arg(long, value_name = "ID", default_value = "last")]
    pub(crate) tree: String,
}

#[derive(Debug, Group)]
#[command(group = ArgGroup::new("budget").required(true).multiple(true))]
pub(crate) struct CheckpointBranch {
    /// Which checkpoint: any unique beginning of its name
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
    /// Which checkpoint: any unique beginning of its name
    pub(crate) name: String,
    /// Give what was known then to this other agent of the same tree
    #[arg(long, value_name = "AGENT", value_parser = agent)]
    pub(crate) into: Option<AgentId>,
}

#[derive(Debug, Group)]
pub(crate) struct CheckpointLs {
    /// Only those of agents with this id, in whatever tree
    #[arg(long, value_parser = agent)]
    pub(crate) agent: Option<AgentId>,
    /// Write each checkpoint as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A question's number, also as events show it.
fn question(text: &str) -> Result<u64, String> {
    let number = text.strip_prefix('#').unwrap_or(text);
    number.parse().map_err(|_| "a question is named by its number, such as 7".to_owned())
}

fn topic(text: &str) -> Result<Topic, String> {
    text.parse().map_err(|error| format!("{error}"))
}

fn checkpoint(text: &str) -> Result<CheckpointName, String> {
    text.parse().map_err(|error| format!("{error}"))
}

/// An agent's id, also at the end of a path as events show it: ids are unique in a tree.
fn agent(text: &str) -> Result<AgentId, String> {
    let id = text.rsplit_once('/').map_or(text, |(_, last)| last);
    id.parse().map_err(|error| format!("{error}"))
}
