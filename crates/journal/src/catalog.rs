//! The catalog: facts that span trees, such as their names. A row is written in the same transaction as its event,
//! belongs to the tree that wrote it, and is removed with that tree.
//!
//! The catalog is an index: [`rebuild`] computes a tree's rows again from its journal. That also restores rows that
//! [`clean`](crate::clean) removed.

use std::collections::BTreeMap;

use crate::{Batch, CheckpointFacts};
use spinney_kernel::primitives::{Seq, Time, TreeId};
use spinney_kernel::record::Event;

use crate::{Journal, JournalFault, pages};

/// The kinds of rows. Each kind has its own keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CatalogKind {
    /// Key: the tree's id; value: its name.
    Tree,
    /// Key: the checkpoint's name; value: its agent, position and time.
    Checkpoint,
    /// Key: the id of a tree that ended; value: the name of the tree that continues it, which has the row. There is one at
    /// most.
    Continuation,
}

impl CatalogKind {
    pub const ALL: [Self; 3] = [Self::Tree, Self::Checkpoint, Self::Continuation];

    /// The name in the store.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Checkpoint => "checkpoint",
            Self::Continuation => "continuation",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogRow {
    pub kind: CatalogKind,
    /// Belongs to the tree that wrote it first.
    pub key: String,
    /// `None` removes the row.
    pub value: Option<String>,
}

/// The tree that continues one which has ended, if there is one.
///
/// # Errors
/// If the store cannot be read.
pub async fn continuation(journal: &dyn Journal, tree: TreeId) -> Result<Option<TreeId>, JournalFault> {
    let facts = journal.catalog(CatalogKind::Continuation, &tree.to_string()).await?;
    Ok(facts.first().map(|fact| fact.tree))
}

/// One row of the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    pub key: String,
    pub tree: TreeId,
    pub value: String,
}

/// An event's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventPlace {
    pub tree: TreeId,
    /// The last event of its batch.
    pub end: Seq,
    /// When its input arrived.
    pub at: Time,
}

#[must_use]
pub fn catalog_rows(place: EventPlace, event: &Event) -> Vec<CatalogRow> {
    match event {
        Event::TreeBranched(branched) => {
            let row = |kind, of: TreeId| CatalogRow {
                kind,
                key: of.to_string(),
                value: Some(branched.name.clone()),
            };
            let continues = branched.continuation.is_some();
            let continues = continues.then(|| row(CatalogKind::Continuation, branched.from));
            [row(CatalogKind::Tree, place.tree)].into_iter().chain(continues).collect()
        }
        Event::CheckpointMade { agent, name, kind, number } => {
            let EventPlace { end, at, .. } = place;
            let known =
                CheckpointFacts { agent: agent.clone(), kind: *kind, seq: end, made: at, number: *number };
            let (key, value) = (name.as_str().to_owned(), Some(known.written()));
            vec![CatalogRow { kind: CatalogKind::Checkpoint, key, value }]
        }
        Event::TreeStarted { definition, .. } => {
            let (key, value) = (place.tree.to_string(), Some(definition.name.clone()));
            vec![CatalogRow { kind: CatalogKind::Tree, key, value }]
        }
        _ => Vec::new(),
    }
}

/// The catalog changes of a whole batch, to append with it.
#[must_use]
pub fn catalog_of(tree: TreeId, after: Seq, batch: &Batch) -> Vec<CatalogRow> {
    // An overflow means a stale writer, which the journal reports.
    let end = Seq(after.0.saturating_add(batch.events.len() as u64));
    let place = EventPlace { tree, end, at: batch.input.now };
    batch.events.iter().flat_map(|event| catalog_rows(place, event)).collect()
}

/// Computes a tree's rows again from its journal and replaces the existing ones.
///
/// # Errors
/// If the journal cannot be read or written, or the tree is written meanwhile.
pub async fn rebuild(journal: &dyn Journal, tree: TreeId) -> Result<(), JournalFault> {
    let mut rows = BTreeMap::new();
    let mut at = Seq(0);
    let mut pages = pages(journal, tree, Seq(0));
    while let Some(page) = pages.next().await? {
        for entry in page {
            at = entry.end();
            // What a branch shares belongs to its origin.
            if let Some(Event::TreeBranched(_)) = entry.batch.events.first() {
                rows.clear();
            }
            for row in catalog_of(tree, entry.after, &entry.batch) {
                rows.insert((row.kind, row.key.clone()), row);
            }
        }
    }
    let rows = rows.into_values().filter(|row| row.value.is_some()).collect();
    journal.replace_catalog(tree, at, rows).await
}
