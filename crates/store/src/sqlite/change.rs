//! What one job changes in the tables, inside the pen's transaction. A change that is refused has written nothing; one
//! that failed may have, and its transaction must not be committed.

use std::collections::BTreeMap;

use rusqlite::{CachedStatement, Connection, OptionalExtension, params};
use spinney_journal::{Append, CatalogRow, ChainHash, JournalFault, Shared};
use spinney_kernel::words::{Durability, Seq, Time, TreeId};

use super::branch::{self, Fork};
use super::crowd::Crowd;
use super::fault::from_sqlite;
use super::lately::{Lately, Room, Stand};
use super::schema::MARK_EVERY;
use crate::codec;

/// A page of the file.
pub(super) const PAGE_BYTES: usize = 4_096;

/// A batch on its way, encoded by whoever sent it.
pub(super) struct Encoded {
    tree: TreeId,
    after: Seq,
    base: Option<TreeId>,
    events: u64,
    now: Time,
    bytes: Vec<u8>,
    /// The hash over it, if this one comes before it.
    ahead: Option<(ChainHash, ChainHash)>,
    /// Blobs with their hashes.
    blobs: Vec<(blake3::Hash, Vec<u8>)>,
    catalog: Vec<CatalogRow>,
    state: &'static str,
    pub(super) durability: Durability,
}

impl Encoded {
    /// About how many bytes of the file it changes: its own, its tree's head, and a page for what is found by hash.
    pub(super) fn weight(&self) -> usize {
        let blobs: usize = self.blobs.iter().map(|(_, bytes)| bytes.len() + 2 * PAGE_BYTES).sum();
        self.bytes.len() + blobs + 150
    }

    pub(super) fn new(append: Append) -> Result<Self, JournalFault> {
        let Append { tree, after, base, before, batch, blobs, catalog, state, durability } = append;
        let (now, events) = (batch.input.now, batch.events.len() as u64);
        let bytes = codec::encode(batch)?;
        let ahead = before.map(|before| (before, before.then(after, &bytes)));
        let blobs = blobs.into_iter().map(|bytes| (blake3::hash(&bytes), bytes)).collect();
        Ok(Self { tree, after, base, events, now, bytes, ahead, blobs, catalog, state, durability })
    }

    /// The hash over it and everything before it.
    fn hash_after(&self, before: &ChainHash) -> ChainHash {
        let ahead = self.ahead.filter(|(known, _)| known == before);
        ahead.map_or_else(|| before.then(self.after, &self.bytes), |(_, hash)| hash)
    }
}

pub(super) enum Change {
    Remove(TreeId, Shared),
    /// Put these rows in place of all that the tree has in the catalog, if this is its last event.
    Replace(TreeId, Seq, Vec<CatalogRow>),
}

/// Whether a fault concerns only the job that met it. Anything else is the store's, and ends the transaction.
pub(super) fn is_refusal(fault: &JournalFault) -> bool {
    matches!(
        fault,
        JournalFault::Stale { .. }
            | JournalFault::KeyTaken { .. }
            | JournalFault::InUse { .. }
            | JournalFault::NotABoundary { .. }
            | JournalFault::TooLarge { .. }
            | JournalFault::Damaged { .. }
            | JournalFault::UnknownTree { .. }
    )
}

/// Most trees that are remembered; what is forgotten is read again.
const TIPS_MAX: usize = 10_000;

/// What the pen knows of trees, so that it need not ask.
#[derive(Default)]
pub(super) struct Known {
    tips: BTreeMap<TreeId, Tip>,
    /// Trees whose head has to be written before the transaction ends.
    moved: Vec<TreeId>,
    lately: Option<Lately>,
    pub(super) crowd: Crowd,
}

/// Where a tree stands.
#[derive(Clone, Copy)]
pub(super) struct Tip {
    pub(super) id: i64,
    pub(super) seq: Seq,
    pub(super) hash: ChainHash,
    changed: Time,
    pub(super) last: Option<i64>,
    /// How many batches it had since one was marked.
    unmarked: u32,
    /// Its state, if this process wrote it.
    state: Option<&'static str>,
    /// What is written of this.
    row: Row,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Row {
    Current,
    /// All but where it stands.
    OldHead,
    /// All but where it stands, and its row was made in this transaction.
    New,
    /// All but where it stands and its state.
    OldState,
}

impl Row {
    /// After another batch that leaves the state as it is.
    fn moved(self) -> Self {
        match self {
            Self::Current | Self::OldHead => Self::OldHead,
            Self::New | Self::OldState => self,
        }
    }
}

/// The connection, and the statement that every batch needs.
pub(super) struct Sheet<'c> {
    pub(super) connection: &'c Connection,
    batch: CachedStatement<'c>,
    /// The first batch takes the place of the row that says where trees stand.
    first: CachedStatement<'c>,
}

impl<'c> Sheet<'c> {
    pub(super) fn new(connection: &'c Connection) -> Result<Self, JournalFault> {
        let ready = |sql| connection.prepare_cached(sql).map_err(|error| from_sqlite(connection, &error));
        let batch = ready(
            "INSERT INTO batches (id, tree, after, before, hash, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        let first = ready(
            "UPDATE batches SET tree = ?2, after = ?3, before = ?4, hash = ?5, body = ?6 WHERE id = ?1 AND tree = 0",
        )?;
        Ok(Self { connection, batch, first })
    }
}

impl Known {
    /// Before a transaction's first job.
    pub(super) fn begin(&mut self, connection: &Connection) -> Result<(), JournalFault> {
        if self.lately.is_none() {
            self.lately = Some(Lately::read(connection)?);
        }
        Ok(())
    }

    /// Writes the heads of the trees that moved: once each, however many batches they had, and in one row for all whose
    /// state is as it was.
    pub(super) fn write_heads(&mut self, connection: &Connection) -> Result<(), JournalFault> {
        let lately = begun(&mut self.lately);
        for tree in self.moved.drain(..) {
            let Some(tip) = self.tips.get_mut(&tree) else { continue };
            match (tip.row, tip.last) {
                (Row::OldHead, Some(last)) => {
                    lately.put(tip.id, Stand::new(last, (tip.seq, &tip.hash), tip.changed));
                }
                (Row::Current | Row::OldHead | Row::New | Row::OldState, _) => {
                    tip.write(connection).map_err(|error| from_sqlite(connection, &error))?;
                    lately.forget(tip.id);
                }
            }
            tip.row = Row::Current;
        }
        lately.write(connection)?;
        if self.tips.len() > TIPS_MAX {
            self.tips.clear();
        }
        Ok(())
    }

    /// Every tree's own row says where it stands.
    pub(super) fn hand_over(&mut self, connection: &Connection) -> Result<(), JournalFault> {
        let lately = begun(&mut self.lately);
        lately.hand_over(connection)?;
        lately.write(connection)
    }
}

/// Where the trees stand, in a transaction that was begun.
fn begun(lately: &mut Option<Lately>) -> &mut Lately {
    match lately {
        Some(lately) => lately,
        None => unreachable!("it is read before a transaction's first job"),
    }
}

impl Tip {
    fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        // A state that did not change is not named: its index would be written too.
        let state = self.state.filter(|_| self.row == Row::OldState);
        let (seq, hash, at) = (self.seq.0 as i64, self.hash.bytes(), self.changed.0 as i64);
        let (id, last) = (self.id, self.last);
        let head = "UPDATE trees SET seq = ?1, hash = ?2, changed = ?3, last = ?4 WHERE id = ?5";
        let all = "UPDATE trees SET seq = ?1, hash = ?2, changed = ?3, last = ?4, state = ?6 WHERE id = ?5";
        match state {
            None => connection.prepare_cached(head)?.execute(params![seq, hash, at, last, id])?,
            Some(state) => {
                connection.prepare_cached(all)?.execute(params![seq, hash, at, last, id, state])?
            }
        };
        Ok(())
    }
}

/// Appends a batch to its tree; the head is written when the transaction ends.
pub(super) fn append(
    sheet: &mut Sheet<'_>,
    known: &mut Known,
    encoded: &Encoded,
) -> Result<ChainHash, JournalFault> {
    let connection = sheet.connection;
    let Encoded { tree, after, events, .. } = encoded;
    let sqlite = |error| from_sqlite(connection, &error);
    let tip = find_whole(connection, known, *tree)?;
    let fork = match (tip, encoded.base) {
        (None, Some(origin)) => Some(branch::fork(connection, known, origin, *after)?),
        (Some(_), _) | (None, None) => None,
    };
    let found = tip.map_or(if fork.is_some() { *after } else { Seq(0) }, |tip| tip.seq);
    if found != *after || (tip.is_some() && encoded.base.is_some()) {
        return Err(JournalFault::Stale { tree: *tree, expected: after.0, found: found.0 });
    }
    check_keys(connection, tip.map(|tip| tip.id), &encoded.catalog)?;
    let before = match (tip, &fork) {
        (Some(tip), _) => tip.hash,
        (None, Some(fork)) => fork.hash,
        (None, None) => ChainHash::start(*tree),
    };
    let hash = encoded.hash_after(&before);
    let (id, row) = match tip {
        None => (insert_tree(connection, encoded, fork.as_ref()).map_err(sqlite)?, Row::New),
        Some(Tip { id, state, row, .. }) if state == Some(encoded.state) => (id, row.moved()),
        Some(Tip { id, .. }) => (id, Row::OldState),
    };
    let before = tip.map_or_else(|| fork.as_ref().map(|fork| fork.batch), |tip| tip.last);
    let last = insert_batch(sheet, known, (id, before, encoded), &hash).map_err(sqlite)?;
    if let Some(before) = tip.and_then(|tip| tip.last) {
        known.crowd.meet(last, before);
    }
    // A branch's first batch is found behind its base.
    let first = if fork.is_some() { 0 } else { MARK_EVERY };
    let unmarked = tip.map_or(first, |tip| tip.unmarked + 1);
    let unmarked = if unmarked >= MARK_EVERY {
        mark(connection, id, *after, last).map_err(sqlite)?;
        0
    } else {
        unmarked
    };
    keep_blobs(connection, id, &encoded.blobs).map_err(sqlite)?;
    keep_rows(connection, id, &encoded.catalog).map_err(sqlite)?;
    if tip.is_none_or(|tip| tip.row == Row::Current) {
        known.moved.push(*tree);
    }
    let (seq, changed, state) = (Seq(after.0 + events), encoded.now, Some(encoded.state));
    known.tips.insert(*tree, Tip { id, seq, hash, changed, last: Some(last), unmarked, state, row });
    Ok(hash)
}

/// Does any other change.
pub(super) fn change(connection: &Connection, known: &mut Known, change: Change) -> Result<(), JournalFault> {
    match change {
        Change::Remove(tree, shared) => {
            let tip = find(connection, known, tree)?.ok_or(JournalFault::UnknownTree { tree })?;
            branch::release(connection, (tree, tip.id), shared)?;
            known.tips.remove(&tree);
            if let Some(lately) = &mut known.lately {
                lately.forget(tip.id);
            }
            remove(connection, tip.id).map_err(|error| from_sqlite(connection, &error))
        }
        Change::Replace(tree, at, rows) => {
            let tip = find(connection, known, tree)?.ok_or(JournalFault::UnknownTree { tree })?;
            if tip.seq != at {
                return Err(JournalFault::Stale { tree, expected: at.0, found: tip.seq.0 });
            }
            check_keys(connection, Some(tip.id), &rows)?;
            connection
                .prepare_cached("DELETE FROM catalog WHERE tree = ?1")
                .and_then(|mut old| old.execute([tip.id]))
                .and_then(|_| keep_rows(connection, tip.id, &rows))
                .map_err(|error| from_sqlite(connection, &error))
        }
    }
}

/// Where a tree stands. The first time it is asked for, its last batch must be the one that its head names: nothing is
/// written behind a tail that was cut off.
fn find_whole(connection: &Connection, known: &Known, tree: TreeId) -> Result<Option<Tip>, JournalFault> {
    let tip = find(connection, known, tree)?;
    let Some(Tip { id, seq, hash, last, state: None, .. }) = tip else { return Ok(tip) };
    let last: Option<Vec<u8>> = connection
        .prepare_cached("SELECT hash FROM batches WHERE id = ?1 AND tree = ?2")
        .and_then(|mut found| found.query_row(params![last, id], |row| row.get(0)).optional())
        .map_err(|error| from_sqlite(connection, &error))?;
    if last.as_deref() == Some(hash.bytes()) {
        return Ok(tip);
    }
    let reason = "the last batch is not the one that its head names".to_owned();
    Err(JournalFault::Damaged { tree, after: seq.0, reason })
}

pub(super) fn find(
    connection: &Connection,
    known: &Known,
    tree: TreeId,
) -> Result<Option<Tip>, JournalFault> {
    if let Some(tip) = known.tips.get(&tree) {
        return Ok(Some(*tip));
    }
    let tip = connection
        .prepare_cached("SELECT id, seq, hash, last FROM trees WHERE tree = ?1")
        .and_then(|mut found| {
            let tip = found.query_row([tree.bytes().as_slice()], |row| {
                let (seq, hash) = (Seq(row.get::<_, i64>(1)? as u64), ChainHash::from_bytes(row.get(2)?));
                let (id, last, changed) = (row.get(0)?, row.get(3)?, Time(0));
                // Where the last mark is, nobody knows: the next batch gets one.
                let unmarked = MARK_EVERY;
                Ok(Tip { id, seq, hash, changed, last, unmarked, state: None, row: Row::Current })
            });
            tip.optional()
        })
        .map_err(|error| from_sqlite(connection, &error))?;
    let Some(mut tip) = tip else { return Ok(None) };
    if let Some(stand) = known.lately.as_ref().and_then(|lately| lately.find(tip.id)) {
        (tip.seq, tip.last) = (stand.seq, Some(stand.last));
        // If the last batch is another, the old hash says so.
        tip.hash = stand.hash(connection, tip.id)?.unwrap_or(tip.hash);
    }
    Ok(Some(tip))
}

/// Refuses rows whose keys are another tree's.
fn check_keys(connection: &Connection, tree: Option<i64>, rows: &[CatalogRow]) -> Result<(), JournalFault> {
    for CatalogRow { kind, key, .. } in rows {
        let owner: Option<i64> = connection
            .prepare_cached("SELECT tree FROM catalog WHERE kind = ?1 AND key = ?2")
            .and_then(|mut found| found.query_row([kind.word(), key], |row| row.get(0)).optional())
            .map_err(|error| from_sqlite(connection, &error))?;
        match owner {
            Some(id) if tree != Some(id) => {
                let owner = connection
                    .query_row("SELECT tree FROM trees WHERE id = ?1", [id], |row| row.get(0))
                    .map_err(|error| from_sqlite(connection, &error))?;
                let (key, tree) = (key.clone(), TreeId::new(owner));
                return Err(JournalFault::KeyTaken { kind: *kind, key, tree });
            }
            Some(_) | None => {}
        }
    }
    Ok(())
}

/// Makes the row of a tree and gives its number. Where the tree stands is written when the transaction ends.
fn insert_tree(connection: &Connection, encoded: &Encoded, fork: Option<&Fork>) -> rusqlite::Result<i64> {
    let (base, batch) = (fork.map(|fork| fork.base), fork.map(|fork| fork.batch));
    let (at, seed) = (fork.map(|_| encoded.after.0 as i64), fork.map(|fork| *fork.seed.bytes()));
    connection
        .prepare_cached(
            "INSERT INTO trees (tree, seq, hash, state, started, changed, base, base_seq, base_batch, seed)
             VALUES (?1, 0, zeroblob(32), ?2, ?3, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![encoded.tree.bytes(), encoded.state, encoded.now.0 as i64, base, at, batch, seed])?;
    Ok(connection.last_insert_rowid())
}

/// Writes a batch of a tree, behind another of its batches, and gives its number.
fn insert_batch(
    sheet: &mut Sheet<'_>,
    known: &mut Known,
    (tree, before, encoded): (i64, Option<i64>, &Encoded),
    hash: &ChainHash,
) -> rusqlite::Result<i64> {
    let body = std::str::from_utf8(&encoded.bytes)?;
    let (number, statement) = match begun(&mut known.lately).make_room() {
        Room::Row(number) => (number, &mut sheet.first),
        Room::Free(number) => (number, &mut sheet.batch),
    };
    match statement.execute(params![number, tree, encoded.after.0 as i64, before, hash.bytes(), body])? {
        1 => Ok(number),
        changed => Err(rusqlite::Error::StatementChangedRows(changed)),
    }
}

/// Remembers where in a tree a batch stands.
fn mark(connection: &Connection, tree: i64, after: Seq, batch: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT INTO marks (tree, after, batch) VALUES (?1, ?2, ?3)")?
        .execute(params![tree, after.0 as i64, batch])
        .map(drop)
}

fn keep_blobs(connection: &Connection, tree: i64, blobs: &[(blake3::Hash, Vec<u8>)]) -> rusqlite::Result<()> {
    for (hash, bytes) in blobs {
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
                .execute(params![kind.word(), key, tree, value])?,
            None => connection
                .prepare_cached("DELETE FROM catalog WHERE kind = ?1 AND key = ?2")?
                .execute([kind.word(), key])?,
        };
    }
    Ok(())
}

fn remove(connection: &Connection, tree: i64) -> rusqlite::Result<()> {
    let run = |sql: &str, values: &[i64]| {
        connection.prepare_cached(sql)?.execute(rusqlite::params_from_iter(values))
    };
    // Its first batch is marked or lies behind its base; none lies before that.
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
    run("DELETE FROM trees WHERE id = ?1", &[tree])?;
    Ok(())
}
