//! Agents that are programs: who runs them, and with what. A home without a runner starts no tree that has them.

use std::sync::Arc;

use serde_json::Value;
use spinney_kernel::definition::ProgramSpec;
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::{AttemptError, Model};
use spinney_kernel::port::program::ProgramStarter;
use spinney_kernel::port::tool::{ToolAnswer, ToolAttempt};
use spinney_kernel::primitives::AgentId;

use super::Tree;

/// Runs the programs that are agents of the trees of a home.
pub trait ProgramRunner: Send + Sync {
    /// The driver of every model call that a program makes.
    fn model(&self) -> Arc<dyn Model>;

    /// Runs a program to its end. Dropping the future ends everything that it started.
    fn run(&self, run: ProgramRun) -> Pending<Result<ToolAnswer, AttemptError>>;
}

/// A program that is an agent of a tree.
#[derive(Clone)]
#[non_exhaustive]
pub struct ProgramRun {
    /// Takes the requests for its model calls.
    pub tree: Tree,
    /// The agent that it is.
    pub agent: AgentId,
    /// What is started.
    pub spec: Arc<ProgramSpec>,
    /// What it is told.
    pub task: String,
    /// What it has of its agent: folder, rights, box.
    pub attempt: ToolAttempt,
    /// Starts it in its box.
    pub starter: Arc<dyn ProgramStarter>,
}

impl ProgramRun {
    pub(super) fn new(
        tree: Tree,
        spec: Arc<ProgramSpec>,
        attempt: ToolAttempt,
        starter: Arc<dyn ProgramStarter>,
    ) -> Self {
        let args: Value = serde_json::from_str(&attempt.args).unwrap_or_default();
        let task = args.get("task").and_then(Value::as_str).unwrap_or_default().to_owned();
        Self { tree, agent: attempt.origin.agent().clone(), spec, task, attempt, starter }
    }
}
