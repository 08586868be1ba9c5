//! The writer: one thread that owns the write connection. It takes everything that is queued, commits it as one
//! group, and then answers each job. A refused job fails alone; if the disk fails, the whole group fails and nothing
//! was written.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use futures::channel::oneshot;
use rusqlite::Connection;
use spinney_journal::{Appended, ChainHash, Claim, Epoch, JournalFault};
use spinney_kernel::primitives::{Durability, TreeId};

use super::change::{self, Change, Hashed};
use super::claims::Claims;
use super::commit_count::{self, CommitCount};
use super::fault::from_sqlite;
use super::heads::Heads;
use super::in_place::FilesInPlace;
use super::lock::Lock;
use super::queue::Queue;
use super::reserved_keys;
use crate::waiting::Waiting;

const GROUP_MAX: usize = 1_024;

pub(super) enum Job {
    Append(Box<Hashed>, Appended),
    Change(Change, oneshot::Sender<Result<(), JournalFault>>),
    /// Writes nothing, unless keys are reserved for the tree.
    Claim(TreeId, oneshot::Sender<Result<Claim, JournalFault>>),
}

/// A job's result and its recipient.
enum Answer {
    Append(Appended, Result<ChainHash, JournalFault>),
    Change(oneshot::Sender<Result<(), JournalFault>>, Result<(), JournalFault>),
    Claim(oneshot::Sender<Result<Claim, JournalFault>>, Result<Claim, JournalFault>),
}

pub(super) struct Writer {
    queue: Arc<Queue<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread. The home stays locked until it ends.
    pub(super) fn start(mut connection: WriteConnection, lock: Lock) -> Self {
        let queue = Arc::new(Queue::new());
        let jobs = Abandon(Arc::clone(&queue));
        let thread = std::thread::spawn(move || {
            while let Some(group) = jobs.0.take(GROUP_MAX) {
                connection.write(group).into_iter().for_each(Answer::send);
            }
            drop(connection);
            drop(lock);
        });
        Self { queue, thread: Some(thread) }
    }

    /// Queues a job. Never blocks.
    pub(super) fn send(&self, job: Job) {
        if let Err((job, fault)) = self.queue.push(job) {
            job.refused(fault).send();
        }
    }
}

impl Drop for Writer {
    /// Writes everything that is queued before the lock is released.
    fn drop(&mut self) {
        self.queue.close();
        let Some(thread) = self.thread.take() else { return };
        // A callback on this thread may drop the last handle; then the thread ends on its own.
        if thread.thread().id() != std::thread::current().id() {
            // A thread that panicked has nothing left to do.
            let _ = thread.join();
        }
    }
}

/// When the thread ends for any reason, queued jobs are dropped, so no caller waits forever.
struct Abandon(Arc<Queue<Job>>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

impl Job {
    fn refused(self, fault: JournalFault) -> Answer {
        match self {
            Self::Append(_, done) => Answer::Append(done, Err(fault)),
            Self::Change(_, done) => Answer::Change(done, Err(fault)),
            Self::Claim(_, done) => Answer::Claim(done, Err(fault)),
        }
    }

    fn removes(&self) -> Option<TreeId> {
        match self {
            Self::Change(Change::Remove(tree, _), _) => Some(*tree),
            Self::Change(..) | Self::Append(..) | Self::Claim(..) => None,
        }
    }

    fn durability(&self) -> Option<Durability> {
        match self {
            Self::Append(hashed, _) => Some(hashed.append.durability),
            Self::Change(..) | Self::Claim(..) => None,
        }
    }
}

impl Answer {
    /// If one callback panics, the others are still called: a bug stops its own tree only, and the panic hook has
    /// reported it.
    fn send(self) {
        let _ = catch_unwind(AssertUnwindSafe(|| match self {
            Self::Append(done, end) => done(end),
            // The receiver may be gone.
            Self::Change(done, end) => drop(done.send(end)),
            Self::Claim(done, end) => drop(done.send(end)),
        }));
    }

    fn fault(&self) -> Option<&JournalFault> {
        match self {
            Self::Append(_, end) => end.as_ref().err(),
            Self::Change(_, end) => end.as_ref().err(),
            Self::Claim(_, end) => end.as_ref().err(),
        }
    }

    /// Turns a success into a fault, because the transaction failed.
    fn undone(self, fault: &JournalFault) -> Self {
        match self {
            Self::Append(done, end) => Self::Append(done, end.and_then(|_| Err(fault.clone()))),
            Self::Change(done, end) => Self::Change(done, end.and_then(|()| Err(fault.clone()))),
            Self::Claim(done, end) => Self::Claim(done, end.and_then(|_| Err(fault.clone()))),
        }
    }
}

/// The only write connection, and its cache of heads.
pub(super) struct WriteConnection {
    connection: Connection,
    heads: Heads,
    claims: Claims,
    synced: Durability,
    /// The database's commit count; unknown after a failed commit.
    counted: Option<u64>,
    confirmed: CommitCount,
    files: FilesInPlace,
    /// Woken after each commit.
    waiting: Arc<Waiting>,
}

impl WriteConnection {
    pub(super) fn new(
        connection: Connection,
        confirmed: CommitCount,
        files: FilesInPlace,
        waiting: Arc<Waiting>,
    ) -> Self {
        let (heads, claims, synced) = (Heads::default(), Claims::default(), Durability::Normal);
        Self { connection, heads, claims, synced, counted: None, confirmed, files, waiting }
    }

    /// Writes a group in one transaction. Nothing is answered yet.
    fn write(&mut self, group: Vec<Job>) -> Vec<Answer> {
        if group.iter().all(|job| self.writes_nothing(job)) {
            return self.claim_all(group);
        }
        let durability = group.iter().filter_map(Job::durability).max().unwrap_or_default();
        let commit = match self.begin(durability) {
            Ok(commit) => commit,
            Err(fault) => {
                self.roll_back();
                return group.into_iter().map(|job| job.refused(fault.clone())).collect();
            }
        };
        // The time between the two log lines is the commit's duration; nothing here reads a clock.
        tracing::trace!(target: "spinney::journal", batches = group.len(), "group commit started");
        let removed: Vec<TreeId> = group.iter().filter_map(Job::removes).collect();
        let mut answers = Vec::with_capacity(group.len());
        let carried_out = self.carry_out(commit, group, &mut answers);
        match carried_out.and_then(|written| self.commit(commit).map(|()| written)) {
            Ok(written) => {
                for (tree, epoch) in written {
                    self.claims.written(tree, epoch);
                    self.waiting.wake(tree);
                }
                removed.into_iter().for_each(|tree| self.waiting.wake(tree));
                tracing::debug!(target: "spinney::journal", batches = answers.len(), "group commit done");
                answers
            }
            Err(fault) => {
                self.roll_back();
                answers.into_iter().map(|answer| answer.undone(&fault)).collect()
            }
        }
    }

    /// Whether a job needs no transaction. If that is unknown, it does, and gets the fault there.
    fn writes_nothing(&self, job: &Job) -> bool {
        let Job::Claim(tree, _) = job else { return false };
        match self.heads.find(&self.connection, *tree) {
            Ok(Some(head)) => matches!(reserved_keys::has_any(&self.connection, head.id), Ok(false)),
            Ok(None) => true,
            Err(_) => false,
        }
    }

    /// Claims without a transaction.
    fn claim_all(&mut self, group: Vec<Job>) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(group.len());
        for job in group {
            answers.push(match job {
                Job::Claim(tree, done) => {
                    Answer::Claim(done, self.files.check().and_then(|()| self.claim(tree)))
                }
                other => other.refused(JournalFault::Closed),
            });
        }
        answers
    }

    fn claim(&mut self, tree: TreeId) -> Result<Claim, JournalFault> {
        let head = self.heads.find(&self.connection, tree)?.ok_or(JournalFault::UnknownTree { tree })?;
        if reserved_keys::has_any(&self.connection, head.id)? {
            reserved_keys::free_all(&self.connection, head.id)?;
        }
        Ok(self.claims.claim(tree, head.epoch))
    }

    /// Executes a group inside a transaction, and returns the epochs of the heads that it wrote. Stops at a fault that is
    /// not a single job's.
    fn carry_out(
        &mut self,
        commit: u64,
        group: Vec<Job>,
        answers: &mut Vec<Answer>,
    ) -> Result<Vec<(TreeId, Epoch)>, JournalFault> {
        let mut failed = None;
        // A head stores the number of its commit. Without one, or if it may be removed again, the number is stored by
        // itself.
        let is_only_appends =
            group.iter().all(|job| matches!(job, Job::Append(..)) || self.writes_nothing(job));
        let mut is_numbered = false;
        for job in group {
            let answer = match (&failed, job) {
                (Some(fault), job) => job.refused(JournalFault::clone(fault)),
                (None, Job::Append(hashed, done)) => {
                    let appended = change::append(&self.connection, &mut self.heads, &self.claims, &hashed);
                    is_numbered |= appended.is_ok();
                    Answer::Append(done, appended)
                }
                (None, Job::Change(change, done)) => {
                    let (heads, claims) = (&mut self.heads, &mut self.claims);
                    Answer::Change(done, change::change(&self.connection, heads, claims, change))
                }
                (None, Job::Claim(tree, done)) => Answer::Claim(done, self.claim(tree)),
            };
            if failed.is_none() {
                failed = answer.fault().filter(|fault| !change::is_refusal(fault)).cloned();
            }
            answers.push(answer);
        }
        let written = match failed {
            Some(fault) => return Err(fault),
            None => self.heads.write(&self.connection, commit)?,
        };
        if !(is_only_appends && is_numbered) {
            commit_count::set(&self.connection, commit)?;
        }
        Ok(written)
    }

    /// Begins a transaction and returns the number of its commit.
    fn begin(&mut self, durability: Durability) -> Result<u64, JournalFault> {
        self.sync_as(durability)?;
        self.files.check()?;
        self.run("BEGIN IMMEDIATE")?;
        self.files.check_version(&self.connection)?;
        let before = self.counted.take().map_or_else(|| commit_count::counted(&self.connection), Ok)?;
        Ok(before + 1)
    }

    /// Commits, and records that before any job is answered. If it fails after COMMIT, the next process may or may
    /// not find the data; no job is confirmed.
    fn commit(&mut self, count: u64) -> Result<(), JournalFault> {
        self.run("COMMIT")?;
        self.files.know()?;
        self.confirmed.write(count, self.synced)?;
        self.counted = Some(count);
        Ok(())
    }

    /// Rolls back and drops caches, which may be wrong.
    fn roll_back(&mut self) {
        self.heads = Heads::default();
        if !self.connection.is_autocommit() {
            // If this fails, the next transaction cannot begin and reports why.
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

    /// A group with any `full` tree is committed as `full`.
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
