//! The result of a tree: its outcome, what that cost, and if it did not complete, why not and what helps.

mod error;
mod json;
mod steps;

use spinney::tree::{OpenQuestion, TreeSnapshot};
use spinney_journal::{ChainHash, Journal, JournalFault};
use spinney_kernel::primitives::{Body, ModelName, TreeId};
use spinney_kernel::record::{Exit, ExitKind};
use spinney_kernel::world::TreeState;

pub use self::error::ResultError;
pub use self::json::{ErrorJson, ResultJson};
pub use self::steps::{RunState, StepResults};
use crate::boxes::WeakBox;
use crate::branches::AgentBranch;
use crate::first_batch::TreeBeginning;
use crate::spent::Spent;

/// A tree that a ceiling stopped has failed as well: its error says how.
pub const FAILED: TreeState = TreeState::Ended(ExitKind::Failed);

/// The result of a tree that is no longer run, or of a run that has no tree.
#[derive(Clone, Debug)]
pub struct TreeResult {
    /// `None` if there is no tree.
    pub tree: Option<TreeId>,
    /// How it is: completed, failed, cancelled, halted, waiting or stopped.
    pub state: TreeState,
    /// Its answer, or how far a halted tree is.
    pub output: String,
    /// What its steps came to.
    pub steps: StepResults,
    /// The files that its agents left, as paths that a person can open.
    pub files: Vec<String>,
    /// The branches that were made of its agents' changes in working copies.
    pub branches: Vec<AgentBranch>,
    /// What it spent and how many agents it had; `None` if that could not be read.
    pub usage: Option<(Spent, usize)>,
    /// From the first event to the last.
    pub elapsed_ms: u64,
    /// The hash of its journal; empty if that could not be read.
    pub event_hash: String,
    /// Why it did not complete.
    pub error: Option<ResultError>,
    /// What it asks a person.
    pub questions: Vec<OpenQuestion>,
    /// The models that answered from a script.
    pub scripted: Vec<ModelName>,
    /// The roles whose commands ran in a weaker box, or in none.
    pub weak_boxes: Vec<WeakBox>,
}

impl TreeResult {
    /// Without a tree, or of one that cannot be read.
    #[must_use]
    pub fn none(tree: Option<TreeId>) -> Self {
        Self {
            tree,
            state: FAILED,
            output: String::new(),
            steps: StepResults::default(),
            files: Vec::new(),
            branches: Vec::new(),
            usage: tree.is_none().then(Default::default),
            elapsed_ms: 0,
            event_hash: String::new(),
            error: None,
            questions: Vec::new(),
            scripted: Vec::new(),
            weak_boxes: Vec::new(),
        }
    }

    /// Of a tree that is no longer run, by its last look. What the look does not have is read from the journal; a part that
    /// cannot be read is missing, and the fault is returned with the rest.
    pub async fn read(
        snapshot: &TreeSnapshot,
        hash: Option<ChainHash>,
        journal: &dyn Journal,
        tree: TreeId,
    ) -> (Self, Vec<ResultFault>) {
        let mut faults = Vec::new();
        let mut state = state(snapshot);
        if snapshot.state == TreeState::Paused && is_paused_by_a_person(journal, tree).await {
            state = TreeState::Paused;
        }
        // A halted tree shows its progress; one that waits or was stopped is not finished.
        let halted = snapshot.so_far.as_ref().filter(|_| state == TreeState::Halted);
        let output = match snapshot.end.as_ref().map(|end| &end.shown).or(halted) {
            None => String::new(),
            Some(body) => whole(body, journal).await.unwrap_or_else(|fault| {
                faults.push(ResultFault::Output(fault));
                body.text.clone()
            }),
        };
        let run = if snapshot.end.is_some() { RunState::Ended } else { RunState::Stopped };
        let steps = StepResults::read(journal, tree, run).await.unwrap_or_else(|fault| {
            faults.push(ResultFault::Steps(fault));
            StepResults::default()
        });
        let beginning = TreeBeginning::read(journal, tree).await.unwrap_or_else(|fault| {
            faults.push(ResultFault::Boxes(fault));
            TreeBeginning::default()
        });
        let weak_boxes = beginning.definition.as_deref().map(WeakBox::all).unwrap_or_default();
        let spent = snapshot.agents.first().map(Spent::from_view).unwrap_or_default();
        let result = Self {
            state,
            output,
            steps,
            usage: Some((spent, snapshot.agents.len())),
            event_hash: hash.map(|hash| hash.to_string()).unwrap_or_default(),
            error: ResultError::from_snapshot(snapshot),
            questions: snapshot.questions.clone(),
            weak_boxes,
            ..Self::none(Some(tree))
        };
        (result, faults)
    }
}

/// A part of a result that cannot be read. The rest is better than none.
#[derive(Debug, thiserror::Error)]
pub enum ResultFault {
    /// Only the start of the output is there.
    #[error("only the start of the answer can be shown")]
    Output(#[source] JournalFault),
    /// What the steps came to is missing.
    #[error("the result does not list the outcomes of the steps")]
    Steps(#[source] JournalFault),
    /// Which boxes were weaker is missing.
    #[error("the result does not say which commands ran in a weaker box")]
    Boxes(#[source] JournalFault),
}

/// The whole text, from its blob if the event has only a preview.
///
/// # Errors
/// If the blob cannot be read. One that was removed leaves the preview.
pub async fn whole(body: &Body, journal: &dyn Journal) -> Result<String, JournalFault> {
    let Some(rest) = body.rest() else { return Ok(body.text.clone()) };
    let bytes = journal.blob(rest).await?;
    Ok(bytes.map_or_else(|| body.text.clone(), |bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

fn state(snapshot: &TreeSnapshot) -> TreeState {
    match (&snapshot.end, snapshot.state) {
        (Some(end), _) => match &end.exit {
            Exit::Completed => TreeState::Ended(ExitKind::Completed),
            Exit::Cancelled { .. } => TreeState::Ended(ExitKind::Cancelled),
            Exit::Failed { .. } | Exit::Exhausted { .. } => FAILED,
        },
        (None, state @ (TreeState::Halted | TreeState::Waiting | TreeState::Moved | TreeState::Copied)) => {
            state
        }
        (
            None,
            TreeState::New
            | TreeState::Running
            | TreeState::Paused
            | TreeState::Suspended
            | TreeState::Ended(_),
        ) => TreeState::Suspended,
    }
}

/// Whether a person paused the tree: older versions paused a tree to stop it, and its head said `stopped` then.
async fn is_paused_by_a_person(journal: &dyn Journal, tree: TreeId) -> bool {
    journal.head(tree).await.is_ok_and(|head| head.is_some_and(|head| head.state == TreeState::Paused))
}
