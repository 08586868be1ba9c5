//! Writes trees of a home to one file.

use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use spinney_journal::{Journal, JournalFault, StoredEntry, blobs_of, seal_of, started_sources};
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{BlobHash, IdError, PartName, SealKind, Seq, TreeId, limit};
use spinney_kernel::rules::request::{Seal, Unseal};
use spinney_kernel::world::TreeState;

use super::needs::{self, TreeNeed};
use super::new_file::{NewFile, Unfinished};
use super::trees_file::{TransferredTree, TreesFileWriter};
use crate::control::{SteerError, ask_with};
use crate::control::{SteerReply, steering};
use crate::home::ids::TreeInHome;
use crate::home::{HomeError, open_read_only};
use crate::off_workers::off_workers;
use crate::text_file::FileFault;

/// Whether unfinished trees continue where the file is imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportKind {
    /// They do, and not here.
    Move,
    /// They continue here. What is imported can be read and branched.
    Copy,
}

/// A tree in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedTree {
    /// The tree.
    pub tree: TreeId,
    /// Its state here.
    pub state: TreeState,
    /// Its events in the file.
    pub events: u64,
    /// What the other machine must have.
    pub needs: Vec<TreeNeed>,
}

/// Why trees were not exported. Then there is no file.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The path ends in no name.
    #[error("{} does not name a file", .0.display())]
    NoFileName(PathBuf),
    /// The name of the file cannot be recorded.
    #[error("`{}` cannot be the name of an export", name.escape_debug())]
    FileName {
        /// The name.
        name: String,
        /// The cause.
        #[source]
        why: IdError,
    },
    /// There is a file of that name.
    #[error("{} exists: choose another name, or remove it", .0.display())]
    FileExists(PathBuf),
    /// A process runs the tree.
    #[error("tree {tree} is running: stop it first, or export a copy")]
    Running {
        /// The tree.
        tree: TreeId,
    },
    /// It was exported to another file.
    #[error("tree {tree} moved to `{to}`: export it to that name again, or take it back first")]
    MovedElsewhere {
        /// The tree.
        tree: TreeId,
        /// The name of the file.
        to: PartName,
    },
    /// What it is resumed from is not in its journal.
    #[error(
        "tree {tree} was started by an older release, and the files that it is resumed from are not in its journal: finish it here, or export a copy"
    )]
    OldFiles {
        /// The tree.
        tree: TreeId,
    },
    /// The tree refused it.
    #[error("tree {tree} cannot be exported: {message}")]
    Refused {
        /// The tree.
        tree: TreeId,
        /// What it said.
        message: String,
    },
    /// It did not move, or cannot come back.
    #[error("tree {tree} cannot be taken back: {message}")]
    NotTakenBack {
        /// The tree.
        tree: TreeId,
        /// What it said.
        message: String,
    },
    /// Trees were sealed, and then it failed.
    #[error(transparent)]
    Sealed(SealedExport),
    /// The home's process cannot be reached.
    #[error(transparent)]
    Steer(#[from] SteerError),
    /// The home cannot be opened.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalFault),
    /// The file cannot be written.
    #[error(transparent)]
    File(#[from] FileFault),
}

/// An export that failed after it had sealed trees. The same export again writes the file, and taking them back undoes it.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub struct SealedExport {
    /// The trees that are sealed.
    pub trees: Vec<TreeId>,
    /// The cause.
    #[source]
    why: Box<ExportError>,
}

/// Writes trees to a new file. Unfinished ones are sealed first if they move; after a kill they are sealed and there is no file,
/// and exporting them again to the same name writes it.
///
/// # Errors
/// If a tree cannot be exported: then none is sealed. [`ExportError::Sealed`] if some are.
pub async fn export(
    trees: &[TreeInHome<'_>],
    file: &Path,
    kind: ExportKind,
) -> Result<Vec<ExportedTree>, ExportError> {
    let name = file_name(file)?;
    if file.symlink_metadata().is_ok() {
        return Err(ExportError::FileExists(file.to_owned()));
    }
    let mut to_seal = Vec::new();
    for place in trees {
        if kind == ExportKind::Move && must_be_sealed(*place, &name).await? {
            to_seal.push(*place);
        }
    }
    // Before anything is sealed: the folder may not exist, or not be the user's.
    let new = NewFile::make(file)?;
    let mut sealed = Vec::new();
    let written = async {
        for place in to_seal {
            seal(place, SealKind::Moved { to: name.clone() }).await?;
            sealed.push(place.tree);
        }
        let places: Vec<(PathBuf, TreeId)> =
            trees.iter().map(|place| (place.home.to_owned(), place.tree)).collect();
        off_workers(async move || write_file(&places, kind, new).await).await
    };
    match written.await {
        Err(why) if !sealed.is_empty() => {
            Err(ExportError::Sealed(SealedExport { trees: sealed, why: Box::new(why) }))
        }
        written => written,
    }
}

/// Continues a tree here that moved to a file. It must not continue anywhere else.
///
/// # Errors
/// If it did not move, or its home cannot be reached.
pub async fn take_back(TreeInHome { home, tree }: TreeInHome<'_>) -> Result<(), ExportError> {
    match ask_with(home, tree, Unseal {}, Vec::new()).await? {
        SteerReply::Done { .. } => Ok(()),
        SteerReply::Refused { message, .. } | SteerReply::Failed { message } => {
            Err(ExportError::NotTakenBack { tree, message })
        }
    }
}

fn file_name(file: &Path) -> Result<PartName, ExportError> {
    let name = file.file_name().ok_or_else(|| ExportError::NoFileName(file.to_owned()))?;
    let name = name.to_string_lossy().into_owned();
    name.parse().map_err(|why| ExportError::FileName { name, why })
}

/// Checks that a tree can move to a file, and whether it must be sealed for that.
async fn must_be_sealed(place: TreeInHome<'_>, name: &PartName) -> Result<bool, ExportError> {
    let TreeInHome { home, tree } = place;
    let journal = open_read_only(home)?;
    let head = journal.head(tree).await?.ok_or(JournalFault::UnknownTree { tree })?;
    match head.state {
        TreeState::Ended(_) | TreeState::Copied => Ok(false),
        TreeState::Moved => match seal_of(&journal, &head).await? {
            Some(SealKind::Moved { to }) if to != *name => Err(ExportError::MovedElsewhere { tree, to }),
            Some(_) | None => Ok(false),
        },
        _ if steering::does_run(place).await => Err(ExportError::Running { tree }),
        _ if started_sources(&journal, tree).await?.is_empty() => Err(ExportError::OldFiles { tree }),
        _ => Ok(true),
    }
}

async fn seal(TreeInHome { home, tree }: TreeInHome<'_>, kind: SealKind) -> Result<(), ExportError> {
    match ask_with(home, tree, Seal { kind }, Vec::new()).await? {
        SteerReply::Done { .. } => Ok(()),
        SteerReply::Refused { refusal: Some(refusal), .. } if *refusal == Refusal::SealRunning => {
            Err(ExportError::Running { tree })
        }
        SteerReply::Refused { message, .. } | SteerReply::Failed { message } => {
            Err(ExportError::Refused { tree, message })
        }
    }
}

/// Writes the file whole or not at all.
async fn write_file(
    trees: &[(PathBuf, TreeId)],
    kind: ExportKind,
    file: NewFile,
) -> Result<Vec<ExportedTree>, ExportError> {
    let fault = |error| ExportError::from(file.fault(error));
    let mut to = TreesFileWriter::begin(BufWriter::new(&file.opened)).map_err(fault)?;
    let mut exported = Vec::new();
    for (home, tree) in trees {
        exported.push(write_tree(TreeInHome { home, tree: *tree }, kind, &mut to, fault).await?);
    }
    drop(to.end().map_err(fault)?);
    file.finish().map_err(|error| match error {
        Unfinished::Exists(file) => ExportError::FileExists(file),
        Unfinished::Fault(fault) => fault.into(),
    })?;
    Ok(exported)
}

/// Writes a tree up to its present end.
async fn write_tree(
    TreeInHome { home, tree }: TreeInHome<'_>,
    kind: ExportKind,
    to: &mut TreesFileWriter<impl Write>,
    fault: impl Fn(io::Error) -> ExportError,
) -> Result<ExportedTree, ExportError> {
    let journal = open_read_only(home)?;
    let head = journal.head(tree).await?.ok_or(JournalFault::UnknownTree { tree })?;
    to.tree(&TransferredTree::new(&head, kind)).map_err(&fault)?;
    let (mut blobs, mut end) = (BTreeSet::<BlobHash>::new(), Seq(0));
    loop {
        let page = journal.read_stored(tree, end, limit::PAGE_BATCHES_MAX).await?;
        let is_last = page.is_empty();
        for StoredEntry { entry, bytes } in page {
            end = entry.end();
            for blob in entry.batch.events.iter().flat_map(blobs_of) {
                if !blobs.insert(blob.hash.clone()) {
                    continue;
                }
                let missing = || format!("it refers to blob {}, which is missing", blob.hash);
                let damaged = || JournalFault::Damaged { tree, after: entry.after.0, reason: missing() };
                to.blob(&journal.blob(blob).await?.ok_or_else(damaged)?).map_err(&fault)?;
            }
            to.batch(entry.after, &bytes).map_err(&fault)?;
            if entry.hash == head.hash {
                let needs = needs::needs(home, &journal, tree).await;
                return Ok(ExportedTree { tree, state: head.state, events: head.seq.0, needs });
            }
        }
        if is_last {
            let reason = "its head does not match its last event".to_owned();
            return Err(JournalFault::Damaged { tree, after: end.0, reason }.into());
        }
    }
}
