//! When a tree that this process follows needs a person.

use spinney::Tree;
use spinney::tree::{RequestError, TreeSnapshot};
use spinney_kernel::primitives::{AgentId, Seq};
use spinney_kernel::world::{AgentStatus, AgentView, TreeState};

/// Whether a tree in this state continues only with a person. A paused one may be unpaused from elsewhere.
#[must_use]
pub const fn rests(state: TreeState) -> bool {
    match state {
        TreeState::Waiting | TreeState::Halted | TreeState::Moved | TreeState::Copied => true,
        TreeState::New
        | TreeState::Running
        | TreeState::Paused
        | TreeState::Suspended
        | TreeState::Ended(_) => false,
    }
}

/// The tree, if it needs a person and has done nothing after the event that was seen last.
pub async fn at_rest(tree: &Tree, seen: Seq) -> Option<TreeSnapshot> {
    let status = tree.status();
    if status.seq != seen || !rests(status.state) || status.stopped.is_some() {
        return None;
    }
    // The status may lag behind; the tree itself knows.
    tree.snapshot().await.ok().filter(|snapshot| snapshot.seq == seen && rests(snapshot.state))
}

/// Whether a tree at rest is left to its person, who continues it later. A program that runs cannot be continued later: while
/// it waits at a ceiling, its process stays and can be steered.
#[must_use]
pub fn can_be_left(snapshot: &TreeSnapshot) -> bool {
    snapshot.state != TreeState::Halted || snapshot.programs.is_empty()
}

/// The agents whose pause holds up others: those below a paused one are paused with it.
pub fn paused(snapshot: &TreeSnapshot) -> impl Iterator<Item = &AgentView> {
    let is_paused = |id: &AgentId| {
        snapshot.agents.iter().any(|agent| agent.agent == *id && agent.status == AgentStatus::Paused)
    };
    snapshot.agents.iter().filter(move |agent| {
        agent.status == AgentStatus::Paused && !agent.parent.as_ref().is_some_and(is_paused)
    })
}

/// Ends every pause in a tree that runs here. A refusal means that an agent was not paused; a tree that is no longer run is
/// left as it is.
pub async fn unpause_all(tree: &Tree) {
    let Ok(snapshot) = tree.snapshot().await else { return };
    let living = snapshot.agents.into_iter().filter(|agent| !matches!(agent.status, AgentStatus::Ended(_)));
    for AgentView { agent, .. } in living {
        if let Err(RequestError::Stopped(_)) = tree.unpause(agent).await {
            return;
        }
    }
}
