//! Damage: what is stored is not what was written. It is found wherever it is, and named.

use std::fs;

use rusqlite::Connection;
use spinney_kernel::id::Seq;
use spinney_kernel::port::journal::{Durability, Journal, JournalFault};
use spinney_store::{Access, SqliteJournal};

use super::{TREE, file, filled, open};

/// One changed byte, a missing batch and batches in another order are found and named.
#[test]
fn damage_is_found_and_named() {
    let changes = [
        "UPDATE batches SET body = replace(body, 'all done', 'all dine') WHERE body LIKE '%all done%'",
        "DELETE FROM batches WHERE key = (SELECT min(key) FROM batches WHERE key > (SELECT min(key) FROM batches))",
        "UPDATE batches SET body = 'not json' WHERE key = (SELECT max(key) FROM batches)",
        "UPDATE batches SET hash = zeroblob(32) WHERE key = (SELECT min(key) FROM batches)",
    ];
    for change in changes {
        let home = tempfile::tempdir().unwrap();
        filled(home.path(), Durability::Normal);
        let connection = Connection::open(home.path().join("journal.sqlite3")).unwrap();
        assert_eq!(connection.execute(change, []).unwrap(), 1, "{change}");
        drop(connection);
        let read = open(home.path()).read(TREE, Seq(0), usize::MAX);
        assert!(matches!(read, Err(JournalFault::Damaged { tree: TREE, .. })), "{change}: {read:?}");
    }
}

#[test]
fn a_file_that_is_no_journal_is_named() {
    let home = tempfile::tempdir().unwrap();
    for junk in [vec![b'x'; 5_000], vec![0; 5_000], b"SQLite format 3\0".to_vec(), b"x".to_vec()] {
        fs::write(file(home.path()), &junk).unwrap();
        for access in [Access::Write, Access::Look] {
            let fault = SqliteJournal::open(home.path(), access).err();
            let Some(JournalFault::DamagedFile { path, .. }) = fault else {
                panic!("{} {fault:?}", junk.len())
            };
            assert_eq!(path, file(home.path()).display().to_string());
        }
    }
}

/// Opens, lists and reads; gives what was read.
fn all(home: &std::path::Path) -> Result<Vec<spinney_kernel::Batch>, JournalFault> {
    let journal = SqliteJournal::open(home, Access::Write)?;
    journal.heads(&[])?;
    journal.catalog(spinney_kernel::port::catalog::CatalogKind::Tree, "")?;
    let entries = journal.read(TREE, Seq(0), usize::MAX)?;
    Ok(entries.into_iter().map(|entry| entry.batch).collect())
}

#[test]
fn a_file_that_was_cut_is_named() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path(), Durability::Normal);
    let whole = fs::read(file(home.path())).unwrap();
    for part in [1, 100, whole.len() / 2, whole.len() - 5_000, whole.len() - 1] {
        fs::write(file(home.path()), &whole[..part]).unwrap();
        let read = all(home.path());
        let ended = read.map(|batches| batches.len());
        let named = matches!(ended, Err(JournalFault::DamagedFile { .. } | JournalFault::Damaged { .. }));
        assert!(named, "{part}: {ended:?}");
    }
}

/// A bit that flips somewhere in the file is either found or concerns nothing that is read.
#[test]
fn a_flipped_bit_never_gives_another_journal() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path(), Durability::Normal);
    let whole = fs::read(file(home.path())).unwrap();
    let right = all(home.path()).unwrap();
    let mut found = 0;
    for at in (0..whole.len()).step_by(61) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        let _ = fs::remove_file(file(home.path()).with_extension("sqlite3-wal"));
        fs::write(file(home.path()), &bytes).unwrap();
        match all(home.path()) {
            Ok(read) => assert!(read == right, "byte {at} changed what was read"),
            Err(JournalFault::Failed { reason }) => panic!("byte {at}: {reason}"),
            Err(_) => found += 1,
        }
    }
    assert!(found > 50, "{found}");
}
