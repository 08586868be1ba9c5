//! What the trees of a home spent together, in all its journals.

use std::path::Path;
use std::sync::Arc;

use spinney_journal::JournalFault;
use spinney_kernel::primitives::TreeId;
use spinney_view::costs::Costs;
use spinney_view::costs::home::{HomeCosts, HomeCostsBy};

use crate::home::HomeError;
use crate::home::ids::TreeNameError;
use crate::tree_list::{Listing, TreeList};

/// Why the spending of a home is unknown.
#[derive(Debug, thiserror::Error)]
pub enum HomeCostsError {
    /// Its trees cannot be listed.
    #[error(transparent)]
    List(#[from] TreeNameError),
    /// A journal cannot be opened.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// A journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalFault),
    /// What a tree booked is not what its ledger says.
    #[error("the bookings of tree {tree} do not add up to its ledger: please report it")]
    Ledger {
        /// The tree.
        tree: TreeId,
    },
}

/// What a home spent, and what is not in it.
pub struct HomeSpending {
    /// The sums.
    pub costs: HomeCosts,
    /// Why side journals cannot be read: their trees are missing.
    pub unreadable: Vec<Arc<TreeNameError>>,
}

/// Reads what all trees of a home spent, also those that other processes run.
pub async fn home_costs(home: &Path, by: HomeCostsBy) -> Result<HomeSpending, HomeCostsError> {
    let mut list = TreeList::new(home);
    let Listing { trees, unreadable, .. } = list.look().await?;
    let mut costs = HomeCosts::new(by);
    for listed in &trees {
        let journal = list.journal(listed)?;
        let tree = Costs::read(journal.as_ref(), listed.head.tree).await?;
        if tree.total.booked() != tree.ledger() {
            return Err(HomeCostsError::Ledger { tree: listed.head.tree });
        }
        costs.add(&tree);
    }
    Ok(HomeSpending { costs, unreadable })
}
