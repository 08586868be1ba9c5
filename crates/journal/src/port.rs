//! The journal port: where batches go to become true.
//!
//! An append names its predecessor. If somebody else wrote the next event, this writer is stale and must stop; that
//! single fact makes many writers safe. Each batch carries a hash over everything before it, so that a batch that was
//! changed, lost or reordered by accident is found and named. The hashes hold no secret: whoever can write the journal
//! can write all of them anew. Only a hash that was kept elsewhere shows that.

use std::fmt;
use std::pin::Pin;

use spinney_kernel::port::Pending;
use spinney_kernel::words::{BlobRef, Durability, Seq, Time, TreeId, limit};
use spinney_kernel::world::TreeState;

use crate::Batch;

use crate::{CatalogKind, CatalogRow, Fact, HomeRefusal};

pub trait Journal: Send + Sync {
    /// Appends a batch. `done` is called exactly once: when the batch is durable, or with the reason why it is not.
    /// That may be before this returns, on any thread, and before the `done` of an earlier batch of the tree, but never
    /// under a lock: `done` may read the journal and append to it. It must not wait for anything.
    fn append(&self, append: Append, done: Appended);

    /// Reads a page: batches with events after `after`, the oldest first, at most `batches_max` and about
    /// [`PAGE_BYTES_MAX`](spinney_kernel::words::limit::PAGE_BYTES_MAX), but always one if there is one. An empty page is the end.
    /// [`pages`](crate::pages) reads them all.
    ///
    /// # Errors
    /// If the tree is not there, or what is stored cannot be read.
    fn read(&self, tree: TreeId, after: Seq, batches_max: usize) -> Reading<Vec<Entry>>;

    /// What is known of a tree without reading it.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn head(&self, tree: TreeId) -> Reading<Option<Head>>;

    /// A page of trees in one of these states, the oldest first; with no state given, of every tree. `after` is where the
    /// page before it ended. At most `heads_max` and [`HEADS_MAX`](spinney_kernel::words::limit::HEADS_MAX). Ended trees
    /// cost nothing when only running ones are asked for.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn head_page(&self, states: &[TreeState], after: HeadCursor, heads_max: usize) -> Reading<HeadPage>;

    /// All of them, read page by page.
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

    /// What is known across trees, of one kind, in the order of keys: those that begin with `prefix`.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn catalog(&self, kind: CatalogKind, prefix: &str) -> Reading<Vec<Fact>>;

    /// Puts these rows in place of all that a tree has in the catalog, if its last event is still `at`. Everybody but
    /// [`rebuild`](crate::rebuild) and [`clean`](crate::clean) writes the catalog beside a batch.
    ///
    /// # Errors
    /// If the tree is not there or has moved on, a key is another tree's, or the store cannot be written.
    fn replace_catalog(&self, tree: TreeId, at: Seq, rows: Vec<CatalogRow>) -> Reading<()>;

    /// The bytes of a blob, if they are there.
    ///
    /// # Errors
    /// If the store cannot be read, or the bytes are not what their hash says.
    fn blob(&self, blob: &BlobRef) -> Reading<Option<Vec<u8>>>;

    /// Forgets a tree, its rows in the catalog, and every blob that no other tree uses. What branches of it still read
    /// is theirs: that is refused, or handed over to them.
    ///
    /// # Errors
    /// If the tree is not there, branches use it and it is not to be handed over, or the store cannot be written.
    fn remove(&self, tree: TreeId, shared: Shared) -> Reading<()>;
}

/// What a journal answers when it has read or written. Whoever waits for it keeps no thread busy; a future that is dropped
/// may still be carried out.
pub type Reading<T> = Pending<Result<T, JournalFault>>;

/// Called once with the end of an append.
pub type Appended = Box<dyn FnOnce(Result<ChainHash, JournalFault>) + Send>;

/// One batch on its way into the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    pub tree: TreeId,
    /// The last event before it.
    pub after: Seq,
    /// For the first batch of a branch: the tree whose batches up to `after` come before it. A batch of that tree must
    /// end there. Nothing of it is copied.
    pub base: Option<TreeId>,
    /// The hash over everything before it, if its writer knows that: then a store can make the next one before it holds
    /// anybody up. A wrong one is of no use, and does no harm.
    pub before: Option<ChainHash>,
    /// The input and what it decided.
    pub batch: Batch,
    /// Bytes that its events refer to.
    pub blobs: Vec<Vec<u8>>,
    /// What its events change in the catalog.
    pub catalog: Vec<CatalogRow>,
    /// The tree's state from here on.
    pub state: TreeState,
    /// What "durable" means for this tree.
    pub durability: Durability,
}

/// A batch as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The last event before it.
    pub after: Seq,
    /// The input and what it decided.
    pub batch: Batch,
    /// The hash over it and everything before it, as it was stored.
    pub hash: ChainHash,
}

impl Entry {
    #[must_use]
    pub fn end(&self) -> Seq {
        Seq(self.after.0.saturating_add(self.batch.events.len() as u64))
    }
}

/// What is known of a tree without reading it.
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
    /// For a branch: whose batches come before its own.
    pub base: Option<Base>,
    /// The tree with whose start its chain of hashes begins: itself, unless it is a branch.
    pub seed: TreeId,
}

/// A page of heads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadPage {
    /// The heads, the oldest tree first.
    pub heads: Vec<Head>,
    /// Where the next page begins; none if this is the last.
    pub next: Option<HeadCursor>,
}

/// Where in the list of trees a page begins. What it means is the store's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeadCursor(pub u64);

impl HeadCursor {
    /// The beginning of the list.
    pub const START: Self = Self(0);
}

/// What a branch begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base {
    pub tree: TreeId,
    /// The last event of them that is the branch's too.
    pub at: Seq,
}

/// What becomes of batches that branches of a removed tree still read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// The tree is not removed.
    Refuse,
    /// They go to the branch that reads most of them, and the others read them there: nothing is copied, and nobody
    /// sees a difference.
    HandOver,
}

/// A hash over a batch and everything before it. Kept away from the journal it proves what the journal was; beside it,
/// it finds damage only.
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

    /// The hash after one more batch, given as it is stored.
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

    /// The bytes to store.
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

/// Why the journal could not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalFault {
    /// Somebody else wrote in the meantime.
    #[error("tree {tree} is at event {found}, not {expected}: another writer has it, stop this process")]
    Stale {
        tree: TreeId,
        /// Where this writer thought it was.
        expected: u64,
        found: u64,
    },
    /// The key belongs to another tree.
    #[error("{kind} `{key}` belongs to tree {tree}: choose another name, or remove that tree", kind = kind.word())]
    KeyTaken { kind: CatalogKind, key: String, tree: TreeId },
    /// Branches read what would be removed.
    #[error("tree {tree} is the origin of {}: remove {} first, or force it", names(by), if by.len() == 1 { "that" } else { "those" })]
    InUse { tree: TreeId, by: Vec<TreeId> },
    /// No batch ends where a branch was to begin.
    #[error("no batch of tree {tree} ends at event {at}: branch where one does")]
    NotABoundary { tree: TreeId, at: u64 },
    /// Something is above its bound; nothing was written.
    #[error("{what} is {size}, the limit is {max}: write less in one request")]
    TooLarge {
        /// What, and in which unit.
        what: &'static str,
        /// How large it is.
        size: usize,
        /// How large it may be.
        max: usize,
    },
    /// There is no such tree.
    #[error("no tree {tree} in this home: choose one from the list of trees")]
    UnknownTree { tree: TreeId },
    /// What is stored is not what was written.
    #[error("the journal of tree {tree} is damaged after event {after}: {reason}")]
    Damaged {
        tree: TreeId,
        /// The last event that is whole.
        after: u64,
        reason: String,
    },
    /// A row of the catalog is not what was written.
    #[error("the row of {kind} `{key}` in the catalog cannot be read ({reason}): rebuild the catalog from the journals", kind = kind.word())]
    DamagedRow { kind: CatalogKind, key: String, reason: String },
    /// A blob is not what its hash says.
    #[error("blob {hash} is damaged: restore it from a copy, or remove the tree that uses it")]
    DamagedBlob { hash: String },
    /// The home was written by a newer version.
    #[error("this home has schema {found} and this version knows {known}: use a newer spinney")]
    Newer {
        found: u32,
        /// The newest one known.
        known: u32,
    },
    /// The home was written by an older version, and this process may not change it.
    #[error(
        "this home has schema {found} and this version reads {known}: open it once for writing, which brings it up to date"
    )]
    Older {
        found: u32,
        /// The one that is read.
        known: u32,
    },
    /// Another process has the home open.
    #[error("process {pid} has this home open: stop it, use another --home, or use a read-only command")]
    Locked {
        /// Which process; 0 if it did not say.
        pid: u32,
    },
    /// This home was opened only to look.
    #[error("this home was opened read-only: nothing can be written")]
    ReadOnly,
    /// No room left on the disk, or in what the journal may take of it.
    #[error(
        "no room left for the journal: free some space or remove old trees, then resume; nothing that was confirmed is lost"
    )]
    DiskFull,
    /// The file system says no.
    #[error("not allowed to use {path} ({reason}): change who may read and write it, or choose another home")]
    NotAllowed {
        /// Which file or folder.
        path: String,
        reason: String,
    },
    /// There is something else where the home should be.
    #[error("{path} is not a folder: choose another home")]
    NotAHome { path: String },
    /// It is not used as a home, or as a file of one.
    #[error("{path} {why}")]
    HomeRefused {
        /// Which file or folder.
        path: String,
        why: HomeRefusal,
    },
    /// Nothing was ever written there.
    #[error("no journal in {path}: run a tree there first, or choose another home")]
    NoHome { path: String },
    /// The file as a whole cannot be read.
    #[error(
        "{path} is damaged ({reason}): restore it from a copy, or move it away and start over{}",
        and(salvage)
    )]
    DamagedFile {
        path: String,
        reason: String,
        /// How the store saves what is left, if it can.
        salvage: Option<String>,
    },
    /// Commits that were confirmed are missing.
    #[error(
        "commits {} to {confirmed} of this home were confirmed and are missing ({place}); {}. Nothing was run. Restore the home from a copy, or give them up with --accept-loss; after a loss of power with durability `normal` that is the way to go on",
        found + 1, losers(trees)
    )]
    Lost {
        /// How many commits are there.
        found: u64,
        /// How many were confirmed.
        confirmed: u64,
        /// Where the store is damaged.
        place: String,
        /// Trees that had not ended in what is left: only they can have lost events.
        trees: Vec<TreeId>,
    },
    /// Nobody can say whether commits that were confirmed are missing.
    #[error(
        "{path} says which commits were confirmed, and {reason}: it is unknown whether any are missing. Nothing was run. Restore it, or continue with what is there: --accept-loss"
    )]
    UnknownLoss {
        /// The file that counts them.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A file of the home was deleted or replaced while it was open.
    #[error(
        "{path} was deleted or replaced while the journal was open: what was written since then is lost; stop, restore the home, and resume"
    )]
    Gone { path: String },
    /// Another program changes the file and does not end.
    #[error("another program holds {path}: end its transaction and try again")]
    Busy { path: String },
    /// Anything else the store says.
    #[error("the store failed: {reason}")]
    Failed { reason: String },
    /// More is queued than the journal can hold back.
    #[error("{waiting} requests already wait for the journal: wait for the disk, then resume")]
    Overloaded { waiting: usize },
    /// The journal is being closed.
    #[error("the journal is closed")]
    Closed,
}

fn and(salvage: &Option<String>) -> String {
    salvage.as_ref().map(|salvage| format!("; {salvage}")).unwrap_or_default()
}

fn losers(trees: &[TreeId]) -> String {
    match trees {
        [] => "trees that started since then are gone".to_owned(),
        trees => {
            let trees: Vec<String> = trees.iter().map(ToString::to_string).collect();
            let trees = trees.join(", ");
            format!("trees that may have lost events: {trees}; trees that started since then are gone")
        }
    }
}

fn names(trees: &[TreeId]) -> String {
    let names: Vec<String> = trees.iter().map(|tree| format!("branch {tree}")).collect();
    names.join(", ")
}
