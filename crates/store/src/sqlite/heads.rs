//! The heads of trees: the rows of `heads`, and a cache in the write connection. A transaction writes each head once,
//! however many batches its tree had.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, params};
use spinney_journal::{ChainHash, Epoch, JournalFault};
use spinney_kernel::primitives::{Seq, Time, TreeId};
use spinney_kernel::world::TreeState;

use super::fault::from_sqlite;
use super::schema::MARK_EVERY;

/// Size of the cache; evicted heads are read again.
const HEADS_MAX: usize = 10_000;

/// The write connection's cache.
#[derive(Default)]
pub(super) struct Heads {
    known: BTreeMap<TreeId, KnownHead>,
    /// Trees whose head must be written before the transaction ends.
    changed: Vec<TreeId>,
}

#[derive(Clone, Copy)]
pub(super) struct KnownHead {
    /// The tree's row id.
    pub(super) id: i64,
    /// Of the claim that it was last written under.
    pub(super) epoch: Epoch,
    pub(super) seq: Seq,
    pub(super) hash: ChainHash,
    pub(super) changed: Time,
    /// Its last batch.
    pub(super) last: Option<i64>,
    /// Batches since the last marked one.
    pub(super) unmarked: u32,
    /// Its state, if this process wrote it.
    pub(super) state: Option<TreeState>,
    /// What its row does not have yet.
    pub(super) unwritten: Unwritten,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unwritten {
    Nothing,
    /// Everything except the state.
    BatchPosition,
    All,
}

impl Heads {
    /// Also valid inside a transaction.
    pub(super) fn find(
        &self,
        connection: &Connection,
        tree: TreeId,
    ) -> Result<Option<KnownHead>, JournalFault> {
        if let Some(head) = self.known.get(&tree) {
            return Ok(Some(*head));
        }
        connection
            .prepare_cached(
                "SELECT heads.tree, seq, hash, last, epoch FROM trees JOIN heads ON heads.tree = trees.id
                 WHERE trees.tree = ?1",
            )
            .and_then(|mut found| {
                let head = found.query_row([tree.bytes().as_slice()], |row| {
                    Ok(KnownHead {
                        id: row.get(0)?,
                        epoch: Epoch(row.get::<_, i64>(4)? as u64),
                        seq: Seq(row.get::<_, i64>(1)? as u64),
                        hash: ChainHash::from_bytes(row.get(2)?),
                        changed: Time(0),
                        last: row.get(3)?,
                        // The last mark is unknown, so the next batch gets one.
                        unmarked: MARK_EVERY,
                        state: None,
                        unwritten: Unwritten::Nothing,
                    })
                });
                head.optional()
            })
            .map_err(|error| from_sqlite(connection, &error))
    }

    /// Changes a head. Its row is written at the end of the transaction.
    pub(super) fn put(&mut self, tree: TreeId, head: KnownHead) {
        let before = self.known.insert(tree, head);
        if before.is_none_or(|before| before.unwritten == Unwritten::Nothing) {
            self.changed.push(tree);
        }
    }

    pub(super) fn forget(&mut self, tree: TreeId) {
        self.known.remove(&tree);
    }

    /// Writes all changed heads in the commit with this number. Returns their epochs.
    pub(super) fn write(
        &mut self,
        connection: &Connection,
        commit: u64,
    ) -> Result<Vec<(TreeId, Epoch)>, JournalFault> {
        let mut written = Vec::with_capacity(self.changed.len());
        for tree in self.changed.drain(..) {
            // It may have been removed after it changed.
            let Some(head) = self.known.get_mut(&tree) else { continue };
            head.write(connection, commit).map_err(|error| from_sqlite(connection, &error))?;
            head.unwritten = Unwritten::Nothing;
            written.push((tree, head.epoch));
        }
        if self.known.len() > HEADS_MAX {
            self.known.clear();
        }
        Ok(written)
    }
}

impl KnownHead {
    fn write(&self, connection: &Connection, commit: u64) -> rusqlite::Result<()> {
        const PLACE: &str =
            "UPDATE heads SET seq = ?2, hash = ?3, changed = ?4, last = ?5, number = ?6, epoch = ?7
             WHERE tree = ?1";
        const ALL: &str =
            "UPDATE heads SET seq = ?2, hash = ?3, changed = ?4, last = ?5, number = ?6, epoch = ?7, state = ?8
             WHERE tree = ?1";
        let (seq, hash, changed) = (self.seq.0 as i64, self.hash.bytes(), self.changed.0 as i64);
        let (number, epoch) = (commit as i64, self.epoch.0 as i64);
        // An unchanged state is omitted, so its index is not written.
        let updated = match (self.unwritten, self.state) {
            (Unwritten::All, Some(state)) => connection.prepare_cached(ALL)?.execute(params![
                self.id,
                seq,
                hash,
                changed,
                self.last,
                number,
                epoch,
                state.as_str()
            ])?,
            _ => connection
                .prepare_cached(PLACE)?
                .execute(params![self.id, seq, hash, changed, self.last, number, epoch])?,
        };
        if updated == 1 { Ok(()) } else { Err(rusqlite::Error::StatementChangedRows(updated)) }
    }
}
