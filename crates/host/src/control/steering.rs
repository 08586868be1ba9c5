//! What every face does around a request: names the tree and the agent, refuses messages that no agent would read, and says
//! which agents there are.

use std::collections::BTreeMap;
use std::path::Path;

use spinney::tree::{OpenQuestion, stored};
use spinney_journal::{Journal, JournalFault};
use spinney_kernel::definition::Graph;
use spinney_kernel::primitives::{AgentId, CallId, TreeId};
use spinney_kernel::rules::request::{Unpause, Verb};
use spinney_kernel::world::{AgentStatus, TreeState};
use spinney_view::TreeBeginning;
use spinney_view::agents::{self, AgentPath, WrongAgentPath};
use spinney_view::expected_agents::can_come;
use spinney_view::questions;

use super::SteerReply;
use super::client::{RunningTrees, SteerError, ask_with, running};
use crate::home::ids::{self, NamedTree, TreeInHome, TreeNameError};
use crate::home::{HomeError, open_read_only, side_journals};

/// Why a request has no addressee.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// There is no such tree, or it cannot be read.
    #[error(transparent)]
    Tree(#[from] TreeNameError),
    /// The path leads to no agent.
    #[error(transparent)]
    Agent(#[from] WrongAgentPath),
    /// Nothing is in its journal.
    #[error("tree {0} has no root: its journal is empty")]
    NoRoot(TreeId),
}

impl From<HomeError> for AddressError {
    fn from(error: HomeError) -> Self {
        Self::Tree(error.into())
    }
}

impl From<JournalFault> for AddressError {
    fn from(fault: JournalFault) -> Self {
        Self::Tree(fault.into())
    }
}

/// A tree of a home and one of its agents; the root if none is named.
pub async fn address<'h>(
    home: &'h Path,
    id: &str,
    agent: Option<AgentPath>,
) -> Result<(TreeInHome<'h>, AgentId), AddressError> {
    let journal = open_read_only(home)?;
    let tree = ids::find(home, &journal, id).await?.tree;
    let agent = match agent {
        Some(path) => agents::at(&journal, tree, path).await??,
        None => TreeBeginning::read(&journal, tree).await?.root.ok_or(AddressError::NoRoot(tree))?,
    };
    Ok((TreeInHome { home, tree }, agent))
}

/// The agents that paths of a tree lead to.
pub async fn addresses(
    TreeInHome { home, tree }: TreeInHome<'_>,
    paths: Vec<AgentPath>,
) -> Result<Vec<AgentId>, AddressError> {
    let (journal, mut found) = (open_read_only(home)?, Vec::new());
    for path in paths {
        found.push(agents::at(&journal, tree, path).await??);
    }
    Ok(found)
}

/// Whether the tree that a word names has an agent of this id. A tree that cannot be read has none.
pub async fn has_agent(home: &Path, tree: &str, agent: &str) -> bool {
    let Ok(named) = NamedTree::find(home, tree).await else { return false };
    let known = agents::known(&named.journal, named.tree).await;
    known.is_ok_and(|known| known.iter().any(|known| known.as_str() == agent))
}

/// Sends a request about these agents. If it is refused and one of them does not exist, the refusal lists the existing ones.
pub async fn ask_about<V: Verb>(
    TreeInHome { home, tree }: TreeInHome<'_>,
    named: &[AgentId],
    verb: V,
    bytes: Vec<Vec<u8>>,
) -> Result<SteerReply<V::Reply>, SteerError> {
    let answer = ask_with(home, tree, verb, bytes).await?;
    if named.is_empty() || !matches!(answer, SteerReply::Refused { .. }) {
        return Ok(answer);
    }
    let journal = open_read_only(home)?;
    if journal.head(tree).await?.is_none_or(|head| head.state.is_over()) {
        return Ok(answer);
    }
    let known = agents::known(&journal, tree).await?;
    let stranger = named.iter().find(|agent| !known.contains(agent));
    let refused = |agent| SteerReply::Refused { message: agents::unknown(agent, &known), refusal: None };
    Ok(stranger.map_or(answer, refused))
}

/// Why a message would never be read.
#[derive(Debug, thiserror::Error)]
pub enum UnreadMessage {
    /// The tree cannot be read.
    #[error(transparent)]
    Tree(#[from] TreeNameError),
    /// Its agents are those of a program.
    #[error("a program does not read messages: use its own interface")]
    OfProgram,
    /// There is no such agent, and none can come: the words for it, with suggestions.
    #[error("{0}")]
    Unknown(String),
}

impl From<HomeError> for UnreadMessage {
    fn from(error: HomeError) -> Self {
        Self::Tree(error.into())
    }
}

impl From<JournalFault> for UnreadMessage {
    fn from(fault: JournalFault) -> Self {
        Self::Tree(fault.into())
    }
}

/// Refuses a message that no agent would ever read. The kernel keeps messages for any name, because a program may spawn agents
/// from outside; a person who misspells a name must hear of it.
pub async fn check_recipient(
    TreeInHome { home, tree }: TreeInHome<'_>,
    to: &AgentId,
) -> Result<(), UnreadMessage> {
    let journal = open_read_only(home)?;
    // The tree itself says that it has ended.
    if journal.head(tree).await?.is_none_or(|head| head.state.is_over()) {
        return Ok(());
    }
    if side_journals::is_of_exec(home).await {
        return Err(UnreadMessage::OfProgram);
    }
    let known = agents::known(&journal, tree).await?;
    if known.contains(to) {
        return Ok(());
    }
    let definition = TreeBeginning::read(&journal, tree).await?.definition;
    if definition.as_ref().is_some_and(|definition| can_come(definition, to)) {
        return Ok(());
    }
    let graph = definition.as_ref().and_then(|definition| definition.graph.as_deref());
    let steps = graph.into_iter().flat_map(Graph::steps);
    let to_come: Vec<AgentId> = steps.filter_map(|(_, node, _)| node.id.as_str().parse().ok()).collect();
    let all = known.iter().chain(to_come.iter().filter(|step| !known.contains(step)));
    Err(UnreadMessage::Unknown(agents::unknown(to, all)))
}

/// Suggestions for an agent that a tree does not have yet.
pub async fn meant(
    TreeInHome { home, tree }: TreeInHome<'_>,
    agent: &AgentId,
) -> Result<String, TreeNameError> {
    Ok(agents::meant(agent, &agents::known(&open_read_only(home)?, tree).await?))
}

/// The state in a tree's journal.
pub async fn stored_state(TreeInHome { home, tree }: TreeInHome<'_>) -> Result<TreeState, TreeNameError> {
    Ok(open_read_only(home)?.head(tree).await?.map_or(TreeState::New, |head| head.state))
}

/// Whether a process runs a tree, as far as is known.
pub async fn may_run(TreeInHome { home, tree }: TreeInHome<'_>) -> bool {
    match running(home).await {
        RunningTrees::Trees(trees) => trees.contains(&tree),
        RunningTrees::Silent(_) | RunningTrees::Unknown => true,
        RunningTrees::Nobody => false,
    }
}

/// Whether a process says that it runs a tree.
pub async fn does_run(TreeInHome { home, tree }: TreeInHome<'_>) -> bool {
    matches!(running(home).await, RunningTrees::Trees(trees) if trees.contains(&tree))
}

/// The open questions of a tree that can be answered. Those of tool calls ended with the process that ran the calls.
pub async fn answerable(
    place: TreeInHome<'_>,
    journal: &dyn Journal,
) -> Result<BTreeMap<CallId, OpenQuestion>, JournalFault> {
    let mut open = questions::open(journal, place.tree).await?;
    if open.values().any(|question| question.call.is_some()) && !may_run(place).await {
        open.retain(|_, question| question.call.is_none());
    }
    Ok(open)
}

/// Ends every pause in a tree. A refusal means that an agent was not paused.
pub async fn unpause_all(TreeInHome { home, tree }: TreeInHome<'_>) -> Result<(), SteerError> {
    let snapshot = stored(&open_read_only(home)?, tree).await?.snapshot;
    for agent in snapshot.agents {
        if !matches!(agent.status, AgentStatus::Ended(_)) {
            ask_with(home, tree, Unpause::now(agent.agent), Vec::new()).await?;
        }
    }
    Ok(())
}
