//! Files that an older version wrote are brought up to date, with nothing lost.

use std::path::Path;

use rusqlite::{Connection, params};
use spinney_journal::{CatalogKind, ChainHash, Fact, Journal, JournalFault};
use spinney_kernel::words::{Durability, Seq};
use spinney_store::{Access, SqliteJournal};
use spinney_testkit::conformance;

use super::{TREE, file, filled, open};

/// The tables as version 1 made them.
const FIRST: &str = "
CREATE TABLE trees (
    id INTEGER PRIMARY KEY,
    tree BLOB NOT NULL UNIQUE,
    seq INTEGER NOT NULL,
    hash BLOB NOT NULL,
    state TEXT NOT NULL,
    started INTEGER NOT NULL,
    changed INTEGER NOT NULL
);
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
PRAGMA user_version = 1;
PRAGMA journal_mode = WAL;
";

/// A home of version 1 with one tree in it, and one whose only batch is not JSON.
fn first(home: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let connection = Connection::open(file(home))?;
    connection.execute_batch(FIRST)?;
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

/// The page that people read names the version that a new file has.
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
    let looked = SqliteJournal::open(home.path(), Access::Look).err();
    assert_eq!(looked, Some(JournalFault::Older { found: 1, known: 7 }));
    let journal = open(home.path());
    let read = journal.read(TREE, Seq(0), usize::MAX).unwrap();
    assert_eq!(read.into_iter().map(|entry| entry.batch).collect::<Vec<_>>(), conformance::batches());
    let named = Fact { key: TREE.to_string(), tree: TREE, value: "fixture".to_owned() };
    assert_eq!(journal.catalog(CatalogKind::Tree, ""), Ok(vec![named]));
    assert_eq!(journal.heads(&["running"]).unwrap().len(), 2);
    let looker = SqliteJournal::open(home.path(), Access::Look).unwrap();
    assert_eq!(looker.heads(&[]), journal.heads(&[]));
}

/// Version 4 wrote where a tree stands into its row only.
#[test]
fn a_file_of_version_4_is_brought_up_to_date() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path(), Durability::Normal);
    let journal = open(home.path());
    let before = (journal.heads(&[]), journal.read(TREE, Seq(0), usize::MAX));
    drop(journal);
    let connection = Connection::open(file(home.path())).unwrap();
    connection
        .execute_batch("DELETE FROM batches WHERE tree = 0; DROP TABLE commits; PRAGMA user_version = 4;")
        .unwrap();
    drop(connection);
    std::fs::remove_file(home.path().join("journal.head")).unwrap();
    let looked = SqliteJournal::open(home.path(), Access::Look).err();
    assert_eq!(looked, Some(JournalFault::Older { found: 4, known: 7 }));
    let journal = open(home.path());
    assert_eq!((journal.heads(&[]), journal.read(TREE, Seq(0), usize::MAX)), before);
}

/// Version 5 had a table of its own for where trees stood lately.
#[test]
fn a_file_of_version_5_that_was_never_closed_is_brought_up_to_date() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path(), Durability::Normal);
    let journal = open(home.path());
    let batch = &conformance::batches()[0];
    let after = journal.head(TREE).unwrap().unwrap().seq;
    for number in 0..2 {
        let after = Seq(after.0 + number * batch.events.len() as u64);
        conformance::append(&journal, conformance::of(TREE, after, batch)).unwrap();
    }
    let copy = crate::lately::crashed(home.path()).unwrap();
    let connection = Connection::open(file(copy.path())).unwrap();
    let back = "CREATE TABLE lately (stands BLOB NOT NULL);
        INSERT INTO lately (stands) SELECT body FROM batches WHERE tree = 0;
        DELETE FROM batches WHERE tree = 0;
        DROP TABLE commits;
        PRAGMA user_version = 5;";
    connection.execute_batch(back).unwrap();
    std::fs::remove_file(copy.path().join("journal.head")).unwrap();
    let length: i64 =
        connection.query_row("SELECT length(stands) FROM lately", [], |row| row.get(0)).unwrap();
    assert!(length > 0);
    drop(connection);
    let later = open(copy.path());
    assert_eq!(later.heads(&[]), journal.heads(&[]));
    assert_eq!(later.read(TREE, Seq(0), usize::MAX), journal.read(TREE, Seq(0), usize::MAX));
}

/// Running trees are found by an index, so that ended ones cost nothing.
#[test]
fn running_trees_are_found_by_an_index() {
    let home = tempfile::tempdir().unwrap();
    first(home.path()).unwrap();
    drop(open(home.path()));
    let connection = Connection::open(file(home.path())).unwrap();
    let plan: String = connection
        .query_row("EXPLAIN QUERY PLAN SELECT tree, seq FROM trees WHERE state = 'x'", [], |row| row.get(3))
        .unwrap();
    assert!(plan.contains("USING INDEX trees_by_state"), "{plan}");
}
