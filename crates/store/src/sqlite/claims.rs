//! Claims that no head has yet. The lock of the file keeps other processes out, so a claim lives in memory until the
//! tree's next append writes its epoch together with the head. If the process dies before, so do all claims of it.

use std::collections::BTreeMap;

use spinney_journal::{Claim, Epoch};
use spinney_kernel::primitives::TreeId;

#[derive(Default)]
pub(super) struct Claims(BTreeMap<TreeId, Epoch>);

impl Claims {
    /// Claims a tree whose head has this epoch.
    pub(super) fn claim(&mut self, tree: TreeId, written: Epoch) -> Claim {
        let epoch = Epoch(self.current(tree, written).0 + 1);
        self.0.insert(tree, epoch);
        Claim { tree, epoch }
    }

    /// The epoch of a tree whose head has this one.
    pub(super) fn current(&self, tree: TreeId, written: Epoch) -> Epoch {
        self.0.get(&tree).copied().unwrap_or(written)
    }

    /// A tree is removed.
    pub(super) fn forget(&mut self, tree: TreeId) {
        self.0.remove(&tree);
    }

    /// A head was committed with this epoch.
    pub(super) fn written(&mut self, tree: TreeId, epoch: Epoch) {
        if self.0.get(&tree) == Some(&epoch) {
            self.0.remove(&tree);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_counts_until_a_head_has_it() {
        let (mut claims, tree) = (Claims::default(), TreeId::new([1; 16]));
        let first = claims.claim(tree, Epoch::FIRST).epoch;
        let second = claims.claim(tree, Epoch::FIRST).epoch;
        assert_eq!((first, second, claims.current(tree, Epoch::FIRST)), (Epoch(2), Epoch(3), Epoch(3)));
        claims.written(tree, first);
        assert_eq!(claims.current(tree, Epoch::FIRST), second, "an older one was written");
        claims.written(tree, second);
        assert!(claims.0.is_empty());
        assert_eq!(claims.claim(tree, second).epoch, Epoch(4));
    }
}
