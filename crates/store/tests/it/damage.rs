//! Damage: stored data differs from what was written. It is always detected and named.

use std::fs;

use rusqlite::Connection;
use spinney_journal::{Batch, Blocking, Journal, JournalFault, Shared, verify_chain};
use spinney_kernel::primitives::{Durability, Seq, TreeId};
use spinney_kernel::world::TreeState;
use spinney_store::{Access, OpenHomeError, SqliteJournal};
use spinney_testkit::conformance;

use super::{TREE, file, filled, open};

/// The change to the file, the number of the last intact batch, and the reported fault.
const CHANGES: [(&str, usize, &str); 11] = [
    (
        "UPDATE batches SET body = replace(body, 'all done', 'all dine') WHERE body LIKE '%all done%'",
        LAST - 3,
        BYTES,
    ),
    ("UPDATE batches SET body = body || ' ' WHERE id = (SELECT min(id) FROM batches)", 0, BYTES),
    ("UPDATE batches SET body = 'not json' WHERE id = (SELECT max(id) FROM batches)", LAST - 1, BYTES),
    ("UPDATE batches SET body = zeroblob(9) WHERE id = (SELECT max(id) FROM batches)", LAST - 1, BYTES),
    ("UPDATE batches SET hash = zeroblob(32) WHERE id = (SELECT min(id) FROM batches)", 0, BYTES),
    ("UPDATE batches SET hash = x'00' WHERE id = (SELECT min(id) FROM batches)", 0, "a hash of 1 bytes"),
    (
        "DELETE FROM batches WHERE id = (SELECT id FROM batches ORDER BY id LIMIT 1 OFFSET 3)",
        3,
        "the next batch begins after",
    ),
    (
        "UPDATE batches SET body = (SELECT other.body FROM batches AS other WHERE other.id <> batches.id AND
         other.id IN (SELECT id FROM batches ORDER BY id LIMIT 2 OFFSET 5))
         WHERE id IN (SELECT id FROM batches ORDER BY id LIMIT 2 OFFSET 5)",
        5,
        BYTES,
    ),
    ("DELETE FROM batches WHERE id = (SELECT max(id) FROM batches)", LAST - 1, "its head is at event"),
    ("UPDATE heads SET seq = seq + 1", LAST, "its head is at event"),
    ("UPDATE heads SET hash = zeroblob(32)", LAST, "its head says 0000"),
];

/// How many batches there are.
const LAST: usize = 13;
const BYTES: &str = "do not match their hash";

#[test]
fn every_change_of_a_chain_is_found_and_named() {
    assert_eq!(conformance::batches().len(), LAST);
    for (change, whole, said) in CHANGES {
        let home = tempfile::tempdir().unwrap();
        filled(home.path(), Durability::Normal);
        let connection = Connection::open(file(home.path())).unwrap();
        assert!(connection.execute(change, []).unwrap() > 0, "{change}");
        drop(connection);
        let found = verify_chain(&open(home.path()), TREE, None).wait();
        let Err(JournalFault::Damaged { tree: TREE, after, reason }) = found else {
            panic!("{change}: {found:?}")
        };
        assert!(reason.contains(said), "{change}: {reason}");
        let events = |batches: &[Batch]| batches.iter().map(|batch| batch.events.len() as u64).sum::<u64>();
        assert_eq!(after, events(&conformance::batches()[..whole]), "{change}");
    }
}

/// A truncated tree with a corrected head has a valid chain: only a reader with its hash detects it.
#[test]
fn a_tail_that_was_cut_off_with_its_head_is_found_by_the_hash() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path(), Durability::Normal);
    let right = open(home.path()).head(TREE).wait().unwrap().unwrap().hash;
    let connection = Connection::open(file(home.path())).unwrap();
    let cut = "DELETE FROM batches WHERE id = (SELECT max(id) FROM batches);
        UPDATE heads SET last = (SELECT max(id) FROM batches);
        UPDATE heads SET hash = (SELECT hash FROM batches ORDER BY id DESC LIMIT 1);
        UPDATE heads SET seq = (SELECT max(after) FROM batches) +
            (SELECT json_array_length(body, '$.events') FROM batches ORDER BY id DESC LIMIT 1);";
    connection.execute_batch(cut).unwrap();
    drop(connection);
    let journal = open(home.path());
    let left = verify_chain(&journal, TREE, None).wait().unwrap();
    assert_ne!(left, right);
    let found = verify_chain(&journal, TREE, Some(right)).wait();
    assert!(matches!(found, Err(JournalFault::Damaged { .. })), "{found:?}");
}

/// Data that only helps to find batches may be wrong: they are found anyway.
#[test]
fn a_broken_way_to_a_batch_loses_none() {
    for change in [
        "UPDATE batches SET before = before - 1 WHERE id = 9",
        "UPDATE batches SET before = id WHERE id = 9",
        "UPDATE batches SET before = 1000 WHERE id = 9",
        "UPDATE batches SET before = NULL WHERE id = 9",
        "UPDATE heads SET last = 1000",
        "UPDATE heads SET last = NULL",
        "UPDATE marks SET batch = 1000, after = 5",
        "DELETE FROM marks",
    ] {
        let home = tempfile::tempdir().unwrap();
        filled(home.path(), Durability::Normal);
        let connection = Connection::open(file(home.path())).unwrap();
        assert!(connection.execute(change, []).unwrap() > 0, "{change}");
        drop(connection);
        assert_eq!(all(home.path()), Ok(conformance::batches()), "{change}");
        assert_eq!(open(home.path()).remove(TREE, Shared::Refuse).wait(), Ok(()), "{change}");
    }
}

#[test]
fn nothing_is_written_behind_a_tail_that_was_cut_off() {
    let home = tempfile::tempdir().unwrap();
    let events = filled(home.path(), Durability::Normal);
    let connection = Connection::open(file(home.path())).unwrap();
    connection.execute("DELETE FROM batches WHERE id = (SELECT max(id) FROM batches)", []).unwrap();
    drop(connection);
    let journal = open(home.path());
    let more = conformance::append_for(TREE, Seq(events), &conformance::batches()[1]);
    let refused = conformance::append(&journal, more);
    assert!(matches!(refused, Err(JournalFault::Damaged { tree: TREE, .. })), "{refused:?}");
    let other = TreeId::new([2; 16]);
    let well =
        conformance::append(&journal, conformance::append_for(other, Seq(0), &conformance::batches()[0]));
    assert!(well.is_ok(), "{well:?}");
    assert_eq!(journal.remove(TREE, Shared::Refuse).wait(), Ok(()));
}

#[test]
fn a_file_that_is_no_journal_is_named() {
    let home = tempfile::tempdir().unwrap();
    for junk in [vec![b'x'; 5_000], vec![0; 5_000], b"SQLite format 3\0".to_vec(), b"x".to_vec()] {
        fs::write(file(home.path()), &junk).unwrap();
        for access in [Access::Write, Access::ReadOnly] {
            let fault = SqliteJournal::open(home.path(), access).err();
            let Some(OpenHomeError::Damaged { path, .. }) = fault else { panic!("{} {fault:?}", junk.len()) };
            assert_eq!(path, file(home.path()).display().to_string());
        }
    }
}

/// Opens, lists and reads everything.
fn all(home: &std::path::Path) -> Result<Vec<Batch>, JournalFault> {
    let opened = SqliteJournal::open(home, Access::Write);
    let journal = opened.map_err(|error| match error {
        OpenHomeError::Refused { .. } | OpenHomeError::Newer { .. } => {
            JournalFault::DamagedStore { reason: error.to_string() }
        }
        other => other.into(),
    })?;
    journal.heads(&[]).wait()?;
    journal.catalog(spinney_journal::CatalogKind::Tree, "").wait()?;
    let entries = journal.read(TREE, Seq(0), usize::MAX).wait()?;
    // A page may end early at torn data; the chain's head shows it.
    verify_chain(&journal, TREE, None).wait()?;
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
        let named = matches!(ended, Err(JournalFault::DamagedStore { .. } | JournalFault::Damaged { .. }));
        assert!(named, "{part}: {ended:?}");
    }
}

/// A flipped bit anywhere in the file is detected, or concerns nothing that is read.
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

/// States are words in the file, and only words that we write are read.
#[test]
fn a_state_that_no_tree_can_have_is_damage() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path(), Durability::Normal);
    let connection = Connection::open(file(home.path())).unwrap();
    let set = |word: &str| connection.execute("UPDATE heads SET state = ?1", [word]).unwrap();
    set("stopped");
    let head = open(home.path()).head(TREE).wait().unwrap().unwrap();
    assert_eq!(head.state, TreeState::Suspended);
    set("sleeping");
    let fault = open(home.path()).head(TREE).wait().unwrap_err();
    assert!(
        matches!(&fault, JournalFault::DamagedStore { reason } if reason.contains("sleeping")),
        "{fault}"
    );
}
