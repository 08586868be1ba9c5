//! Reads a file of trees into a home: each one into a side journal, which is checked as a whole before it takes its place.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spinney::tree::{ApplyError, Diverged, IncomingTree};
use spinney::{Drivers, Home};
use spinney_drivers::working_copies::{UntakenFiles, WorkingCopy};
use spinney_journal::{Head, Journal, JournalFault, Shared};
use spinney_kernel::primitives::{Actor, AgentId, CheckpointName, SealKind, Seq, TreeId, limit};
use spinney_kernel::rules::request::{Checkpoint, Seal, Unseal};
use spinney_kernel::world::TreeState;
use spinney_store::SqliteJournal;
use spinney_view::TreeBeginning;

use super::export::ExportKind;
use super::needs::{self, TreeNeed};
use super::new_file::{folder_of, remove_unfinished};
use super::trees_file::{Record, TransferredTree, TreesFileReader, UnreadTreesFile};
use crate::home::ids::{self, TreeNameError};
use crate::home::side_journals::{self, Imports, SideJournalError};
use crate::home::working_copies::{CopyError, HomeCopies, release};
use crate::home::{HomeError, open_read_only, open_writable_to_remove, open_writable_to_start, workspaces};
use crate::inside;
use crate::off_workers::off_workers;
use crate::removal::{UntakenChanges, remove};
use crate::system::private_files::{self, Links};
use crate::text_file::{FileAction, FileFault};
use crate::trust::{TrustError, foreign_home, tree_marks};

/// A tree of a file, and what became of it here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedTree {
    /// The tree.
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
        /// The file.
        file: PathBuf,
        /// The cause.
        #[source]
        why: UnreadTreesFile,
    },
    /// The tree in the file is not what it says.
    #[error("tree {tree} in this file is damaged or was changed")]
    Diverged {
        /// The tree.
        tree: TreeId,
        /// The first difference.
        #[source]
        why: Diverged,
    },
    /// This home has the tree, with other events.
    #[error(
        "tree {tree} is already here with different events: here it has {here} events (hash {here_hash}), in the file {there} (hash {there_hash})"
    )]
    OtherHead {
        /// The tree.
        tree: TreeId,
        /// Its state here.
        state: TreeState,
        /// Events here.
        here: u64,
        /// The hash here.
        here_hash: String,
        /// Events in the file.
        there: u64,
        /// The hash in the file.
        there_hash: String,
    },
    /// Branches of the tree that had moved away are in the same journal.
    #[error("tree {tree} cannot come back while its branches are here: export or remove {}", names(.branches))]
    HasBranches {
        /// The tree.
        tree: TreeId,
        /// Its branches.
        branches: Vec<TreeId>,
    },
    /// Other trees are where it belongs.
    #[error("{} has other trees: remove them first, or import into another home", folder.display())]
    PlaceTaken {
        /// The tree.
        tree: TreeId,
        /// The folder.
        folder: PathBuf,
    },
    /// Its folder here has a working copy with what is nowhere else.
    #[error("the import would replace the working copy of {agent}, {}", folder.display())]
    Copy {
        /// The tree.
        tree: TreeId,
        /// The agent.
        agent: AgentId,
        /// The copy.
        folder: PathBuf,
        /// What would be lost.
        #[source]
        why: Box<KeptCopy>,
    },
    /// The folders of its agents cannot be read.
    #[error(transparent)]
    Copies(FileFault),
    /// Its rules are not those of this version, so nothing of it can be checked.
    #[error(
        "tree {tree} has rules {rules}, which this version cannot check: import it with the version that exported it"
    )]
    OtherRules {
        /// The tree.
        tree: TreeId,
        /// Its rules.
        rules: u32,
    },
    /// What this user allowed cannot be read or changed.
    #[error(transparent)]
    Trust(#[from] TrustError),
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

/// Why the working copy of a tree that had moved away is not replaced.
#[derive(Debug, thiserror::Error)]
pub enum KeptCopy {
    /// What its agent changed cannot be taken over.
    #[error("its changes cannot be saved")]
    Changes(#[source] Box<CopyError>),
    /// It has files that are in no branch: ignored, large, or not plain files.
    #[error("it has files that are nowhere else")]
    Files(UntakenFiles),
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

fn names(trees: &[TreeId]) -> String {
    trees.iter().map(ToString::to_string).collect::<Vec<String>>().join(", ")
}

/// Imports every tree of a file. One that was imported before is left as it is, so an import that was interrupted can be done
/// again.
///
/// # Errors
/// If the file or a tree in it is not what an export wrote, or the home has one of its trees with other events.
pub async fn import(home: &Path, file: &Path) -> Result<Vec<ImportedTree>, ImportError> {
    let home = side_journals::above(home).to_owned();
    inside::check_self(&home).map_err(HomeError::from)?;
    let file = file.to_owned();
    off_workers(async move || {
        remove_unfinished(folder_of(&file));
        let opened = private_files::plain(&file, Links::Follow);
        let opened =
            opened.map_err(FileFault::when(FileAction::Read, &file)).map_err(ImportError::Unopened)?;
        let unread = |why| ImportError::File { file: file.clone(), why };
        let damaged = |what: &str| Err(unread(UnreadTreesFile::Damaged(what.to_owned())));
        let mut reader = TreesFileReader::begin(BufReader::new(opened)).map_err(unread)?;
        let mut record = reader.next().map_err(unread)?;
        // A home that does not exist yet is made, and listed as the user's.
        foreign_home::for_new_tree(&home, &[]).await?;
        let imports = Imports::begin(&home)?;
        let mut imported = Vec::new();
        loop {
            let incoming = match record {
                Record::Tree(incoming) => incoming,
                Record::End if imported.is_empty() => return damaged("it has no trees"),
                Record::End => return Ok(imported),
                Record::Blob(_) | Record::Batch { .. } => return damaged("a batch without a tree"),
            };
            let mut from = TreeRecords { reader: &mut reader, file: &file };
            let (tree, next) = import_tree(&home, &imports, &incoming, &mut from).await?;
            record = next;
            imported.push(tree);
        }
    })
    .await
}

/// The file, at the records of one tree.
struct TreeRecords<'f> {
    reader: &'f mut TreesFileReader<BufReader<File>>,
    file: &'f Path,
}

/// A batch of a file with the blobs that come with it.
struct BatchRecord {
    after: Seq,
    bytes: Vec<u8>,
    blobs: Vec<Vec<u8>>,
}

impl TreeRecords<'_> {
    fn unread(&self, why: UnreadTreesFile) -> ImportError {
        ImportError::File { file: self.file.to_owned(), why }
    }

    fn damaged(&self, what: &str) -> ImportError {
        self.unread(UnreadTreesFile::Damaged(what.to_owned()))
    }

    fn batch(&mut self) -> Result<BatchRecord, ImportError> {
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
                Record::Batch { after, bytes } => return Ok(BatchRecord { after, bytes, blobs }),
                Record::Tree(_) | Record::End => return Err(self.damaged("a tree lacks its last batches")),
            }
        }
    }

    /// The record after the last batch of a tree.
    fn after_tree(&mut self) -> Result<Record, ImportError> {
        match self.reader.next().map_err(|why| self.unread(why))? {
            Record::Blob(_) | Record::Batch { .. } => {
                Err(self.damaged("a tree has more batches than it says"))
            }
            next @ (Record::Tree(_) | Record::End) => Ok(next),
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
struct TreeHere {
    home: PathBuf,
    head: Head,
}

async fn import_tree(
    home: &Path,
    imports: &Imports,
    incoming: &TransferredTree,
    from: &mut TreeRecords<'_>,
) -> Result<(ImportedTree, Record), ImportError> {
    let tree = incoming.tree;
    let old = match find(home, tree).await? {
        Some((old, journal)) if has(&journal, &old.head, incoming).await? => {
            let name = ids::name(&journal, tree).await?;
            let needs = needs::needs(&old.home, &journal, tree).await;
            let (state, arrival) = (old.head.state, Arrival::Known);
            let known = ImportedTree { tree, name, state, arrival, needs, checkpoint: None };
            return Ok((known, from.skip_tree()?));
        }
        // A copy does not bring a tree back.
        Some((old, _)) if old.head.state != TreeState::Moved || incoming.kind == ExportKind::Copy => {
            return Err(other_head(&old.head, incoming));
        }
        found => found.map(|(old, _)| old),
    };
    // What follows is read first: a file that is cut behind its last tree is not whole.
    let written = write(&imports.folder(tree), incoming, old.as_ref(), from).await;
    let mut placed = written.and_then(|imported| Ok((imported, from.after_tree()?)));
    if placed.is_ok()
        && let Err(error) = place(home, imports, tree, old.as_ref(), incoming).await
    {
        placed = Err(error);
    }
    match placed {
        Ok((imported, next)) => {
            fill_folders(home, tree).await;
            let arrival = if old.is_some() { Arrival::Back } else { Arrival::New };
            Ok((ImportedTree { arrival, ..imported }, next))
        }
        Err(error) => {
            imports.give_up(tree);
            Err(error)
        }
    }
}

/// Puts a tree in its place, and removes the one that had moved away.
async fn place(
    home: &Path,
    imports: &Imports,
    tree: TreeId,
    old: Option<&TreeHere>,
    incoming: &TransferredTree,
) -> Result<(), ImportError> {
    let folder = side_journals::new_folder(home, tree);
    let is_in_place = old.is_some_and(|old| old.home == folder);
    if !is_in_place && folder.is_dir() {
        return Err(ImportError::PlaceTaken { tree, folder });
    }
    // To continue the old one, a process needs its journal, which is open here until the new one is in its place.
    let locked = match old {
        Some(old) => Some(lock(old, is_in_place, incoming).await?),
        None => None,
    };
    let copies = match old {
        Some(old) => take_copies(&old.home, tree).await?,
        None => Vec::new(),
    };
    // What this user had allowed it was for a tree that others may have changed since.
    tree_marks::try_forget(home, tree)?;
    imports.place(tree)?;
    drop(locked);
    // Their folders are gone. Agents that work here again get new copies.
    for copy in copies.iter().filter(|_| is_in_place) {
        release(copy).await;
    }
    // One that others read is left behind. Commands find the one that came back.
    if let Some(old) = old.filter(|_| !is_in_place)
        && let Err(error) = remove(&old.home, tree, Shared::Refuse, UntakenChanges::Refuse).await
    {
        tracing::debug!("what is left of tree {tree} here was not removed: {error}");
    }
    Ok(())
}

/// Takes over what agents changed in working copies before the tree left. Their folders are about to be replaced, so
/// nothing may be only there.
async fn take_copies(home: &Path, tree: TreeId) -> Result<Vec<WorkingCopy>, ImportError> {
    let all = HomeCopies::new(home);
    let mut copies =
        all.all(tree).map_err(FileFault::when(FileAction::Read, home)).map_err(ImportError::Copies)?;
    for copy in &mut copies {
        let kept = match all.take_over(copy).await {
            Ok(taken) if taken.left_out.is_empty() => continue,
            Ok(taken) => KeptCopy::Files(taken.left_out),
            Err(error) => KeptCopy::Changes(Box::new(error)),
        };
        let (agent, folder) = (copy.agent().clone(), copy.folder());
        return Err(ImportError::Copy { tree, agent, folder, why: Box::new(kept) });
    }
    Ok(copies)
}

/// Opens the journal of a tree that had moved away, which must be as it was found.
async fn lock(
    old: &TreeHere,
    is_in_place: bool,
    incoming: &TransferredTree,
) -> Result<SqliteJournal, ImportError> {
    let (tree, journal) = (old.head.tree, open_writable_to_remove(&old.home).await?);
    let heads = journal.heads(&[]).await?;
    match heads.iter().find(|head| head.tree == tree) {
        Some(head)
            if (head.seq, head.hash, head.state) == (old.head.seq, old.head.hash, TreeState::Moved) => {}
        Some(head) => return Err(other_head(head, incoming)),
        None => return Err(JournalFault::UnknownTree { tree }.into()),
    }
    let branches: Vec<TreeId> = heads.iter().map(|head| head.tree).filter(|other| *other != tree).collect();
    if is_in_place && !branches.is_empty() {
        return Err(ImportError::HasBranches { tree, branches });
    }
    Ok(journal)
}

/// Writes the files of its agents. After a kill, resuming the tree does.
async fn fill_folders(home: &Path, tree: TreeId) {
    let folder = side_journals::new_folder(home, tree);
    match open_read_only(&folder) {
        Ok(journal) => workspaces::mend(&folder, Arc::new(journal), tree).await,
        Err(error) => tracing::warn!("the files of its agents were not written: {error}"),
    }
}

/// The tree if it is in any journal of the home.
async fn find(home: &Path, tree: TreeId) -> Result<Option<(TreeHere, SqliteJournal)>, ImportError> {
    let folder = match side_journals::find(home, &tree.to_string()).await {
        Ok(folder) => folder,
        Err(TreeNameError::Unknown { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let journal = match open_read_only(&folder) {
        Ok(journal) => journal,
        Err(HomeError::NotThere { .. }) => return Ok(None),
        Err(error) if error.is_missing() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let head = journal.head(tree).await?;
    Ok(head.map(|head| (TreeHere { home: folder, head }, journal)))
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
        state: here.state,
        here: here.seq.0,
        here_hash: here.hash.to_string(),
        there: there.events.0,
        there_hash: there.hash.to_string(),
    }
}

/// Writes a tree to a journal that nothing else reads, verifies it, and makes it what it is here: one that continues, or a copy.
async fn write(
    folder: &Path,
    incoming: &TransferredTree,
    old: Option<&TreeHere>,
    from: &mut TreeRecords<'_>,
) -> Result<ImportedTree, ImportError> {
    let tree = incoming.tree;
    let journal: Arc<dyn Journal> = Arc::new(open_writable_to_start(folder).await?);
    let diverged = |why| ImportError::Diverged { tree, why };
    let mut writing = IncomingTree::new(Arc::clone(&journal), tree, incoming.seed);
    // One that comes back continues what is here.
    let mut continues = old.is_none();
    loop {
        let BatchRecord { after, bytes, blobs } = from.batch()?;
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
    let verified = writing.finish().await.map_err(diverged)?;
    if !verified.decided {
        return Err(ImportError::OtherRules { tree, rules: verified.rules });
    }
    let opened = Home::open(Arc::clone(&journal), Drivers::new()).with_actor(Actor::PERSON);
    let mut checkpoint = None;
    match (state(journal.as_ref(), tree).await?, incoming.kind) {
        (TreeState::Ended(_) | TreeState::Copied, _) => {}
        (TreeState::Moved, ExportKind::Move) => {
            opened.apply(tree, Unseal {}).await?;
        }
        (_, ExportKind::Move) => return Err(from.damaged("a tree that moves is not sealed")),
        (state, ExportKind::Copy) => {
            if state == TreeState::Moved {
                opened.apply(tree, Unseal {}).await?;
            }
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

/// Names the end of a tree, so it can be branched there. A root that takes no checkpoint has none.
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
