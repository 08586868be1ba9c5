//! The trees of a home that a person follows side by side: those that have not ended, and those that ended last, each read as
//! it grows.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use spinney_journal::JournalFault;
use spinney_kernel::primitives::TreeId;
use spinney_view::live::{FollowedTree, LiveTree};

use crate::home::ids::TreeNameError;
use crate::home::side_journals;
use crate::redaction::RedactedJournal;
use crate::tree_list::{ListedTree, Listing, TreeList};

/// Trees that a person is shown. Others are only counted.
const TREES_MAX: usize = 64;
/// Ended trees that are listed below those that have not ended.
const ENDED_MAX: usize = 8;

/// The trees that are shown, each as far as it was read.
pub struct FollowedList {
    list: TreeList,
    followed: BTreeMap<TreeId, FollowedTree<Arc<RedactedJournal<'static>>>>,
}

/// All trees at one moment, and which of them are shown.
pub struct FollowedListing {
    /// Those that are shown.
    pub trees: Vec<ListedTree>,
    /// How many more there are.
    pub hidden: usize,
    /// How many side journals cannot be read.
    pub unreadable: usize,
    /// How many trees have not ended.
    pub open: usize,
    /// How many have.
    pub over: usize,
    /// How many are known to run.
    pub running: usize,
    /// Whether more of them may run.
    pub may_be_more: bool,
}

impl FollowedList {
    /// A list that has read nothing yet.
    #[must_use]
    pub fn new(home: &Path) -> Self {
        Self { list: TreeList::new(home), followed: BTreeMap::new() }
    }

    /// A listed tree, as far as it was read.
    #[must_use]
    pub fn tree(&self, tree: TreeId) -> Option<&LiveTree> {
        self.followed.get(&tree).map(FollowedTree::tree)
    }

    /// Reads what happened since the last look: at most so many trees for people, or every one that has not ended for
    /// programs.
    pub async fn look(&mut self, most: Option<usize>) -> Result<FollowedListing, TreeNameError> {
        let Listing { trees, unknown, unreadable } = self.list.look().await?;
        let all = trees.len();
        let running = trees.iter().filter(|listed| listed.is_run).count();
        let (ended, open): (Vec<ListedTree>, Vec<ListedTree>) =
            trees.into_iter().partition(|listed| listed.head.state.is_over());
        let mut listing = FollowedListing {
            trees: Vec::new(),
            hidden: 0,
            unreadable: unreadable.len(),
            open: open.len(),
            over: ended.len(),
            running,
            may_be_more: !unknown.is_empty(),
        };
        let open_max = most.map_or(usize::MAX, |most| most.clamp(1, TREES_MAX));
        let open: Vec<ListedTree> = open.into_iter().take(open_max).collect();
        let ended_max = most.map_or(ENDED_MAX, |most| most.saturating_sub(open.len()).min(ENDED_MAX));
        let shown: Vec<ListedTree> = open.into_iter().chain(ended.into_iter().take(ended_max)).collect();
        listing.hidden = all - shown.len();
        self.followed.retain(|tree, _| shown.iter().any(|listed| listed.head.tree == *tree));
        for listed in shown {
            if self.catch_up(&listed).await? {
                listing.trees.push(listed);
            }
        }
        Ok(listing)
    }

    /// Reads what a tree did since the last look. Returns whether it is still there.
    async fn catch_up(&mut self, listed: &ListedTree) -> Result<bool, TreeNameError> {
        match self.follow(listed).await {
            Ok(()) => Ok(true),
            Err(error) => {
                self.followed.remove(&listed.head.tree);
                let is_gone = matches!(error, TreeNameError::Journal(JournalFault::UnknownTree { .. }));
                if is_gone || !side_journals::has_journal(&listed.home) { Ok(false) } else { Err(error) }
            }
        }
    }

    async fn follow(&mut self, listed: &ListedTree) -> Result<(), TreeNameError> {
        let id = listed.head.tree;
        if !self.followed.contains_key(&id) {
            let journal = RedactedJournal::of_tree(self.list.journal(listed)?, id).await?;
            self.followed.insert(id, FollowedTree::new(Arc::new(journal), id));
        }
        if let Some(followed) = self.followed.get_mut(&id) {
            followed.catch_up().await?;
        }
        Ok(())
    }
}
