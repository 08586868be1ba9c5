//! What counts as a home, as far as its database decides: other programs' databases are refused, and no byte of their
//! folders changes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use spinney_journal::{Blocking, Journal, JournalFault, Shared};
use spinney_kernel::primitives::{Durability, Seq};
use spinney_store::{Access, HomeRefusal, OpenHomeError, SqliteJournal};
use spinney_testkit::conformance;

use super::{TREE, file, filled, open};

/// The mode and the bytes of every file of a folder, and the folder's own mode.
type Everything = (u32, BTreeMap<PathBuf, (u32, Vec<u8>)>);

fn everything(home: &Path) -> std::io::Result<Everything> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(home)? {
        let path = entry?.path();
        let about = (fs::metadata(&path)?.mode(), fs::read(&path)?);
        files.insert(path, about);
    }
    Ok((fs::metadata(home)?.mode(), files))
}

fn refused(home: &Path, application_id: i32) -> std::io::Result<()> {
    refused_as(home, &HomeRefusal::ForeignDatabase { application_id })
}

fn refused_as(home: &Path, why: &HomeRefusal) -> std::io::Result<()> {
    fs::set_permissions(home, fs::Permissions::from_mode(0o755))?;
    let before = everything(home)?;
    for access in [Access::Write, Access::ReadOnly] {
        let fault = SqliteJournal::open(home, access).err();
        let path = file(home).display().to_string();
        assert_eq!(fault, Some(OpenHomeError::Refused { path, why: why.clone() }), "{access:?}");
        assert!(everything(home)? == before, "{access:?} changed the folder");
    }
    Ok(())
}

/// G14 (foreign database): also one without an application id, or with one of our schema versions.
#[test]
fn databases_of_other_programs_are_refused_and_left_alone() {
    let plain = "CREATE TABLE cookies (name, value); INSERT INTO cookies VALUES ('a', 'b');";
    let fossil = format!("PRAGMA application_id = 0x0f055111; {plain}");
    let log = format!("PRAGMA journal_mode = WAL; {plain}");
    let version = format!("{plain} PRAGMA user_version = 6;");
    let half = "CREATE TABLE trees (id); CREATE TABLE batches (id); PRAGMA user_version = 6;";
    for (sql, id) in [(plain, 0), (&fossil, 0x0f05_5111), (&log, 0), (&version, 0), (half, 0)] {
        let home = tempfile::tempdir().unwrap();
        let connection = Connection::open(file(home.path())).unwrap();
        connection.execute_batch(sql).unwrap();
        drop(connection);
        refused(home.path(), id).unwrap();
    }
}

/// G14 (foreign database): one that was not closed, so only its WAL file has its tables.
#[test]
fn a_foreign_database_that_was_not_closed_is_left_alone() {
    let elsewhere = tempfile::tempdir().unwrap();
    let connection = Connection::open(file(elsewhere.path())).unwrap();
    connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE cookies (name);").unwrap();
    let home = crate::heads::crashed(elsewhere.path()).unwrap();
    drop(connection);
    refused(home.path(), 0).unwrap();
}

/// G14 (foreign database): a journal of ours that another program changed is refused before any of its statements runs:
/// what was planted, and what is said about it.
#[test]
fn a_journal_whose_schema_another_program_changed_is_refused_and_left_alone() {
    const MARK: &str = "INSERT INTO blobs VALUES (x'01', x'01')";
    // By a program that has the module.
    const VIRTUAL: &str = "PRAGMA writable_schema = ON; INSERT INTO sqlite_schema VALUES
        ('table', 'words', 'words', 0, 'CREATE VIRTUAL TABLE words USING fts5 (word)')";
    let trigger = format!("CREATE TRIGGER t AFTER INSERT ON batches BEGIN {MARK}; END");
    let on_view = format!("CREATE TRIGGER t INSTEAD OF INSERT ON journal BEGIN {MARK}; END");
    let changed = [
        (trigger.as_str(), "it has a trigger `t`"),
        (&on_view, "it has a trigger `t`"),
        ("CREATE VIEW v AS SELECT 1", "it has a view `v`"),
        ("DROP VIEW journal", "its view `journal` is missing"),
        ("DROP VIEW journal; CREATE VIEW journal AS SELECT 1", "its view `journal` was changed"),
        ("ALTER TABLE blobs RENAME TO b; CREATE VIEW blobs AS SELECT * FROM b", "it has a table `b`"),
        ("CREATE TABLE notes (text)", "it has a table `notes`"),
        (VIRTUAL, "it has a table `words`"),
        ("CREATE INDEX i ON batches (length(body))", "it has an index `i`"),
        ("CREATE INDEX i ON heads (state) WHERE abs(seq) > 1", "it has an index `i`"),
        ("DROP INDEX heads_by_state", "its index `heads_by_state` is missing"),
        (
            "DROP INDEX heads_by_state; CREATE INDEX heads_by_state ON heads (upper(state))",
            "its index `heads_by_state` was changed",
        ),
        ("ALTER TABLE heads ADD COLUMN g AS (abs(seq))", "its table `heads` was changed"),
        ("ALTER TABLE heads ADD COLUMN d DEFAULT 1", "its table `heads` was changed"),
        (
            "DROP TABLE commits; CREATE TABLE commits (count INTEGER NOT NULL CHECK (abs(count) > 0))",
            "its table `commits` was changed",
        ),
        ("DROP TABLE marks", "its table `marks` is missing"),
        ("ANALYZE", "it has a table `sqlite_stat1`"),
    ];
    for (sql, change) in changed {
        let home = tempfile::tempdir().unwrap();
        filled(home.path(), Durability::Normal);
        Connection::open(file(home.path())).unwrap().execute_batch(sql).unwrap();
        let why = HomeRefusal::ChangedSchema { change: change.to_owned() };
        refused_as(home.path(), &why).unwrap();
    }
}

/// G14 (foreign database): a trigger that comes while a process has the journal open does not run.
#[test]
fn a_trigger_that_is_planted_beside_a_writer_does_not_run() {
    let home = tempfile::tempdir().unwrap();
    let journal = open(home.path());
    let batch = &conformance::batches()[3];
    conformance::append(&journal, conformance::append_for(TREE, Seq(0), batch)).unwrap();
    let other = Connection::open(file(home.path())).unwrap();
    let plant = "CREATE TRIGGER t AFTER INSERT ON batches BEGIN INSERT INTO blobs VALUES (x'01', x'01'); END";
    other.execute_batch(plant).unwrap();
    let next = Seq(batch.events.len() as u64);
    let refused = conformance::append(&journal, conformance::append_for(TREE, next, batch));
    assert!(
        matches!(&refused, Err(JournalFault::Failed { reason }) if reason.contains("changed by another process")),
        "{refused:?}"
    );
    let planted: i64 =
        other.query_row("SELECT count(*) FROM blobs WHERE hash = x'01'", [], |row| row.get(0)).unwrap();
    assert_eq!(planted, 0);
}

/// The reserved space is given up to remove something, and reserved again.
#[test]
fn room_is_kept_for_removing_trees() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path(), Durability::Normal);
    let reserve = home.path().join("journal.reserve");
    let is_kept =
        || fs::metadata(&reserve).is_ok_and(|about| about.len() > 100_000 && about.mode() & 0o077 == 0);
    assert!(is_kept());
    let journal = SqliteJournal::open_writable_to_remove(home.path()).unwrap();
    assert!(!reserve.exists());
    assert_eq!(journal.remove(TREE, Shared::Refuse).wait(), Ok(()));
    drop(journal);
    drop(open(home.path()));
    assert!(is_kept());
}

/// A process may be killed while it makes a home. Whatever it leaves is a home that is not there yet or a whole one, and
/// never one of an older version, at which readers would stop.
#[test]
fn a_home_whose_maker_was_killed_is_new_or_whole() {
    let made = tempfile::tempdir().unwrap();
    let _journal = SqliteJournal::open(made.path(), Access::Write).unwrap();
    let (database, wal) = (file(made.path()), made.path().join("journal.sqlite3-wal"));
    let (database, wal) = (fs::read(database).unwrap(), fs::read(wal).unwrap());
    let page = usize::from(u16::from_be_bytes([database[16], database[17]]));
    // The log has a head of 32 bytes, and each page in it one of 24.
    let ends = (32..=wal.len()).step_by(24 + page).map(|end| (database.as_slice(), &wal[..end]));
    let states: Vec<(&[u8], &[u8])> =
        [(&[][..], &[][..]), (&database, &[])].into_iter().chain(ends).collect();
    assert!(states.len() > 10, "{}", states.len());
    let mut whole = 0;
    for (database, wal) in &states {
        let home = tempfile::tempdir().unwrap();
        fs::write(file(home.path()), database).unwrap();
        if !wal.is_empty() {
            fs::write(home.path().join("journal.sqlite3-wal"), wal).unwrap();
        }
        match SqliteJournal::open(home.path(), Access::ReadOnly) {
            Ok(_) => whole += 1,
            Err(OpenHomeError::NoHome { .. }) => assert_eq!(whole, 0),
            Err(other) => panic!("{} bytes of the log: {other}", wal.len()),
        }
        drop(SqliteJournal::open(home.path(), Access::Write).unwrap());
        SqliteJournal::open(home.path(), Access::ReadOnly).unwrap();
    }
    assert!(whole > 0);
}
