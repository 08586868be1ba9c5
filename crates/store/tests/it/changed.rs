//! A journal that another process changes while it is open: nothing more is written.

use std::fs::{self, OpenOptions};
use std::path::Path;

use rusqlite::Connection;
use spinney_journal::{Append, Blocking, Journal};
use spinney_kernel::primitives::{Durability, Seq};
use spinney_store::{Access, SqliteJournal};
use spinney_testkit::conformance;

use super::{TREE, file, open};

/// Appends so many batches of the suite, from the first.
fn fill(journal: &SqliteJournal, batches: usize) -> Seq {
    conformance::batches().iter().take(batches).fold(Seq(0), |after, batch| {
        conformance::append(journal, conformance::append_for(TREE, after, batch)).unwrap();
        Seq(after.0 + batch.events.len() as u64)
    })
}

/// Tries to append the next batch, twice: a fault stays.
fn is_refused(journal: &SqliteJournal, after: Seq, batch: usize) -> String {
    let try_it = || {
        let append = conformance::append_for(TREE, after, &conformance::batches()[batch]);
        conformance::append(journal, append).map(drop).map_err(|fault| fault.to_string())
    };
    let (first, second) = (try_it(), try_it());
    assert_eq!(first, second);
    first.unwrap_err()
}

fn cut(path: &Path, bytes: u64) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(bytes).unwrap();
}

/// Whatever another process does to the rows, the next append is refused.
#[test]
fn rows_that_another_process_changed_are_noticed() {
    for change in [
        "DELETE FROM batches WHERE id = (SELECT max(id) FROM batches)",
        "DELETE FROM batches WHERE id = (SELECT min(id) FROM batches)",
        "UPDATE heads SET seq = seq - 1",
        "UPDATE heads SET hash = zeroblob(32)",
        "DELETE FROM heads",
        "DELETE FROM batches; DELETE FROM heads; DELETE FROM trees",
    ] {
        let home = tempfile::tempdir().unwrap();
        let journal = open(home.path());
        let after = fill(&journal, 3);
        Connection::open(file(home.path())).unwrap().execute_batch(change).unwrap();
        let fault = is_refused(&journal, after, 3);
        assert!(fault.contains("was changed by another process"), "{change}: {fault}");
    }
}

/// Also before the first append of this process.
#[test]
fn rows_that_changed_after_a_journal_was_opened_are_noticed() {
    let home = tempfile::tempdir().unwrap();
    let after = fill(&open(home.path()), 3);
    let journal = open(home.path());
    let change = "DELETE FROM batches WHERE id = (SELECT min(id) FROM batches)";
    Connection::open(file(home.path())).unwrap().execute_batch(change).unwrap();
    let fault = is_refused(&journal, after, 3);
    assert!(fault.contains("was changed by another process"), "{fault}");
}

type ChangeFiles = fn(&Path);

/// Files that were cut, emptied or replaced.
#[test]
fn files_that_another_process_cut_or_replaced_are_noticed() {
    let cases: [(&str, ChangeFiles); 5] = [
        ("an emptied database", |database| cut(database, 0)),
        ("a cut database", |database| cut(database, fs::metadata(database).unwrap().len() - 4_096)),
        ("an emptied WAL file", |database| cut(&database.with_extension("sqlite3-wal"), 0)),
        ("a cut WAL file", |database| {
            let log = database.with_extension("sqlite3-wal");
            cut(&log, fs::metadata(&log).unwrap().len() / 2);
        }),
        ("a replaced database", |database| {
            let copy = database.with_extension("copy");
            fs::copy(database, &copy).unwrap();
            fs::rename(copy, database).unwrap();
        }),
    ];
    for (what, change) in cases {
        let home = tempfile::tempdir().unwrap();
        // The first one leaves a database that is not empty.
        drop(open(home.path()));
        let journal = open(home.path());
        let after = fill(&journal, 3);
        change(&file(home.path()));
        let fault = is_refused(&journal, after, 3);
        let is_said =
            fault.contains("was changed by another process") || fault.contains("deleted or replaced");
        assert!(is_said, "{what}: {fault}");
    }
}

/// No reader changes anything, and neither does our own WAL checkpoint.
#[test]
fn readers_and_checkpoints_are_no_change() {
    let home = tempfile::tempdir().unwrap();
    let journal = open(home.path());
    let reader = Connection::open(file(home.path())).unwrap();
    let mut after = fill(&journal, 3);
    let batch = &conformance::batches()[3];
    for durability in [Durability::Normal, Durability::Full, Durability::Off] {
        // Some MiB, so the WAL file begins anew several times.
        for _ in 0..400 {
            let append = Append { durability, ..conformance::append_for(TREE, after, batch) };
            let blobs = vec![vec![after.0 as u8; 20_000], after.0.to_le_bytes().to_vec()];
            conformance::append(&journal, Append { blobs: blobs.into(), ..append }).unwrap();
            after = Seq(after.0 + batch.events.len() as u64);
            let found: i64 = reader.query_row("SELECT max(seq) FROM heads", [], |row| row.get(0)).unwrap();
            assert_eq!(found as u64, after.0);
        }
        let other = SqliteJournal::open(home.path(), Access::ReadOnly).unwrap();
        assert_eq!(other.head(TREE).wait().unwrap().unwrap().seq, after);
    }
}
