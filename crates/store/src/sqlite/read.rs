//! Reads that run beside the writer: pages of entries, heads, blobs.

use rusqlite::types::{Type, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, ToSql};
use spinney_journal::{Base, CatalogKind, ChainHash, Fact, Head, HeadCursor, HeadPage, JournalFault};
use spinney_kernel::primitives::{BlobRef, Seq, Time, TreeId};
use spinney_kernel::world::TreeState;

use super::branch::{self, Owner};
use super::fault::from_sqlite;
use super::places::{self, BatchPosition};
use crate::codec::{self, DecodedBatch, Link, Page, PageItem};
use crate::cursor;

const HEAD: &str = "SELECT trees.tree, seq, hash, state, started, changed, id, seed, base_seq,
    (SELECT origin.tree FROM trees AS origin WHERE origin.id = trees.base)
    FROM trees JOIN heads ON heads.tree = id";

/// Batches with events after `after`, each checked against the chain.
pub(super) fn batches<T: PageItem>(
    connection: &Connection,
    tree: TreeId,
    after: Seq,
    batches_max: usize,
) -> Result<Vec<T>, JournalFault> {
    let sqlite = |error| from_sqlite(connection, &error);
    // One snapshot for all reads.
    let _moment = connection.unchecked_transaction().map_err(sqlite)?;
    // No tree has that many events.
    let from = i64::try_from(after.0).unwrap_or(i64::MAX);
    let Owner { id, last, end, seed } = branch::owner(connection, tree, from)?;
    if from == i64::MAX {
        return Ok(Vec::new());
    }
    let page = |mut places: Vec<BatchPosition>| {
        places.retain(|place| place.after < end);
        at(connection, tree, seed, after, &places)
    };
    let walked = places::walk(connection, id, last, from, batches_max).map_err(sqlite)?;
    match walked.map(page) {
        Some(Ok(page)) => Ok(page),
        None | Some(Err(JournalFault::Damaged { .. })) => {
            page(places::scan(connection, id, from, batches_max).map_err(sqlite)?)
        }
        Some(Err(fault)) => Err(fault),
    }
}

/// The batches at these positions, in order, as far as they fit a page.
fn at<T: PageItem>(
    connection: &Connection,
    tree: TreeId,
    seed: TreeId,
    after: Seq,
    places: &[BatchPosition],
) -> Result<Vec<T>, JournalFault> {
    let sqlite = |error| from_sqlite(connection, &error);
    let Some(first) = places.first() else { return Ok(Vec::new()) };
    let before: Option<[u8; 32]> = connection
        .prepare_cached("SELECT hash FROM batches WHERE id = ?1")
        .and_then(|mut found| found.query_row([first.before], |row| row.get(0)).optional())
        .map_err(sqlite)?;
    let before = before.map_or_else(|| ChainHash::start(seed), ChainHash::from_bytes);
    let mut page = Page::new(Link { tree, end: Seq(first.after as u64), before });
    let mut found =
        connection.prepare_cached("SELECT after, hash, body FROM batches WHERE id = ?1").map_err(sqlite)?;
    for place in places {
        let mut rows = found.query([place.batch]).map_err(sqlite)?;
        let Some(row) = rows.next().map_err(sqlite)? else { break };
        let after: i64 = row.get(0).map_err(sqlite)?;
        let (hash, bytes) = (bytes(row.get_ref(1).map_err(sqlite)?), bytes(row.get_ref(2).map_err(sqlite)?));
        if page.take(&DecodedBatch { after: Seq(after as u64), hash, bytes })?.is_break() {
            break;
        }
    }
    Ok(page.after(after))
}

/// A value of an unexpected type gives no bytes, which match no hash.
fn bytes(value: ValueRef<'_>) -> &[u8] {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => &[],
    }
}

pub(super) fn head(connection: &Connection, tree: TreeId) -> Result<Option<Head>, JournalFault> {
    connection
        .prepare_cached(&format!("{HEAD} WHERE trees.tree = ?1"))
        .and_then(|mut found| found.query_row([tree.bytes().as_slice()], to_head).optional())
        .map(|found| found.map(|(_, head)| head))
        .map_err(|error| from_sqlite(connection, &error))
}

/// A page of trees in these states, oldest first; without a state, of all trees.
pub(super) fn head_page(
    connection: &Connection,
    states: &[TreeState],
    after: &HeadCursor,
    heads_max: usize,
) -> Result<HeadPage, JournalFault> {
    let sqlite = |error| from_sqlite(connection, &error);
    let from = i64::try_from(cursor::number(after)?).unwrap_or(i64::MAX);
    // One more shows whether another page follows.
    let limit = i64::try_from(heads_max.saturating_add(1)).unwrap_or(i64::MAX);
    let of_states = match states.len() {
        0 => String::new(),
        count => format!("AND state IN (?{})", ", ?".repeat(count - 1)),
    };
    // Few trees are in a requested state, so use the state's index rather than list order.
    let list = if states.is_empty() { "heads.tree" } else { "+heads.tree" };
    let sql = format!("{HEAD} WHERE {list} >= ? {of_states} ORDER BY {list} LIMIT ?");
    let words: Vec<&'static str> = states.iter().map(|state| state.as_str()).collect();
    let mut values: Vec<&dyn ToSql> = vec![&from];
    values.extend(words.iter().map(|word| word as &dyn ToSql));
    values.push(&limit);
    let mut found: Vec<(i64, Head)> = connection
        .prepare_cached(&sql)
        .and_then(|mut found| found.query_map(values.as_slice(), to_head)?.collect())
        .map_err(sqlite)?;
    let next = found.get(heads_max).map(|(id, _)| cursor::to(*id as u64));
    found.truncate(heads_max);
    Ok(HeadPage { heads: found.into_iter().map(|(_, head)| head).collect(), next })
}

/// Rows whose keys begin with `prefix`, in key order.
pub(super) fn catalog(
    connection: &Connection,
    kind: CatalogKind,
    prefix: &str,
) -> Result<Vec<Fact>, JournalFault> {
    const FACTS: &str = "SELECT catalog.key, trees.tree, catalog.value
        FROM catalog JOIN trees ON trees.id = catalog.tree
        WHERE catalog.kind = ?1 AND catalog.key >= ?2 AND catalog.reserved = 0 ORDER BY catalog.key";
    let to_fact =
        |row: &Row<'_>| Ok(Fact { key: row.get(0)?, tree: TreeId::new(row.get(1)?), value: row.get(2)? });
    let of_prefix = |fact: &rusqlite::Result<Fact>| match fact {
        Ok(fact) => fact.key.starts_with(prefix),
        Err(_) => true,
    };
    connection
        .prepare_cached(FACTS)
        .and_then(|mut found| {
            found.query_map([kind.as_str(), prefix], to_fact)?.take_while(of_prefix).collect()
        })
        .map_err(|error| from_sqlite(connection, &error))
}

/// The bytes of a blob, checked against their hash.
pub(super) fn blob(connection: &Connection, blob: &BlobRef) -> Result<Option<Vec<u8>>, JournalFault> {
    let Ok(hash) = blake3::Hash::from_hex(blob.hash.as_str()) else { return Ok(None) };
    let bytes: Option<Vec<u8>> = connection
        .prepare_cached("SELECT bytes FROM blobs WHERE hash = ?1")
        .and_then(|mut found| found.query_row([hash.as_bytes().as_slice()], |row| row.get(0)).optional())
        .map_err(|error| from_sqlite(connection, &error))?;
    bytes.map(|bytes| codec::check_blob(blob, bytes)).transpose()
}

fn state(row: &Row<'_>) -> rusqlite::Result<TreeState> {
    let word: String = row.get(3)?;
    TreeState::of_word(&word).ok_or_else(|| {
        let reason = format!("no tree is `{word}`");
        rusqlite::Error::FromSqlConversionFailure(3, Type::Text, reason.into())
    })
}

/// A head and its row id.
fn to_head(row: &Row<'_>) -> rusqlite::Result<(i64, Head)> {
    let tree = TreeId::new(row.get(0)?);
    let (at, origin): (Option<i64>, Option<[u8; 16]>) = (row.get(8)?, row.get(9)?);
    let based = |(at, origin): (i64, [u8; 16])| Base { tree: TreeId::new(origin), at: Seq(at as u64) };
    let head = Head {
        tree,
        base: at.zip(origin).map(based),
        seed: row.get::<_, Option<[u8; 16]>>(7)?.map_or(tree, TreeId::new),
        seq: Seq(row.get::<_, i64>(1)? as u64),
        hash: ChainHash::from_bytes(row.get(2)?),
        state: state(row)?,
        started: Time(row.get::<_, i64>(4)? as u64),
        changed: Time(row.get::<_, i64>(5)? as u64),
    };
    Ok((row.get(6)?, head))
}
