//! Who may write a tree. Each claim raises the tree's epoch, and every append carries the epoch of its writer's claim:
//! after a claim, earlier owners cannot write any more. Epochs are stored beside the journal, never in it.

use spinney_kernel::primitives::TreeId;

/// The number of a claim among those of its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(pub u64);

impl Epoch {
    /// Of a new tree: its first append claims it.
    pub const FIRST: Self = Self(1);
}

/// A tree that its claimer owns until another one claims it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    pub tree: TreeId,
    pub epoch: Epoch,
}

impl Claim {
    /// The claim of the process that writes a tree's first batch.
    #[must_use]
    pub const fn first(tree: TreeId) -> Self {
        Self { tree, epoch: Epoch::FIRST }
    }
}
