//! Checkpoints in all journals of a home: its own and its side journals. In a journal that another process has open, that
//! process changes them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use spinney::tree::BranchOff;
use spinney::{Drivers, Home};
use spinney_journal::{CheckpointFacts, Cleaned, Head, Journal, JournalFault, ListedCheckpoint, checkpoints};
use spinney_kernel::budget::Ceilings;
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{Actor, AgentId, TreeId};
use spinney_store::SqliteJournal;
use spinney_view::agents;

use crate::control::{ControlReply, ControlRequest, ReachedHome, SteerError, reach};
use crate::home::{HomeError, open_read_only, side_journals};
use crate::open_home::{BranchTreeError, OpenHome};

/// A checkpoint, and the home or side journal that has it.
#[derive(Clone, Debug)]
pub struct NamedCheckpoint {
    /// The folder of its journal.
    pub home: PathBuf,
    /// The checkpoint.
    pub listed: ListedCheckpoint,
}

/// Why a word names no checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointNameError {
    /// The home cannot be opened.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// A journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalFault),
    /// No name begins so.
    #[error("no checkpoint starts with `{0}`")]
    Unknown(String),
    /// Several names begin so.
    #[error("{count} checkpoints start with `{text}`: use more characters")]
    Several {
        /// The word.
        text: String,
        /// The number of them.
        count: usize,
    },
    /// Several journals have one of this name.
    #[error("{} journals in this home have a checkpoint `{text}`: name the one you mean", found.len())]
    InSeveral {
        /// The name.
        text: String,
        /// Those that have it.
        found: Vec<NamedCheckpoint>,
    },
}

/// Why checkpoints were not branched off or removed.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The process that has the journal open was not reached.
    #[error(transparent)]
    Steer(#[from] SteerError),
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalFault),
    /// The tree refused it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The files of a branch cannot be kept.
    #[error(transparent)]
    Branch(BranchTreeError),
    /// The process that has the journal open says why.
    #[error("{0}")]
    Owner(String),
}

impl From<BranchTreeError> for CheckpointError {
    fn from(error: BranchTreeError) -> Self {
        match error {
            BranchTreeError::Journal(fault) => fault.into(),
            BranchTreeError::Refused(refusal) => refusal.into(),
            other => Self::Branch(other),
        }
    }
}

/// Why the process that has a journal open did not do it.
pub(crate) fn not_done(answer: ControlReply) -> CheckpointError {
    CheckpointError::Owner(match answer {
        ControlReply::Refused { message, .. } | ControlReply::Failed { message } => message,
        _ => "the process that has this home open answered another request".to_owned(),
    })
}

/// Every checkpoint of a home, or every one of an agent. A journal that is removed meanwhile has none.
pub async fn all(home: &Path, agent: Option<&AgentId>) -> Result<Vec<NamedCheckpoint>, CheckpointNameError> {
    let mut journals = side_journals::journals(home);
    if journals.is_empty() {
        journals.push(home.to_owned());
    }
    let mut all = Vec::new();
    for path in journals {
        let journal = match open_read_only(&path) {
            Err(_) if path != home && !side_journals::has_journal(&path) => continue,
            journal => journal?,
        };
        let listed = checkpoints(&journal, agent).await?.into_iter();
        all.extend(listed.map(|listed| NamedCheckpoint { home: path.clone(), listed }));
    }
    Ok(all)
}

/// Finds a checkpoint by a unique prefix of its name.
pub async fn find(home: &Path, text: &str) -> Result<NamedCheckpoint, CheckpointNameError> {
    let all = all(home, None).await?;
    let is_exact = |named: &NamedCheckpoint| named.listed.name.as_str() == text;
    let exact = all.iter().any(is_exact);
    let fits = |named: &NamedCheckpoint| {
        if exact { is_exact(named) } else { named.listed.name.as_str().starts_with(text) }
    };
    let mut found: Vec<NamedCheckpoint> = all.into_iter().filter(fits).collect();
    let text = text.to_owned();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(CheckpointNameError::Unknown(text)),
        _ if exact => Err(CheckpointNameError::InSeveral { text, found }),
        count => Err(CheckpointNameError::Several { text, count }),
    }
}

/// Of which agent a first checkpoint could be made: this one or the root, in the newest tree that has not ended. None if that
/// tree does not have it, or there is no such tree.
pub async fn candidate(
    home: &Path,
    agent: Option<&AgentId>,
) -> Result<Option<(TreeId, AgentId)>, CheckpointNameError> {
    let mut newest: Option<(SqliteJournal, Head)> = None;
    for path in side_journals::journals(home) {
        let journal = open_read_only(&path)?;
        let heads = journal.heads(&[]).await?;
        let is_newer = |head: &Head| newest.as_ref().is_none_or(|(_, newest)| newest.tree < head.tree);
        if let Some(head) = heads.into_iter().rfind(|head| !head.state.is_over()).filter(is_newer) {
            newest = Some((journal, head));
        }
    }
    let Some((journal, Head { tree, .. })) = newest else { return Ok(None) };
    let known = agents::known(&journal, tree).await?;
    let found = match agent {
        Some(agent) => known.into_iter().find(|known| known == agent),
        None => known.into_iter().next(),
    };
    Ok(found.map(|agent| (tree, agent)))
}

impl NamedCheckpoint {
    /// Makes a branch here, in the journal of its origin. It does not run until it is resumed.
    pub async fn branch(&self, budget: Ceilings) -> Result<TreeId, CheckpointError> {
        let ListedCheckpoint { tree: from, known: CheckpointFacts { agent, seq: at, .. }, .. } = &self.listed;
        let (from, at, agent) = (*from, *at, agent.clone());
        let ask = ControlRequest::Branch { from, at, agent: agent.clone(), budget };
        match reach(&self.home, Some(from), &ask).await? {
            ReachedHome::Free(journal) => {
                let open = OpenHome::new(&self.home, Arc::new(*journal));
                Ok(open.branch(BranchOff { from, at, agent, budget }).await?)
            }
            ReachedHome::Answered(ControlReply::Branched { tree }) => Ok(tree),
            ReachedHome::Answered(answer) => Err(not_done(answer)),
        }
    }
}

/// What was removed in the journals of a home.
#[derive(Debug, Default)]
pub struct CleanedHome {
    /// All of them were automatic.
    pub removed: usize,
    /// Remaining automatic ones.
    pub left: usize,
    /// Where the first ones could not be removed, and why.
    pub failed: Option<(UncleanedPlace, CheckpointError)>,
}

/// Where nothing was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UncleanedPlace {
    /// In a whole journal.
    Journal(PathBuf),
    /// In one tree.
    Tree(TreeId),
}

/// Removes expired automatic checkpoints in all journals, even if some cannot be removed.
pub async fn clean(home: &Path) -> Result<CleanedHome, HomeError> {
    let journals = side_journals::journals(home);
    if journals.is_empty() {
        drop(open_read_only(home)?);
    }
    let mut all = CleanedHome::default();
    for journal in journals {
        let failed = match clean_one(&journal).await {
            Ok(cleaned) => {
                all.removed += cleaned.removed;
                all.left += cleaned.left;
                cleaned.failed
            }
            // Those of a program's own process are removed once it has ended.
            Err(error) => Some((UncleanedPlace::Journal(journal), error)),
        };
        all.failed = all.failed.or(failed);
    }
    side_journals::clean_up(home);
    Ok(all)
}

async fn clean_one(path: &Path) -> Result<CleanedHome, CheckpointError> {
    match reach(path, None, &ControlRequest::Clean).await? {
        ReachedHome::Free(journal) => {
            let home = Home::open(Arc::new(*journal), Drivers::new()).with_actor(Actor::PERSON);
            let Cleaned { removed, left, failed } = home.clean_checkpoints().await?;
            let failed = failed.into_iter().next();
            let failed = failed.map(|(tree, fault)| (UncleanedPlace::Tree(tree), fault.into()));
            Ok(CleanedHome { removed, left, failed })
        }
        ReachedHome::Answered(ControlReply::Cleaned { removed, left, failed }) => {
            let failed = failed
                .into_iter()
                .next()
                .map(|failed| (UncleanedPlace::Tree(failed.tree), CheckpointError::Owner(failed.message)));
            Ok(CleanedHome { removed, left, failed })
        }
        ReachedHome::Answered(answer) => Err(not_done(answer)),
    }
}
