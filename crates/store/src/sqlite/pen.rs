//! The pen: the one connection that writes. It writes a group of jobs in one transaction and says how each ended. A job
//! that is refused is refused by itself; if the disk fails, the whole group hears it and nothing was written.

use std::sync::mpsc::SyncSender;

use rusqlite::Connection;
use spinney_journal::{Appended, ChainHash, JournalFault};
use spinney_kernel::words::Durability;

use super::change::{self, Change, Encoded, Known, PAGE_BYTES, Sheet};
use super::commit_count::{CommitCount, count_up};
use super::fault::from_sqlite;
use super::in_place::FilesInPlace;
use super::link::Link;

/// Bytes in the write-ahead file after which they are moved to their places. Until then a reader has to look in both.
const MOVE_BYTES: usize = 4_000 * PAGE_BYTES;
/// The same while commits wait for the disk: they take more than half as long again if the file grows with each.
const MOVE_BYTES_FULL: usize = 500 * PAGE_BYTES;
/// About what a transaction writes besides: the last page is written again, now and then others with it.
const AROUND_BYTES: usize = PAGE_BYTES;

pub(super) enum Job {
    Append(Box<Encoded>, Appended),
    Change(Change, SyncSender<Result<(), JournalFault>>),
}

/// How a job ended, and who wants to know.
pub(super) enum Ended {
    Append(Appended, Result<ChainHash, JournalFault>),
    Change(SyncSender<Result<(), JournalFault>>, Result<(), JournalFault>),
}

impl Job {
    /// The end of a job that was not done.
    pub(super) fn refused(self, fault: JournalFault) -> Ended {
        match self {
            Self::Append(_, done) => Ended::Append(done, Err(fault)),
            Self::Change(_, answer) => Ended::Change(answer, Err(fault)),
        }
    }

    /// About how many bytes of the file it changes.
    fn weight(&self) -> usize {
        match self {
            Self::Append(encoded, _) => encoded.weight(),
            Self::Change(..) => PAGE_BYTES,
        }
    }

    fn durability(&self) -> Option<Durability> {
        match self {
            Self::Append(encoded, _) => Some(encoded.durability),
            Self::Change(..) => None,
        }
    }
}

impl Ended {
    /// Tells whoever waits. Never under a lock: what they do then is their own business.
    pub(super) fn tell(self) {
        match self {
            Self::Append(done, end) => done(end),
            // Whoever asked may be gone.
            Self::Change(answer, end) => drop(answer.send(end)),
        }
    }

    fn fault(&self) -> Option<&JournalFault> {
        match self {
            Self::Append(_, end) => end.as_ref().err(),
            Self::Change(_, end) => end.as_ref().err(),
        }
    }

    /// What was done is not: its transaction failed.
    fn undone(self, fault: &JournalFault) -> Self {
        let fault = || fault.clone();
        match self {
            Self::Append(done, end) => Self::Append(done, end.and_then(|_| Err(fault()))),
            Self::Change(answer, end) => Self::Change(answer, end.and_then(|()| Err(fault()))),
        }
    }
}

/// The one connection that writes, and what it knows.
pub(super) struct Pen {
    connection: Link,
    known: Known,
    synced: Durability,
    /// Bytes in the write-ahead file, roughly.
    waiting: usize,
    count: CommitCount,
    files: FilesInPlace,
}

impl Pen {
    pub(super) fn new(connection: Link, count: CommitCount, files: FilesInPlace) -> Self {
        let (known, synced) = (Known::default(), Durability::Normal);
        Self { connection, known, synced, waiting: 0, count, files }
    }

    /// Writes a group in one transaction. Nobody is told yet.
    pub(super) fn write(&mut self, group: Vec<Job>) -> Vec<Ended> {
        let durability = group.iter().filter_map(Job::durability).max().unwrap_or_default();
        if let Err(fault) = self.begin(durability) {
            return group.into_iter().map(|job| job.refused(fault.clone())).collect();
        }
        self.waiting += AROUND_BYTES + group.iter().map(Job::weight).sum::<usize>();
        let mut ended = Vec::with_capacity(group.len());
        let filled = fill(&self.connection, &mut self.known, group, &mut ended);
        self.known.crowd.look();
        match filled.and_then(|()| self.commit()) {
            Ok(()) => ended,
            Err(fault) => {
                self.undo();
                ended.into_iter().map(|end| end.undone(&fault)).collect()
            }
        }
    }

    /// Nothing is written any more: every tree's own row says where it stands. If this fails, that is still said in one
    /// row for all.
    pub(super) fn close(&mut self) {
        let closed = self
            .begin(self.synced)
            .and_then(|()| self.known.begin(&self.connection))
            .and_then(|()| self.known.hand_over(&self.connection))
            .and_then(|()| self.commit());
        if closed.is_err() {
            self.undo();
        }
    }

    /// How many trees write at the same time.
    pub(super) fn crowd(&self) -> usize {
        self.known.crowd.trees()
    }

    /// Whether enough pages wait in the write-ahead file. Says so once.
    pub(super) fn must_move(&mut self) -> bool {
        let enough = match self.synced {
            Durability::Full => self.waiting >= MOVE_BYTES_FULL,
            Durability::Normal | Durability::Off => self.waiting >= MOVE_BYTES,
        };
        if enough {
            self.waiting = 0;
        }
        enough
    }

    fn begin(&mut self, durability: Durability) -> Result<(), JournalFault> {
        if !self.connection.is_autocommit() {
            // Somebody panicked on the way.
            self.undo();
        }
        self.sync_as(durability)?;
        self.run("BEGIN IMMEDIATE")
    }

    /// Commits, and records that before anybody is told. If it fails after COMMIT, what was written may or may not be
    /// found by the next process; nobody is told that it is there.
    fn commit(&mut self) -> Result<(), JournalFault> {
        let count = count_up(&self.connection)?;
        self.run("COMMIT")?;
        self.files.check()?;
        self.count.write(count, self.synced == Durability::Full)
    }

    /// Nothing of the transaction stays, and what we thought we knew may be wrong.
    fn undo(&mut self) {
        self.known = Known::default();
        if !self.connection.is_autocommit() {
            // If this fails, the next transaction does not begin, and says why.
            let _ = self.run("ROLLBACK");
        }
    }

    fn run(&self, sql: &str) -> Result<(), JournalFault> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute([]))
            .map(drop)
            .map_err(|error| from_sqlite(&self.connection, &error))
    }

    /// A group that holds any `full` tree is committed `full`.
    fn sync_as(&mut self, durability: Durability) -> Result<(), JournalFault> {
        if self.synced != durability {
            let level = match durability {
                Durability::Off => "OFF",
                Durability::Normal => "NORMAL",
                Durability::Full => "FULL",
            };
            self.connection
                .pragma_update(None, "synchronous", level)
                .map_err(|error| from_sqlite(&self.connection, &error))?;
            self.synced = durability;
        }
        Ok(())
    }
}

/// Carries out a group inside a transaction; after a fault that is not one job's own, nothing more.
fn fill(
    connection: &Connection,
    known: &mut Known,
    group: Vec<Job>,
    ended: &mut Vec<Ended>,
) -> Result<(), JournalFault> {
    let mut sheet = known.begin(connection).and_then(|()| Sheet::new(connection));
    for job in group {
        let end = match &mut sheet {
            Ok(sheet) => carry_out(sheet, known, job),
            Err(fault) => job.refused(fault.clone()),
        };
        if let Some(fault) = end.fault().filter(|fault| !change::is_refusal(fault)) {
            sheet = Err(fault.clone());
        }
        ended.push(end);
    }
    sheet.and_then(|sheet| known.write_heads(sheet.connection))
}

fn carry_out(sheet: &mut Sheet<'_>, known: &mut Known, job: Job) -> Ended {
    match job {
        Job::Append(encoded, done) => Ended::Append(done, change::append(sheet, known, &encoded)),
        Job::Change(change, answer) => Ended::Change(answer, change::change(sheet.connection, known, change)),
    }
}
