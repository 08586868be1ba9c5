//! How a run ends: what its tree records after its program, and its outcome.

use std::process::ExitStatus;

use spinney::Tree;
use spinney_host::exec::program::{exit_code, was_interrupted};
use spinney_kernel::primitives::{Actor, Body};
use spinney_kernel::record::{Exit, ExitKind, Failure, FailureCode};
use spinney_kernel::rules::request::{Fail, Finish};
use spinney_kernel::world::{AgentView, TreeState};

use super::given_up::GivenUpCalls;
use crate::gateway::Gateway;

/// How a run came to its end.
pub enum RunEnd {
    /// The program ended on its own.
    Program(ExitStatus),
    /// The tree was cancelled, or its time was over.
    Tree,
    /// A signal came.
    Interrupted,
}

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunExit {
    /// The program ended well.
    Completed,
    /// The program ended with this code.
    Program(u8),
    /// The tree ended so.
    Tree(ExitKind),
    /// The tree could not continue and has not ended.
    Failed,
    /// It was stopped at a ceiling: a raise and a resume continue it.
    Halted,
    /// A signal ended it, and it can be resumed.
    Interrupted,
}

impl RunExit {
    /// That of a run whose tree has ended: its program's own, if that failed.
    #[must_use]
    pub fn of_end(end: &Exit) -> Self {
        let program = match end {
            Exit::Failed { error } if error.code == FailureCode::ProgramFailed => {
                error.message.strip_prefix(ENDED_WITH).and_then(|code| code.parse().ok())
            }
            _ => None,
        };
        program.map_or_else(|| Self::Tree(end.kind()), Self::Program)
    }
}

/// Whether calls were given up at a ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CeilingReached {
    /// None was.
    Never,
    /// Another call started afterwards.
    Before,
    /// By the last call. Whatever exit code the program has, it could not continue.
    Last,
}

impl CeilingReached {
    /// As the gateway knows it at the end of the program.
    #[must_use]
    pub fn new(given_up: &GivenUpCalls, gateway: &Gateway) -> Self {
        match (given_up.is_empty(), gateway.is_given_up()) {
            (true, _) => Self::Never,
            (false, false) => Self::Before,
            (false, true) => Self::Last,
        }
    }
}

/// Settles the tree after its program, and returns the outcome of the run.
pub async fn settle(tree: &Tree, end: &RunEnd, ceiling: CeilingReached) -> RunExit {
    let state = tree.status().state;
    match end {
        RunEnd::Interrupted => RunExit::Interrupted,
        // Its program may be gone before anybody sees that the tree was cancelled.
        RunEnd::Program(_) if let TreeState::Ended(kind) = state => RunExit::Tree(kind),
        RunEnd::Tree => match tree.status().state {
            TreeState::Ended(kind) => RunExit::Tree(kind),
            _ => RunExit::Failed,
        },
        RunEnd::Program(status) if was_interrupted(*status) => RunExit::Interrupted,
        RunEnd::Program(status) => {
            let code = exit_code(*status);
            match (code, ceiling) {
                // A raise and a resume continue it.
                (_, CeilingReached::Last) | (1.., CeilingReached::Before) => RunExit::Halted,
                (0, CeilingReached::Never | CeilingReached::Before) => {
                    finish(tree, Ok(())).await;
                    RunExit::Completed
                }
                (code, CeilingReached::Never) => {
                    finish(tree, Err(program_failure(code))).await;
                    RunExit::Program(code)
                }
            }
        }
    }
}

/// Followed by the code.
const ENDED_WITH: &str = "the program ended with exit code ";

/// What the tree of a program records that ended with this code.
fn program_failure(code: u8) -> Failure {
    Failure { code: FailureCode::ProgramFailed, message: format!("{ENDED_WITH}{code}") }
}

/// The root of a run, if its tree can be looked at.
pub async fn root(tree: &Tree) -> Option<AgentView> {
    tree.snapshot().await.ok()?.agents.into_iter().find(|agent| agent.parent.is_none())
}

/// Ends the root.
pub async fn finish(tree: &Tree, how: Result<(), Failure>) {
    let Some(AgentView { agent, .. }) = root(tree).await else { return };
    // A tree that has ended meanwhile needs nothing.
    match how {
        Ok(()) => {
            finish_agents(tree).await;
            let result = Body::text(format!("{ENDED_WITH}0"));
            let _ = tree.request(Actor::GATEWAY, Finish { agent, result }).await;
        }
        Err(error) => {
            let _ = tree.request(Actor::GATEWAY, Fail { agent, error, partial: None }).await;
        }
    }
}

/// Ends the agents of a program that has ended well, the deepest first: none of them was stopped.
async fn finish_agents(tree: &Tree) {
    let Ok(snapshot) = tree.snapshot().await else { return };
    let mut agents: Vec<AgentView> =
        snapshot.agents.into_iter().filter(|agent| agent.parent.is_some() && agent.limit.is_some()).collect();
    agents.sort_by_key(|agent| std::cmp::Reverse(agent.depth));
    for AgentView { agent, .. } in agents {
        // One that has ended meanwhile needs nothing.
        let _ = tree.request(Actor::GATEWAY, Finish { agent, result: Body::text("its program ended") }).await;
    }
}
