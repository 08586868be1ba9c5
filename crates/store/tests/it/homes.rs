//! What counts as a home, as far as its database decides: other programs' databases are refused, and no byte of their
//! folders changes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use spinney_journal::{Blocking, HomeRefusal, Journal, JournalFault, Shared};
use spinney_kernel::words::Durability;
use spinney_store::{Access, SqliteJournal};

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
    fs::set_permissions(home, fs::Permissions::from_mode(0o755))?;
    let before = everything(home)?;
    let why = HomeRefusal::ForeignDatabase { application_id };
    for access in [Access::Write, Access::Look] {
        let fault = SqliteJournal::open(home, access).err();
        let path = file(home).display().to_string();
        assert_eq!(fault, Some(JournalFault::HomeRefused { path, why }), "{access:?}");
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

/// G14 (foreign database): one that was not closed, so that only its WAL file has its tables.
#[test]
fn a_foreign_database_that_was_not_closed_is_left_alone() {
    let elsewhere = tempfile::tempdir().unwrap();
    let connection = Connection::open(file(elsewhere.path())).unwrap();
    connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE cookies (name);").unwrap();
    let home = crate::heads::crashed(elsewhere.path()).unwrap();
    drop(connection);
    refused(home.path(), 0).unwrap();
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
    let journal = SqliteJournal::open_to_remove(home.path()).unwrap();
    assert!(!reserve.exists());
    assert_eq!(journal.remove(TREE, Shared::Refuse).wait(), Ok(()));
    drop(journal);
    drop(open(home.path()));
    assert!(is_kept());
}
