//! The command line of `spinney checkpoint`.

use clap::{ArgGroup, Args as Group, Subcommand};
use spinney_kernel::definition::Usd;
use spinney_kernel::primitives::{AgentId, CheckpointName};
use spinney_view::agents::AgentPath;

use super::TreeArg;
use super::values::{agent, agent_id, amount, checkpoint};

/// What to do with checkpoints.
#[derive(Debug, Subcommand)]
pub(crate) enum Checkpoint {
    /// Name an agent's context as it is now
    Make(CheckpointMake),
    /// List every checkpoint in the home
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
    /// The agent, by id or path
    #[arg(value_parser = agent)]
    pub(crate) agent: AgentPath,
    /// A name for it, unique in the home (default: generated)
    #[arg(long, value_parser = checkpoint)]
    pub(crate) name: Option<CheckpointName>,
}

#[derive(Debug, Group)]
#[command(group = ArgGroup::new("budget").required(true).multiple(true))]
pub(crate) struct CheckpointBranch {
    /// The checkpoint's name, or any unique prefix of it
    pub(crate) name: String,
    /// Cost ceiling of the branch
    #[arg(long, group = "budget", value_name = "USD")]
    pub(crate) budget_usd: Option<Usd>,
    /// Token ceiling of the branch
    #[arg(long, group = "budget", value_name = "COUNT", value_parser = amount)]
    pub(crate) budget_tokens: Option<u64>,
    /// Maximum number of model turns of the branch
    #[arg(long, group = "budget", value_name = "COUNT", value_parser = amount)]
    pub(crate) budget_steps: Option<u64>,
}

#[derive(Debug, Group)]
pub(crate) struct CheckpointRollback {
    /// The checkpoint's name, or any unique prefix of it
    pub(crate) name: String,
    /// Restore it into another agent of the same tree
    #[arg(long, value_name = "AGENT", value_parser = agent)]
    pub(crate) into: Option<AgentPath>,
}

#[derive(Debug, Group)]
pub(crate) struct CheckpointLs {
    /// Only checkpoints of agents with this id, in any tree
    #[arg(long, value_parser = agent_id)]
    pub(crate) agent: Option<AgentId>,
    /// Write each checkpoint as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}
