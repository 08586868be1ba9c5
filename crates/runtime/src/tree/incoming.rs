//! Writes a tree that comes from another journal, batch by batch, in the bytes that it was stored in there, so its hashes
//! stay what they were. What comes is not trusted: every batch must fit the tree, and the whole is verified at its end.

use std::collections::BTreeSet;
use std::sync::Arc;

use spinney_journal::{Append, Batch, ChainHash, EncodedBatch, Epoch, Journal, blobs_of, rebuild};
use spinney_kernel::primitives::{BlobHash, Durability, Seq, TreeId};
use spinney_kernel::record::Event;
use spinney_kernel::world::World;

use super::apply::write;
use super::replay::{Diverged, Verified, verify};
use super::unfit::checked;

/// A tree that is being written to a journal which does not have it. It is whole when [`finish`](Self::finish) says so; until
/// then its journal should be one that nothing else reads.
pub struct IncomingTree {
    journal: Arc<dyn Journal>,
    tree: TreeId,
    seed: TreeId,
    world: World,
    end: Seq,
    hash: ChainHash,
    is_begun: bool,
}

impl IncomingTree {
    /// A tree whose hash chain begins with the start of `seed`: itself, or for a branch the tree that it comes from.
    #[must_use]
    pub fn new(journal: Arc<dyn Journal>, tree: TreeId, seed: TreeId) -> Self {
        let (world, hash) = (World::new(seed), ChainHash::start(seed));
        Self { journal, tree, seed, world, end: Seq(0), hash, is_begun: false }
    }

    /// Its last event so far, and the hash there.
    #[must_use]
    pub const fn head(&self) -> (Seq, ChainHash) {
        (self.end, self.hash)
    }

    /// Writes the next batch with the blobs that its events are the first to refer to.
    ///
    /// # Errors
    /// If it does not follow the one before, is not a batch of this tree, comes with other blobs, or the journal fails.
    pub async fn take(&mut self, after: Seq, bytes: Vec<u8>, blobs: Vec<Vec<u8>>) -> Result<(), Diverged> {
        let misfit = |reason: String| Diverged::Misfit { seq: after.0.saturating_add(1), reason };
        if after != self.end {
            return Err(misfit(format!("it follows event {}, not {}", after.0, self.end.0)));
        }
        let batch = EncodedBatch::from_stored(bytes).map_err(Diverged::Journal)?;
        let decoded = batch.decode().map_err(|error| misfit(error.to_string()))?;
        check_blobs(&decoded, &blobs).map_err(misfit)?;
        self.apply(&decoded).map_err(misfit)?;
        let hash = self.hash.then(after, batch.bytes());
        let append = Append {
            tree: self.tree,
            epoch: Epoch::FIRST,
            after,
            base: None,
            seed: Some(self.seed).filter(|seed| *seed != self.tree && !self.is_begun),
            before: Some(self.hash),
            batch,
            blobs: blobs.into(),
            catalog: Vec::new(),
            state: self.world.state(),
            durability: Durability::Normal,
        };
        self.end = append.end();
        write(&self.journal, [append]).await.map_err(Diverged::Journal)?;
        (self.hash, self.is_begun) = (hash, true);
        Ok(())
    }

    /// Applies its events, which are not trusted.
    fn apply(&mut self, batch: &Batch) -> Result<(), String> {
        if let (false, Some(Event::TreeStarted { rules, .. })) = (self.is_begun, batch.events.first()) {
            self.world = World::under(*rules, self.seed);
        }
        let world = &mut self.world;
        let applied = checked(|| batch.events.iter().for_each(|event| world.apply(event)));
        applied.ok_or_else(|| "it was not decided for this tree".to_owned())
    }

    /// Verifies the whole tree, and lists its name and checkpoints in the catalog.
    ///
    /// # Errors
    /// The first difference. Then the tree must not be used.
    pub async fn finish(self) -> Result<Verified, Diverged> {
        if self.world.tree() != self.tree {
            let reason = format!("it is the journal of tree {}", self.world.tree());
            return Err(Diverged::Misfit { seq: self.end.0, reason });
        }
        let journal = self.journal.as_ref();
        let verified = verify(journal, self.tree, Some(self.hash)).await?;
        rebuild(journal, self.tree).await.map_err(Diverged::Journal)?;
        Ok(verified)
    }
}

/// Every blob must be one that the batch refers to.
fn check_blobs(batch: &Batch, blobs: &[Vec<u8>]) -> Result<(), String> {
    let named: BTreeSet<&BlobHash> = batch.events.iter().flat_map(blobs_of).map(|blob| &blob.hash).collect();
    match blobs.iter().map(|bytes| BlobHash::digest(bytes)).find(|hash| !named.contains(hash)) {
        Some(stray) => Err(format!("blob {stray} comes with it, and it does not refer to that")),
        None => Ok(()),
    }
}
