//! The tables, and how an older file becomes a newer one. Each step is applied once, in order, in a transaction.

use rusqlite::Connection;
use spinney_kernel::port::journal::JournalFault;

use super::fault::from_sqlite;

/// A batch's key: the tree's row number in the high bits, the event before it in the low ones. So a tree's batches
/// lie together, in order, without a second index.
pub(super) const SEQ_BITS: u32 = 40;

const STEPS: [&str; 1] = ["
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
"];

/// Makes the tables or brings them up to date.
pub(super) fn prepare(connection: &Connection) -> Result<(), JournalFault> {
    check(connection)?;
    let sqlite = |error| from_sqlite(&error);
    connection.pragma_update(None, "journal_mode", "WAL").map_err(sqlite)?;
    connection.pragma_update(None, "synchronous", "NORMAL").map_err(sqlite)?;
    let from = version(connection)?;
    for (step, number) in STEPS.iter().zip(1_u32..).skip(from as usize) {
        let change = format!("BEGIN IMMEDIATE; {step} PRAGMA user_version = {number}; COMMIT;");
        connection.execute_batch(&change).map_err(sqlite)?;
    }
    Ok(())
}

/// Refuses a file that a newer version wrote.
pub(super) fn check(connection: &Connection) -> Result<(), JournalFault> {
    connection.busy_timeout(std::time::Duration::from_secs(10)).map_err(|error| from_sqlite(&error))?;
    let (found, known) = (version(connection)?, STEPS.len() as u32);
    if found > known { Err(JournalFault::Newer { found, known }) } else { Ok(()) }
}

fn version(connection: &Connection) -> Result<u32, JournalFault> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(|error| from_sqlite(&error))
}
