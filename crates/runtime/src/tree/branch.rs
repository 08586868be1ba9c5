//! Branches: a new tree that begins with the batches of another. Only the shared part of the other is read, and
//! nothing of it changes.

use std::sync::Arc;

use spinney_journal::{Append, Claim, Journal, JournalFault, catalog_of};
use spinney_kernel::budget::Ceilings;
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{AgentId, Durability, Seq, TreeId};
use spinney_kernel::record::ContinuedAs;
use spinney_kernel::rules::request::{Branch, ContinueEnded, Reply, Request};
use spinney_kernel::world::TreeState;

use super::apply::write;
use super::live_state::{Decided, LiveState};
use super::run::{Begin, release};

/// Where a branch begins, and its budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchOff {
    /// The tree whose batches it shares.
    pub from: TreeId,
    /// The last shared event; a batch must end there.
    pub at: Seq,
    /// The branch point is a checkpoint of this agent.
    pub agent: AgentId,
    /// Its ceilings.
    pub budget: Ceilings,
}

/// Why a branch was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BranchError {
    /// It was refused.
    #[error(transparent)]
    Refused(Refusal),
    /// The journal failed.
    #[error(transparent)]
    Journal(JournalFault),
}

/// Decides and writes the first batch of a branch, which claims it, and gives it back. A crash leaves either the complete
/// branch or nothing.
pub(crate) async fn branch(begin: Begin, off: BranchOff) -> Result<(), BranchError> {
    let Begin { tree, actor, journal, clock, draws, .. } = begin;
    let BranchOff { from, at, agent, budget } = off;
    let mut live = LiveState::new(from, clock, draws);
    let since = live.recover_until(journal.as_ref(), at).await.map_err(BranchError::Journal)?;
    let agents = live.world.agents();
    let root = agents.root().and_then(|root| agents.living(root));
    let was_paused = root.is_some_and(|root| root.paused);
    let request = Request::Branch(Branch { tree, agent, budget, since });
    let decided = live.request(actor, request).map_err(BranchError::Refused)?;
    // Before rules 4 the root is paused for it, and only the head shows that no person did.
    let state = if was_paused { live.world.state() } else { TreeState::Suspended };
    write_first(&journal, tree, from, decided, state, live.world.definition().durability).await
}

/// The same for a tree that continues one that has ended.
pub(crate) async fn continue_ended(
    begin: Begin,
    from: TreeId,
    continued_as: ContinuedAs,
) -> Result<(), BranchError> {
    let Begin { tree, actor, journal, clock, draws, .. } = begin;
    let head = journal.head(from).await.map_err(BranchError::Journal)?;
    let head = head.ok_or(BranchError::Journal(JournalFault::UnknownTree { tree: from }))?;
    let mut live = LiveState::new(from, clock, draws);
    let since = live.recover_until(journal.as_ref(), head.seq).await.map_err(BranchError::Journal)?;
    let request = Request::ContinueEnded(ContinueEnded { tree, continued_as, since });
    let decided = live.request(actor, request).map_err(BranchError::Refused)?;
    let state = live.world.state();
    write_first(&journal, tree, from, decided, state, live.world.definition().durability).await
}

async fn write_first(
    journal: &Arc<dyn Journal>,
    tree: TreeId,
    from: TreeId,
    Decided { after, batch, .. }: Decided<Reply>,
    state: TreeState,
    durability: Durability,
) -> Result<(), BranchError> {
    let catalog = catalog_of(tree, after, &batch);
    let batch = batch.encode().map_err(BranchError::Journal)?;
    let claim = Claim::first(tree);
    let append = [Append {
        tree,
        epoch: claim.epoch,
        after,
        base: Some(from),
        seed: None,
        before: None,
        batch,
        blobs: Arc::default(),
        catalog,
        state,
        durability,
    }];
    write(journal, append).await.map_err(BranchError::Journal)?;
    release(journal.as_ref(), claim).await;
    Ok(())
}
