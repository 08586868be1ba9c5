//! The journal port: batches become durable here.
//!
//! An append names its predecessor and the claim of its writer. If another writer wrote the next event, or claimed the
//! tree, this one must stop; these two checks make many writers safe. Reading needs no claim. Each batch has a hash over everything before it, so accidental changes,
//! losses and reordering are detected. The hashes contain no secret: anyone who can write the journal can recompute
//! them. Only a hash that was kept elsewhere detects that.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use spinney_kernel::port::Pending;
use spinney_kernel::primitives::{BlobRef, Durability, Seq, Time, TreeId, limit};
use spinney_kernel::world::TreeState;

use crate::{Batch, CatalogKind, CatalogRow, Claim, EncodedBatch, Epoch, Fact, HeadCursor};

pub trait Journal: Send + Sync {
    /// Claims a tree: from now on, appends of earlier owners are refused with [`JournalFault::Owned`], for this tree alone.
    /// What was appended before is in the journal when this ends, so a new owner claims first and reads then. An owner in
    /// the same process loses the tree, and so does one whose process is gone. Keys that are reserved for the tree are free
    /// again. A new tree needs no claim: its first append is one.
    ///
    /// # Errors
    /// If the tree does not exist, another process that is alive owns it, or the store cannot be written.
    fn claim(&self, tree: TreeId) -> Reading<Claim>;

    /// Gives a tree back, so any process can claim it. The claim must not be used any more; an outdated one changes
    /// nothing.
    ///
    /// # Errors
    /// If the store cannot be written.
    fn release(&self, claim: Claim) -> Reading<()>;

    /// Appends a batch. `done` is called exactly once: when the batch is durable, or with the reason why it is not.
    /// That may be before this returns, on any thread, and before the `done` of an earlier batch of the tree, but
    /// never under a lock: `done` may read the journal and append to it. It must not block.
    fn append(&self, append: Append, done: Appended);

    /// Reads a page: batches with events after `after`, oldest first, at most `batches_max` and about
    /// [`PAGE_BYTES_MAX`](spinney_kernel::primitives::limit::PAGE_BYTES_MAX), but always one if there is one. An empty
    /// page is the end. [`pages`](crate::pages) reads them all.
    ///
    /// # Errors
    /// If the tree does not exist, or its data cannot be read.
    fn read(&self, tree: TreeId, after: Seq, batches_max: usize) -> Reading<Vec<Entry>>;

    /// The same with the bytes of each batch as they are stored, which the hashes are over: what is written elsewhere in
    /// these bytes has the same hashes.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn read_stored(&self, tree: TreeId, after: Seq, batches_max: usize) -> Reading<Vec<StoredEntry>>;

    /// A tree's head, without reading its journal.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn head(&self, tree: TreeId) -> Reading<Option<Head>>;

    /// Waits until a tree has an event after this one, whichever process writes it, and returns its head. Costs nothing while
    /// it waits, or a bounded poll in one place of the store.
    ///
    /// # Errors
    /// If the tree does not exist or is removed meanwhile, the journal is closed, or the store cannot be read.
    fn changed(&self, tree: TreeId, after: Seq) -> Reading<Head>;

    /// A page of trees in one of these states, oldest first; without a state, of all trees. `after` is where the
    /// previous page ended. At most `heads_max` and [`HEADS_MAX`](spinney_kernel::primitives::limit::HEADS_MAX). Ended
    /// trees cost nothing if only running ones are requested. A tree that is there from the first page to the last,
    /// in one of these states, is on exactly one of them, whatever is added or removed meanwhile.
    ///
    /// # Errors
    /// If the cursor is not from this store, or the store cannot be read.
    fn head_page(&self, states: &[TreeState], after: HeadCursor, heads_max: usize) -> Reading<HeadPage>;

    /// All heads, read page by page.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn heads<'j>(
        &'j self,
        states: &'j [TreeState],
    ) -> Pin<Box<dyn Future<Output = Result<Vec<Head>, JournalFault>> + Send + 'j>> {
        Box::pin(async move {
            let (mut heads, mut next) = (Vec::new(), Some(HeadCursor::START));
            while let Some(after) = next {
                let page = self.head_page(states, after, limit::HEADS_MAX).await?;
                heads.extend(page.heads);
                next = page.next;
            }
            Ok(heads)
        })
    }

    /// The rows of one kind whose keys begin with `prefix`, in key order.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn catalog(&self, kind: CatalogKind, prefix: &str) -> Reading<Vec<Fact>>;

    /// Reserves a key for a tree before the event that takes it is decided: the key is free in the catalog, and no other tree
    /// has reserved it. From then on it belongs to the tree: an append of the tree turns it into a row, and one of another
    /// tree is refused. A reservation that no append took ends with [`free`](Self::free), with the tree's next claim, and
    /// with the tree. A key that is reserved for the tree already is taken as well.
    ///
    /// # Errors
    /// If the claim is outdated, the tree does not exist, the key is too long, or the store cannot be written.
    fn reserve(&self, claim: Claim, kind: CatalogKind, key: &str) -> Reading<Reservation>;

    /// Gives up a reserved key. One that is not reserved under this claim stays as it is. It is queued when this returns,
    /// before anything that the same process asks for later; waiting only brings the answer.
    ///
    /// # Errors
    /// If the store cannot be written. Then the key is free after the tree's next claim.
    fn free(&self, claim: Claim, kind: CatalogKind, key: &str) -> Reading<()>;

    /// Replaces all rows of a tree in the catalog, if its last event is still `at`. Only [`rebuild`](crate::rebuild)
    /// and [`clean`](crate::clean) use it; everything else writes the catalog with a batch.
    ///
    /// # Errors
    /// If the tree does not exist or was written meanwhile, a key belongs to another tree, or the store cannot be
    /// written.
    fn replace_catalog(&self, tree: TreeId, at: Seq, rows: Vec<CatalogRow>) -> Reading<()>;

    /// The bytes of a blob, if it exists.
    ///
    /// # Errors
    /// If the store cannot be read, or the bytes do not match their hash.
    fn blob(&self, blob: &BlobRef) -> Reading<Option<Vec<u8>>>;

    /// Removes a tree, its rows in the catalog, and every blob that no other tree uses. Batches that branches still
    /// read block that, or are handed over to them.
    ///
    /// # Errors
    /// If the tree does not exist, branches use it and it must not be handed over, or the store cannot be written.
    fn remove(&self, tree: TreeId, shared: Shared) -> Reading<()>;
}

/// The result of a read or write. Awaiting it blocks no thread; the work may still be done if the future is dropped.
pub type Reading<T> = Pending<Result<T, JournalFault>>;

/// Called once with the result of an append.
pub type Appended = Box<dyn FnOnce(Result<ChainHash, JournalFault>) + Send>;

/// A batch to append. Copies share its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    pub tree: TreeId,
    /// Of the writer's claim; [`Epoch::FIRST`] for the first batch of a tree.
    pub epoch: Epoch,
    /// The last event before it.
    pub after: Seq,
    /// For the first batch of a branch: the tree whose batches up to `after` come before it. A batch of that tree
    /// must end there. Nothing is copied.
    pub base: Option<TreeId>,
    /// For the first batch of a tree from elsewhere that is a branch there, and comes with all batches: the tree whose start
    /// seeds its hash chain. Only without a base; later batches must not have one.
    pub seed: Option<TreeId>,
    /// The hash over everything before it, if the writer knows it: then a store can compute the next one outside its
    /// lock. A wrong one is ignored.
    pub before: Option<ChainHash>,
    pub batch: EncodedBatch,
    /// Blobs that its events refer to.
    pub blobs: Arc<[Vec<u8>]>,
    /// The catalog changes of its events.
    pub catalog: Vec<CatalogRow>,
    /// The tree's state after it.
    pub state: TreeState,
    pub durability: Durability,
}

impl Append {
    /// Its last event.
    #[must_use]
    pub const fn end(&self) -> Seq {
        Seq(self.after.0.saturating_add(self.batch.events()))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The last event before it.
    pub after: Seq,
    pub batch: Batch,
    /// The stored hash over it and everything before it.
    pub hash: ChainHash,
}

impl Entry {
    #[must_use]
    pub fn end(&self) -> Seq {
        Seq(self.after.0.saturating_add(self.batch.events.len() as u64))
    }
}

/// A batch with its stored form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEntry {
    pub entry: Entry,
    pub bytes: Vec<u8>,
}

/// What is known of a tree without reading its journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub tree: TreeId,
    pub seq: Seq,
    /// The hash over all of it.
    pub hash: ChainHash,
    pub state: TreeState,
    /// When its first batch arrived.
    pub started: Time,
    /// When its last batch arrived.
    pub changed: Time,
    /// For a branch: the tree whose batches come before its own.
    pub base: Option<Base>,
    /// The tree whose start seeds its hash chain: itself, unless it is a branch.
    pub seed: TreeId,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadPage {
    /// Oldest tree first.
    pub heads: Vec<Head>,
    /// The start of the next page; `None` on the last one.
    pub next: Option<HeadCursor>,
}

/// Whether a key was reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reservation {
    Reserved,
    /// This tree has it, or has reserved it.
    Taken {
        tree: TreeId,
    },
}

/// The part of another tree that a branch begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base {
    pub tree: TreeId,
    /// The last shared event.
    pub at: Seq,
}

/// What happens to batches that branches of a removed tree still read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// The tree is not removed.
    Refuse,
    /// They go to the branch that reads most of them, and the others read them there. Nothing is copied, and readers
    /// see no difference.
    HandOver,
}

/// A hash over a batch and everything before it. Kept elsewhere, it proves what the journal was; next to the journal,
/// it only detects damage.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChainHash([u8; 32]);

impl ChainHash {
    /// The hash of an empty journal.
    #[must_use]
    pub fn start(tree: TreeId) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"spinney journal 1\0").update(tree.bytes());
        Self(*hasher.finalize().as_bytes())
    }

    /// The hash after one more batch in its stored form.
    #[must_use]
    pub fn then(&self, after: Seq, stored: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0).update(&after.0.to_le_bytes()).update(stored);
        Self(*hasher.finalize().as_bytes())
    }

    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    #[must_use]
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChainHash({self})")
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalFault {
    /// Another writer appended in the meantime.
    #[error("tree {tree} is at event {found}, not {expected}: another writer has it, stop this process")]
    Stale {
        tree: TreeId,
        /// The writer's own position.
        expected: u64,
        found: u64,
    },
    /// Another owner claimed the tree, or owns it and is alive.
    #[error("another owner has tree {tree}: it continues there")]
    Owned { tree: TreeId },
    #[error("{kind} `{key}` belongs to tree {tree}: choose another name, or remove that tree", kind = kind.as_str())]
    KeyTaken { kind: CatalogKind, key: String, tree: TreeId },
    /// Branches read what would be removed.
    #[error("tree {tree} is the origin of {}: remove {} first, or force it", names(by), if by.len() == 1 { "that" } else { "those" })]
    InUse { tree: TreeId, by: Vec<TreeId> },
    /// No batch ends where the branch would begin.
    #[error("no batch of tree {tree} ends at event {at}: branch where one does")]
    NotABoundary { tree: TreeId, at: u64 },
    /// Something is above its bound; nothing was written.
    #[error("{what} is {size}, the limit is {max}: write less in one request")]
    TooLarge {
        /// The thing and its unit.
        what: &'static str,
        size: usize,
        max: usize,
    },
    /// There is no such tree.
    #[error("no tree {tree} in this home: choose one from the list of trees")]
    UnknownTree { tree: TreeId },
    /// The cursor is not one that this store gave out.
    #[error("this is not a position in the list of trees: list them from the start")]
    UnknownCursor,
    /// The stored data is not what was written.
    #[error("the journal of tree {tree} is damaged after event {after}: {reason}")]
    Damaged {
        tree: TreeId,
        /// The last valid event.
        after: u64,
        reason: String,
    },
    /// A row of the catalog is not what was written.
    #[error("the row of {kind} `{key}` in the catalog cannot be read ({reason}): rebuild the catalog from the journals", kind = kind.as_str())]
    DamagedRow { kind: CatalogKind, key: String, reason: String },
    /// A blob does not match its hash.
    #[error("blob {hash} is damaged: restore it from a copy, or remove the tree that uses it")]
    DamagedBlob { hash: String },
    /// The store as a whole is damaged.
    #[error("{reason}")]
    DamagedStore { reason: String },
    /// The store is away, such as locked by another program. What was appended is not durable; the same again may be.
    #[error("the journal is not available ({reason})")]
    Unavailable { reason: String },
    /// It was opened read-only.
    #[error("this home was opened read-only: nothing can be written")]
    ReadOnly,
    /// The disk or the journal's size limit is full.
    #[error(
        "no room left for the journal: free some space or remove old trees, then resume; nothing that was confirmed is lost"
    )]
    Full,
    /// Any other failure of the store, in its own words.
    #[error("{reason}")]
    Failed { reason: String },
    /// More is queued than the journal can hold back.
    #[error("{waiting} requests already wait for the journal: wait for the disk, then resume")]
    Overloaded { waiting: usize },
    #[error("the journal is closed")]
    Closed,
}

impl JournalFault {
    /// Whether the same request may succeed later without intervention.
    #[must_use]
    pub const fn can_be_retried(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::Overloaded { .. } => true,
            Self::Stale { .. }
            | Self::Owned { .. }
            | Self::KeyTaken { .. }
            | Self::InUse { .. }
            | Self::NotABoundary { .. }
            | Self::TooLarge { .. }
            | Self::UnknownTree { .. }
            | Self::UnknownCursor
            | Self::Damaged { .. }
            | Self::DamagedRow { .. }
            | Self::DamagedBlob { .. }
            | Self::DamagedStore { .. }
            | Self::ReadOnly
            | Self::Full
            | Self::Failed { .. }
            | Self::Closed => false,
        }
    }
}

fn names(trees: &[TreeId]) -> String {
    let names: Vec<String> = trees.iter().map(|tree| format!("branch {tree}")).collect();
    names.join(", ")
}
