//! How a run of `spinney exec` ends: what its tree records after its program, and the exit code.

use std::process::ExitStatus;

use spinney::Tree;
use spinney_kernel::record::Failure;
use spinney_kernel::rules::request::{Fail, Finish};
use spinney_kernel::words::{Body, By};
use spinney_kernel::world::{AgentView, TreeState};

use super::program::{exit_code, was_interrupted};
use crate::exit::Exit;

/// How a run came to its end.
pub(crate) enum End {
    /// The program ended by itself.
    Program(ExitStatus),
    /// The tree was cancelled, or its time was over.
    Tree,
    /// A signal came.
    Interrupted,
}

/// Settles the tree after its program, and returns the exit code.
pub(crate) async fn settle(tree: &Tree, end: &End, is_given_up: bool) -> Exit {
    match end {
        End::Interrupted => Exit::Interrupted,
        End::Tree => match tree.status().state {
            TreeState::Ended(kind) => Exit::of_kind(kind),
            _ => Exit::Failed,
        },
        End::Program(status) if was_interrupted(*status) => Exit::Interrupted,
        End::Program(status) => {
            let code = exit_code(*status);
            match (code, is_given_up) {
                (0, _) => {
                    finish(tree, Ok(())).await;
                    Exit::Completed
                }
                // A raise and `--resume` continue it.
                (_, true) => Exit::Halted,
                (code, false) => {
                    let message = format!("the program ended with exit code {code}");
                    finish(tree, Err(Failure { code: "program_failed".to_owned(), message })).await;
                    Exit::Program(code)
                }
            }
        }
    }
}

pub(crate) async fn root(tree: &Tree) -> Option<AgentView> {
    tree.look().await.ok()?.agents.into_iter().find(|agent| agent.parent.is_none())
}

/// Ends the root.
pub(crate) async fn finish(tree: &Tree, how: Result<(), Failure>) {
    let Some(AgentView { agent, .. }) = root(tree).await else { return };
    // A tree that has ended meanwhile needs nothing.
    match how {
        Ok(()) => {
            finish_agents(tree).await;
            let result = Body::text("the program ended with exit code 0");
            let _ = tree.request(By::Person, Finish { agent, result }).await;
        }
        Err(error) => {
            let _ = tree.request(By::Person, Fail { agent, error, partial: None }).await;
        }
    }
}

/// Ends the agents of a program that has ended well, the deepest first: none of them was stopped.
async fn finish_agents(tree: &Tree) {
    let Ok(look) = tree.look().await else { return };
    let mut agents: Vec<AgentView> =
        look.agents.into_iter().filter(|agent| agent.parent.is_some() && agent.limit.is_some()).collect();
    agents.sort_by_key(|agent| std::cmp::Reverse(agent.depth));
    for AgentView { agent, .. } in agents {
        // One that has ended meanwhile needs nothing.
        let _ = tree.request(By::Person, Finish { agent, result: Body::text("its program ended") }).await;
    }
}
