//! What this user's state folder records of each tree that this user started: how far its journal was, what it was
//! started from, and which hosts it may send keys to. Nothing in a home can change it.

use std::path::Path;

use serde::{Deserialize, Serialize};
use spinney_journal::{Head, Journal, JournalFault, pages};
use spinney_kernel::primitives::{BlobHash, Seq, TreeId};
use spinney_kernel::record::Event;
use spinney_view::wording::{counted, short_id};

use super::TrustError;
use super::allowed_hosts::AllowedHosts;
use super::known_homes::KnownHome;
use crate::error_text::with_causes;
use crate::exec::options;
use crate::home::{old_copies, side_journals, tree_copies};
use crate::user::state_files::StateFileError;

/// More batches without events than follow each other.
const BATCHES_AT_ONE_EVENT: usize = 256;

/// What is recorded of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeMark {
    /// Events in its journal when it was looked at last; 0 if it was only started.
    events: u64,
    /// The hash of its journal at that event.
    hash: String,
    /// The hash of what it is started from.
    source: Option<String>,
    /// Hosts that the user allowed when it was started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}

impl TreeMark {
    fn new(head: &Head, source: Option<&BlobHash>, hosts: Vec<String>) -> Self {
        let source = source.map(|hash| hash.as_str().to_owned());
        Self { events: head.seq.0, hash: head.hash.to_string(), source, hosts }
    }

    /// The same tree at another moment.
    fn at(self, head: &Head) -> Self {
        Self { events: head.seq.0, hash: head.hash.to_string(), ..self }
    }

    /// Events in its journal when it was looked at last.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Whether the tree would be started from the same files.
    pub fn has_source(&self, source: Option<&BlobHash>) -> bool {
        self.source.as_deref() == source.map(BlobHash::as_str)
    }

    /// Whether a journal has the events that it had.
    pub async fn is_in(&self, journal: &dyn Journal, head: &Head) -> Result<bool, JournalFault> {
        if self.events == 0 || head.seq.0 < self.events {
            return Ok(self.events == 0);
        }
        if head.hash.to_string() == self.hash {
            return Ok(true);
        }
        // Batches without events end where the one before them does.
        let before = Seq(self.events.saturating_sub(1));
        let page = journal.read(head.tree, before, BATCHES_AT_ONE_EVENT).await?;
        let mut entries = page.iter().filter(|entry| entry.end().0 == self.events);
        Ok(entries.any(|entry| entry.hash.to_string() == self.hash))
    }
}

/// Whether ceilings were raised in events that are not recorded: they may not be the user's.
pub(super) async fn has_unrecorded_raise(
    mark: &TreeMark,
    journal: &dyn Journal,
    head: &Head,
) -> Result<bool, JournalFault> {
    let mut pages = pages(journal, head.tree, Seq(mark.events));
    while let Some(page) = pages.next().await? {
        let mut events = page.into_iter().flat_map(|entry| entry.batch.events);
        if events.any(|event| matches!(event, Event::LimitRaised { .. } | Event::TreeAdjusted(_))) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What a tree is started from, if its journal or its home keeps that.
pub async fn source_of(
    home: &Path,
    journal: &dyn Journal,
    tree: TreeId,
) -> Result<Option<BlobHash>, TrustError> {
    if side_journals::is_of_exec(home).await {
        return Ok(options::fingerprint(home, journal, tree).await?);
    }
    match tree_copies::fingerprint(journal, tree).await? {
        Some(source) => Ok(Some(source)),
        None => Ok(old_copies::fingerprint(home, tree)?),
    }
}

/// The mark of a tree, if its home is known and has one.
pub fn find(home: &Path, tree: TreeId) -> Result<Option<TreeMark>, StateFileError> {
    match KnownHome::find(side_journals::above(home))? {
        Some(known) => known.mark(tree),
        None => Ok(None),
    }
}

/// Marks a tree as it is now, started from `source`: this user started it, or trusts it.
pub(super) fn set(
    known: &KnownHome,
    head: &Head,
    source: Option<&BlobHash>,
    hosts: Vec<String>,
) -> Result<(), TrustError> {
    Ok(known.set_mark(head.tree, &TreeMark::new(head, source, hosts))?)
}

/// Marks a tree that this process is about to start: it may be killed at any moment after that. The tree starts in any
/// case; without a mark, resuming it asks first.
pub fn starting(home: &Path, tree: TreeId, source: &BlobHash, allowed: &AllowedHosts) {
    let mark = || -> Result<(), TrustError> {
        let Some(known) = KnownHome::find(side_journals::above(home))? else { return Ok(()) };
        let source = Some(source.as_str().to_owned());
        Ok(known
            .set_mark(tree, &TreeMark { events: 0, hash: String::new(), source, hosts: allowed.names() })?)
    };
    noted(mark(), tree);
}

/// Records how far a marked tree is. A mark that the journal does not match stays as it is: it is what shows the
/// difference.
pub async fn update(home: &Path, journal: &dyn Journal, tree: TreeId) {
    let update = async || -> Result<(), TrustError> {
        let Some(known) = KnownHome::find(side_journals::above(home))? else { return Ok(()) };
        let Some((mark, head)) = known.mark(tree)?.zip(journal.head(tree).await?) else { return Ok(()) };
        if mark.is_in(journal, &head).await? {
            known.set_mark(tree, &mark.at(&head))?;
        }
        Ok(())
    };
    noted(update().await, tree);
}

/// Marks that this process changed what a tree is started from.
pub fn source_changed(home: &Path, tree: TreeId, source: &BlobHash) {
    let change = || -> Result<(), TrustError> {
        let Some(known) = KnownHome::find(side_journals::above(home))? else { return Ok(()) };
        let Some(mark) = known.mark(tree)? else { return Ok(()) };
        let source = Some(source.as_str().to_owned());
        Ok(known.set_mark(tree, &TreeMark { source, ..mark })?)
    };
    noted(change(), tree);
}

/// Marks a branch of a tree as its origin is marked, if the origin still is what it was.
pub async fn branched(home: &Path, journal: &dyn Journal, from: TreeId, to: TreeId) {
    let mark = async || -> Result<(), TrustError> {
        let Some(known) = KnownHome::find(side_journals::above(home))? else { return Ok(()) };
        let Some((mark, origin)) = known.mark(from)?.zip(journal.head(from).await?) else { return Ok(()) };
        let is_same = mark.is_in(journal, &origin).await?
            && mark.has_source(source_of(home, journal, from).await?.as_ref());
        if let Some(head) = journal.head(to).await?.filter(|_| is_same) {
            set(&known, &head, source_of(home, journal, to).await?.as_ref(), mark.hosts)?;
        }
        Ok(())
    };
    noted(mark().await, to);
}

/// Forgets a tree that was removed.
pub fn forget(home: &Path, tree: TreeId) {
    noted(try_forget(home, tree), tree);
}

/// Forgets a tree that a stranger may have changed since.
pub fn try_forget(home: &Path, tree: TreeId) -> Result<(), TrustError> {
    match KnownHome::find(side_journals::above(home))? {
        Some(known) => Ok(known.remove_mark(tree)?),
        None => Ok(()),
    }
}

/// Accepts that marked trees of a home have lost their last events.
pub async fn accept_loss(home: &Path, journal: &dyn Journal) -> Result<(), TrustError> {
    let Some(known) = KnownHome::find(side_journals::above(home))? else { return Ok(()) };
    for head in journal.heads(&[]).await? {
        if let Some(mark) = known.mark(head.tree)?.filter(|mark| head.seq.0 < mark.events) {
            known.set_mark(head.tree, &mark.at(&head))?;
        }
    }
    Ok(())
}

/// Says what a journal lacks.
pub fn missing(mark: &TreeMark, head: &Head) -> String {
    let tree = short_id(head.tree);
    if head.seq.0 < mark.events {
        let (found, known) = (counted(head.seq.0, "event"), mark.events);
        return format!(
            "the journal of tree {tree} has {found}, but {known} were recorded on this machine: events were removed, or this is an older copy"
        );
    }
    format!(
        "the journal of tree {tree} differs from the one that was recorded on this machine, at event {} or before",
        mark.events
    )
}

/// A mark that cannot be written stops nothing: without it, resuming asks first.
fn noted(done: Result<(), TrustError>, tree: TreeId) {
    if let Err(error) = done {
        let (id, why) = (short_id(tree), with_causes(&error));
        tracing::warn!("tree {id} could not be recorded on this machine: {why}");
    }
}
