//! Finds a tree's batches among those of all trees. Each batch names the previous one, so they are found backwards,
//! from a mark or from the last one. If that chain is broken, a full scan finds them.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::schema::MARK_EVERY;

/// A batch's position.
pub(super) struct BatchPosition {
    pub(super) batch: i64,
    /// The last event before it.
    pub(super) after: i64,
    /// The previous batch of its tree.
    pub(super) before: Option<i64>,
}

/// A marked batch after `from` with enough batches in between; `None` if the tree ends before.
fn mark(connection: &Connection, tree: i64, from: i64, batches_max: usize) -> rusqlite::Result<Option<i64>> {
    let skipped = i64::try_from(batches_max / MARK_EVERY as usize).unwrap_or(i64::MAX);
    connection
        .prepare_cached(
            "SELECT batch FROM marks WHERE tree = ?1 AND after > ?2 ORDER BY after LIMIT 1 OFFSET ?3",
        )?
        .query_row(params![tree, from, skipped], |row| row.get(0))
        .optional()
}

/// The positions of a tree's batches, oldest first: the one with the event after `from`, and those that follow, at
/// most `batches_max`. `None` if the chain is broken.
pub(super) fn walk(
    connection: &Connection,
    tree: i64,
    last: Option<i64>,
    from: i64,
    batches_max: usize,
) -> rusqlite::Result<Option<Vec<BatchPosition>>> {
    let mut next = mark(connection, tree, from, batches_max)?.or(last);
    let mut found =
        connection.prepare_cached("SELECT id, after, before FROM batches WHERE id = ?1 AND tree = ?2")?;
    let mut places = Vec::new();
    while let Some(batch) = next {
        let Some(place) = found.query_row([batch, tree], to_place).optional()? else { return Ok(None) };
        let (begins, before) = (place.after, place.before);
        places.push(place);
        if begins <= from {
            places.reverse();
            places.truncate(batches_max);
            return Ok(Some(places));
        }
        // A predecessor has a lower id, so the walk ends.
        next = before.filter(|before| *before < batch);
    }
    Ok(None)
}

/// The same positions by a full scan: whatever is left of the tree.
pub(super) fn scan(
    connection: &Connection,
    tree: i64,
    from: i64,
    batches_max: usize,
) -> rusqlite::Result<Vec<BatchPosition>> {
    connection
        .prepare_cached(
            "SELECT id, after, before FROM batches WHERE tree = ?1 AND id >= coalesce(
             (SELECT max(id) FROM batches WHERE tree = ?1 AND after <= ?2), 0) ORDER BY id LIMIT ?3",
        )?
        .query_map(params![tree, from, i64::try_from(batches_max).unwrap_or(i64::MAX)], to_place)?
        .collect()
}

fn to_place(row: &Row<'_>) -> rusqlite::Result<BatchPosition> {
    Ok(BatchPosition { batch: row.get(0)?, after: row.get(1)?, before: row.get(2)? })
}
