//! Branches: a tree whose journal begins with batches of another, which are read in place and never copied.

use rusqlite::{Connection, OptionalExtension, Row, params};
use spinney_journal::{ChainHash, JournalFault, Shared};
use spinney_kernel::primitives::{Seq, TreeId, limit};

use super::fault::from_sqlite;
use super::heads::Heads;
use super::places;
use crate::bound;

pub(super) struct Fork {
    /// The row id of the tree whose batch comes before it.
    pub(super) base: i64,
    pub(super) batch: i64,
    pub(super) hash: ChainHash,
    /// The tree that seeds the hash chain.
    pub(super) seed: TreeId,
}

/// The tree that stores some batches of another tree.
pub(super) struct Owner {
    /// The row id of the tree they were written for.
    pub(super) id: i64,
    /// That tree's last batch.
    pub(super) last: Option<i64>,
    /// Batches that begin here or later do not belong to the requested tree.
    pub(super) end: i64,
    /// The tree that seeds the hash chain.
    pub(super) seed: TreeId,
}

/// The lineage columns of a tree's row.
struct LineageRow {
    id: i64,
    tree: TreeId,
    /// Its last batch; outdated in the middle of a transaction.
    last: Option<i64>,
    /// Its base and the last event of that.
    base: Option<(i64, i64)>,
    seed: TreeId,
}

const LINEAGE: &str = "SELECT id, trees.tree, last, base, base_seq, coalesce(seed, trees.tree)
    FROM trees JOIN heads ON heads.tree = id";

fn to_lineage(row: &Row<'_>) -> rusqlite::Result<LineageRow> {
    let (base, at): (Option<i64>, Option<i64>) = (row.get(3)?, row.get(4)?);
    let (tree, seed) = (TreeId::new(row.get(1)?), TreeId::new(row.get(5)?));
    Ok(LineageRow { id: row.get(0)?, tree, last: row.get(2)?, base: base.zip(at), seed })
}

fn lineage(connection: &Connection, tree: TreeId) -> Result<LineageRow, JournalFault> {
    connection
        .prepare_cached(&format!("{LINEAGE} WHERE trees.tree = ?1"))
        .and_then(|mut found| found.query_row([tree.bytes().as_slice()], to_lineage).optional())
        .map_err(|error| from_sqlite(connection, &error))?
        .ok_or(JournalFault::UnknownTree { tree })
}

/// The base of a branch. A missing one is damage: a tree that a branch reads is never removed.
fn above(connection: &Connection, tree: TreeId, at: i64, base: i64) -> Result<LineageRow, JournalFault> {
    let reason = || "the tree that it branched from is missing".to_owned();
    connection
        .prepare_cached(&format!("{LINEAGE} WHERE id = ?1"))
        .and_then(|mut found| found.query_row([base], to_lineage).optional())
        .map_err(|error| from_sqlite(connection, &error))?
        .ok_or_else(|| JournalFault::Damaged { tree, after: at as u64, reason: reason() })
}

/// The tree that stores the event after `from`.
pub(super) fn owner(connection: &Connection, tree: TreeId, from: i64) -> Result<Owner, JournalFault> {
    let mut owner = lineage(connection, tree)?;
    let (seed, mut end) = (owner.seed, i64::MAX);
    while let Some((base, at)) = owner.base.filter(|(_, at)| from < *at) {
        end = end.min(at);
        owner = above(connection, tree, from, base)?;
    }
    Ok(Owner { id: owner.id, last: owner.last, end, seed })
}

/// The base of a branch whose first batch comes after `at`.
pub(super) fn fork(
    connection: &Connection,
    heads: &Heads,
    origin: TreeId,
    at: Seq,
) -> Result<Fork, JournalFault> {
    let wrong = || JournalFault::NotABoundary { tree: origin, at: at.0 };
    let from = i64::try_from(at.0).map_err(|_| wrong())?;
    let mut owner = lineage(connection, origin)?;
    // Earlier batches are read from the tree that stores them.
    while let Some((base, _)) = owner.base.filter(|(_, at)| from <= *at) {
        owner = above(connection, origin, from, base)?;
    }
    bound::at_most("a lineage in trees", depth(connection, &owner)?, limit::LINEAGE_MAX)?;
    // In the middle of a transaction the row may be outdated.
    let head = heads.find(connection, owner.tree)?.ok_or_else(wrong)?;
    if let (true, Some(batch)) = (head.seq == at, head.last) {
        return Ok(Fork { base: owner.id, batch, hash: head.hash, seed: owner.seed });
    }
    let sqlite = |error| from_sqlite(connection, &error);
    let next = places::walk(connection, owner.id, head.last, from, 1).map_err(sqlite)?;
    let next = next.into_iter().flatten().find(|place| place.after == from);
    let batch = next.and_then(|place| place.before).ok_or_else(wrong)?;
    let hash = connection
        .prepare_cached("SELECT hash FROM batches WHERE id = ?1")
        .and_then(|mut found| found.query_row([batch], |row| row.get(0)))
        .map_err(sqlite)?;
    Ok(Fork { base: owner.id, batch, hash: ChainHash::from_bytes(hash), seed: owner.seed })
}

/// The number of trees that a journal is read from.
fn depth(connection: &Connection, owner: &LineageRow) -> Result<usize, JournalFault> {
    let (mut depth, mut base) = (1, owner.base);
    while let Some((above, at)) = base {
        depth += 1;
        base = self::above(connection, owner.tree, at, above)?.base;
    }
    Ok(depth)
}

/// Before a tree is removed: fails if branches read it, or hands the batches to the branch that reads most of them.
pub(super) fn release(
    connection: &Connection,
    tree: TreeId,
    id: i64,
    shared: Shared,
) -> Result<(), JournalFault> {
    let sqlite = |error| from_sqlite(connection, &error);
    let mut users: Vec<LineageRow> = connection
        .prepare_cached(&format!("{LINEAGE} WHERE base = ?1 ORDER BY id"))
        .and_then(|mut found| found.query_map([id], to_lineage)?.collect())
        .map_err(sqlite)?;
    match shared {
        Shared::Refuse if users.is_empty() => Ok(()),
        Shared::Refuse => Err(JournalFault::InUse { tree, by: users.iter().map(|user| user.tree).collect() }),
        Shared::HandOver => {
            users.sort_by_key(|user| user.base.map(|(_, at)| at));
            users.last().map_or(Ok(()), |heir| hand_over(connection, id, heir)).map_err(sqlite)
        }
    }
}

fn hand_over(connection: &Connection, tree: i64, heir: &LineageRow) -> rusqlite::Result<()> {
    let Some((_, at)) = heir.base else { return Ok(()) };
    let run = |sql: &str| connection.prepare_cached(sql)?.execute(params![tree, heir.id, at]);
    run("UPDATE batches SET tree = ?2 WHERE tree = ?1 AND after < ?3 AND id >=
         coalesce((SELECT batch FROM marks WHERE tree = ?1 AND after = 0),
                  (SELECT base_batch FROM trees WHERE id = ?1), 0)")?;
    run("UPDATE marks SET tree = ?2 WHERE tree = ?1 AND after < ?3")?;
    run(
        "INSERT OR IGNORE INTO blob_uses (hash, tree) SELECT hash, ?2 FROM blob_uses WHERE tree = ?1 AND ?3 > 0",
    )?;
    run("UPDATE trees SET (base, base_seq, base_batch) =
         (SELECT base, base_seq, base_batch FROM trees AS origin WHERE origin.id = ?1)
         WHERE id = ?2 AND base_seq = ?3")?;
    run("UPDATE trees SET base = ?2 WHERE base = ?1 AND base_seq <= ?3").map(drop)
}
