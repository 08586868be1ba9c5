//! The command line of commands that change a tree.

use std::path::PathBuf;

use anyhow::{Error, Result, anyhow};
use clap::{ArgGroup, Args as Group, ValueEnum};
use spinney_kernel::definition::{TimeSpan, Usd};
use spinney_kernel::words::{AgentId, Category};

use super::values::{agent, count, question};
use super::{TreeArg, help};
use crate::hint;

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
    pub(super) fn tree(&self) -> &str {
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
    pub(super) fn tree(&self) -> &str {
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
pub(crate) struct Rm {
    #[command(flatten)]
    pub(crate) tree: TreeArg,
    /// Remove it even if it has not ended or branches use it; branches keep the shared part and are notified
    #[arg(long)]
    pub(crate) force: bool,
}
