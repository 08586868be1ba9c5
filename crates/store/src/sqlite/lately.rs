//! Where the trees stand that were written lately. A transaction moves many of them, and their rows lie far apart; so it
//! writes one row for all of them, which says where each stands. What it says goes before what the trees' own rows say.
//! When it gets long, and when the journal is closed, that is written into theirs.
//!
//! The row is the last of the batches, and no tree's: the next batch takes its place, and it moves behind that. So it lies
//! on a page that is written anyway.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, params};
use spinney_journal::{ChainHash, JournalFault};
use spinney_kernel::words::{Seq, Time};

use super::fault::from_sqlite;

/// Whose batch the row would be.
const NO_TREE: i64 = 0;
/// Most bytes of the row: it fits a page.
const BYTES_MAX: usize = 3_900;
/// How many bytes of a hash it has.
const MARK_BYTES: usize = 8;

/// Where a tree stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stand {
    pub(super) last: i64,
    pub(super) seq: Seq,
    pub(super) changed: Time,
    /// The first bytes of the hash there; all of it stands with the batch.
    mark: [u8; MARK_BYTES],
}

impl Stand {
    pub(super) fn new(last: i64, (seq, hash): (Seq, &ChainHash), changed: Time) -> Self {
        let mut mark = [0; MARK_BYTES];
        mark.copy_from_slice(&hash.bytes()[..MARK_BYTES]);
        Self { last, seq, changed, mark }
    }

    /// The hash where a tree stands; none if its last batch is not the one that is meant.
    pub(super) fn hash(&self, connection: &Connection, tree: i64) -> Result<Option<ChainHash>, JournalFault> {
        let hash: Option<Vec<u8>> = connection
            .prepare_cached("SELECT hash FROM batches WHERE id = ?1 AND tree = ?2")
            .and_then(|mut found| found.query_row(params![self.last, tree], |row| row.get(0)).optional())
            .map_err(|error| from_sqlite(connection, &error))?;
        let hash: Option<[u8; 32]> = hash.and_then(|hash| hash.try_into().ok());
        Ok(hash.filter(|hash| hash.starts_with(&self.mark)).map(ChainHash::from_bytes))
    }
}

/// Where a batch goes.
#[derive(Clone, Copy)]
pub(super) enum Room {
    /// Where the row lies.
    Row(i64),
    Free(i64),
}

/// The row, by the numbers of trees.
#[derive(Debug)]
pub(super) struct Lately {
    stands: BTreeMap<i64, Stand>,
    /// Where it lies, or will lie: behind every batch.
    place: i64,
    /// It is not as it was read or written.
    is_changed: bool,
    /// A batch has its place, and it is not back yet.
    is_out: bool,
}

impl Lately {
    pub(super) fn read(connection: &Connection) -> Result<Self, JournalFault> {
        let found: Option<(i64, Vec<u8>)> = connection
            .prepare_cached("SELECT id, CAST(body AS BLOB), tree FROM batches ORDER BY id DESC LIMIT 1")
            .and_then(|mut last| {
                let row = last.query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?)));
                Ok(row.optional()?.filter(|(_, _, tree)| *tree == NO_TREE).map(|(id, bytes, _)| (id, bytes)))
            })
            .map_err(|error| from_sqlite(connection, &error))?;
        let stands = found.and_then(|(place, bytes)| Some((place, decode(&bytes)?)));
        let (place, stands) = stands.ok_or_else(|| JournalFault::DamagedFile {
            path: connection.path().unwrap_or_default().to_owned(),
            reason: "where trees stood lately cannot be read".to_owned(),
        })?;
        Ok(Self { stands, place, is_changed: false, is_out: false })
    }

    pub(super) fn find(&self, tree: i64) -> Option<&Stand> {
        self.stands.get(&tree)
    }

    pub(super) fn put(&mut self, tree: i64, stand: Stand) {
        self.stands.insert(tree, stand);
        self.is_changed = true;
    }

    /// A tree is gone, or its own row says it all.
    pub(super) fn forget(&mut self, tree: i64) {
        self.is_changed |= self.stands.remove(&tree).is_some();
    }

    /// Where the next batch goes. The row makes room for it, and is back when it is [written](Self::write).
    pub(super) const fn make_room(&mut self) -> Room {
        let room = if self.is_out { Room::Free(self.place) } else { Room::Row(self.place) };
        (self.is_out, self.place) = (true, self.place + 1);
        room
    }

    /// Writes the row, if it changed or moved.
    pub(super) fn write(&mut self, connection: &Connection) -> Result<(), JournalFault> {
        if !self.is_changed && !self.is_out {
            return Ok(());
        }
        let mut bytes = encode(&self.stands);
        if bytes.len() > BYTES_MAX {
            self.hand_over(connection)?;
            bytes = Vec::new();
        }
        let row = if self.is_out {
            "INSERT INTO batches (id, tree, after, hash, body) VALUES (?1, 0, 0, x'', ?2)"
        } else {
            "UPDATE batches SET body = ?2 WHERE id = ?1"
        };
        connection
            .prepare_cached(row)
            .and_then(|mut row| row.execute(params![self.place, bytes]))
            .map_err(|error| from_sqlite(connection, &error))?;
        (self.is_changed, self.is_out) = (false, false);
        Ok(())
    }

    /// Writes into the trees' own rows where they stand. A hash that is not the one that is meant stays as it was, so
    /// that it is seen.
    pub(super) fn hand_over(&mut self, connection: &Connection) -> Result<(), JournalFault> {
        let sqlite = |error| from_sqlite(connection, &error);
        // A column that is named is taken for changed, and then its index is written too.
        let mut row = connection
            .prepare_cached(
                "UPDATE trees SET seq = ?1, hash = coalesce(?2, hash), changed = ?3, last = ?4 WHERE id = ?5",
            )
            .map_err(sqlite)?;
        while let Some((tree, stand)) = self.stands.pop_first() {
            let hash = stand.hash(connection, tree)?;
            let (seq, changed) = (stand.seq.0 as i64, stand.changed.0 as i64);
            row.execute(params![seq, hash.as_ref().map(ChainHash::bytes), changed, stand.last, tree])
                .map_err(sqlite)?;
            self.is_changed = true;
        }
        Ok(())
    }
}

/// Four numbers for each tree, each in as few bytes as it needs, and the mark.
fn encode(stands: &BTreeMap<i64, Stand>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(BYTES_MAX);
    for (tree, Stand { last, seq, changed, mark }) in stands {
        for number in [*tree as u64, *last as u64, seq.0, changed.0] {
            put(&mut bytes, number);
        }
        bytes.extend_from_slice(mark);
    }
    bytes
}

fn decode(mut bytes: &[u8]) -> Option<BTreeMap<i64, Stand>> {
    let mut stands = BTreeMap::new();
    while !bytes.is_empty() {
        let tree = take(&mut bytes)? as i64;
        let (last, seq, changed) =
            (take(&mut bytes)? as i64, Seq(take(&mut bytes)?), Time(take(&mut bytes)?));
        let (mark, rest) = bytes.split_first_chunk()?;
        bytes = rest;
        stands.insert(tree, Stand { last, seq, changed, mark: *mark });
    }
    Some(stands)
}

/// Seven bits in each byte, the lowest first; the eighth says that more follow.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

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

    fn stands(numbers: &[u64]) -> BTreeMap<i64, Stand> {
        let stand = |number: u64| {
            Stand::new(number as i64, (Seq(number), &ChainHash::from_bytes([7; 32])), Time(number))
        };
        numbers.iter().map(|number| (*number as i64, stand(*number))).collect()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let all = stands(&[1, 0x7f, 0x80, 0x3fff, 0x4000, u64::from(u32::MAX), i64::MAX as u64]);
        assert_eq!(decode(&encode(&all)), Some(all));
        assert_eq!(decode(&[]), Some(BTreeMap::new()));
    }

    #[test]
    fn a_row_that_was_cut_off_is_not_read() {
        let bytes = encode(&stands(&[1_000]));
        for end in 1..bytes.len() {
            assert_eq!(decode(&bytes[..end]), None, "{end}");
        }
        assert_eq!(decode(&[0xff; 64]), None);
    }
}
