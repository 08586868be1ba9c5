//! What one job changes in the tables, inside the writer's transaction. A refused change has written nothing; a
//! failed one may have, and its transaction must not be committed.

use rusqlite::{Connection, OptionalExtension, params};
use spinney_journal::{Append, CatalogKind, CatalogRow, ChainHash, Claim, Epoch, JournalFault, Shared};
use spinney_kernel::primitives::{Seq, TreeId};

use super::branch::{self, Fork};
use super::claims::Claims;
use super::fault::from_sqlite;
use super::heads::{Heads, KnownHead, Unwritten};
use super::reserved_keys;
use super::schema::MARK_EVERY;

/// A batch to append, hashed on the sender's thread.
pub(super) struct Hashed {
    pub(super) append: Append,
    /// The predecessor's hash that the sender expects, and the batch's hash after it.
    ahead: Option<(ChainHash, ChainHash)>,
    /// Of its blobs.
    hashes: Vec<blake3::Hash>,
}

impl Hashed {
    pub(super) fn new(append: Append) -> Self {
        let ahead = append.before.map(|before| (before, before.then(append.after, append.batch.bytes())));
        let hashes = append.blobs.iter().map(|bytes| blake3::hash(bytes)).collect();
        Self { append, ahead, hashes }
    }

    fn hash_after(&self, before: &ChainHash) -> ChainHash {
        let ahead = self.ahead.filter(|(known, _)| known == before);
        ahead.map_or_else(|| before.then(self.append.after, self.append.batch.bytes()), |(_, hash)| hash)
    }
}

pub(super) enum Change {
    Remove(TreeId, Shared),
    /// Replaces all catalog rows of the tree, if this is its last event.
    Replace(TreeId, Seq, Vec<CatalogRow>),
    Reserve(Claim, (CatalogKind, String)),
    Free(Claim, (CatalogKind, String)),
}

/// Whether a fault concerns only its own job. Any other fault is the store's, and ends the transaction.
pub(super) fn is_refusal(fault: &JournalFault) -> bool {
    matches!(
        fault,
        JournalFault::Stale { .. }
            | JournalFault::Owned { .. }
            | JournalFault::KeyTaken { .. }
            | JournalFault::InUse { .. }
            | JournalFault::NotABoundary { .. }
            | JournalFault::TooLarge { .. }
            | JournalFault::Damaged { .. }
            | JournalFault::UnknownTree { .. }
    )
}

/// Appends a batch to its tree. The head is written at the end of the transaction.
pub(super) fn append(
    connection: &Connection,
    heads: &mut Heads,
    claims: &Claims,
    hashed: &Hashed,
) -> Result<ChainHash, JournalFault> {
    let append = &hashed.append;
    let Append { tree, epoch, after, .. } = append;
    let sqlite = |error| from_sqlite(connection, &error);
    let head = find_whole(connection, heads, *tree)?;
    if head.is_some_and(|head| claims.current(*tree, head.epoch) != *epoch) {
        return Err(JournalFault::Owned { tree: *tree });
    }
    let fork = match (head, append.base) {
        (None, Some(origin)) => Some(branch::fork(connection, heads, origin, *after)?),
        (Some(_), _) | (None, None) => None,
    };
    let found = head.map_or(if fork.is_some() { *after } else { Seq(0) }, |head| head.seq);
    let begins = append.base.is_some() || append.seed.is_some();
    if found != *after || (head.is_some() && begins) {
        return Err(JournalFault::Stale { tree: *tree, expected: after.0, found: found.0 });
    }
    if head.is_none() && *epoch != Epoch::FIRST {
        return Err(JournalFault::UnknownTree { tree: *tree });
    }
    check_keys(connection, head.map(|head| head.id), &append.catalog)?;
    let before = match (head, &fork) {
        (Some(head), _) => head.hash,
        (None, Some(fork)) => fork.hash,
        (None, None) => ChainHash::start(append.seed.unwrap_or(*tree)),
    };
    let hash = hashed.hash_after(&before);
    let (id, unwritten) = match head {
        None => (insert_tree(connection, append, fork.as_ref()).map_err(sqlite)?, Unwritten::BatchPosition),
        Some(KnownHead { id, state, unwritten, .. }) if state == Some(append.state) => {
            (id, unwritten.max(Unwritten::BatchPosition))
        }
        Some(KnownHead { id, .. }) => (id, Unwritten::All),
    };
    let before = head.map_or_else(|| fork.as_ref().map(|fork| fork.batch), |head| head.last);
    let last = insert_batch(connection, id, before, append, &hash).map_err(sqlite)?;
    // A branch's first batch is found through its base.
    let first = if fork.is_some() { 0 } else { MARK_EVERY };
    let mut unmarked = head.map_or(first, |head| head.unmarked + 1);
    if unmarked >= MARK_EVERY {
        mark(connection, id, *after, last).map_err(sqlite)?;
        unmarked = 0;
    }
    keep_blobs(connection, id, hashed).map_err(sqlite)?;
    keep_rows(connection, id, &append.catalog).map_err(sqlite)?;
    let head = KnownHead {
        id,
        epoch: *epoch,
        seq: append.end(),
        hash,
        changed: append.batch.now(),
        last: Some(last),
        unmarked,
        state: Some(append.state),
        unwritten,
    };
    heads.put(*tree, head);
    Ok(hash)
}

pub(super) fn change(
    connection: &Connection,
    heads: &mut Heads,
    claims: &mut Claims,
    change: Change,
) -> Result<(), JournalFault> {
    match change {
        Change::Remove(tree, shared) => {
            let head = heads.find(connection, tree)?.ok_or(JournalFault::UnknownTree { tree })?;
            branch::release(connection, tree, head.id, shared)?;
            heads.forget(tree);
            claims.forget(tree);
            remove(connection, head.id).map_err(|error| from_sqlite(connection, &error))
        }
        Change::Replace(tree, at, rows) => {
            let head = heads.find(connection, tree)?.ok_or(JournalFault::UnknownTree { tree })?;
            if head.seq != at {
                return Err(JournalFault::Stale { tree, expected: at.0, found: head.seq.0 });
            }
            check_keys(connection, Some(head.id), &rows)?;
            connection
                .prepare_cached("DELETE FROM catalog WHERE tree = ?1 AND reserved = 0")
                .and_then(|mut old| old.execute([head.id]))
                .and_then(|_| keep_rows(connection, head.id, &rows))
                .map_err(|error| from_sqlite(connection, &error))
        }
        Change::Reserve(claim, key) => reserved_keys::reserve(connection, heads, claims, claim, key),
        Change::Free(claim, key) => reserved_keys::free(connection, heads, claims, claim, key),
    }
}

/// A tree's head. The first time, its last batch must be the one that its head names: nothing is appended after a
/// tail that was cut off.
fn find_whole(
    connection: &Connection,
    heads: &Heads,
    tree: TreeId,
) -> Result<Option<KnownHead>, JournalFault> {
    let head = heads.find(connection, tree)?;
    let Some(KnownHead { id, seq, hash, last, state: None, .. }) = head else { return Ok(head) };
    let last: Option<Vec<u8>> = connection
        .prepare_cached("SELECT hash FROM batches WHERE id = ?1 AND tree = ?2")
        .and_then(|mut found| found.query_row(params![last, id], |row| row.get(0)).optional())
        .map_err(|error| from_sqlite(connection, &error))?;
    if last.as_deref() == Some(hash.bytes()) {
        return Ok(head);
    }
    let reason = "the last batch is not the one that its head names".to_owned();
    Err(JournalFault::Damaged { tree, after: seq.0, reason })
}

/// Refuses rows whose keys belong to another tree, or are reserved for one.
fn check_keys(connection: &Connection, tree: Option<i64>, rows: &[CatalogRow]) -> Result<(), JournalFault> {
    for CatalogRow { kind, key, .. } in rows {
        match reserved_keys::holder(connection, *kind, key)? {
            Some((id, holder)) if tree != Some(id) => {
                return Err(JournalFault::KeyTaken { kind: *kind, key: key.clone(), tree: holder });
            }
            Some(_) | None => {}
        }
    }
    Ok(())
}

/// Inserts a tree and returns its row id. Its head is written at the end of the transaction.
fn insert_tree(connection: &Connection, append: &Append, fork: Option<&Fork>) -> rusqlite::Result<i64> {
    let (base, batch) = (fork.map(|fork| fork.base), fork.map(|fork| fork.batch));
    let at = fork.map(|_| append.after.0 as i64);
    let seed = fork.map(|fork| fork.seed).or(append.seed).map(|seed| *seed.bytes());
    let now = append.batch.now().0 as i64;
    connection
        .prepare_cached(
            "INSERT INTO trees (tree, started, base, base_seq, base_batch, seed)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![append.tree.bytes(), now, base, at, batch, seed])?;
    let id = connection.last_insert_rowid();
    connection
        .prepare_cached(
            "INSERT INTO heads (tree, seq, hash, state, changed) VALUES (?1, 0, zeroblob(32), ?2, ?3)",
        )?
        .execute(params![id, append.state.as_str(), now])?;
    Ok(id)
}

/// Inserts a batch after the tree's previous one and returns its row id.
fn insert_batch(
    connection: &Connection,
    tree: i64,
    before: Option<i64>,
    append: &Append,
    hash: &ChainHash,
) -> rusqlite::Result<i64> {
    let body = std::str::from_utf8(append.batch.bytes())?;
    connection
        .prepare_cached("INSERT INTO batches (tree, after, before, hash, body) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![tree, append.after.0 as i64, before, hash.bytes(), body])?;
    Ok(connection.last_insert_rowid())
}

/// Marks a batch, so it is found by its position in the tree.
fn mark(connection: &Connection, tree: i64, after: Seq, batch: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT INTO marks (tree, after, batch) VALUES (?1, ?2, ?3)")?
        .execute(params![tree, after.0 as i64, batch])
        .map(drop)
}

fn keep_blobs(connection: &Connection, tree: i64, hashed: &Hashed) -> rusqlite::Result<()> {
    for (hash, bytes) in hashed.hashes.iter().zip(hashed.append.blobs.iter()) {
        let hash = hash.as_bytes().as_slice();
        connection
            .prepare_cached("INSERT INTO blobs (hash, bytes) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
            .execute(params![hash, bytes])?;
        connection
            .prepare_cached("INSERT INTO blob_uses (hash, tree) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
            .execute(params![hash, tree])?;
    }
    Ok(())
}

fn keep_rows(connection: &Connection, tree: i64, rows: &[CatalogRow]) -> rusqlite::Result<()> {
    for CatalogRow { kind, key, value } in rows {
        match value {
            Some(value) => connection
                .prepare_cached("REPLACE INTO catalog (kind, key, tree, value) VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![kind.as_str(), key, tree, value])?,
            None => connection
                .prepare_cached("DELETE FROM catalog WHERE kind = ?1 AND key = ?2")?
                .execute([kind.as_str(), key])?,
        };
    }
    Ok(())
}

fn remove(connection: &Connection, tree: i64) -> rusqlite::Result<()> {
    let run = |sql: &str, values: &[i64]| {
        connection.prepare_cached(sql)?.execute(rusqlite::params_from_iter(values))
    };
    // Its first batch is marked or follows its base; none comes before that.
    run(
        "DELETE FROM batches WHERE tree = ?1 AND id >=
         coalesce((SELECT batch FROM marks WHERE tree = ?1 AND after = 0),
                  (SELECT base_batch FROM trees WHERE id = ?1), 0)",
        &[tree],
    )?;
    run("DELETE FROM marks WHERE tree = ?1", &[tree])?;
    run(
        "DELETE FROM blobs WHERE hash IN (SELECT hash FROM blob_uses WHERE tree = ?1) AND NOT EXISTS
         (SELECT 1 FROM blob_uses AS other WHERE other.hash = blobs.hash AND other.tree <> ?1)",
        &[tree],
    )?;
    run("DELETE FROM blob_uses WHERE tree = ?1", &[tree])?;
    run("DELETE FROM catalog WHERE tree = ?1", &[tree])?;
    run("DELETE FROM heads WHERE tree = ?1", &[tree])?;
    run("DELETE FROM trees WHERE id = ?1", &[tree])?;
    Ok(())
}
