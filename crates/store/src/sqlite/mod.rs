//! A journal in SQLite: one file in a home, one writer thread with group commit, readers beside it.

mod branch;
mod change;
mod commit_count;
mod crowd;
mod fault;
mod in_place;
mod lately;
mod link;
mod lock;
mod loss;
mod mover;
mod pen;
mod places;
mod read;
mod schema;
mod wal;
mod write;

use std::fs;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rusqlite::OpenFlags;
use spinney_kernel::body::BlobRef;
use spinney_kernel::id::{Seq, TreeId};
use spinney_kernel::port::catalog::{CatalogKind, CatalogRow, Fact};
use spinney_kernel::port::journal::{Append, Appended, Entry, Head, Journal, JournalFault, Shared};

use crate::bound;
use change::{Change, Encoded};
use commit_count::CommitCount;
use fault::from_io;
use in_place::FilesInPlace;
use link::Link;
use lock::Lock;
pub use loss::Loss;
use pen::{Job, Pen};
use write::Desk;

/// The journal's file in a home.
const FILE: &str = "journal.sqlite3";

/// What a process wants with a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Write; only one process at a time may.
    Write,
    /// Only look; as many as like, beside a writer.
    Look,
}

/// A journal in SQLite.
pub struct SqliteJournal {
    reader: Mutex<Link>,
    writer: Option<Writer>,
}

struct Writer {
    desk: Arc<Desk>,
    threads: Vec<JoinHandle<()>>,
}

impl SqliteJournal {
    /// Opens the journal of a home, and makes both if they are not there and this process may write.
    ///
    /// # Errors
    /// If another process writes there, a newer version wrote it, commits that were confirmed are missing, or the disk
    /// says no.
    pub fn open(home: &Path, access: Access) -> Result<Self, JournalFault> {
        match access {
            Access::Look => Ok(Self { reader: Mutex::new(look(home)?), writer: None }),
            Access::Write => Self::open_bounded(home, u64::MAX),
        }
    }

    /// Opens the journal of a home to write, and lets its file grow to about so many bytes. Beyond them an append is
    /// told [`JournalFault::DiskFull`], until a tree is removed or the bound is raised.
    ///
    /// # Errors
    /// If another process writes there, a newer version wrote it, or the disk says no.
    pub fn open_bounded(home: &Path, bytes_max: u64) -> Result<Self, JournalFault> {
        fs::create_dir_all(home).map_err(|error| from_io(home, &error))?;
        let lock = Lock::take(home)?;
        let file = home.join(FILE);
        not_cut(&file)?;
        let recorded = commit_count::recorded(home)?;
        let link = Link::open(&file, OpenFlags::default())?;
        loss::keep_wal_on_close(&link, true)?;
        loss::check(home, recorded, &link)?;
        loss::keep_wal_on_close(&link, false)?;
        schema::prepare(&link)?;
        schema::bound(&link, bytes_max)?;
        let count = CommitCount::open(home)?;
        count.write(commit_count::counted(&link)?, true)?;
        let (reader, mover) = (look(home)?, Link::open(&file, OpenFlags::default())?);
        let pen = Pen::new(link, count, FilesInPlace::new(home));
        Ok(Self { reader: Mutex::new(reader), writer: Some(Writer::start(pen, mover, lock)) })
    }

    /// Gives up confirmed commits that are missing from the journal of a home, so that it opens again. Says what was
    /// given up; nothing if none are missing. A copy of everything that was found stays in the home.
    ///
    /// # Errors
    /// If another process writes there, the disk says no, or what is left is not a whole database.
    pub fn accept_loss(home: &Path) -> Result<Option<Loss>, JournalFault> {
        let loss = loss::accept(home)?;
        if loss.is_some() {
            // What is left may be as old as the last pages that were moved to their places.
            drop(Self::open(home, Access::Write)?);
        }
        Ok(loss)
    }

    /// Changes something and waits for it.
    fn change(&self, change: Change) -> Result<(), JournalFault> {
        let writer = self.writer.as_ref().ok_or(JournalFault::ReadOnly)?;
        let (answer, answered) = sync_channel(1);
        writer.desk.write(Job::Change(change, answer));
        answered.recv().unwrap_or(Err(JournalFault::Closed))
    }

    fn reader(&self) -> MutexGuard<'_, Link> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses a file of one byte: SQLite takes it for an empty one and would begin anew.
fn not_cut(file: &Path) -> Result<(), JournalFault> {
    if fs::metadata(file).is_ok_and(|found| found.len() == 1) {
        let reason = "one byte is left of it".to_owned();
        return Err(JournalFault::DamagedFile { path: file.display().to_string(), reason });
    }
    Ok(())
}

/// A connection that only reads.
fn look(home: &Path) -> Result<Link, JournalFault> {
    let file = home.join(FILE);
    // SQLite itself does not say why it cannot open a file.
    fs::metadata(&file).map_err(|error| from_io(home, &error))?;
    not_cut(&file)?;
    let recorded = commit_count::recorded(home)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let reader = Link::open(&file, flags)?;
    loss::check(home, recorded, &reader)?;
    schema::check(&reader, home)?;
    Ok(reader)
}

impl Writer {
    fn start(pen: Pen, mover: Link, lock: Lock) -> Self {
        let (full, told) = sync_channel(1);
        let desk = Arc::new(Desk::new(pen, full));
        let mover = std::thread::spawn({
            let desk = Arc::clone(&desk);
            move || mover::run(&mover, &desk, &told)
        });
        let thread = std::thread::spawn({
            let desk = Arc::clone(&desk);
            move || {
                desk.run();
                drop(lock);
            }
        });
        Self { desk, threads: vec![thread, mover] }
    }
}

impl Drop for Writer {
    /// Everything that was handed over is written before the lock goes.
    fn drop(&mut self) {
        self.desk.close();
        for thread in self.threads.drain(..) {
            // Whoever is told by a thread may be the last to hold the journal; the thread then ends by itself.
            if thread.thread().id() != std::thread::current().id() {
                // One that panicked has nothing left to do.
                let _ = thread.join();
            }
        }
    }
}

impl Journal for SqliteJournal {
    fn append(&self, append: Append, done: Appended) {
        let Some(writer) = &self.writer else { return done(Err(JournalFault::ReadOnly)) };
        match bound::check(&append).and_then(|()| Encoded::new(append)) {
            Err(fault) => done(Err(fault)),
            Ok(encoded) => writer.desk.write(Job::Append(Box::new(encoded), done)),
        }
    }

    fn lull(&self) {
        if let Some(writer) = &self.writer {
            writer.desk.lull();
        }
    }

    fn read(&self, tree: TreeId, after: Seq, batches_max: usize) -> Result<Vec<Entry>, JournalFault> {
        read::entries(&self.reader(), tree, after, batches_max)
    }

    fn head(&self, tree: TreeId) -> Result<Option<Head>, JournalFault> {
        read::head(&self.reader(), tree)
    }

    fn heads(&self, states: &[&str]) -> Result<Vec<Head>, JournalFault> {
        read::heads(&self.reader(), states)
    }

    fn catalog(&self, kind: CatalogKind, prefix: &str) -> Result<Vec<Fact>, JournalFault> {
        read::catalog(&self.reader(), kind, prefix)
    }

    fn replace_catalog(&self, tree: TreeId, at: Seq, rows: Vec<CatalogRow>) -> Result<(), JournalFault> {
        bound::check_rows(&rows)?;
        self.change(Change::Replace(tree, at, rows))
    }

    fn blob(&self, blob: &BlobRef) -> Result<Option<Vec<u8>>, JournalFault> {
        read::blob(&self.reader(), blob)
    }

    fn remove(&self, tree: TreeId, shared: Shared) -> Result<(), JournalFault> {
        self.change(Change::Remove(tree, shared))
    }
}
