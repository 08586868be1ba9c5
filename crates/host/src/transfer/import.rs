//! Reads a file of trees into a home: each one into a side journal, which is checked as a whole before it takes its place.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spinney::tree::{ApplyError, Diverged, IncomingTree};
use spinney::{Drivers, Home};
use spinney_journal::{Head, Journal, JournalFault, Shared};
use spinney_kernel::rules::request::{Checkpoint, Seal, Unseal};
use spinney_kernel::words::{Actor, CheckpointName, SealKind, Seq, TreeId, limit};
use spinney_kernel::world::TreeState;
use spinney_store::SqliteJournal;
use spinney_view::TreeBeginning;

use super::needs::{self, TreeNeed};
use super::trees_file::{Record, TransferredTree, TreesFileReader, UnreadTreesFile};
use crate::home::ids::{self, TreeNameError};
use crate::home::side_journals::{self, SideJournalError};
use crate::home::{HomeError, look, workspaces, write_to_start};
use crate::inside;
use crate::off_workers::off_workers;
use crate::private_files::{self, Links};
use crate::removal::{UnremovedTree, remove};
use crate::text_file::{FileAction, FileFault};

/// A tree of a file, and what became of it here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedTree {
    /// Which tree.
    pub tree: TreeId,
    /// The name in its tree file.
    pub name: String,
    /// Its state here.
    pub state: TreeState,
    /// How it came.
    pub arrival: Arrival,
    /// What it needs to continue here.
    pub needs: Vec<TreeNeed>,
    /// For a new copy: where it can be branched.
    pub checkpoint: Option<CheckpointName>,
}

/// How a tree came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It is new here.
    New,
    /// It had moved away from here, and is back.
    Back,
    /// It was here already, with everything that the file has.
    Known,
}

/// Why a tree of a file was not imported. Those before it in the file were.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file cannot be opened.
    #[error(transparent)]
    Unopened(FileFault),
    /// The file cannot be read.
    #[error("cannot import {}", file.display())]
    File {
        /// Which.
        file: PathBuf,
        /// Why not.
        #[source]
        why: UnreadTreesFile,
    },
    /// The tree in the file is not what it says.
    #[error("tree {tree} in this file is damaged or was changed")]
    Diverged {
        /// Which tree.
        tree: TreeId,
        /// The first difference.
        #[source]
        why: Diverged,
    },
    /// This home has the tree, with other events.
    #[error(
        "tree {tree} is already here with other events: here it has {here} events (hash {here_hash}), in the file {there} (hash {there_hash})"
    )]
    OtherHead {
        /// Which tree.
        tree: TreeId,
        /// Events here.
        here: u64,
        /// The hash here.
        here_hash: String,
        /// Events in the file.
        there: u64,
        /// The hash in the file.
        there_hash: String,
    },
    /// The old tree cannot make room for the one that comes back.
    #[error("tree {tree} cannot be replaced by the one in the file")]
    NotReplaced {
        /// Which tree.
        tree: TreeId,
        /// Why not.
        #[source]
        why: Box<UnremovedTree>,
    },
    /// What follows an import was refused.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// Its side journal cannot be made.
    #[error(transparent)]
    Side(#[from] SideJournalError),
    /// The home cannot be read.
    #[error(transparent)]
    Tree(#[from] TreeNameError),
    /// A journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalFault),
}

impl From<HomeError> for ImportError {
    fn from(error: HomeError) -> Self {
        Self::Side(error.into())
    }
}

impl From<FileFault> for ImportError {
    fn from(error: FileFault) -> Self {
        Self::Side(error.into())
    }
}

/// Imports every tree of a file. One that was imported before is left as it is, so an import that was interrupted can be done
/// again.
///
/// # Errors
/// If the file or a tree in it is not what an export wrote, or the home has one of its trees with other events.
pub async fn import(home: &Path, file: &Path) -> Result<Vec<ImportedTree>, ImportError> {
    inside::check_self(home).map_err(HomeError::from)?;
    let (home, file) = (home.to_owned(), file.to_owned());
    off_workers(async move || {
        let opened = private_files::plain(&file, Links::Follow);
        let opened =
            opened.map_err(FileFault::when(FileAction::Read, &file)).map_err(ImportError::Unopened)?;
        let unread = |why| ImportError::File { file: file.clone(), why };
        let mut reader = TreesFileReader::begin(BufReader::new(opened)).map_err(unread)?;
        let mut imported = Vec::new();
        let mut record = reader.next().map_err(unread)?;
        loop {
            let incoming = match record {
                Record::Tree(incoming) => incoming,
                Record::End => return Ok(imported),
                Record::Blob(_) | Record::Batch { .. } => {
                    return Err(unread(UnreadTreesFile::Damaged("a batch without a tree".to_owned())));
                }
            };
            let mut from = Incoming { reader: &mut reader, file: &file };
            imported.push(import_tree(&home, &incoming, &mut from).await?);
            record = from.skip_tree()?;
        }
    })
    .await
}

/// The file, at the records of one tree.
struct Incoming<'f> {
    reader: &'f mut TreesFileReader<BufReader<File>>,
    file: &'f Path,
}

/// A batch of a file with the blobs that come with it.
struct IncomingBatch {
    after: Seq,
    bytes: Vec<u8>,
    blobs: Vec<Vec<u8>>,
}

impl Incoming<'_> {
    fn unread(&self, why: UnreadTreesFile) -> ImportError {
        ImportError::File { file: self.file.to_owned(), why }
    }

    fn damaged(&self, what: &str) -> ImportError {
        self.unread(UnreadTreesFile::Damaged(what.to_owned()))
    }

    fn batch(&mut self) -> Result<IncomingBatch, ImportError> {
        let (mut blobs, mut room) = (Vec::new(), limit::BLOBS_BYTES_MAX);
        loop {
            match self.reader.next().map_err(|why| self.unread(why))? {
                Record::Blob(bytes) => {
                    room = room
                        .checked_sub(bytes.len())
                        .ok_or_else(|| self.damaged("too many blobs for a batch"))?;
                    blobs.push(bytes);
                    if blobs.len() > limit::BLOBS_MAX {
                        return Err(self.damaged("too many blobs for a batch"));
                    }
                }
                Record::Batch { after, bytes } => return Ok(IncomingBatch { after, bytes, blobs }),
                Record::Tree(_) | Record::End => return Err(self.damaged("a tree lacks its last batches")),
            }
        }
    }

    /// The record after those of this tree.
    fn skip_tree(&mut self) -> Result<Record, ImportError> {
        loop {
            match self.reader.next().map_err(|why| self.unread(why))? {
                Record::Blob(_) | Record::Batch { .. } => {}
                next @ (Record::Tree(_) | Record::End) => return Ok(next),
            }
        }
    }
}

/// A tree that is here already.
struct OldTree {
    home: PathBuf,
    head: Head,
}

async fn import_tree(
    home: &Path,
    incoming: &TransferredTree,
    from: &mut Incoming<'_>,
) -> Result<ImportedTree, ImportError> {
    let tree = incoming.tree;
    let old = match find(home, tree).await? {
        Some((old, journal)) if has(&journal, &old.head, incoming).await? => {
            let name = ids::name(&journal, tree).await?;
            let needs = needs::needs(&old.home, &journal, tree).await;
            let (state, arrival) = (old.head.state, Arrival::Known);
            return Ok(ImportedTree { tree, name, state, arrival, needs, checkpoint: None });
        }
        Some((old, _)) if old.head.state != TreeState::Moved => return Err(other_head(&old.head, incoming)),
        found => found.map(|(old, _)| old),
    };
    let folder = side_journals::importing(home, tree)?;
    let written = write(&folder, incoming, old.as_ref(), from).await;
    let imported = match (written, old) {
        (Ok(imported), None) => Ok(imported),
        (Ok(imported), Some(old)) => match remove(&old.home, tree, Shared::Refuse).await {
            Ok(_) => Ok(ImportedTree { arrival: Arrival::Back, ..imported }),
            Err(why) => Err(ImportError::NotReplaced { tree, why: Box::new(why) }),
        },
        (Err(error), _) => Err(error),
    };
    let placed = imported.and_then(|imported| {
        side_journals::place_imported(home, &folder, tree)?;
        Ok(imported)
    });
    match &placed {
        Ok(_) => fill_folders(home, tree).await,
        Err(_) => side_journals::give_up_import(&folder),
    }
    placed
}

/// Writes the files of its agents. After a kill, resuming the tree does.
async fn fill_folders(home: &Path, tree: TreeId) {
    let folder = side_journals::new_folder(home, tree);
    match look(&folder) {
        Ok(journal) => workspaces::mend(&folder, Arc::new(journal), tree).await,
        Err(error) => tracing::warn!("the files of its agents were not written: {error}"),
    }
}

/// The tree if it is in any journal of the home.
async fn find(home: &Path, tree: TreeId) -> Result<Option<(OldTree, SqliteJournal)>, ImportError> {
    let folder = match side_journals::find(home, &tree.to_string()).await {
        Ok(folder) => folder,
        Err(TreeNameError::Unknown { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let journal = match look(&folder) {
        Ok(journal) => journal,
        Err(HomeError::NotThere { .. }) => return Ok(None),
        Err(error) if error.is_missing() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let head = journal.head(tree).await?;
    Ok(head.map(|head| (OldTree { home: folder, head }, journal)))
}

/// Whether a tree has everything that the file has of it.
async fn has(journal: &dyn Journal, head: &Head, incoming: &TransferredTree) -> Result<bool, JournalFault> {
    if incoming.events > head.seq {
        return Ok(false);
    }
    let page =
        journal.read(head.tree, Seq(incoming.events.0.saturating_sub(1)), limit::PAGE_BATCHES_MAX).await?;
    Ok(page.iter().any(|entry| incoming.ends_at(entry.end(), &entry.hash)))
}

fn other_head(here: &Head, there: &TransferredTree) -> ImportError {
    ImportError::OtherHead {
        tree: here.tree,
        here: here.seq.0,
        here_hash: here.hash.to_string(),
        there: there.events.0,
        there_hash: there.hash.clone(),
    }
}

/// Writes a tree to a journal that nothing else reads, verifies it, and makes it what it is here: one that continues, or a copy.
async fn write(
    folder: &Path,
    incoming: &TransferredTree,
    old: Option<&OldTree>,
    from: &mut Incoming<'_>,
) -> Result<ImportedTree, ImportError> {
    let tree = incoming.tree;
    let journal: Arc<dyn Journal> = Arc::new(write_to_start(folder).await?);
    let diverged = |why| ImportError::Diverged { tree, why };
    let mut writing = IncomingTree::new(Arc::clone(&journal), tree, incoming.seed);
    // One that comes back continues what is here.
    let mut continues = old.is_none();
    loop {
        let IncomingBatch { after, bytes, blobs } = from.batch()?;
        writing.take(after, bytes, blobs).await.map_err(diverged)?;
        let (end, hash) = writing.head();
        continues |= old.is_some_and(|old| (old.head.seq, old.head.hash) == (end, hash));
        if incoming.ends_at(end, &hash) {
            break;
        }
        if end > incoming.events {
            return Err(from.damaged("a tree has more batches than it says"));
        }
    }
    if let (false, Some(old)) = (continues, old) {
        return Err(other_head(&old.head, incoming));
    }
    writing.finish().await.map_err(diverged)?;
    let opened = Home::open(Arc::clone(&journal), Drivers::new()).with_actor(Actor::PERSON);
    let mut checkpoint = None;
    match state(journal.as_ref(), tree).await? {
        TreeState::Ended(_) | TreeState::Copied => {}
        TreeState::Moved => {
            opened.apply(tree, Unseal {}).await?;
        }
        _ => {
            checkpoint = branch_point(&opened, tree).await?;
            opened.apply(tree, Seal { kind: SealKind::Copy }).await?;
        }
    }
    let (state, name) = (state(journal.as_ref(), tree).await?, ids::name(journal.as_ref(), tree).await?);
    let needs = match state {
        TreeState::Ended(_) | TreeState::Copied => Vec::new(),
        _ => needs::needs(folder, journal.as_ref(), tree).await,
    };
    Ok(ImportedTree { tree, name, state, arrival: Arrival::New, needs, checkpoint })
}

/// Names the end of a tree, so that it can be branched there. A root that takes no checkpoint has none.
async fn branch_point(home: &Home, tree: TreeId) -> Result<Option<CheckpointName>, ImportError> {
    let Some(root) = TreeBeginning::read(home.journal().as_ref(), tree).await?.root else { return Ok(None) };
    match home.apply(tree, Checkpoint::manual(root, None)).await {
        Ok(made) => Ok(Some(made.name)),
        Err(ApplyError::Refused(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn state(journal: &dyn Journal, tree: TreeId) -> Result<TreeState, JournalFault> {
    Ok(journal.head(tree).await?.ok_or(JournalFault::UnknownTree { tree })?.state)
}
