//! Files from older versions are migrated without loss.

use std::path::Path;

use rusqlite::{Connection, params};
use spinney_journal::{
    Blocking, CatalogKind, ChainHash, Entry, Fact, Head, Journal, JournalFault, verify_chain,
};
use spinney_kernel::primitives::{Durability, Seq};
use spinney_kernel::world::TreeState;
use spinney_store::{Access, OpenHomeError, SqliteJournal};
use spinney_testkit::conformance;

use super::{TREE, file, filled, open};

/// The trees of version 1.
const TREES: &str = "
CREATE TABLE trees (
    id INTEGER PRIMARY KEY,
    tree BLOB NOT NULL UNIQUE,
    seq INTEGER NOT NULL,
    hash BLOB NOT NULL,
    state TEXT NOT NULL,
    started INTEGER NOT NULL,
    changed INTEGER NOT NULL
);
";

/// The other tables of version 1.
const FIRST: &str = "
CREATE TABLE batches (
    key INTEGER PRIMARY KEY,
    hash BLOB NOT NULL,
    body TEXT NOT NULL
);
CREATE TABLE blobs (
    hash BLOB NOT NULL PRIMARY KEY,
    bytes BLOB NOT NULL
);
CREATE TABLE blob_uses (
    hash BLOB NOT NULL,
    tree INTEGER NOT NULL,
    PRIMARY KEY (hash, tree)
) WITHOUT ROWID;
CREATE INDEX blob_uses_by_tree ON blob_uses (tree);
CREATE VIEW journal AS
    SELECT lower(hex(trees.tree)) AS tree, batches.key & 0xffffffffff AS after, lower(hex(batches.hash)) AS hash, batches.body AS body
    FROM batches JOIN trees ON trees.id = batches.key >> 40;
PRAGMA user_version = 1;
PRAGMA journal_mode = WAL;
";

/// The view of batches for people, from version 3 on.
const VIEW: &str = "
CREATE VIEW journal AS
    SELECT lower(hex(trees.tree)) AS tree, after, lower(hex(batches.hash)) AS hash, body
    FROM batches JOIN trees ON trees.id = batches.tree ORDER BY batches.id;
";

/// A home of version 1 with one tree, and another whose only batch is not JSON.
fn first(home: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let connection = Connection::open(file(home))?;
    connection.execute_batch(&format!("{TREES}{FIRST}"))?;
    let (mut after, mut hash) = (0, ChainHash::start(TREE));
    for mut batch in conformance::batches() {
        let events = batch.events.len() as u64;
        batch.fold();
        let body = serde_json::to_string(&batch)?;
        hash = hash.then(Seq(after), body.as_bytes());
        let row = params![(1_i64 << 40) + after as i64, hash.bytes(), body];
        connection.execute("INSERT INTO batches VALUES (?1, ?2, ?3)", row)?;
        after += events;
    }
    let trees = "INSERT INTO trees VALUES (?1, ?2, ?3, ?4, 'running', 0, 0)";
    connection.execute(trees, params![1, TREE.bytes(), after as i64, hash.bytes()])?;
    connection.execute(trees, params![2, [2_u8; 16], 1, hash.bytes()])?;
    connection.execute("INSERT INTO batches VALUES (2 << 40, ?1, 'no json')", [hash.bytes()])?;
    Ok(())
}

/// Downgrades a file to version 7, which had heads in the rows of the trees and those of recently written trees in the
/// last row of the batches: four numbers per tree, seven bits per byte, and the beginning of the hash.
fn back_to_version_7(connection: &Connection, recent: &[u8]) -> rusqlite::Result<()> {
    let back = format!(
        "DROP VIEW journal;
        ALTER TABLE trees RENAME TO now;
        {TREES}
        ALTER TABLE trees ADD COLUMN last INTEGER;
        ALTER TABLE trees ADD COLUMN base INTEGER;
        ALTER TABLE trees ADD COLUMN base_seq INTEGER;
        ALTER TABLE trees ADD COLUMN base_batch INTEGER;
        ALTER TABLE trees ADD COLUMN seed BLOB;
        INSERT INTO trees
            SELECT now.id, now.tree, seq, hash, state, started, changed, last, base, base_seq, base_batch, seed
            FROM now JOIN heads ON heads.tree = now.id;
        DROP TABLE now;
        CREATE INDEX trees_by_state ON trees (state);
        UPDATE commits SET count = max(count, coalesce((SELECT max(number) FROM heads), 0));
        DROP TABLE heads;
        DROP INDEX catalog_reserved;
        ALTER TABLE catalog DROP COLUMN reserved;
        {VIEW}
        PRAGMA user_version = 7;"
    );
    connection.execute_batch(&back)?;
    connection.execute("INSERT INTO batches (tree, after, hash, body) VALUES (0, 0, x'', ?1)", [recent])?;
    Ok(())
}

/// The documentation names the version of a new file.
#[test]
fn the_documents_name_the_version_of_the_file() {
    let home = tempfile::tempdir().unwrap();
    drop(open(home.path()));
    let file = Connection::open(file(home.path())).unwrap();
    let version: u32 = file.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    let page = include_str!("../../../../docs/journal.md");
    let written = format!("The file's version is its `user_version`, {version} now.");
    assert!(page.contains(&written), "docs/journal.md does not say: {written}");
}

#[test]
fn a_file_of_version_1_is_brought_up_to_date() {
    let home = tempfile::tempdir().unwrap();
    first(home.path()).unwrap();
    let looked = SqliteJournal::open(home.path(), Access::ReadOnly).err();
    assert_eq!(looked, Some(OpenHomeError::Older { found: 1, known: 10 }));
    let journal = open(home.path());
    let read = journal.read(TREE, Seq(0), usize::MAX).wait().unwrap();
    assert_eq!(read.into_iter().map(|entry| entry.batch).collect::<Vec<_>>(), conformance::batches());
    let named = Fact { key: TREE.to_string(), tree: TREE, value: "fixture".to_owned() };
    assert_eq!(journal.catalog(CatalogKind::Tree, "").wait(), Ok(vec![named]));
    assert_eq!(journal.heads(&[TreeState::Running]).wait().unwrap().len(), 2);
    let looker = SqliteJournal::open(home.path(), Access::ReadOnly).unwrap();
    assert_eq!(looker.heads(&[]).wait(), journal.heads(&[]).wait());
}

/// Version 4 stored a tree's head only in its row.
#[test]
fn a_file_of_version_4_is_brought_up_to_date() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path(), Durability::Normal);
    let journal = open(home.path());
    let before = (journal.heads(&[]).wait(), journal.read(TREE, Seq(0), usize::MAX).wait());
    drop(journal);
    let connection = Connection::open(file(home.path())).unwrap();
    back_to_version_7(&connection, b"").unwrap();
    connection
        .execute_batch("DELETE FROM batches WHERE tree = 0; DROP TABLE commits; PRAGMA user_version = 4;")
        .unwrap();
    drop(connection);
    std::fs::remove_file(home.path().join("journal.head")).unwrap();
    let looked = SqliteJournal::open(home.path(), Access::ReadOnly).err();
    assert_eq!(looked, Some(OpenHomeError::Older { found: 4, known: 10 }));
    let journal = open(home.path());
    assert_eq!((journal.heads(&[]).wait(), journal.read(TREE, Seq(0), usize::MAX).wait()), before);
}

/// A home with one tree of two batches that was not closed in version 7: its own row has the head after the first.
/// Returns what a reader must find.
fn never_closed(home: &Path, recent_hash: &[u8]) -> (Option<Head>, Vec<Entry>) {
    let (journal, batch) = (open(home), &conformance::batches()[3]);
    let first = conformance::append(&journal, conformance::append_for(TREE, Seq(0), batch)).unwrap();
    let events = batch.events.len() as u64;
    let hash = conformance::append(&journal, conformance::append_for(TREE, Seq(events), batch)).unwrap();
    let found = (journal.head(TREE).wait().unwrap(), journal.read(TREE, Seq(0), usize::MAX).wait().unwrap());
    drop(journal);
    let connection = Connection::open(file(home)).unwrap();
    let recent_hash = if recent_hash.is_empty() { &hash.bytes()[..8] } else { recent_hash };
    let changed = found.0.as_ref().map_or(0, |head| head.changed.0);
    let mut recent = Vec::new();
    for mut number in [1, 2, 2 * events, changed] {
        while number >= 0x80 {
            recent.push(number as u8 | 0x80);
            number >>= 7;
        }
        recent.push(number as u8);
    }
    recent.extend_from_slice(recent_hash);
    back_to_version_7(&connection, &recent).unwrap();
    let old = "UPDATE trees SET seq = ?1, hash = ?2, changed = 0, last = 1";
    connection.execute(old, params![events as i64, first.bytes()]).unwrap();
    found
}

#[test]
fn a_file_of_version_7_that_was_never_closed_is_brought_up_to_date() {
    let home = tempfile::tempdir().unwrap();
    let (head, entries) = never_closed(home.path(), b"");
    let looked = SqliteJournal::open(home.path(), Access::ReadOnly).err();
    assert_eq!(looked, Some(OpenHomeError::Older { found: 7, known: 10 }));
    let journal = open(home.path());
    assert_eq!(journal.head(TREE).wait().unwrap(), head);
    assert_eq!(journal.read(TREE, Seq(0), usize::MAX).wait().unwrap(), entries);
    assert!(verify_chain(&journal, TREE, None).wait().is_ok());
    let next = conformance::append_for(TREE, head.unwrap().seq, &conformance::batches()[3]);
    assert!(conformance::append(&journal, next).is_ok());
}

/// Version 5 had a separate table for the recently written heads.
#[test]
fn a_file_of_version_5_that_was_never_closed_is_brought_up_to_date() {
    let home = tempfile::tempdir().unwrap();
    let (head, entries) = never_closed(home.path(), b"");
    let connection = Connection::open(file(home.path())).unwrap();
    let back = "CREATE TABLE lately (
    stands BLOB NOT NULL
);
        INSERT INTO lately (stands) SELECT body FROM batches WHERE tree = 0;
        DELETE FROM batches WHERE tree = 0;
        DROP TABLE commits;
        PRAGMA user_version = 5;";
    connection.execute_batch(back).unwrap();
    drop(connection);
    std::fs::remove_file(home.path().join("journal.head")).unwrap();
    let journal = open(home.path());
    assert_eq!(journal.head(TREE).wait().unwrap(), head);
    assert_eq!(journal.read(TREE, Seq(0), usize::MAX).wait().unwrap(), entries);
}

/// Damage in a file of version 7 is detected after its migration, or prevents it.
#[test]
fn bringing_a_file_up_to_date_covers_up_no_damage() {
    let home = tempfile::tempdir().unwrap();
    never_closed(home.path(), b"otherone");
    let journal = open(home.path());
    let found = verify_chain(&journal, TREE, None).wait();
    assert!(matches!(found, Err(JournalFault::Damaged { .. })), "{found:?}");
    drop(journal);
    for change in ["UPDATE batches SET body = x'ff' WHERE tree = 0", "DELETE FROM batches WHERE tree = 0"] {
        let home = tempfile::tempdir().unwrap();
        never_closed(home.path(), b"");
        assert_eq!(Connection::open(file(home.path())).unwrap().execute(change, []), Ok(1));
        let opened = SqliteJournal::open(home.path(), Access::Write).err();
        assert!(matches!(opened, Some(OpenHomeError::Damaged { .. })), "{change}: {opened:?}");
    }
}

/// An index finds running trees, so ended ones cost nothing.
#[test]
fn running_trees_are_found_by_an_index() {
    let home = tempfile::tempdir().unwrap();
    first(home.path()).unwrap();
    drop(open(home.path()));
    let connection = Connection::open(file(home.path())).unwrap();
    let plan: String = connection
        .query_row("EXPLAIN QUERY PLAN SELECT tree, seq FROM heads WHERE state = 'x'", [], |row| row.get(3))
        .unwrap();
    assert!(plan.contains("USING INDEX heads_by_state"), "{plan}");
}
