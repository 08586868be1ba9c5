//! How schemas 5 to 7 stored the heads of recently written trees: in one row that took precedence over the trees' own
//! rows. It was the last row of the batches and belonged to no tree. Read once, during migration.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, params};

use super::OpenHomeError;
use super::fault::{damaged_file, opening};

/// Bytes of a hash in the row; the batch has the whole hash.
const HASH_BYTES: usize = 8;

#[derive(Debug, PartialEq, Eq)]
struct RecentHead {
    /// The tree's row id.
    tree: i64,
    last: i64,
    seq: i64,
    changed: i64,
    hash: [u8; HASH_BYTES],
}

/// Writes the row's heads into the trees' own rows, inside a transaction.
pub(super) fn fold(connection: &Connection) -> Result<(), OpenHomeError> {
    let sqlite = |error| opening(connection, &error);
    let row = "SELECT CAST(body AS BLOB), tree FROM batches ORDER BY id DESC LIMIT 1";
    let found: Option<(Vec<u8>, i64)> =
        connection.query_row(row, [], |row| Ok((row.get(0)?, row.get(1)?))).optional().map_err(sqlite)?;
    let heads = found.filter(|(_, tree)| *tree == 0).and_then(|(body, _)| decode(&body));
    let heads = heads.ok_or_else(|| {
        let file = Path::new(connection.path().unwrap_or_default());
        damaged_file(file, "the recent heads cannot be read")
    })?;
    // If the last batch does not match, the old hash stays, so the damage is detected.
    let mut update = connection
        .prepare(
            "UPDATE trees SET seq = ?2, changed = ?3, last = ?4, hash = coalesce(
             (SELECT hash FROM batches WHERE id = ?4 AND tree = ?1 AND substr(hash, 1, 8) = ?5), hash)
             WHERE id = ?1",
        )
        .map_err(sqlite)?;
    for RecentHead { tree, last, seq, changed, hash } in heads {
        update.execute(params![tree, seq, changed, last, hash]).map_err(sqlite)?;
    }
    Ok(())
}

/// Four variable-length numbers per tree, and the beginning of the hash.
fn decode(mut bytes: &[u8]) -> Option<Vec<RecentHead>> {
    let mut heads = Vec::new();
    while !bytes.is_empty() {
        let mut number = || take(&mut bytes).map(|number| number as i64);
        let (tree, last, seq, changed) = (number()?, number()?, number()?, number()?);
        let (hash, rest) = bytes.split_first_chunk()?;
        bytes = rest;
        heads.push(RecentHead { tree, last, seq, changed, hash: *hash });
    }
    Some(heads)
}

/// Seven bits per byte, the lowest first; the eighth bit says that more follow.
fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: [u8; 14] = [1, 0x80, 1, 0xff, 1, 5, 7, 7, 7, 7, 7, 7, 7, 7];

    #[test]
    fn a_row_is_read() {
        let head = RecentHead { tree: 1, last: 128, seq: 255, changed: 5, hash: [7; 8] };
        assert_eq!((decode(&ROW), decode(&[])), (Some(vec![head]), Some(Vec::new())));
    }

    #[test]
    fn a_row_that_was_cut_off_is_not_read() {
        for end in 1..ROW.len() {
            assert_eq!(decode(&ROW[..end]), None, "{end}");
        }
        assert_eq!(decode(&[0xff; 64]), None);
    }
}
