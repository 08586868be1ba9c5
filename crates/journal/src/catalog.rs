//! The catalog: facts that span trees, such as their names. A row is written in the same transaction as the event
//! behind it, belongs to the tree that wrote it, and goes with that tree.
//!
//! The catalog is a shortcut, never a truth of its own: [`rebuild`] computes a tree's rows again from its journal.
//! Rows that [`clean`](crate::clean) removed come back with that.

use std::collections::BTreeMap;

use crate::{Batch, CheckpointFacts};
use spinney_kernel::record::Event;
use spinney_kernel::words::{Seq, Time, TreeId};

use crate::{Journal, JournalFault, pages};

/// What a row is about. Keys of one kind do not meet those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CatalogKind {
    /// Trees: the key is the tree's id, the value its name.
    Tree,
    /// Checkpoints: the key is the checkpoint's name, the value whose it is, where and since when.
    Checkpoint,
}

impl CatalogKind {
    pub const ALL: [Self; 2] = [Self::Tree, Self::Checkpoint];

    /// The word that a store writes down.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Checkpoint => "checkpoint",
        }
    }
}

/// One change of the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogRow {
    /// What it is about.
    pub kind: CatalogKind,
    /// Its key; it belongs to the tree that wrote it first.
    pub key: String,
    /// What is known; none removes the row.
    pub value: Option<String>,
}

/// One row as it stands in the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    pub key: String,
    pub tree: TreeId,
    pub value: String,
}

/// Where an event stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventPlace {
    pub tree: TreeId,
    /// The last event of its batch.
    pub end: Seq,
    /// When its input arrived.
    pub at: Time,
}

/// What an event changes in the catalog.
#[must_use]
pub fn catalog_rows(place: EventPlace, event: &Event) -> Vec<CatalogRow> {
    match event {
        Event::TreeBranched(branched) => {
            let (key, value) = (place.tree.to_string(), Some(branched.name.clone()));
            vec![CatalogRow { kind: CatalogKind::Tree, key, value }]
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

/// What a whole batch changes in the catalog: what goes into the append beside it.
#[must_use]
pub fn catalog_of(tree: TreeId, after: Seq, batch: &Batch) -> Vec<CatalogRow> {
    // A number beyond all numbers is a stale writer's; the journal says so.
    let end = Seq(after.0.saturating_add(batch.events.len() as u64));
    let place = EventPlace { tree, end, at: batch.input.now };
    batch.events.iter().flat_map(|event| catalog_rows(place, event)).collect()
}

/// Computes a tree's rows again from its journal and puts them in place of those that stand there.
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
