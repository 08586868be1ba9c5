//! A journal in SQLite: one file in a home, one writer thread with group commit, and concurrent readers.

mod branch;
mod change;
mod claims;
mod commit_count;
mod connection;
mod fault;
mod heads;
mod home_folder;
mod home_refusal;
mod in_place;
mod lock;
mod loss;
mod open_home_error;
mod places;
mod poll;
mod queue;
mod read;
mod read_only;
mod readers;
mod recent_heads;
mod reserve;
mod reserved_keys;
mod schema;
mod schema_check;
mod wal;
mod writer;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use futures::channel::oneshot;
use rusqlite::Connection;
use spinney_journal::{
    Append, Appended, CatalogKind, CatalogRow, Claim, Entry, Fact, Head, HeadCursor, HeadPage, Journal,
    JournalFault, Reading, Reservation, Shared, StoredEntry,
};
use spinney_kernel::primitives::{BlobRef, Seq, TreeId, limit};
use spinney_kernel::world::TreeState;

use crate::bound;
use crate::waiting::Waiting;
use change::{Change, Hashed};
use commit_count::CommitCount;
use connection::{READS, WRITES};
use home_folder::HomeFolder;
pub use home_refusal::HomeRefusal;
use in_place::FilesInPlace;
use lock::Lock;
pub use loss::Loss;
pub use open_home_error::OpenHomeError;
use poll::Poll;
use readers::Readers;
use writer::{Job, WriteConnection, Writer};

/// How a process uses a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only one process at a time may write.
    Write,
    /// Any number of readers, beside a writer.
    ReadOnly,
}

pub struct SqliteJournal {
    readers: Arc<Readers>,
    waiting: Arc<Waiting>,
    poll: Poll,
    writer: Option<Writer>,
}

impl Drop for SqliteJournal {
    fn drop(&mut self) {
        self.waiting.close();
    }
}

impl SqliteJournal {
    /// Opens the journal of a home. With write access, creates both if they do not exist.
    ///
    /// # Errors
    /// If another process writes there, a newer version wrote it, confirmed commits are missing, or the disk fails.
    pub fn open(home: &Path, access: Access) -> Result<Self, OpenHomeError> {
        match access {
            Access::ReadOnly => Ok(Self::new(Readers::open(home)?, Arc::default(), None)),
            Access::Write => Self::open_bounded(home, u64::MAX),
        }
    }

    /// Opens the journal of a home for writing, and limits its file to about `bytes_max`. Above that, appends fail
    /// with [`JournalFault::Full`] until a tree is removed or the limit is raised.
    ///
    /// # Errors
    /// If the folder is not a home, another process writes there, a newer version wrote it, or the disk fails.
    pub fn open_bounded(home: &Path, bytes_max: u64) -> Result<Self, OpenHomeError> {
        let (journal, folder) = Self::open_with(home, bytes_max, |_| Ok(()))?;
        reserve::keep(folder.path());
        Ok(journal)
    }

    /// Opens the journal of a home to remove trees. Works on a full disk too, by giving up space that was reserved
    /// for it; the next open for writing reserves it again.
    ///
    /// # Errors
    /// The same as for writing.
    pub fn open_writable_to_remove(home: &Path) -> Result<Self, OpenHomeError> {
        let give_up =
            |folder: &Path| reserve::give_up(folder).map_err(|error| fault::from_io(folder, &error));
        Self::open_with(home, u64::MAX, give_up).map(|(journal, _)| journal)
    }

    /// Opens it and runs `before` under the lock first.
    fn open_with(
        home: &Path,
        bytes_max: u64,
        before: impl FnOnce(&Path) -> Result<(), OpenHomeError>,
    ) -> Result<(Self, HomeFolder), OpenHomeError> {
        let folder = HomeFolder::to_write(home)?;
        let file = folder.journal();
        not_cut(&file)?;
        not_foreign(&file)?;
        let lock = Lock::take(&folder)?;
        folder.close_to_others()?;
        before(folder.path())?;
        not_cut(&file)?;
        folder.make_journal()?;
        let recorded = commit_count::recorded(folder.path())?;
        let connection = open_to_write(&file, |found| loss::check(folder.path(), recorded, found))?;
        schema::prepare(&connection)?;
        schema::bound(&connection, bytes_max)?;
        let confirmed = CommitCount::open(folder.path())?;
        confirmed.write_through(commit_count::counted(&connection)?)?;
        let readers = Readers::open(home)?;
        let files = FilesInPlace::new(folder.path(), &connection)?;
        let waiting = Arc::<Waiting>::default();
        let connection = WriteConnection::new(connection, confirmed, files, Arc::clone(&waiting));
        Ok((Self::new(readers, waiting, Some(Writer::start(connection, lock))), folder))
    }

    fn new(readers: Readers, waiting: Arc<Waiting>, writer: Option<Writer>) -> Self {
        Self { readers: Arc::new(readers), waiting, poll: Poll::default(), writer }
    }

    /// Checks that a folder is a home or may become one, and creates it if it does not exist. Opens no journal, so it
    /// works beside a process that writes there.
    ///
    /// # Errors
    /// If the folder belongs to another user or program.
    pub fn prepare_folder(home: &Path) -> Result<(), OpenHomeError> {
        HomeFolder::to_write(home).map(drop)
    }

    /// Accepts that confirmed commits are missing from a home, so it opens again. Returns what was lost, or
    /// `None` if nothing is missing. A copy of everything that was found stays in the home.
    ///
    /// # Errors
    /// If another process writes there, the disk fails, or what is left is not a valid database.
    pub fn accept_loss(home: &Path) -> Result<Option<Loss>, OpenHomeError> {
        let loss = loss::accept(home)?;
        if loss.is_some() {
            // What is left may be as old as the last WAL checkpoint.
            drop(Self::open(home, Access::Write)?);
        }
        Ok(loss)
    }

    fn change(&self, change: Change) -> Reading<()> {
        self.ask(|answer| Job::Change(change, answer))
    }

    /// Queues a job for the writer; its answer is what is awaited.
    fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, JournalFault>>) -> Job,
    ) -> Reading<T> {
        let Some(writer) = &self.writer else {
            return Box::pin(std::future::ready(Err(JournalFault::ReadOnly)));
        };
        let (answer, answered) = oneshot::channel();
        writer.send(job(answer));
        Box::pin(async move { answered.await.unwrap_or(Err(JournalFault::Closed)) })
    }
}

/// Refuses another program's database before anything is changed, including the folder's mode. If it cannot be read
/// this way, opening it for writing checks again.
fn not_foreign(file: &Path) -> Result<(), OpenHomeError> {
    if !fs::metadata(file).is_ok_and(|found| found.len() > 0) {
        return Ok(());
    }
    // If the file is open somewhere, its locks may be this process's own.
    let is_open = read_only::beside(file, "-shm").exists();
    let opened = if is_open { connection::open(file, READS) } else { connection::open_still(file) };
    match opened.and_then(|found| schema::ours(&found)) {
        Err(fault @ OpenHomeError::Refused { .. }) => Err(fault),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// A write connection to a file that is ours and passes a check. Until then the content of a WAL file stays
/// untouched, even if it is foreign or damaged.
fn open_to_write(
    file: &Path,
    check: impl FnOnce(&Connection) -> Result<(), OpenHomeError>,
) -> Result<Connection, OpenHomeError> {
    let found = connection::open(file, WRITES)?;
    loss::keep_wal_on_close(&found, true)?;
    schema::ours(&found)?;
    check(&found)?;
    loss::keep_wal_on_close(&found, false)?;
    Ok(found)
}

/// Refuses a file that was truncated or deleted. SQLite treats a file of at most one byte as an empty database, and
/// deletes its WAL file, even when only reading.
fn not_cut(file: &Path) -> Result<(), OpenHomeError> {
    let bytes = |path: &Path| fs::metadata(path).map_or(0, |found| found.len());
    let reason = match (bytes(file), bytes(&loss::wal_of(file))) {
        (1, _) => "one byte is left of it",
        (0, 1..) => "nothing is left of it but its write-ahead file",
        _ => return Ok(()),
    };
    Err(fault::damaged_file(file, reason))
}

impl Journal for SqliteJournal {
    fn claim(&self, tree: TreeId) -> Reading<Claim> {
        self.ask(|answer| Job::Claim(tree, answer))
    }

    /// The lock of the file is the lease, and a claim in this process needs no release.
    fn release(&self, _claim: Claim) -> Reading<()> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn append(&self, append: Append, done: Appended) {
        let Some(writer) = &self.writer else { return done(Err(JournalFault::ReadOnly)) };
        match bound::check(&append) {
            Err(fault) => done(Err(fault)),
            Ok(()) => writer.send(Job::Append(Box::new(Hashed::new(append)), done)),
        }
    }

    fn read(&self, tree: TreeId, after: Seq, batches_max: usize) -> Reading<Vec<Entry>> {
        self.readers.read(move |connection| read::batches(connection, tree, after, batches_max))
    }

    fn read_stored(&self, tree: TreeId, after: Seq, batches_max: usize) -> Reading<Vec<StoredEntry>> {
        self.readers.read(move |connection| read::batches(connection, tree, after, batches_max))
    }

    fn head(&self, tree: TreeId) -> Reading<Option<Head>> {
        self.readers.read(move |connection| read::head(connection, tree))
    }

    fn changed(&self, tree: TreeId, after: Seq) -> Reading<Head> {
        let readers = Arc::downgrade(&self.readers);
        let changed = self.waiting.until(tree, after, move || match readers.upgrade() {
            Some(readers) => readers.read(move |connection| read::head(connection, tree)),
            None => Box::pin(std::future::ready(Err(JournalFault::Closed))),
        });
        if self.writer.is_some() {
            return changed;
        }
        let (poll, readers, waiting) =
            (self.poll.clone(), Arc::downgrade(&self.readers), Arc::clone(&self.waiting));
        Box::pin(poll.during(changed, readers, waiting))
    }

    fn head_page(&self, states: &[TreeState], after: HeadCursor, heads_max: usize) -> Reading<HeadPage> {
        let states = states.to_vec();
        self.readers.read(move |connection| {
            read::head_page(connection, &states, &after, heads_max.min(limit::HEADS_MAX))
        })
    }

    fn catalog(&self, kind: CatalogKind, prefix: &str) -> Reading<Vec<Fact>> {
        let prefix = prefix.to_owned();
        self.readers.read(move |connection| read::catalog(connection, kind, &prefix))
    }

    fn reserve(&self, claim: Claim, kind: CatalogKind, key: &str) -> Reading<Reservation> {
        if let Err(fault) = bound::check_key(key) {
            return Box::pin(std::future::ready(Err(fault)));
        }
        let reserved = self.change(Change::Reserve(claim, (kind, key.to_owned())));
        Box::pin(async move {
            match reserved.await {
                Ok(()) => Ok(Reservation::Reserved),
                Err(JournalFault::KeyTaken { tree, .. }) => Ok(Reservation::Taken { tree }),
                Err(fault) => Err(fault),
            }
        })
    }

    fn free(&self, claim: Claim, kind: CatalogKind, key: &str) -> Reading<()> {
        self.change(Change::Free(claim, (kind, key.to_owned())))
    }

    fn replace_catalog(&self, tree: TreeId, at: Seq, rows: Vec<CatalogRow>) -> Reading<()> {
        match bound::check_rows(&rows) {
            Ok(()) => self.change(Change::Replace(tree, at, rows)),
            Err(fault) => Box::pin(std::future::ready(Err(fault))),
        }
    }

    fn blob(&self, blob: &BlobRef) -> Reading<Option<Vec<u8>>> {
        let blob = blob.clone();
        self.readers.read(move |connection| read::blob(connection, &blob))
    }

    fn remove(&self, tree: TreeId, shared: Shared) -> Reading<()> {
        self.change(Change::Remove(tree, shared))
    }
}
