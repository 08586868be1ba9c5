//! Confirmed commits that are missing from a journal: detected at every open, and accepted only by a person.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use spinney_kernel::primitives::TreeId;
use spinney_kernel::world::TreeState;

use super::OpenHomeError;
use super::commit_count::{self, CommitCount, Recorded, counted};
use super::connection::{self, WRITES};
use super::fault::{damaged_file, from_io, opening};
use super::home_folder::{HomeFolder, SET_ASIDE};
use super::lock::Lock;
use super::wal;
use crate::layout::JOURNAL;
use crate::system;

/// What was lost, and where a copy of the found files is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Why the home did not open.
    pub error: OpenHomeError,
    /// The folder with the database, its WAL file and the count of commits as they were found.
    pub set_aside: PathBuf,
}

/// How often a missing or partial count is read again.
const RETRIES: u32 = 3;

pub(super) fn wal_of(database: &Path) -> PathBuf {
    database.with_extension("sqlite3-wal")
}

/// Refuses a database with fewer commits than were confirmed. `recorded` must be read before the connection reads the
/// database.
pub(super) fn check(home: &Path, recorded: Recorded, connection: &Connection) -> Result<(), OpenHomeError> {
    let mut recorded = recorded;
    let mut found = counted(connection)?;
    // A home that another process is just creating has no count yet, and a count that is being written may be read
    // half.
    for _ in 0..RETRIES {
        if matches!(recorded, Recorded::Count(_)) || (recorded == Recorded::Missing && found == 0) {
            break;
        }
        recorded = commit_count::recorded(home)?;
        found = counted(connection)?;
    }
    let unknown = |reason: &str| OpenHomeError::UnknownLoss {
        path: commit_count::path(home).display().to_string(),
        reason: reason.to_owned(),
    };
    match recorded {
        // A new home, or one written by a version that did not count.
        Recorded::Missing if found == 0 => Ok(()),
        Recorded::Missing => Err(unknown("it is missing")),
        Recorded::Unreadable => Err(unknown("its checksum is wrong")),
        Recorded::Count(confirmed) if found >= confirmed => Ok(()),
        Recorded::Count(confirmed) => {
            let wal = wal_of(&home.join(JOURNAL));
            let place = wal::locate(&wal).map_err(|error| from_io(&wal, &error))?.to_string();
            Err(OpenHomeError::Lost { found, confirmed, place, trees: unfinished(connection) })
        }
    }
}

/// Keeps the WAL file on close: by default SQLite moves it into the database and deletes it, and with it the evidence
/// of damage.
pub(super) fn keep_wal_on_close(connection: &Connection, keep: bool) -> Result<(), OpenHomeError> {
    let set = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep);
    set.map(drop).map_err(|error| opening(connection, &error))
}

/// Unfinished trees in what is left: missing commits were theirs, or belong to trees that are gone completely.
fn unfinished(connection: &Connection) -> Vec<TreeId> {
    // Before schema 8, heads were in the rows of the trees.
    let trees = ["heads JOIN trees ON trees.id = heads.tree", "trees"].into_iter().find_map(|from| {
        let sql = format!("SELECT trees.tree, state FROM {from} ORDER BY id");
        let mut found = connection.prepare(&sql).ok()?;
        let rows = found.query_map([], |row| Ok((TreeId::new(row.get(0)?), row.get(1)?))).ok()?;
        rows.collect::<rusqlite::Result<Vec<(TreeId, String)>>>().ok()
    });
    // A database without our tables has no trees; for an unreadable one they are unknown.
    let trees = trees.unwrap_or_default().into_iter();
    trees
        .filter(|(_, state)| !TreeState::of_word(state).is_some_and(TreeState::is_over))
        .map(|(tree, _)| tree)
        .collect()
}

/// Accepts that commits are missing from a home, so it opens again; does nothing if none are. A copy of
/// everything that was found stays in the home.
///
/// # Errors
/// If another process writes there, the disk fails, or what is left is not a valid database.
pub(super) fn accept(home: &Path) -> Result<Option<Loss>, OpenHomeError> {
    let database = home.join(JOURNAL);
    if !database.exists() && !commit_count::path(home).exists() {
        return Ok(None);
    }
    let folder = HomeFolder::to_write(home)?;
    let _lock = Lock::take(&folder)?;
    folder.close_to_others()?;
    let is_empty = |path: &Path| fs::metadata(path).map_or(0, |found| found.len()) == 0;
    if is_empty(&database) && !is_empty(&wal_of(&database)) {
        // SQLite would delete the WAL file before it could be read, so copy it first.
        let set_aside = copy_aside(home)?;
        remove(&wal_of(&database))?;
        remove(&database)?;
        CommitCount::open(home)?.write_through(0)?;
        let reason = "nothing was left of the database but its write-ahead file".to_owned();
        let path = database.display().to_string();
        return Ok(Some(Loss { error: OpenHomeError::UnknownLoss { path, reason }, set_aside }));
    }
    folder.make_journal()?;
    let recorded = commit_count::recorded(home)?;
    let Err(error) = probe(&database, |connection| check(home, recorded, connection))? else {
        return Ok(None);
    };
    if !error.is_loss() {
        return Err(error);
    }
    let set_aside = copy_aside(home)?;
    // The database may be ahead of the valid part of its WAL file: a WAL checkpoint moves pages before the file is
    // reset.
    let with_wal = whole_count(&set_aside.join(JOURNAL))?;
    let alone = set_aside.join("without-wal.sqlite3");
    copy(&database, &alone)?;
    let without_wal = whole_count(&alone)?;
    fs::remove_file(&alone).map_err(|error| from_io(&alone, &error))?;
    if with_wal.is_none() && without_wal.is_none() {
        return Err(damaged_file(&database, "what is left is not a whole database"));
    }
    if without_wal > with_wal {
        remove(&wal_of(&database))?;
    }
    // It describes the old WAL file; SQLite creates it again.
    remove(&database.with_extension("sqlite3-shm"))?;
    let left = with_wal.max(without_wal).unwrap_or_default();
    CommitCount::open(home)?.write_through(left)?;
    Ok(Some(Loss { error, set_aside }))
}

/// Reads a database without changing it or its WAL file.
fn probe<T>(database: &Path, look: impl FnOnce(&Connection) -> T) -> Result<T, OpenHomeError> {
    let connection = connection::open(database, WRITES)?;
    keep_wal_on_close(&connection, true)?;
    Ok(look(&connection))
}

/// The number of commits of a database, if it is intact.
fn whole_count(database: &Path) -> Result<Option<u64>, OpenHomeError> {
    probe(database, |connection| {
        let is_whole = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
        let count = counted(connection).ok()?;
        is_whole.is_ok_and(|said| said == "ok").then_some(count)
    })
}

/// Copies the database, its WAL file and the count of commits into a new folder of the home.
fn copy_aside(home: &Path) -> Result<PathBuf, OpenHomeError> {
    let free =
        (1_u32..).map(|number| home.join(format!("{SET_ASIDE}{number}"))).find(|folder| !folder.exists());
    let Some(folder) = free else { unreachable!("there are more numbers than folders") };
    system::create_private_folder(&folder).map_err(|error| from_io(&folder, &error))?;
    let database = home.join(JOURNAL);
    for file in [commit_count::path(home), wal_of(&database), database] {
        if let (true, Some(name)) = (file.exists(), file.file_name()) {
            copy(&file, &folder.join(name))?;
        }
    }
    Ok(folder)
}

/// The database must not be open in this process: closing the copied file drops SQLite's locks on it.
fn copy(from: &Path, to: &Path) -> Result<(), OpenHomeError> {
    fs::copy(from, to).map(drop).map_err(|error| from_io(from, &error))
}

fn remove(file: &Path) -> Result<(), OpenHomeError> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(from_io(file, &error)),
        Ok(()) | Err(_) => Ok(()),
    }
}
