//! The writer: one thread that takes whatever waits, writes it in one transaction and then says so. An append that
//! is stale is refused by itself; if the disk fails, everyone in the group hears it and nothing was written.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use spinney_kernel::id::{Seq, TreeId};
use spinney_kernel::port::journal::{Appended, ChainHash, Durability, JournalFault};
use spinney_kernel::time::Time;

use super::fault::from_sqlite;
use super::schema::SEQ_BITS;

/// Most jobs that wait for the writer; then whoever appends waits too.
pub(super) const QUEUE_MAX: usize = 4_096;
/// Most jobs in one transaction.
const GROUP_MAX: usize = 1_024;

/// Something for the writer to do.
pub(super) enum Job {
    Append(Box<Encoded>, Appended),
    Remove(TreeId, SyncSender<Result<(), JournalFault>>),
}

/// A batch on its way, encoded by whoever sent it.
pub(super) struct Encoded {
    pub(super) tree: TreeId,
    pub(super) after: Seq,
    pub(super) events: u64,
    pub(super) now: Time,
    pub(super) bytes: Vec<u8>,
    pub(super) blobs: Vec<Vec<u8>>,
    pub(super) state: &'static str,
    pub(super) durability: Durability,
}

impl Job {
    /// Says no to whoever waits.
    pub(super) fn refuse(self, fault: JournalFault) {
        match self {
            Self::Append(_, done) => done(Err(fault)),
            // Whoever asked may be gone.
            Self::Remove(_, answer) => drop(answer.send(Err(fault))),
        }
    }
}

/// What the writer knows of a tree, so that it need not ask.
#[derive(Clone, Copy)]
struct Tip {
    id: i64,
    seq: Seq,
    hash: ChainHash,
}

type Answer = Box<dyn FnOnce(Result<(), JournalFault>)>;

/// Takes jobs until nobody can send any.
pub(super) fn run(connection: Connection, queue: &Receiver<Job>) {
    let mut pen = Pen { connection, tips: BTreeMap::new(), synced: Durability::Normal };
    while let Ok(first) = queue.recv() {
        let rest = std::iter::from_fn(|| queue.try_recv().ok()).take(GROUP_MAX - 1);
        let group: Vec<Job> = std::iter::once(first).chain(rest).collect();
        pen.write(group);
    }
}

struct Pen {
    connection: Connection,
    tips: BTreeMap<TreeId, Tip>,
    synced: Durability,
}

impl Pen {
    /// Writes a group and answers everyone in it.
    fn write(&mut self, group: Vec<Job>) {
        let mut answers: Vec<Answer> = Vec::with_capacity(group.len());
        let written = self.try_write(group, &mut answers);
        if written.is_err() {
            // Nothing was written; what we thought we knew may be wrong.
            self.tips.clear();
        }
        for answer in answers {
            answer(written.clone());
        }
    }

    fn try_write(&mut self, group: Vec<Job>, answers: &mut Vec<Answer>) -> Result<(), JournalFault> {
        let durability = group.iter().filter_map(Job::durability).max().unwrap_or_default();
        let begun = self.sync_as(durability).and_then(|()| {
            self.connection
                .transaction_with_behavior(TransactionBehavior::Immediate)
                .map_err(|error| from_sqlite(&error))
        });
        let transaction = match begun {
            Ok(transaction) => transaction,
            Err(fault) => {
                group.into_iter().for_each(|job| job.refuse(fault.clone()));
                return Ok(());
            }
        };
        let mut broken = Ok(());
        for job in group {
            match (job, &broken) {
                (job, Err(fault)) => job.refuse(JournalFault::clone(fault)),
                (Job::Append(encoded, done), Ok(())) => {
                    match append(&transaction, &mut self.tips, &encoded) {
                        Ok(hash) => answers.push(Box::new(move |written| done(written.map(|()| hash)))),
                        Err(stale @ JournalFault::Stale { .. }) => done(Err(stale)),
                        Err(fault) => {
                            done(Err(fault.clone()));
                            broken = Err(fault);
                        }
                    }
                }
                (Job::Remove(tree, answer), Ok(())) => match remove(&transaction, &mut self.tips, tree) {
                    Ok(()) => answers.push(Box::new(move |written| drop(answer.send(written)))),
                    Err(fault) => drop(answer.send(Err(fault))),
                },
            }
        }
        broken?;
        transaction.commit().map_err(|error| from_sqlite(&error))
    }

    /// A group that holds any `full` tree is committed `full`.
    fn sync_as(&mut self, durability: Durability) -> Result<(), JournalFault> {
        if self.synced != durability {
            let level = match durability {
                Durability::Off => "OFF",
                Durability::Normal => "NORMAL",
                Durability::Full => "FULL",
            };
            self.connection.pragma_update(None, "synchronous", level).map_err(|error| from_sqlite(&error))?;
            self.synced = durability;
        }
        Ok(())
    }
}

impl Job {
    fn durability(&self) -> Option<Durability> {
        match self {
            Self::Append(encoded, _) => Some(encoded.durability),
            Self::Remove(..) => None,
        }
    }
}

fn append(
    transaction: &Transaction<'_>,
    tips: &mut BTreeMap<TreeId, Tip>,
    encoded: &Encoded,
) -> Result<ChainHash, JournalFault> {
    let Encoded { tree, after, events, now, bytes, blobs, state, .. } = encoded;
    let sqlite = |error| from_sqlite(&error);
    let tip = match tips.get(tree) {
        Some(tip) => Some(*tip),
        None => load(transaction, *tree).map_err(sqlite)?,
    };
    let found = tip.map_or(Seq(0), |tip| tip.seq);
    if found != *after {
        return Err(JournalFault::Stale { tree: *tree, expected: after.0, found: found.0 });
    }
    let before = tip.map_or_else(|| ChainHash::start(*tree), |tip| tip.hash);
    let hash = before.then(*after, bytes);
    let (seq, at) = (Seq(after.0 + events), now.0 as i64);
    let id = match tip {
        Some(tip) => {
            transaction
                .prepare_cached(
                    "UPDATE trees SET seq = ?1, hash = ?2, state = ?3, changed = ?4 WHERE id = ?5",
                )
                .and_then(|mut row| row.execute(params![seq.0 as i64, hash.bytes(), state, at, tip.id]))
                .map_err(sqlite)?;
            tip.id
        }
        None => {
            transaction
                .prepare_cached("INSERT INTO trees (tree, seq, hash, state, started, changed) VALUES (?1, ?2, ?3, ?4, ?5, ?5)")
                .and_then(|mut row| row.execute(params![tree.bytes(), seq.0 as i64, hash.bytes(), state, at]))
                .map_err(sqlite)?;
            transaction.last_insert_rowid()
        }
    };
    let text =
        std::str::from_utf8(bytes).map_err(|error| JournalFault::Failed { reason: error.to_string() })?;
    transaction
        .prepare_cached("INSERT INTO batches (key, hash, body) VALUES (?1, ?2, ?3)")
        .and_then(|mut row| row.execute(params![(id << SEQ_BITS) + after.0 as i64, hash.bytes(), text]))
        .map_err(sqlite)?;
    keep_blobs(transaction, id, blobs).map_err(sqlite)?;
    tips.insert(*tree, Tip { id, seq, hash });
    Ok(hash)
}

fn load(transaction: &Transaction<'_>, tree: TreeId) -> rusqlite::Result<Option<Tip>> {
    transaction
        .prepare_cached("SELECT id, seq, hash FROM trees WHERE tree = ?1")?
        .query_row([tree.bytes().as_slice()], |row| {
            let hash = ChainHash::from_bytes(row.get(2)?);
            Ok(Tip { id: row.get(0)?, seq: Seq(row.get::<_, i64>(1)? as u64), hash })
        })
        .optional()
}

fn keep_blobs(transaction: &Transaction<'_>, tree: i64, blobs: &[Vec<u8>]) -> rusqlite::Result<()> {
    for bytes in blobs {
        let hash = blake3::hash(bytes);
        let hash = hash.as_bytes().as_slice();
        transaction
            .prepare_cached("INSERT INTO blobs (hash, bytes) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
            .execute(params![hash, bytes])?;
        transaction
            .prepare_cached("INSERT INTO blob_uses (hash, tree) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
            .execute(params![hash, tree])?;
    }
    Ok(())
}

fn remove(
    transaction: &Transaction<'_>,
    tips: &mut BTreeMap<TreeId, Tip>,
    tree: TreeId,
) -> Result<(), JournalFault> {
    let sqlite = |error| from_sqlite(&error);
    let tip = load(transaction, tree).map_err(sqlite)?.ok_or(JournalFault::UnknownTree { tree })?;
    tips.remove(&tree);
    let base = tip.id << SEQ_BITS;
    let run = |sql: &str, values: &[i64]| {
        transaction.prepare_cached(sql)?.execute(rusqlite::params_from_iter(values))
    };
    let all = || -> rusqlite::Result<()> {
        run("DELETE FROM batches WHERE key >= ?1 AND key < ?2", &[base, base + (1 << SEQ_BITS)])?;
        run(
            "DELETE FROM blobs WHERE hash IN (SELECT hash FROM blob_uses WHERE tree = ?1)
             AND hash NOT IN (SELECT hash FROM blob_uses WHERE tree <> ?1)",
            &[tip.id],
        )?;
        run("DELETE FROM blob_uses WHERE tree = ?1", &[tip.id])?;
        run("DELETE FROM trees WHERE id = ?1", &[tip.id])?;
        Ok(())
    };
    all().map_err(sqlite)
}
