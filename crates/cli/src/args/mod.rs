//! What may be written on the command line. Nothing is decided here.

mod checkpoints;
mod config;
mod exec;
mod help;
mod mcp;
mod read_only;
mod running;
mod steering;
mod transfer;
mod values;

use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args as Group, Parser, Subcommand, ValueEnum};

use spinney_kernel::primitives::TreeId;

pub(crate) use self::checkpoints::{
    Checkpoint, CheckpointBranch, CheckpointLs, CheckpointMake, CheckpointRollback,
};
pub(crate) use self::config::{Config, ConfigCommand, ConfigGet, ConfigKey, ConfigValues};
pub(crate) use self::exec::{Exec, ExecGuard};
pub(crate) use self::mcp::{Mcp, McpInstall, McpLogin, McpTry, ServersOfFile};
pub(crate) use self::read_only::{
    Attach, Completions, Costs, CostsOf, Events, Files, FilesCat, FilesCommand, Man, Models, Ps, Questions,
    Replay, Shared, SharedWords, Shell, Show, Top, TreeView, WhoseContext,
};
pub(crate) use self::running::{
    Ask, Chat, ChatStart, Check, Doctor, Given, HomeTrust, Init, InitProvider, NotifyOption, Resume, Run,
    TrustOptions, scripts,
};
pub(crate) use self::steering::{
    Answer, AnswerWords, Broadcast, Budget, Cancel, Charge, Knowledge, Redirect, RedirectWords, Refresh, Rm,
    Send, Whom, question_number,
};
pub(crate) use self::transfer::{Export, Import};
use crate::hint;
use spinney_host::defaults::OptionSource;
use spinney_host::home::ids::LAST;
use spinney_host::home::inside;
use spinney_terminal::Colours;

/// The heading of the options that every command has.
const GLOBAL: &str = "Global options";

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    Always,
    Never,
}

impl From<ColorChoice> for Colours {
    fn from(choice: ColorChoice) -> Self {
        match choice {
            ColorChoice::Auto => Self::Auto,
            ColorChoice::Always => Self::Always,
            ColorChoice::Never => Self::Never,
        }
    }
}

/// Runs trees of AI agents under budgets that hold.
#[derive(Debug, Parser)]
#[command(name = "spinney", version, propagate_version = true, max_term_width = 100, after_help = help::TOP)]
pub(crate) struct Args {
    /// The home folder, where trees are stored (default: the nearest .spinney that you own, in this folder or above,
    /// or else ./.spinney)
    #[arg(
        long,
        global = true,
        env = hint::HOME_VARIABLE,
        value_name = "DIR",
        value_parser = OsStringValueParser::new().try_map(values::home),
        hide_env_values = true,
        help_heading = GLOBAL
    )]
    pub(crate) home: Option<PathBuf>,
    /// When to use colours; NO_COLOR also turns them off
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t = ColorChoice::Auto,
        value_name = "WHEN",
        help_heading = GLOBAL
    )]
    pub(crate) color: ColorChoice,
    /// Continue even if confirmed commits are missing from the journal; keeps a copy of what was found
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) accept_loss: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Args {
    /// Where the home folder comes from.
    #[expect(clippy::disallowed_methods, reason = "the parser reads it, and does not say so")]
    pub(crate) fn home_source(&self) -> OptionSource {
        match &self.home {
            None => OptionSource::Default,
            Some(home)
                if std::env::var_os(hint::HOME_VARIABLE).is_some_and(|set| set == home.as_os_str()) =>
            {
                OptionSource::Environment(hint::HOME_VARIABLE.to_owned())
            }
            Some(_) => OptionSource::CommandLine,
        }
    }
}

/// The tree that a command works on. Every command takes it the same way.
#[derive(Clone, Debug, Default, Group)]
pub(crate) struct TreeArg {
    /// A tree's id, any unique prefix of it, or `last` for the tree that started last (default: last)
    #[arg(value_name = "ID")]
    id: Option<String>,
}

impl TreeArg {
    pub(crate) fn named(tree: TreeId) -> Self {
        Self { id: Some(tree.to_string()) }
    }

    /// How the tree is named.
    pub(crate) fn text(&self) -> &str {
        self.given().unwrap_or(LAST)
    }

    pub(crate) fn given(&self) -> Option<&str> {
        self.id.as_deref()
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a tree file until it ends
    #[command(after_help = help::RUN)]
    Run(Run),
    /// Run another agent program under a budget: Claude Code, Codex, or anything that calls Anthropic's or OpenAI's
    /// API.
    ///
    /// Its model calls go through a gateway on this machine, which holds the most each call can cost before sending it.
    /// At a ceiling, everything waits until `spinney budget` raises it.
    #[command(after_help = help::EXEC)]
    Exec(Box<Exec>),
    /// The process between `exec` and its program.
    #[command(name = inside::GUARD, hide = true)]
    ExecGuard(ExecGuard),
    /// Check a tree file: show every error, what the tree looks like, and the most it can spend
    #[command(after_help = help::CHECK)]
    Check(Check),
    /// Write a small tree file and its script to start from; runs without an account
    #[command(after_help = help::INIT)]
    Init(Init),
    /// Resume a tree where it stopped
    #[command(after_help = help::RESUME)]
    Resume(Resume),
    /// Talk with the root of a tree: it waits for you after each answer
    #[command(after_help = help::CHAT)]
    Chat(Box<Chat>),
    /// End a tree whose root waits for you: its last answer is the result
    #[command(after_help = help::FINISH)]
    Finish(Whom),
    /// List every tree
    #[command(after_help = help::PS)]
    Ps(Ps),
    /// Show all running trees, live, or list them once
    #[command(after_help = help::TOP_COMMAND)]
    Top(Top),
    /// Follow a tree that another process is running, live, until it ends
    #[command(after_help = help::ATTACH)]
    Attach(Attach),
    /// Show the agents of a tree: who spawned whom, what each is doing and what it spent
    #[command(after_help = help::TREE)]
    Tree(TreeView),
    /// Show who spent what, in a tree or in all trees of the home
    #[command(after_help = help::COSTS)]
    Costs(Costs),
    /// List the files that agents wrote, with paths to open, or print one
    #[command(after_help = help::FILES)]
    Files(Files),
    /// Show what happened in a tree
    #[command(after_help = help::EVENTS)]
    Events(Events),
    /// Show everything an agent has read and said, including what its window leaves out
    #[command(after_help = help::SHOW)]
    Show(Show),
    /// Show the size of an agent's window and what is in it
    #[command(after_help = help::WINDOW)]
    Window(WhoseContext),
    /// Show open questions, with everything a yes would allow
    #[command(after_help = help::QUESTIONS)]
    Questions(Questions),
    /// Show the values that a tree's agents share, or one of them
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
    /// Give an agent a message and wait for its answer
    #[command(after_help = help::ASK)]
    Ask(Ask),
    /// Give an agent a new instruction while it works; what is done stays
    #[command(after_help = help::REDIRECT)]
    Redirect(Redirect),
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
    /// Book what was spent outside on a tree
    #[command(after_help = help::CHARGE)]
    Charge(Charge),
    /// Make, list, restore and clean checkpoints, and branch from them
    #[command(subcommand, after_help = help::CHECKPOINT)]
    Checkpoint(Checkpoint),
    /// List models with their context sizes and prices
    #[command(after_help = help::MODELS)]
    Models(Models),
    /// Start the servers of tools of a tree file without a tree: list their tools, or call one
    #[command(subcommand, after_help = help::MCP)]
    Mcp(Mcp),
    /// Show or change your configuration: default budgets, where keys may go, prices, notifications, files of variables
    #[command(after_help = help::CONFIG)]
    Config(Config),
    /// Check what works here: the home, provider keys, and the models of a tree file.
    ///
    /// With a file, each of its models is called once, with a tiny prompt and the smallest output that the provider
    /// allows. That costs a fraction of a cent per model, outside any budget; --no-calls makes no calls.
    #[command(after_help = help::DOCTOR)]
    Doctor(Doctor),
    /// Remove a tree, its workspaces and its checkpoints
    #[command(after_help = help::RM)]
    Rm(Rm),
    /// Write a tree to a file, to continue it on another machine or to copy it.
    ///
    /// An unfinished tree moves: it then continues only where the file is imported, so no budget is spent twice. One
    /// that has ended is copied.
    #[command(after_help = help::EXPORT)]
    Export(Export),
    /// Import the trees from a file that `spinney export` wrote, and print their ids
    #[command(after_help = help::IMPORT)]
    Import(Import),
    /// Print what happened in a tree from its journal, or verify it; calls no models or tools
    #[command(after_help = help::REPLAY)]
    Replay(Replay),
    /// Print a shell script that completes commands, ids, agents and files
    #[command(after_help = help::COMPLETIONS)]
    Completions(Completions),
    /// Print the manual page of a command, or write the pages of all commands
    #[command(after_help = help::MAN)]
    Man(Man),
}

impl Command {
    /// The tree that it works on, as the user named it.
    pub(crate) fn tree(&self) -> Option<&str> {
        match self {
            Self::Resume(Resume { tree, .. })
            | Self::Attach(Attach { tree, .. })
            | Self::Tree(TreeView { tree, .. })
            | Self::Files(Files { command: Some(FilesCommand::Cat(FilesCat { tree, .. })), .. })
            | Self::Files(Files { tree, .. })
            | Self::Events(Events { tree, .. })
            | Self::Questions(Questions { tree, .. })
            | Self::Cancel(Cancel { tree, .. })
            | Self::Refresh(Refresh { tree, .. })
            | Self::Broadcast(Broadcast { tree, .. })
            | Self::Pause(Whom { tree, .. })
            | Self::Finish(Whom { tree, .. })
            | Self::Unpause(Whom { tree, .. })
            | Self::Budget(Budget { tree, .. })
            | Self::Charge(Charge { tree, .. })
            | Self::Checkpoint(Checkpoint::Make(CheckpointMake { tree, .. }))
            | Self::Rm(Rm { tree, .. })
            | Self::Export(Export { tree, all: false, .. })
            | Self::Replay(Replay { tree, .. }) => Some(tree.text()),
            Self::Show(Show { whom, .. }) | Self::Window(whom) => Some(whom.tree()),
            Self::Shared(shared) => Some(shared.tree()),
            Self::Answer(answer) => Some(answer.tree()),
            Self::Send(send) | Self::Ask(Ask { send, .. }) => Some(send.tree()),
            Self::Redirect(redirect) => Some(redirect.tree()),
            Self::Costs(costs) => costs.tree(),
            Self::Chat(chat) => chat.tree(),
            Self::Run(_)
            | Self::Exec(_)
            | Self::ExecGuard(_)
            | Self::Check(_)
            | Self::Init(_)
            | Self::Ps(_)
            | Self::Top(_)
            | Self::Export(_)
            | Self::Import(_)
            | Self::Checkpoint(_)
            | Self::Models(_)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::Mcp(_)
            | Self::Config(_)
            | Self::Doctor(_) => None,
        }
    }

    /// The run of `exec` that it resumes.
    pub(crate) fn resumed_run(&self) -> Option<&str> {
        match self {
            Self::Exec(exec) => exec.resume.as_deref(),
            _ => None,
        }
    }

    /// Whether it only reads and prints, so one thread is enough.
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
                | Self::Man(_)
                | Self::Config(_)
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

/// Adds what the parser cannot know: to it, a program of `exec` without `--` is an unknown argument.
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
