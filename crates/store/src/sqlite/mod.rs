//! A journal in SQLite: one file in a home, one writer thread with group commit, readers beside it.

mod branch;
mod change;
mod commit_count;
mod crowd;
mod fault;
mod home_folder;
mod in_place;
mod lately;
mod link;
mod lock;
mod look;
mod loss;
mod mover;
mod pen;
mod places;
mod read;
mod reserve;
mod schema;
mod wal;
mod write;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

use rusqlite::OpenFlags;
use spinney_journal::{
    Append, Appended, CatalogKind, CatalogRow, Entry, Fact, Head, Journal, JournalFault, Shared,
};
use spinney_kernel::words::{BlobRef, Seq, TreeId};

use crate::bound;
use change::{Change, Encoded};
use commit_count::CommitCount;
use home_folder::HomeFolder;
use in_place::FilesInPlace;
use link::Link;
use lock::Lock;
use look::Reader;
pub use loss::Loss;
use pen::{Job, Pen};
use write::Desk;

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
    reader: Reader,
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
            Access::Look => Ok(Self { reader: Reader::open(home)?, writer: None }),
            Access::Write => Self::open_bounded(home, u64::MAX),
        }
    }

    /// Opens the journal of a home to write, and lets its file grow to about so many bytes. Beyond them an append is
    /// told [`JournalFault::DiskFull`], until a tree is removed or the bound is raised.
    ///
    /// # Errors
    /// If the folder is no home of ours, another process writes there, a newer version wrote it, or the disk says no.
    pub fn open_bounded(home: &Path, bytes_max: u64) -> Result<Self, JournalFault> {
        let (journal, folder) = Self::open_with(home, bytes_max, |_| Ok(()))?;
        reserve::keep(folder.path());
        Ok(journal)
    }

    /// Opens the journal of a home to remove trees, which works on a full disk too: some room was set aside for it, and
    /// is given up. The next that opens it to write sets some aside again.
    ///
    /// # Errors
    /// As when it is opened to write.
    pub fn open_to_remove(home: &Path) -> Result<Self, JournalFault> {
        let give_up =
            |folder: &Path| reserve::give_up(folder).map_err(|error| fault::from_io(folder, &error));
        Self::open_with(home, u64::MAX, give_up).map(|(journal, _)| journal)
    }

    /// Opens it, and does something before that under the lock.
    fn open_with(
        home: &Path,
        bytes_max: u64,
        before: impl FnOnce(&Path) -> Result<(), JournalFault>,
    ) -> Result<(Self, HomeFolder), JournalFault> {
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
        let link = open_to_write(&file, |link| loss::check(folder.path(), recorded, link))?;
        schema::prepare(&link)?;
        schema::bound(&link, bytes_max)?;
        let count = CommitCount::open(folder.path())?;
        count.write(commit_count::counted(&link)?, true)?;
        let (reader, mover) = (Reader::open(home)?, Link::open(&file, WRITES)?);
        let pen = Pen::new(link, count, FilesInPlace::new(folder.path()));
        Ok((Self { reader, writer: Some(Writer::start(pen, mover, lock)) }, folder))
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
}

/// How a file is opened to write. It is there: SQLite would make it for more than its owner.
const WRITES: OpenFlags = OpenFlags::SQLITE_OPEN_READ_WRITE.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// Refuses another program's database before anything is changed, be it the folder's mode. What cannot be read like this
/// is looked at once more when it is opened to write.
fn not_foreign(file: &Path) -> Result<(), JournalFault> {
    if !fs::metadata(file).is_ok_and(|found| found.len() > 0) {
        return Ok(());
    }
    match Link::open_still(file).and_then(|link| schema::ours(&link)) {
        Err(fault @ JournalFault::HomeRefused { .. }) => Err(fault),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// A connection that writes, to a file that is ours and passes a check. Until then what is in a write-ahead file, be it
/// another program's or damaged, stays there.
fn open_to_write(
    file: &Path,
    check: impl FnOnce(&Link) -> Result<(), JournalFault>,
) -> Result<Link, JournalFault> {
    let link = Link::open(file, WRITES)?;
    loss::keep_wal_on_close(&link, true)?;
    schema::ours(&link)?;
    check(&link)?;
    loss::keep_wal_on_close(&link, false)?;
    Ok(link)
}

/// Refuses what is left of a file that was cut or deleted. SQLite takes one of at most one byte for an empty database and
/// begins anew; if there is a write-ahead file, it deletes that, whoever only looks included.
fn not_cut(file: &Path) -> Result<(), JournalFault> {
    let bytes = |path: &Path| fs::metadata(path).map_or(0, |found| found.len());
    let reason = match (bytes(file), bytes(&loss::wal_of(file))) {
        (1, _) => "one byte is left of it",
        (0, 1..) => "nothing is left of it but its write-ahead file",
        _ => return Ok(()),
    };
    Err(JournalFault::DamagedFile { path: file.display().to_string(), reason: reason.to_owned() })
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
        self.reader.read(|link| read::entries(link, tree, after, batches_max))
    }

    fn head(&self, tree: TreeId) -> Result<Option<Head>, JournalFault> {
        self.reader.read(|link| read::head(link, tree))
    }

    fn heads(&self, states: &[&str]) -> Result<Vec<Head>, JournalFault> {
        self.reader.read(|link| read::heads(link, states))
    }

    fn catalog(&self, kind: CatalogKind, prefix: &str) -> Result<Vec<Fact>, JournalFault> {
        self.reader.read(|link| read::catalog(link, kind, prefix))
    }

    fn replace_catalog(&self, tree: TreeId, at: Seq, rows: Vec<CatalogRow>) -> Result<(), JournalFault> {
        bound::check_rows(&rows)?;
        self.change(Change::Replace(tree, at, rows))
    }

    fn blob(&self, blob: &BlobRef) -> Result<Option<Vec<u8>>, JournalFault> {
        self.reader.read(|link| read::blob(link, blob))
    }

    fn remove(&self, tree: TreeId, shared: Shared) -> Result<(), JournalFault> {
        self.change(Change::Remove(tree, shared))
    }
}
