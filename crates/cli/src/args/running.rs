//! The command line of commands that run a tree, or prepare it.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Args as Group, ValueEnum};
use spinney_host::home::ids::LAST;
use spinney_host::tree_file::folders::GivenFolder;
use spinney_host::tree_file::overrides::GivenValues;
use spinney_host::tree_file::source::Scripts;
use spinney_host::user::allowed_host::AllowedHost;
use spinney_host::user::box_allowance::BoxAllowance;
use spinney_host::user::configuration::NotifyCommand;
use spinney_kernel::definition::{FolderAccess, ModelProvider, TimeSpan, Usd};
use spinney_kernel::primitives::TreeId;

use super::values::{input, tag};
use super::{Send, TreeArg, help};

#[derive(Debug, Group)]
pub(crate) struct Run {
    /// The tree file: .yaml, .json or .toml
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) given: Given,
    #[command(flatten)]
    pub(crate) trusted: TrustOptions,
    /// Write each event as a line of JSON, then the result
    #[arg(long)]
    pub(crate) json: bool,
    /// With --json, also write the text that models and tools stream, as it comes
    #[arg(long, requires = "json")]
    pub(crate) text: bool,
    /// Print a line for each event instead of the live view, even on a terminal
    #[arg(long, conflicts_with = "json")]
    pub(crate) plain: bool,
    #[command(flatten)]
    pub(crate) told: NotifyOption,
    /// Run it in a separate process, print the tree's id when it has started, and leave; it stays while it waits for you
    #[arg(long, conflicts_with_all = ["json", "plain", "explain"])]
    pub(crate) detach: bool,
    /// The process that runs it then
    #[arg(long, hide = true, conflicts_with = "detach")]
    pub(crate) detached: bool,
    /// Let the root wait for your next message after each answer, until `finish` ends it
    #[arg(long)]
    pub(crate) keep: bool,
    /// Whether it is shown as a conversation.
    #[arg(skip)]
    pub(crate) is_chat: bool,
    /// Start nothing; show every option, its value and its source
    #[arg(long)]
    pub(crate) explain: bool,
}

/// The command that tells the user of a run.
#[derive(Debug, Group)]
pub(crate) struct NotifyOption {
    /// Start this command when it waits for you, halts or ends, instead of the one in your configuration; words between spaces, no shell
    #[arg(long, value_name = "COMMAND", value_parser = NotifyCommand::from_line)]
    notify: Option<NotifyCommand>,
}

impl NotifyOption {
    /// It, or that of the user's configuration.
    pub(crate) fn or(&self, configured: Option<&NotifyCommand>) -> Option<NotifyCommand> {
        self.notify.as_ref().or(configured).cloned()
    }
}

/// What the command line adds to a tree file.
#[derive(Debug, Group)]
pub(crate) struct Given {
    /// The root agent's goal, instead of the one in the file
    #[arg(long)]
    pub(crate) goal: Option<String>,
    /// Set an input of the file; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = input)]
    pub(crate) set: Vec<(String, String)>,
    /// The tree's cost ceiling, instead of the one in the file
    #[arg(long, value_name = "USD")]
    pub(crate) budget_usd: Option<Usd>,
    /// Your own label of the tree, for `costs --by tag`, beside those in the file; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = tag)]
    pub(crate) tag: Vec<(String, String)>,
    /// Allow scripts outside the tree file's folder
    #[arg(long)]
    pub(crate) allow_outside: bool,
    #[command(flatten)]
    pub(crate) allowed: HostOptions,
    #[command(flatten)]
    pub(crate) boxes: BoxOptions,
    #[command(flatten)]
    pub(crate) folders: FolderOptions,
}

impl Given {
    pub(crate) fn values(&self) -> GivenValues {
        let cost_nanos = self.budget_usd.map(Usd::nanos);
        let folders = self.folders.given();
        let tags = self.tag.iter().cloned().collect();
        GivenValues { goal: self.goal.clone(), inputs: self.set.clone(), cost_nanos, folders, tags }
    }

    pub(crate) const fn scripts(&self) -> Scripts {
        scripts(self.allow_outside)
    }
}

/// Where the scripts of a tree file may be.
pub(crate) const fn scripts(allow_outside: bool) -> Scripts {
    if allow_outside { Scripts::Anywhere } else { Scripts::Below { allow: "use --allow-outside" } }
}

/// Where the keys of a tree may go, and what its tools may connect to.
#[derive(Debug, Group)]
pub(crate) struct HostOptions {
    /// Allow the file to send its keys and variables to this host, and its tools to connect to it; may be repeated
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<AllowedHost>,
}

/// What the user allows a file beyond a full box.
#[derive(Debug, Group)]
pub(crate) struct BoxOptions {
    /// Allow what the file asks for beyond a full box: signals, none, env:NAME, copy:PATH, read:PATH or write:PATH; may be repeated
    #[arg(long, value_name = "WHAT")]
    pub(crate) allow_box: Vec<BoxAllowance>,
}

/// Folders of the user.
#[derive(Debug, Group)]
pub(crate) struct FolderOptions {
    /// Let the tree read a folder; may be repeated
    #[arg(long, value_name = "FOLDER")]
    read: Vec<PathBuf>,
    /// Let the tree read and write a folder; may be repeated
    #[arg(long, value_name = "FOLDER")]
    write: Vec<PathBuf>,
}

impl FolderOptions {
    pub(crate) fn given(&self) -> Vec<GivenFolder> {
        let all = |paths: &[PathBuf], access| -> Vec<GivenFolder> {
            paths.iter().map(|path| GivenFolder { path: path.clone(), access }).collect()
        };
        [all(&self.read, FolderAccess::Read), all(&self.write, FolderAccess::Write)].concat()
    }
}

/// Whether the user trusts the home.
#[derive(Debug, Group)]
pub(crate) struct TrustOptions {
    /// Trust the home even though you did not create it on this machine
    #[arg(long)]
    trust_home: bool,
}

impl TrustOptions {
    pub(crate) const fn trust(&self) -> HomeTrust {
        if self.trust_home { HomeTrust::Given } else { HomeTrust::Ask }
    }
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
    /// Show every option of a run, its value and its source instead
    #[arg(long, requires = "file")]
    pub(crate) explain: bool,
    /// Print the JSON Schema of tree files instead
    #[arg(long, conflicts_with = "file")]
    pub(crate) schema: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Init {
    /// The tree file to write, or a folder for it; or the name of a template, such as s18
    #[arg(value_name = "PATH|NAME")]
    pub(crate) path: Option<PathBuf>,
    /// The template, one of `--list` (default: hello)
    #[arg(long, value_name = "NAME")]
    pub(crate) template: Option<String>,
    /// Write a tree file from what this folder says to other agent programs: .claude/agents, AGENTS.md, CLAUDE.md, .codex, .mcp.json
    #[arg(long, value_name = "DIR", conflicts_with_all = ["template", "list", "provider", "schema"])]
    pub(crate) from: Option<PathBuf>,
    /// List the templates, the project's included, and the scenarios
    #[arg(long, conflicts_with_all = ["path", "template", "provider", "schema"])]
    pub(crate) list: bool,
    /// Use this provider's model; without its key, the script answers
    #[arg(long, value_enum)]
    pub(crate) provider: Option<InitProvider>,
    /// Also write the JSON Schema of tree files and refer to it, for editor support
    #[arg(long)]
    pub(crate) schema: bool,
    /// With --list, write each template as a line of JSON
    #[arg(long, requires = "list")]
    pub(crate) json: bool,
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
    /// End every pause in the tree first
    #[arg(long)]
    pub(crate) unpause: bool,
    #[command(flatten)]
    pub(crate) allowed: HostOptions,
    #[command(flatten)]
    pub(crate) boxes: BoxOptions,
    #[command(flatten)]
    pub(crate) folders: FolderOptions,
    #[command(flatten)]
    pub(crate) trusted: TrustOptions,
    #[command(flatten)]
    pub(crate) told: NotifyOption,
    /// Write each event as a line of JSON, then the result
    #[arg(long)]
    pub(crate) json: bool,
    /// With --json, also write the text that models and tools stream, as it comes
    #[arg(long, requires = "json")]
    pub(crate) text: bool,
    /// Print a line for each event instead of the live view, even on a terminal
    #[arg(long, conflicts_with = "json")]
    pub(crate) plain: bool,
    /// Whether it is shown as a conversation.
    #[arg(skip)]
    pub(crate) is_chat: bool,
    /// Whether nothing of it is shown.
    #[arg(skip)]
    pub(crate) is_silent: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Chat {
    /// A tree file to begin with, or a tree that waits for you: its id, a prefix of it, or `last` (default: last)
    #[arg(value_name = "FILE|ID")]
    target: Option<String>,
    #[command(flatten)]
    given: Given,
    #[command(flatten)]
    trusted: TrustOptions,
    #[command(flatten)]
    told: NotifyOption,
}

#[derive(Debug, Group)]
#[command(override_usage = help::ASK_USAGE)]
pub(crate) struct Ask {
    #[command(flatten)]
    pub(crate) send: Send,
    #[command(flatten)]
    pub(super) allowed: HostOptions,
    #[command(flatten)]
    pub(super) boxes: BoxOptions,
    #[command(flatten)]
    pub(super) folders: FolderOptions,
    #[command(flatten)]
    pub(super) trusted: TrustOptions,
    #[command(flatten)]
    pub(super) told: NotifyOption,
}

impl Ask {
    /// Runs the tree silently if nobody does.
    pub(crate) fn resume(self, tree: TreeId) -> Resume {
        let Self { send: _, allowed, boxes, folders, trusted, told } = self;
        Resume {
            tree: TreeArg::named(tree),
            unpause: false,
            allowed,
            boxes,
            folders,
            trusted,
            told,
            json: false,
            text: false,
            plain: true,
            is_chat: false,
            is_silent: true,
        }
    }
}

/// A conversation that begins, or one that continues.
pub(crate) enum ChatStart {
    Run(Box<Run>),
    Resume(Box<Resume>),
}

impl Chat {
    /// The tree that continues; none if one begins.
    pub(super) fn tree(&self) -> Option<&str> {
        match &self.target {
            None => Some(LAST),
            Some(target) => (!Path::new(target).is_file()).then_some(target),
        }
    }

    /// # Errors
    /// If it names what only a conversation that begins can have.
    pub(crate) fn start(self) -> Result<ChatStart> {
        let is_begun = self.tree().is_some();
        let Self { target, given, trusted, told } = self;
        if is_begun {
            let Given { goal, set, budget_usd, tag, allow_outside, allowed, boxes, folders } = given;
            if goal.is_some() || budget_usd.is_some() || allow_outside || !set.is_empty() || !tag.is_empty() {
                bail!(
                    "--goal, --set, --budget-usd, --tag and --allow-outside are for a conversation that begins: name its file"
                );
            }
            let tree = TreeArg { id: target };
            let (unpause, json, text, plain, is_chat) = (false, false, false, true, true);
            return Ok(ChatStart::Resume(Box::new(Resume {
                tree,
                unpause,
                allowed,
                boxes,
                folders,
                trusted,
                told,
                json,
                text,
                plain,
                is_chat,
                is_silent: false,
            })));
        }
        Ok(ChatStart::Run(Box::new(Run {
            file: target.unwrap_or_default().into(),
            given,
            trusted,
            json: false,
            text: false,
            plain: true,
            told,
            detach: false,
            detached: false,
            keep: true,
            is_chat: true,
            explain: false,
        })))
    }
}

#[derive(Debug, Group)]
pub(crate) struct Doctor {
    /// A tree file whose models to try (default: list all providers' keys)
    pub(crate) file: Option<PathBuf>,
    /// Only check keys and whether each server answers
    #[arg(long, requires = "file")]
    pub(crate) no_calls: bool,
    /// How long to wait for each model
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub(crate) timeout: TimeSpan,
    /// Allow scripts outside the tree file's folder
    #[arg(long)]
    pub(crate) allow_outside: bool,
    #[command(flatten)]
    pub(crate) allowed: HostOptions,
    /// Write one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// What the command line says about a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HomeTrust {
    /// Ask a person.
    Ask,
    /// By `--trust-home`.
    Given,
}
