//! The tables, and how an older file becomes a newer one. Each step is applied once, in order, in a transaction.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use spinney_journal::{HomeRefusal, JournalFault};

use super::fault::from_sqlite;
use super::home_folder::refused;
use super::recent_heads;

/// What our files say whose they are, where every SQLite file has room for it: `SPNY`.
const APPLICATION_ID: i32 = 0x5350_4e59;
/// Tables that every version of ours has.
const TABLES: [&str; 4] = ["batches", "blob_uses", "blobs", "trees"];

/// A tree's batches between two that are marked, at most.
pub(super) const MARK_EVERY: u32 = 64;

/// Pages in the write-ahead file after which a commit moves them to their places.
const WAL_PAGES: u32 = 1_000;
/// Most statements that are kept ready: more than we have.
const STATEMENTS_MAX: usize = 64;
/// The most pages that SQLite knows.
const PAGES_MAX: u32 = u32::MAX - 1;

const STEPS: [&str; 8] = [FIRST, CATALOG, ARRIVAL, BRANCHES, LATELY, LAST, COMMITS, HEADS];
/// Before this step, the recent heads are read from the one row that had them.
const HEADS_STEP: u32 = 8;

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

/// Facts that span trees, and trees by state. The names of the trees that are there are read from their first events.
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

/// Batches in the order in which they came, whosever they are, each with the one before it of its tree: so those that
/// are written together lie together. Every so many batches of a tree are marked, to be found by their place in it.
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

/// Branches: whose batches come before a tree's own, up to which event and which batch, and with whose start its chain
/// of hashes begins. Rows of the catalog are found by tree only when one is removed; an index for that would be
/// written with every row.
const BRANCHES: &str = "
ALTER TABLE trees ADD COLUMN base INTEGER;
ALTER TABLE trees ADD COLUMN base_seq INTEGER;
ALTER TABLE trees ADD COLUMN base_batch INTEGER;
ALTER TABLE trees ADD COLUMN seed BLOB;
DROP INDEX IF EXISTS catalog_by_tree;
";

/// The heads of recently written trees, packed into one row (schema 7 and older).
const LATELY: &str = "
CREATE TABLE lately (
    stands BLOB NOT NULL
);
INSERT INTO lately (stands) VALUES (x'');
";

/// The same, as the last row of the batches, of no tree: it lies on a page that is written anyway.
const LAST: &str = "
INSERT INTO batches (tree, after, hash, body) SELECT 0, 0, x'', stands FROM lately;
DROP TABLE lately;
";

/// How many transactions were committed, to be compared with what was confirmed.
const COMMITS: &str = "
CREATE TABLE commits (
    count INTEGER NOT NULL
);
INSERT INTO commits (count) VALUES (0);
";

/// Where trees stand, in a table of its own. [`recent_heads`] was folded into the rows of the trees before.
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

/// Makes the tables or brings them up to date.
pub(super) fn prepare(connection: &Connection) -> Result<(), JournalFault> {
    ours(connection)?;
    let from = version(connection)?;
    let sqlite = |error| from_sqlite(connection, &error);
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0)).map_err(sqlite)?;
    if mode != "wal" {
        let path = connection.path().unwrap_or_default().to_owned();
        let reason =
            format!("SQLite keeps journal mode `{mode}` here and does not switch to write-ahead logging");
        return Err(JournalFault::NotAllowed { path, reason });
    }
    // A transaction that spills leaves frames in the write-ahead file that nobody confirmed: after a kill they look like
    // damage.
    connection.pragma_update(None, "cache_spill", "OFF").map_err(sqlite)?;
    connection.pragma_update(None, "synchronous", "NORMAL").map_err(sqlite)?;
    connection.pragma_update(None, "wal_autocheckpoint", WAL_PAGES).map_err(sqlite)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // A plan that looks at the values is made anew for each of them, which takes five times as long as the query.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(sqlite)?;
    for (step, number) in STEPS.iter().zip(1_u32..).skip(from as usize) {
        let change =
            Transaction::new_unchecked(connection, TransactionBehavior::Immediate).map_err(sqlite)?;
        if number == HEADS_STEP {
            recent_heads::fold(connection)?;
        }
        connection.execute_batch(&format!("{step} PRAGMA user_version = {number};")).map_err(sqlite)?;
        change.commit().map_err(sqlite)?;
    }
    if application_id(connection)? != APPLICATION_ID {
        connection.pragma_update(None, "application_id", APPLICATION_ID).map_err(sqlite)?;
    }
    Ok(())
}

/// Refuses another program's file. One that says nothing of whose it is must have nothing in it, or our tables.
pub(super) fn ours(connection: &Connection) -> Result<(), JournalFault> {
    let sqlite = |error| from_sqlite(connection, &error);
    let application_id = application_id(connection)?;
    let is_ours = match application_id {
        APPLICATION_ID => true,
        0 => {
            let mut found = connection
                .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'")
                .map_err(sqlite)?;
            let names = found.query_map([], |row| row.get(0)).map_err(sqlite)?;
            let names = names.collect::<rusqlite::Result<Vec<String>>>().map_err(sqlite)?;
            let number: i64 =
                connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(sqlite)?;
            let has_ours = TABLES.iter().all(|table| names.iter().any(|name| name == table));
            if number == 0 { names.is_empty() } else { has_ours }
        }
        _ => false,
    };
    let path = Path::new(connection.path().unwrap_or_default());
    if is_ours { Ok(()) } else { Err(refused(path, HomeRefusal::ForeignDatabase { application_id })) }
}

fn application_id(connection: &Connection) -> Result<i32, JournalFault> {
    connection
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .map_err(|error| from_sqlite(connection, &error))
}

/// Lets the file grow to so many bytes. SQLite takes a bound below what is there for what is there.
pub(super) fn bound(connection: &Connection, bytes_max: u64) -> Result<(), JournalFault> {
    let sqlite = |error| from_sqlite(connection, &error);
    let page: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0)).map_err(sqlite)?;
    let pages_max =
        u32::try_from(bytes_max / u64::from(page.max(1))).unwrap_or(PAGES_MAX).clamp(1, PAGES_MAX);
    connection
        .pragma_update_and_check(None, "max_page_count", pages_max, |row| row.get::<_, i64>(0))
        .map(drop)
        .map_err(sqlite)
}

/// Refuses a file that is not as this version reads it.
pub(super) fn check(connection: &Connection, home: &Path) -> Result<(), JournalFault> {
    let (found, known) = (version(connection)?, STEPS.len() as u32);
    ours(connection)?;
    match found {
        0 => Err(JournalFault::NoHome { path: home.display().to_string() }),
        _ if found < known => Err(JournalFault::Older { found, known }),
        _ => Ok(()),
    }
}

/// The file's version, if it is one that we know.
fn version(connection: &Connection) -> Result<u32, JournalFault> {
    let sqlite = |error| from_sqlite(connection, &error);
    connection.busy_timeout(std::time::Duration::from_secs(10)).map_err(sqlite)?;
    let found = connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(sqlite)?;
    let known = STEPS.len() as u32;
    if found > known { Err(JournalFault::Newer { found, known }) } else { Ok(found) }
}
