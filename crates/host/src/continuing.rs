//! Follow-ups to trees that have ended: each is continued by one new tree, and a chain of them reads as one.

use std::sync::Arc;

use spinney_journal::{Journal, continuation};

use spinney_kernel::primitives::TreeId;
use spinney_kernel::record::ContinuedAs;

use crate::checkpoints::{CheckpointError, not_done};
use crate::control::{ControlReply, ControlRequest, ReachedHome, SteerError, reach};
use crate::home::ids::TreeInHome;
use crate::home::{HomeError, open_read_only};
use crate::open_home::OpenHome;

/// The last tree of the chain that continues a tree: itself, if nothing does.
///
/// # Errors
/// If the journal cannot be read.
pub async fn newest(place: TreeInHome<'_>) -> Result<TreeInHome<'_>, CheckpointError> {
    let journal = open_read_only(place.home).map_err(SteerError::from)?;
    let mut tree = place.tree;
    while let Some(next) = continuation(&journal, tree).await? {
        tree = next;
    }
    Ok(TreeInHome { tree, ..place })
}

/// The tree that a message to this one belongs to. If its chain has ended, that is a new tree that continues it, which
/// begins with a wait for a person.
///
/// # Errors
/// If it cannot be continued, or a journal failed.
pub async fn open(place: TreeInHome<'_>, continued_as: ContinuedAs) -> Result<OpenTree<'_>, CheckpointError> {
    let newest = newest(place).await?;
    let journal = open_read_only(newest.home).map_err(SteerError::from)?;
    let head = journal.head(newest.tree).await?;
    drop(journal);
    if head.is_none_or(|head| !head.state.is_over()) {
        return Ok(OpenTree { place: newest, is_new: false });
    }
    let from = newest.tree;
    let ask = ControlRequest::Continue { from, continued_as };
    match made(newest, &ask, continued_as).await {
        Ok(tree) => Ok(OpenTree { place: TreeInHome { tree, ..newest }, is_new: true }),
        Err(error) => {
            // Another process may have been first.
            let other = self::newest(newest).await?;
            if other.tree == from { Err(error) } else { Ok(OpenTree { place: other, is_new: false }) }
        }
    }
}

async fn made(
    ended: TreeInHome<'_>,
    ask: &ControlRequest,
    continued_as: ContinuedAs,
) -> Result<TreeId, CheckpointError> {
    match reach(ended.home, Some(ended.tree), ask).await? {
        ReachedHome::Free(journal) => {
            Ok(OpenHome::new(ended.home, Arc::new(*journal)).continue_ended(ended.tree, continued_as).await?)
        }
        ReachedHome::Answered(ControlReply::Branched { tree }) => Ok(tree),
        ReachedHome::Answered(answer) => Err(not_done(answer)),
    }
}

/// A tree that has not ended.
#[derive(Clone, Copy)]
pub struct OpenTree<'h> {
    /// The tree.
    pub place: TreeInHome<'h>,
    /// Whether it was made for this.
    pub is_new: bool,
}

impl From<HomeError> for CheckpointError {
    fn from(error: HomeError) -> Self {
        SteerError::from(error).into()
    }
}
