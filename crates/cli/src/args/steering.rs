//! The command line of commands that change a tree.

use std::path::PathBuf;

use anyhow::{Error, Result, anyhow};
use clap::{ArgGroup, Args as Group, ValueEnum};
use spinney_host::home::ids::LAST;
use spinney_kernel::definition::{TimeSpan, Usd};
use spinney_kernel::primitives::{CallId, Category, Running, StepId};
use spinney_view::agents::AgentPath;

use super::values::{agent, amount, question};
use super::{TreeArg, help};

#[derive(Debug, Group)]
pub(crate) struct Cancel {
    #[command(flatten)]
    pub(crate) tree: TreeArg,
    /// The agent, by id or path (default: the root)
    #[arg(value_parser = agent)]
    pub(crate) agent: Option<AgentPath>,
    /// The reason, recorded in the journal
    #[arg(long, default_value = Self::REASON)]
    pub(crate) reason: String,
}

impl Cancel {
    pub(crate) const REASON: &str = "a person cancelled it";
}

#[derive(Debug, Group)]
#[command(override_usage = help::ANSWER_USAGE)]
pub(crate) struct Answer {
    #[arg(value_name = "ID", hide = true)]
    first: Option<String>,
    #[arg(value_name = "QUESTION", hide = true)]
    second: Option<String>,
    #[arg(value_name = "TEXT", hide = true)]
    third: Option<String>,
}

/// What the arguments of `answer` mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerWords<'a> {
    /// Ask every open question of the last tree.
    None,
    /// The answer to the only open question, or a tree whose questions to ask.
    One(&'a str),
    /// A question or a tree, and the answer.
    Two(&'a str, &'a str),
    All {
        tree: &'a str,
        question: &'a str,
        text: &'a str,
    },
}

impl Answer {
    pub(crate) const USAGE: &str = help::ANSWER_USAGE;

    pub(crate) fn words(&self) -> AnswerWords<'_> {
        match (&self.first, &self.second, &self.third) {
            (Some(tree), Some(question), Some(text)) => AnswerWords::All { tree, question, text },
            (Some(first), Some(text), None) => AnswerWords::Two(first, text),
            (Some(word), None, _) => AnswerWords::One(word),
            (None, _, _) => AnswerWords::None,
        }
    }

    /// The tree whose home is searched for. Fewer words are resolved later.
    pub(super) fn tree(&self) -> &str {
        if let AnswerWords::All { tree, .. } = self.words() { tree } else { LAST }
    }
}

/// The number of a question.
pub(crate) fn question_number(word: &str) -> Result<CallId> {
    question(word).map(CallId).map_err(|error| anyhow!("`{word}`: {error}"))
}

/// Two words, optionally with a tree before them: the parser itself can only make the second to last argument optional.
fn after_a_tree<'a>(first: &'a str, second: &'a str, third: Option<&'a str>) -> (&'a str, &'a str, &'a str) {
    match third {
        Some(third) => (first, second, third),
        None => (LAST, first, second),
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
    pub(crate) const USAGE: &str = help::SEND_USAGE;

    /// The words, if there are only two. If the first names a tree, one is missing.
    pub(crate) fn words_without_tree(&self) -> Option<[&str; 2]> {
        self.third.is_none().then_some([&self.first, &self.second])
    }

    pub(super) fn tree(&self) -> &str {
        after_a_tree(&self.first, &self.second, self.third.as_deref()).0
    }

    /// The tree, the agent, and the message.
    pub(crate) fn parts(&self) -> Result<(&str, AgentPath, &str)> {
        let (tree, name, text) = after_a_tree(&self.first, &self.second, self.third.as_deref());
        Ok((tree, agent(name).map_err(Error::msg)?, text))
    }
}

#[derive(Debug, Group)]
#[command(override_usage = help::REDIRECT_USAGE, group = ArgGroup::new("running").multiple(false))]
pub(crate) struct Redirect {
    #[arg(value_name = "TEXT", hide = true, required_unless_present_any = ["skip", "end"])]
    first: Option<String>,
    #[arg(value_name = "TEXT", hide = true)]
    second: Option<String>,
    #[arg(hide = true, conflicts_with_all = ["skip", "end"])]
    third: Option<String>,
    /// Stop its running calls and its children
    #[arg(long, group = "running")]
    pub(crate) now: bool,
    /// Let its running calls and its children finish first (default)
    #[arg(long, group = "running")]
    pub(crate) after_step: bool,
    /// In a pipeline: only this step, or the steps of this group, get the instruction; may be repeated
    #[arg(long = "step", value_name = "STEP", conflicts_with_all = ["skip", "end"])]
    pub(crate) steps: Vec<StepId>,
    /// In a pipeline: skip this step, which has not begun; may be repeated
    #[arg(long, value_name = "STEP", conflicts_with = "end")]
    pub(crate) skip: Vec<StepId>,
    /// End a pipeline with what is done
    #[arg(long)]
    pub(crate) end: bool,
}

/// What the arguments of `redirect` mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RedirectWords<'a> {
    /// A pipeline, without a text.
    Silent {
        tree: &'a str,
        agent: Option<&'a str>,
    },
    /// The root of the last tree.
    Text(&'a str),
    /// An agent of the last tree, or the root of a tree.
    One {
        whom: &'a str,
        text: &'a str,
    },
    All {
        tree: &'a str,
        agent: &'a str,
        text: &'a str,
    },
}

impl Redirect {
    pub(crate) const USAGE: &str = help::REDIRECT_USAGE;

    pub(crate) fn words(&self) -> RedirectWords<'_> {
        let first = self.first.as_deref().unwrap_or(LAST);
        if self.end || !self.skip.is_empty() {
            return RedirectWords::Silent { tree: first, agent: self.second.as_deref() };
        }
        match (&self.second, &self.third) {
            (Some(agent), Some(text)) => RedirectWords::All { tree: first, agent, text },
            (Some(text), None) => RedirectWords::One { whom: first, text },
            (None, _) => RedirectWords::Text(first),
        }
    }

    /// The tree whose home is searched for. Fewer words are resolved later.
    pub(super) fn tree(&self) -> &str {
        match self.words() {
            RedirectWords::All { tree, .. } | RedirectWords::Silent { tree, .. } => tree,
            RedirectWords::Text(_) | RedirectWords::One { .. } => LAST,
        }
    }

    pub(crate) const fn running(&self) -> Running {
        if self.now { Running::Stops } else { Running::Finishes }
    }
}

#[derive(Debug, Group)]
#[command(group = ArgGroup::new("amount").required(true).multiple(true))]
pub(crate) struct Charge {
    #[command(flatten)]
    pub(crate) tree: TreeArg,
    /// The agent whose account, and those above it, it is booked at (default: the root)
    #[arg(value_parser = agent)]
    pub(crate) agent: Option<AgentPath>,
    /// Dollars that were spent
    #[arg(long, group = "amount", value_name = "USD")]
    pub(crate) usd: Option<Usd>,
    /// Tokens that were used
    #[arg(long, group = "amount", value_name = "COUNT", value_parser = amount)]
    pub(crate) tokens: Option<u64>,
    /// What it was spent on, recorded in the journal
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) note: String,
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
    /// The agent, by id or path
    #[arg(value_parser = agent)]
    pub(crate) agent: AgentPath,
    /// Replace what it was given before instead of adding to it
    #[arg(long)]
    pub(crate) replace: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Broadcast {
    #[command(flatten)]
    pub(crate) tree: TreeArg,
    /// The agent whose knowledge is shared
    #[arg(long, value_parser = agent, value_name = "AGENT")]
    pub(crate) from: AgentPath,
    /// An agent to share it with; may be repeated
    #[arg(long, value_parser = agent, value_name = "AGENT", required = true)]
    pub(crate) to: Vec<AgentPath>,
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
    /// The agent, by id or path (default: the root)
    #[arg(value_parser = agent)]
    pub(crate) agent: Option<AgentPath>,
}

#[derive(Debug, Group)]
#[command(group = ArgGroup::new("add").required(true).multiple(true))]
pub(crate) struct Budget {
    #[command(flatten)]
    pub(crate) tree: TreeArg,
    /// The agent whose ceilings to raise (default: the root)
    #[arg(value_parser = agent)]
    pub(crate) agent: Option<AgentPath>,
    /// Dollars to add
    #[arg(long, group = "add", value_name = "USD", allow_negative_numbers = true)]
    pub(crate) add_usd: Option<Usd>,
    /// Tokens to add
    #[arg(long, group = "add", value_name = "COUNT", value_parser = amount, allow_negative_numbers = true)]
    pub(crate) add_tokens: Option<u64>,
    /// Model turns to add
    #[arg(long, group = "add", value_name = "COUNT", value_parser = amount, allow_negative_numbers = true)]
    pub(crate) add_steps: Option<u64>,
    /// Tool calls to add
    #[arg(long, group = "add", value_name = "COUNT", value_parser = amount, allow_negative_numbers = true)]
    pub(crate) add_tool_calls: Option<u64>,
    /// Retries to add
    #[arg(long, group = "add", value_name = "COUNT", value_parser = amount, allow_negative_numbers = true)]
    pub(crate) add_retries: Option<u64>,
    /// Time to add to the timeout, such as 90s or 5m
    #[arg(long, group = "add", value_name = "TIME")]
    pub(crate) add_time: Option<TimeSpan>,
}

#[derive(Debug, Group)]
pub(crate) struct Rm {
    #[command(flatten)]
    pub(crate) tree: TreeArg,
    /// Remove it even if it has not ended, has branches (they keep the shared part and are notified) or has changes that
    /// could not be saved
    #[arg(long)]
    pub(crate) force: bool,
}
