//! What may be written on the command line. Nothing is decided here.

mod exec;
mod help;
mod looking;

use std::path::PathBuf;

use anyhow::{Error, Result, anyhow};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgGroup, Args as Group, Parser, Subcommand, ValueEnum};
use spinney_kernel::definition::{ModelProvider, TimeSpan, Usd};
use spinney_kernel::words::{AgentId, Category, CheckpointName, Topic};

pub(crate) use self::exec::{Exec, ExecGuard, LimitPolicy};
pub(crate) use self::looking::{
    Attach, Completions, Costs, CostsBy, Files, FilesCat, FilesCommand, Shell, Top, TreeView,
};
use crate::exec::program;
use crate::hint;

/// The options of every command, below its own.
const GLOBAL: &str = "Global options";

/// Runs trees of AI agents under budgets that hold.
#[derive(Debug, Parser)]
#[command(name = "spinney", version, propagate_version = true, max_term_width = 100, after_help = help::TOP)]
pub(crate) struct Args {
    /// The home folder, where trees are stored (default: the nearest .spinney in this folder or above that is yours,
    /// or else ./.spinney)
    #[arg(
        long,
        global = true,
        env = hint::HOME_VARIABLE,
        value_name = "DIR",
        hide_env_values = true,
        help_heading = GLOBAL
    )]
    pub(crate) home: Option<PathBuf>,
    /// Colours in output for people; NO_COLOR turns them off, too
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t = ColorChoice::Auto,
        value_name = "WHEN",
        help_heading = GLOBAL
    )]
    pub(crate) color: ColorChoice,
    /// Continue although confirmed commits are missing from the journal; keeps a copy of what was found
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) accept_loss: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    Always,
    Never,
}

/// Which tree a command is about. Every command takes it the same way.
#[derive(Clone, Debug, Default, Group)]
pub(crate) struct TreeArg {
    /// A tree's id, any unique prefix of it, or `last` for the tree that started last (default: last)
    #[arg(value_name = "ID")]
    id: Option<String>,
}

impl TreeArg {
    /// How the tree is named.
    pub(crate) fn text(&self) -> &str {
        self.id.as_deref().unwrap_or(hint::LAST)
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a tree file to its end
    #[command(after_help = help::RUN)]
    Run(Run),
    /// Run an agent program of somebody else under a budget: Claude Code, Codex, or any that calls Anthropic's or
    /// OpenAI's API.
    ///
    /// Its model calls go through a gateway on this machine, which holds the most that each can cost before it is sent.
    /// At a ceiling everything waits until `spinney budget` raises it.
    #[command(after_help = help::EXEC)]
    Exec(Box<Exec>),
    /// The process between `exec` and its program.
    #[command(name = program::GUARD, hide = true)]
    ExecGuard(ExecGuard),
    /// Check a tree file: everything that is wrong with it, what it looks like, and the most it can spend
    #[command(after_help = help::CHECK)]
    Check(Check),
    /// Write a small tree file with its script, to start from; runs without an account
    #[command(after_help = help::INIT)]
    Init(Init),
    /// Resume a tree where it stopped
    #[command(after_help = help::RESUME)]
    Resume(Resume),
    /// List every tree
    #[command(after_help = help::PS)]
    Ps(Ps),
    /// Show all trees that run, live; or list them once
    #[command(after_help = help::TOP_COMMAND)]
    Top(Top),
    /// Follow a tree that another process runs, live, until it ends
    #[command(after_help = help::ATTACH)]
    Attach(Attach),
    /// Show the agents of a tree: who spawned whom, what each is doing and what it spent
    #[command(after_help = help::TREE)]
    Tree(TreeView),
    /// Show who spent what, by agent, role, model, step, branch or attempt
    #[command(after_help = help::COSTS)]
    Costs(Costs),
    /// List the files that agents wrote, with paths to open; or print one
    #[command(after_help = help::FILES)]
    Files(Files),
    /// Show what happened in a tree
    #[command(after_help = help::EVENTS)]
    Events(Events),
    /// Show everything an agent has read and said, including what its window leaves out
    #[command(after_help = help::SHOW)]
    Show(Show),
    /// Show how large an agent's window is, and what is in it
    #[command(after_help = help::WINDOW)]
    Window(WhoseContext),
    /// Show open questions, with everything that a yes would allow
    #[command(after_help = help::QUESTIONS)]
    Questions(Questions),
    /// Show the values that the agents of a tree share, or one of them
    #[command(after_help = help::SHARED)]
    Shared(Shared),
    /// Cancel a tree, or one agent and everything below it
    #[command(after_help = help::CANCEL)]
    Cancel(Cancel),
    /// Answer a question that an agent asked
    #[command(after_help = help::ANSWER)]
    Answer(Answer),
    /// Send a message to an agent
    #[command(after_help = help::SEND)]
    Send(Send),
    /// Share with an agent what its parent knows now
    #[command(after_help = help::REFRESH)]
    Refresh(Refresh),
    /// Share what one agent knows with several others
    #[command(after_help = help::BROADCAST)]
    Broadcast(Broadcast),
    /// Pause a tree or an agent: running calls finish, nothing new starts
    #[command(after_help = help::PAUSE)]
    Pause(Whom),
    /// End a pause
    #[command(after_help = help::UNPAUSE)]
    Unpause(Whom),
    /// Raise the ceilings of a tree
    #[command(after_help = help::BUDGET)]
    Budget(Budget),
    /// Make, list and branch from checkpoints
    #[command(subcommand, after_help = help::CHECKPOINT)]
    Checkpoint(Checkpoint),
    /// List models with their context sizes and prices
    #[command(after_help = help::MODELS)]
    Models(Models),
    /// Show what works here: the home, the keys of providers, and the models of a tree file.
    ///
    /// With a file, each of its models is called once, with a tiny prompt and the least output that the provider
    /// allows. That costs a fraction of a cent per model, outside any budget; --no-calls makes no call.
    #[command(after_help = help::DOCTOR)]
    Doctor(Doctor),
    /// Remove a tree, its workspaces and its checkpoints
    #[command(after_help = help::RM)]
    Rm(Rm),
    /// Print what happened in a tree from its journal, or verify it; calls no model and no tool
    #[command(after_help = help::REPLAY)]
    Replay(Replay),
    /// Print a script that completes commands in your shell
    #[command(after_help = help::COMPLETIONS)]
    Completions(Completions),
}

impl Command {
    /// The tree that it is about, as the user named it.
    pub(crate) fn tree(&self) -> Option<&str> {
        match self {
            Self::Resume(Resume { tree, .. })
            | Self::Attach(Attach { tree, .. })
            | Self::Tree(TreeView { tree, .. })
            | Self::Costs(Costs { tree, .. })
            | Self::Files(Files { command: Some(FilesCommand::Cat(FilesCat { tree, .. })), .. })
            | Self::Files(Files { tree, .. })
            | Self::Events(Events { tree, .. })
            | Self::Questions(Questions { tree, .. })
            | Self::Shared(Shared { tree, .. })
            | Self::Cancel(Cancel { tree, .. })
            | Self::Refresh(Refresh { tree, .. })
            | Self::Broadcast(Broadcast { tree, .. })
            | Self::Pause(Whom { tree, .. })
            | Self::Unpause(Whom { tree, .. })
            | Self::Budget(Budget { tree, .. })
            | Self::Checkpoint(Checkpoint::Make(CheckpointMake { tree, .. }))
            | Self::Rm(Rm { tree, .. })
            | Self::Replay(Replay { tree, .. }) => Some(tree.text()),
            Self::Show(Show { whom, .. }) | Self::Window(whom) => Some(whom.tree()),
            Self::Answer(answer) => Some(answer.tree()),
            Self::Send(send) => Some(send.tree()),
            Self::Run(_)
            | Self::Exec(_)
            | Self::ExecGuard(_)
            | Self::Check(_)
            | Self::Init(_)
            | Self::Ps(_)
            | Self::Top(_)
            | Self::Checkpoint(_)
            | Self::Models(_)
            | Self::Completions(_)
            | Self::Doctor(_) => None,
        }
    }

    /// Whether it reads, prints and ends: it needs one thread.
    pub(crate) const fn is_short(&self) -> bool {
        matches!(
            self,
            Self::Ps(_)
                | Self::Check(_)
                | Self::Init(_)
                | Self::Models(_)
                | Self::Show(_)
                | Self::Costs(_)
                | Self::Files(_)
                | Self::Window(_)
                | Self::Completions(_)
        )
    }

    /// Whether its output is JSON and its last line a result, whatever happens.
    pub(crate) const fn ends_in_a_result(&self) -> bool {
        if let Self::Exec(exec) = self {
            return exec.json;
        }
        matches!(
            self,
            Self::Run(Run { json: true, .. })
                | Self::Resume(Resume { json: true, .. })
                | Self::Replay(Replay { json: true, .. })
        )
    }
}

/// Adds what the parser cannot know: a program of `exec` that is written without `--` is an unknown argument to it.
pub(crate) fn suggest(error: &mut clap::Error) {
    let is_of_exec = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string().contains(" exec "),
        _ => false,
    };
    let is_alone = !std::env::args_os().any(|word| word == "--");
    if is_of_exec && is_alone && error.kind() == ErrorKind::UnknownArgument {
        let tip = "write `--` before the program and its arguments".into();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
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
    #[command(flatten)]
    pub(crate) tree: TreeArg,
    /// The first event to show
    #[arg(long, value_name = "SEQ", default_value_t = 1, value_parser = count)]
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
    #[command(flatten)]
    pub(crate) tree: TreeArg,
    /// Write each question as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Shared {
    #[command(flatten)]
    pub(crate) tree: TreeArg,
    /// Which value; its JSON alone is printed
    pub(crate) key: Option<String>,
    /// Write each value as a line of JSON, with its version, author and time
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the value: JSON, or a text if it is not JSON
    #[arg(long, value_name = "VALUE", requires = "key", conflicts_with = "json")]
    pub(crate) set: Option<String>,
    /// With --set: the version that it must have now (0: it must not exist)
    #[arg(long, value_name = "N", requires = "set", value_parser = count)]
    pub(crate) expect_version: Option<u64>,
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
    #[command(flatten)]
    tree: TreeArg,
    /// Which agent
    #[arg(value_parser = agent)]
    pub(crate) agent: AgentId,
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
pub(crate) struct Cancel {
    #[command(flatten)]
    pub(crate) tree: TreeArg,
    /// Which agent (default: the root)
    #[arg(value_parser = agent)]
    pub(crate) agent: Option<AgentId>,
    /// Why; recorded in the journal
    #[arg(long, default_value = "a person cancelled it")]
    pub(crate) reason: String,
}

#[derive(Debug, Group)]
#[command(override_usage = help::ANSWER_USAGE)]
pub(crate) struct Answer {
    #[arg(value_name = "QUESTION", hide = true)]
    first: String,
    #[arg(value_name = "TEXT", hide = true)]
    second: String,
    #[arg(hide = true)]
    third: Option<String>,
}

impl Answer {
    fn tree(&self) -> &str {
        after_a_tree(&self.first, &self.second, self.third.as_deref()).0
    }

    /// The tree, the number of the question, and the answer.
    pub(crate) fn parts(&self) -> Result<(&str, u64, &str)> {
        let (tree, number, text) = after_a_tree(&self.first, &self.second, self.third.as_deref());
        Ok((tree, question(number).map_err(|error| anyhow!("`{number}`: {error}"))?, text))
    }
}

/// Two words, with a tree before them or not: the parser itself can leave out only the second to last argument.
fn after_a_tree<'a>(first: &'a str, second: &'a str, third: Option<&'a str>) -> (&'a str, &'a str, &'a str) {
    match third {
        Some(third) => (first, second, third),
        None => (hint::LAST, first, second),
    }
}

#[derive(Debug, Group)]
#[command(override_usage = help::SEND_USAGE)]
pub(crate) struct Send {
    #[arg(value_name = "AGENT", hide = true)]
    first: String,
    #[arg(value_name = "TEXT", hide = true)]
    second: String,
    #[arg(hide = true)]
    third: Option<String>,
    /// An image or file to attach; may be repeated
    #[arg(long = "file", value_name = "PATH")]
    pub(crate) files: Vec<PathBuf>,
    /// How the message is treated: dialog is dropped before context when the window is full
    #[arg(long, value_enum, default_value_t = Purpose::Dialog)]
    pub(crate) category: Purpose,
}

impl Send {
    fn tree(&self) -> &str {
        after_a_tree(&self.first, &self.second, self.third.as_deref()).0
    }

    /// The tree, the agent, and the message.
    pub(crate) fn parts(&self) -> Result<(&str, AgentId, &str)> {
        let (tree, name, text) = after_a_tree(&self.first, &self.second, self.third.as_deref());
        Ok((tree, agent(name).map_err(Error::msg)?, text))
    }
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
#[command(allow_missing_positional = true)]
pub(crate) struct Refresh {
    #[command(flatten)]
    pub(crate) tree: TreeArg,
    /// Which agent
    #[arg(value_parser = agent)]
    pub(crate) agent: AgentId,
    /// Replace what it received before instead of adding to it
    #[arg(long)]
    pub(crate) replace: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Broadcast {
    #[command(flatten)]
    pub(crate) tree: TreeArg,
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
    #[command(flatten)]
    pub(crate) tree: TreeArg,
    /// Which agent (default: the root)
    #[arg(value_parser = agent)]
    pub(crate) agent: Option<AgentId>,
}

#[derive(Debug, Group)]
#[command(group = ArgGroup::new("add").required(true).multiple(true))]
pub(crate) struct Budget {
    #[command(flatten)]
    pub(crate) tree: TreeArg,
    /// Whose ceilings (default: the root's)
    #[arg(value_parser = agent)]
    pub(crate) agent: Option<AgentId>,
    /// Dollars to add
    #[arg(long, group = "add", value_name = "USD")]
    pub(crate) add_usd: Option<Usd>,
    /// Tokens to add
    #[arg(long, group = "add", value_name = "COUNT", value_parser = count)]
    pub(crate) add_tokens: Option<u64>,
    /// Model turns to add
    #[arg(long, group = "add", value_name = "COUNT", value_parser = count)]
    pub(crate) add_steps: Option<u64>,
    /// Tool calls to add
    #[arg(long, group = "add", value_name = "COUNT", value_parser = count)]
    pub(crate) add_tool_calls: Option<u64>,
    /// Retries to add
    #[arg(long, group = "add", value_name = "COUNT", value_parser = count)]
    pub(crate) add_retries: Option<u64>,
    /// Time to add before the timeout, such as 90s or 5m
    #[arg(long, group = "add", value_name = "TIME")]
    pub(crate) add_time: Option<TimeSpan>,
}

#[derive(Debug, Group)]
pub(crate) struct Replay {
    #[command(flatten)]
    pub(crate) tree: TreeArg,
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
    #[command(flatten)]
    pub(crate) tree: TreeArg,
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
#[command(allow_missing_positional = true)]
pub(crate) struct CheckpointMake {
    #[command(flatten)]
    pub(crate) tree: TreeArg,
    /// Which agent
    #[arg(value_parser = agent)]
    pub(crate) agent: AgentId,
    /// Its name, unique in the home (default: generated)
    #[arg(long, value_parser = checkpoint)]
    pub(crate) name: Option<CheckpointName>,
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
    #[arg(long, group = "budget", value_name = "COUNT", value_parser = count)]
    pub(crate) budget_tokens: Option<u64>,
    /// The most model turns it may take
    #[arg(long, group = "budget", value_name = "COUNT", value_parser = count)]
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

/// A whole number. The standard library's own error does not say what to write.
pub(super) fn count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "write a whole number, such as 20000".to_owned())
}

fn input(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write its name and its value, such as topic=owls")?;
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
