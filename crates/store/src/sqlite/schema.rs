//! The tables, and the migrations from older schemas. Each step is applied once, in order, in a transaction; a new file
//! gets all of them in one.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::fault::opening;
use super::home_folder::refused;
use super::{HomeRefusal, OpenHomeError};
use super::{recent_heads, schema_check};

/// SQLite's application id of our files: `SPNY`.
const APPLICATION_ID: i32 = 0x5350_4e59;
/// Tables that all our schemas have.
const TABLES: [&str; 4] = ["batches", "blob_uses", "blobs", "trees"];

/// The most batches of a tree between two marked ones.
pub(super) const MARK_EVERY: u32 = 64;

/// WAL pages after which a commit runs a WAL checkpoint.
const WAL_PAGES: u32 = 1_000;
/// Prepared statements to cache: more than we have.
const STATEMENTS_MAX: usize = 64;
/// SQLite's maximum number of pages.
const PAGES_MAX: u32 = u32::MAX - 1;

pub(super) const STEPS: [&str; 10] =
    [FIRST, CATALOG, ARRIVAL, BRANCHES, RECENT, LAST, COMMITS, HEADS, NUMBERED, OWNED];
/// The hash of the schema that all of them make, for [`schema_check`].
pub(super) const NEWEST: &str = "98d5d873286756aad0ead8c9573b63adf88a53b9a3333022b5224387cfa53ae3";
/// Before this step, recent heads are read from their single row.
const HEADS_STEP: u32 = 8;
/// From these versions on, commits are counted: in a table, and with the heads.
pub(super) const COMMITS_VERSION: u32 = 7;
pub(super) const NUMBERED_VERSION: u32 = 9;

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
CREATE VIEW journal AS
    SELECT lower(hex(trees.tree)) AS tree, batches.key & 0xffffffffff AS after, lower(hex(batches.hash)) AS hash, batches.body AS body
    FROM batches JOIN trees ON trees.id = batches.key >> 40;
";

/// Facts that span trees, and trees by state. The names of existing trees are read from their first events.
const CATALOG: &str = "
CREATE TABLE catalog (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    tree INTEGER NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (kind, key)
) WITHOUT ROWID;
CREATE INDEX trees_by_state ON trees (state);
INSERT INTO catalog (kind, key, tree, value)
    SELECT 'tree', lower(hex(tree)), id, body ->> '$.events[0].definition.name'
    FROM trees JOIN batches ON key = id << 40
    WHERE json_valid(body) AND body ->> '$.events[0].definition.name' IS NOT NULL;
";

/// Batches of all trees in the order of arrival, each with its tree's previous one, so batches written together
/// are stored together. A tree's batches are marked at intervals, to be found by position.
const ARRIVAL: &str = "
DROP VIEW IF EXISTS journal;
ALTER TABLE batches RENAME TO old_batches;
CREATE TABLE batches (
    id INTEGER PRIMARY KEY,
    tree INTEGER NOT NULL,
    after INTEGER NOT NULL,
    before INTEGER,
    hash BLOB NOT NULL,
    body TEXT NOT NULL
);
CREATE TABLE marks (
    tree INTEGER NOT NULL,
    after INTEGER NOT NULL,
    batch INTEGER NOT NULL,
    PRIMARY KEY (tree, after)
) WITHOUT ROWID;
INSERT INTO batches (tree, after, hash, body)
    SELECT key >> 40, key & 0xffffffffff, hash, body FROM old_batches ORDER BY key;
DROP TABLE old_batches;
UPDATE batches SET before = id - 1 WHERE after > 0;
CREATE TEMP TABLE ends AS SELECT tree, min(id) AS first, max(id) AS last FROM batches GROUP BY tree;
INSERT INTO marks (tree, after, batch)
    SELECT tree, after, id FROM batches JOIN ends USING (tree) WHERE (id - first) % 64 = 0;
ALTER TABLE trees ADD COLUMN last INTEGER;
UPDATE trees SET last = (SELECT last FROM ends WHERE ends.tree = trees.id);
DROP TABLE ends;
CREATE VIEW journal AS
    SELECT lower(hex(trees.tree)) AS tree, after, lower(hex(batches.hash)) AS hash, body
    FROM batches JOIN trees ON trees.id = batches.tree ORDER BY batches.id;
";

/// Branches: the tree, event and batch that come before a tree's own batches, and the tree that seeds its hash chain.
/// Catalog rows are found by tree only when one is removed; an index for that would be written with every row.
const BRANCHES: &str = "
ALTER TABLE trees ADD COLUMN base INTEGER;
ALTER TABLE trees ADD COLUMN base_seq INTEGER;
ALTER TABLE trees ADD COLUMN base_batch INTEGER;
ALTER TABLE trees ADD COLUMN seed BLOB;
DROP INDEX IF EXISTS catalog_by_tree;
";

/// The heads of recently written trees, packed into one row (schema 7 and older).
const RECENT: &str = "
CREATE TABLE lately (
    stands BLOB NOT NULL
);
INSERT INTO lately (stands) VALUES (x'');
";

/// The same as the last row of the batches, of no tree: it is on a page that is written anyway.
const LAST: &str = "
INSERT INTO batches (tree, after, hash, body) SELECT 0, 0, x'', stands FROM lately;
DROP TABLE lately;
";

/// The number of committed transactions, to compare with what was confirmed.
const COMMITS: &str = "
CREATE TABLE commits (
    count INTEGER NOT NULL
);
INSERT INTO commits (count) VALUES (0);
";

/// Heads in their own table. [`recent_heads`] was folded into the rows of the trees before.
const HEADS: &str = "
CREATE TABLE heads (
    tree INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL,
    hash BLOB NOT NULL,
    state TEXT NOT NULL,
    changed INTEGER NOT NULL,
    last INTEGER
);
INSERT INTO heads (tree, seq, hash, state, changed, last) SELECT id, seq, hash, state, changed, last FROM trees;
CREATE INDEX heads_by_state ON heads (state);
DELETE FROM batches WHERE tree = 0 AND id = (SELECT max(id) FROM batches);
DROP INDEX trees_by_state;
ALTER TABLE trees DROP COLUMN seq;
ALTER TABLE trees DROP COLUMN hash;
ALTER TABLE trees DROP COLUMN state;
ALTER TABLE trees DROP COLUMN changed;
ALTER TABLE trees DROP COLUMN last;
";

/// Each head stores the number of the commit that wrote it, so an append writes no page only to count.
const NUMBERED: &str = "
ALTER TABLE heads ADD COLUMN number INTEGER;
";

/// Each head stores the epoch of the claim that it was last written under. A key of the catalog may be reserved for a tree
/// before the event that takes it; the index has only those.
const OWNED: &str = "
ALTER TABLE heads ADD COLUMN epoch INTEGER NOT NULL DEFAULT 1;
ALTER TABLE catalog ADD COLUMN reserved INTEGER NOT NULL DEFAULT 0;
CREATE INDEX catalog_reserved ON catalog (tree) WHERE reserved = 1;
";

/// Creates or migrates the tables.
pub(super) fn prepare(connection: &Connection) -> Result<(), OpenHomeError> {
    ours(connection)?;
    let from = version(connection)?;
    let sqlite = |error| opening(connection, &error);
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0)).map_err(sqlite)?;
    if mode != "wal" {
        let path = connection.path().unwrap_or_default().to_owned();
        let reason =
            format!("SQLite keeps journal mode `{mode}` here and does not switch to write-ahead logging");
        return Err(OpenHomeError::NotAllowed { path, reason });
    }
    // A transaction that spills leaves unconfirmed frames in the WAL file, which look like damage after a kill.
    connection.pragma_update(None, "cache_spill", "OFF").map_err(sqlite)?;
    connection.pragma_update(None, "synchronous", "NORMAL").map_err(sqlite)?;
    connection.pragma_update(None, "wal_autocheckpoint", WAL_PAGES).map_err(sqlite)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Without this, plans depend on bound values and are made again for each, which takes five times as long as the
    // query.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(sqlite)?;
    let begin = || Transaction::new_unchecked(connection, TransactionBehavior::Immediate).map_err(sqlite);
    // A new file gets all of them at once, so a reader never finds an older version of it.
    let all = if from == 0 { Some(begin()?) } else { None };
    for (step, number) in STEPS.iter().zip(1_u32..).skip(from as usize) {
        let change = if all.is_none() { Some(begin()?) } else { None };
        if number == HEADS_STEP {
            recent_heads::fold(connection)?;
        }
        connection.execute_batch(&format!("{step} PRAGMA user_version = {number};")).map_err(sqlite)?;
        change.map(Transaction::commit).transpose().map_err(sqlite)?;
    }
    all.map(Transaction::commit).transpose().map_err(sqlite)?;
    if application_id(connection)? != APPLICATION_ID {
        connection.pragma_update(None, "application_id", APPLICATION_ID).map_err(sqlite)?;
    }
    Ok(())
}

/// Refuses another program's file, and one of our files that another program changed. A file without an application id must
/// be empty or have our tables.
pub(super) fn ours(connection: &Connection) -> Result<(), OpenHomeError> {
    let sqlite = |error| opening(connection, &error);
    // One snapshot: another process may be creating the tables.
    let snapshot = connection.unchecked_transaction().map_err(sqlite)?;
    let application_id = application_id(connection)?;
    let number: i64 =
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(sqlite)?;
    let is_ours = match application_id {
        APPLICATION_ID => true,
        0 => {
            let mut found = connection
                .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'")
                .map_err(sqlite)?;
            let names = found.query_map([], |row| row.get(0)).map_err(sqlite)?;
            let names = names.collect::<rusqlite::Result<Vec<String>>>().map_err(sqlite)?;
            let has_ours = TABLES.iter().all(|table| names.iter().any(|name| name == table));
            if number == 0 { names.is_empty() } else { has_ours }
        }
        _ => false,
    };
    // Only a newer version knows what it makes; it is refused as such.
    let steps = usize::try_from(number).ok().and_then(|number| STEPS.get(..number)).filter(|_| is_ours);
    let change = steps.map(|steps| {
        let known = (steps.len() == STEPS.len()).then_some(NEWEST);
        schema_check::change(connection, steps, known)
    });
    let change = change.transpose().map_err(sqlite)?;
    snapshot.commit().map_err(sqlite)?;
    let path = Path::new(connection.path().unwrap_or_default());
    match change.flatten() {
        _ if !is_ours => Err(refused(path, HomeRefusal::ForeignDatabase { application_id })),
        Some(change) => Err(refused(path, HomeRefusal::ChangedSchema { change })),
        None => Ok(()),
    }
}

fn application_id(connection: &Connection) -> Result<i32, OpenHomeError> {
    connection
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .map_err(|error| opening(connection, &error))
}

/// Limits the file's size. SQLite raises a limit below the current size to that size.
pub(super) fn bound(connection: &Connection, bytes_max: u64) -> Result<(), OpenHomeError> {
    let sqlite = |error| opening(connection, &error);
    let page: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0)).map_err(sqlite)?;
    let pages_max =
        u32::try_from(bytes_max / u64::from(page.max(1))).unwrap_or(PAGES_MAX).clamp(1, PAGES_MAX);
    connection
        .pragma_update_and_check(None, "max_page_count", pages_max, |row| row.get::<_, i64>(0))
        .map(drop)
        .map_err(sqlite)
}

/// Refuses a file with the schema of another version.
pub(super) fn check(connection: &Connection, home: &Path) -> Result<(), OpenHomeError> {
    let (found, known) = (version(connection)?, STEPS.len() as u32);
    match found {
        0 => Err(OpenHomeError::NoHome { path: home.display().to_string() }),
        _ if found < known => Err(OpenHomeError::Older { found, known }),
        _ => Ok(()),
    }
}

/// The file's schema version, if it is known.
pub(super) fn version(connection: &Connection) -> Result<u32, OpenHomeError> {
    let sqlite = |error| opening(connection, &error);
    connection.busy_timeout(std::time::Duration::from_secs(10)).map_err(sqlite)?;
    let found = connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(sqlite)?;
    let known = STEPS.len() as u32;
    if found > known { Err(OpenHomeError::Newer { found, known }) } else { Ok(found) }
}
