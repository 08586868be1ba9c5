//! Retention: which checkpoints of a home expire, and removing them from its catalog. Only automatic ones expire. The
//! journals keep every event: [`rebuild`](crate::rebuild) restores what was removed.

use std::collections::{BTreeMap, BTreeSet};

use crate::{CatalogKind, CatalogRow, Fact, Journal, JournalFault, ListedCheckpoint, checkpoints};
use spinney_kernel::primitives::{CheckpointKind, Seq, Time, TreeId, limit};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// All of them were automatic.
    pub removed: usize,
    /// Remaining automatic ones.
    pub left: usize,
    /// Trees whose expired checkpoints could not be removed, and why.
    pub failed: Vec<(TreeId, JournalFault)>,
}

/// The expired checkpoints of a home, oldest first. One that was made after `now`, because a clock was set back,
/// counts as new.
#[must_use]
pub fn expired(listed: &[ListedCheckpoint], now: Time) -> Vec<&ListedCheckpoint> {
    let automatic = listed.iter().filter(|listed| listed.known.kind == CheckpointKind::Automatic);
    let (mut gone, mut kept): (Vec<&ListedCheckpoint>, Vec<&ListedCheckpoint>) =
        automatic.partition(|listed| is_outdated(listed, now));
    let beyond = (listed.len() - gone.len()).saturating_sub(limit::CHECKPOINTS_KEPT_MAX);
    kept.sort_by_key(|listed| age_order(listed));
    gone.extend(kept.into_iter().take(beyond));
    gone.sort_by_key(|listed| age_order(listed));
    gone
}

/// Removes expired checkpoints from the catalog, for each tree all or nothing. A tree that cannot be cleaned does not
/// affect the others. Nothing else may clean or rebuild meanwhile; trees may be written.
///
/// # Errors
/// If the heads or the catalog cannot be read. Then nothing was removed.
pub async fn clean(journal: &dyn Journal, now: Time) -> Result<Cleaned, JournalFault> {
    let mut cleaned = pass(journal, now).await?;
    for _ in 1..limit::CLEAN_TRIES_MAX {
        if !cleaned.failed.iter().any(|(_, fault)| matches!(fault, JournalFault::Stale { .. })) {
            break;
        }
        // A concurrent writer wins, and its tree is checked again. If that read fails, what was removed still counts.
        let Ok(again) = pass(journal, now).await else { break };
        cleaned = Cleaned { removed: cleaned.removed + again.removed, ..again };
    }
    Ok(cleaned)
}

async fn pass(journal: &dyn Journal, now: Time) -> Result<Cleaned, JournalFault> {
    let listed = checkpoints(journal, None).await?;
    let automatic = listed.iter().filter(|listed| listed.known.kind == CheckpointKind::Automatic).count();
    let mut gone: BTreeMap<TreeId, BTreeSet<&str>> = BTreeMap::new();
    for ListedCheckpoint { name, tree, .. } in expired(&listed, now) {
        gone.entry(*tree).or_default().insert(name.as_str());
    }
    // Heads are read before the rows that stay: if a tree is written in between, its rows are not replaced.
    let mut heads: BTreeMap<TreeId, Seq> = BTreeMap::new();
    for tree in gone.keys() {
        heads.extend(journal.head(*tree).await?.map(|head| (*tree, head.seq)));
    }
    let mut kept = kept_rows(journal, &gone).await?;
    let mut cleaned = Cleaned { left: automatic, ..Cleaned::default() };
    for (tree, names) in gone {
        let at = heads.get(&tree).copied().ok_or(JournalFault::UnknownTree { tree });
        let rows = kept.remove(&tree).unwrap_or_default();
        let replaced = match at {
            Ok(at) => journal.replace_catalog(tree, at, rows).await,
            Err(fault) => Err(fault),
        };
        match replaced {
            Ok(()) => {
                cleaned.removed += names.len();
                cleaned.left -= names.len();
            }
            Err(fault) => cleaned.failed.push((tree, fault)),
        }
    }
    Ok(cleaned)
}

/// Every row, of any kind, that stays in a tree with expired ones.
async fn kept_rows(
    journal: &dyn Journal,
    gone: &BTreeMap<TreeId, BTreeSet<&str>>,
) -> Result<BTreeMap<TreeId, Vec<CatalogRow>>, JournalFault> {
    let mut kept: BTreeMap<TreeId, Vec<CatalogRow>> = BTreeMap::new();
    for kind in CatalogKind::ALL {
        for Fact { key, tree, value } in journal.catalog(kind, "").await? {
            let Some(names) = gone.get(&tree) else { continue };
            let goes = kind == CatalogKind::Checkpoint && names.contains(key.as_str());
            if !goes {
                kept.entry(tree).or_default().push(CatalogRow { kind, key, value: Some(value) });
            }
        }
    }
    Ok(kept)
}

fn is_outdated(ListedCheckpoint { known, .. }: &ListedCheckpoint, now: Time) -> bool {
    let age_ms = now.0.saturating_sub(known.made.0);
    age_ms > limit::CHECKPOINT_KEPT_MS
        || (age_ms > limit::CHECKPOINT_EACH_KEPT_MS
            && !known.number.is_multiple_of(limit::CHECKPOINT_KEPT_EVERY))
}

const fn age_order(ListedCheckpoint { tree, known, .. }: &ListedCheckpoint) -> (Time, TreeId, Seq) {
    (known.made, *tree, known.seq)
}
