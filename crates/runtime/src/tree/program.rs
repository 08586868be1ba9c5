//! Agents that are programs: who runs them, and with what. A home without a runner starts no tree that has them.

use std::sync::Arc;

use serde_json::Value;
use spinney_kernel::context::ProgramPast;
use spinney_kernel::definition::ProgramSpec;
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::{AttemptError, Model};
use spinney_kernel::port::program::ProgramStarter;
use spinney_kernel::port::tool::{ToolAnswer, ToolAttempt};
use spinney_kernel::primitives::{AgentId, SessionId};
use spinney_kernel::record::FollowupStart;
use tokio::sync::mpsc::Sender;

use super::Tree;
use super::effects::{EffectResult, Ticket};
use super::prepared::ProgramToRun;

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
    /// The session in which it continues after a crash. Then it is not told its task again.
    pub session: Option<SessionId>,
    /// What it continues, if its task is a follow-up.
    pub past: Option<Arc<ProgramPast>>,
    /// Takes the sessions that it names.
    pub sessions: ProgramSessions,
}

/// Records the session that a program is continued by, as soon as the program names it.
#[derive(Clone)]
pub struct ProgramSessions {
    ticket: Ticket,
    reports: Sender<EffectResult>,
}

impl ProgramSessions {
    pub(super) fn new(ticket: Ticket, reports: Sender<EffectResult>) -> Self {
        Self { ticket, reports }
    }

    /// Names the session. Returns whether it was taken: if not, the tree is busy, and it has to be named again.
    #[must_use]
    pub fn name(&self, session: SessionId) -> bool {
        self.reports.try_send(EffectResult::Session(self.ticket, session)).is_ok()
    }

    /// Records where a program with a follow-up of an agent begins. A tree that is stopping ends the program before that.
    pub async fn followup_started(&self, of: AgentId, start: FollowupStart) {
        let result = EffectResult::FollowupStarted(self.ticket, of, start);
        if self.reports.send(result).await.is_err() {
            tracing::debug!(target: "spinney::effect", "a follow-up began in a tree that stops");
        }
    }
}

impl ProgramRun {
    pub(super) fn new(
        tree: Tree,
        (ProgramToRun { spec, session, past }, sessions): (ProgramToRun, ProgramSessions),
        attempt: ToolAttempt,
        starter: Arc<dyn ProgramStarter>,
    ) -> Self {
        let args: Value = serde_json::from_str(&attempt.args).unwrap_or_default();
        let task = args.get("task").and_then(Value::as_str).unwrap_or_default().to_owned();
        let agent = attempt.origin.agent().clone();
        Self { tree, agent, spec, task, attempt, starter, session, past, sessions }
    }
}
