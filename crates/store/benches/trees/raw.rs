//! The reference: bare inserts through the same library.

use rusqlite::{Connection, params};
use spinney_kernel::primitives::Durability;
use tempfile::TempDir;

use crate::tree;

/// The minimum that any store must do: a row like ours in a table like ours.
pub(crate) struct Raw {
    connection: Connection,
    body: String,
    next: i64,
    _home: TempDir,
}

impl Raw {
    pub(crate) fn new(durability: Durability) -> Self {
        let home = tree::folder();
        let made = || -> rusqlite::Result<Connection> {
            let connection = Connection::open(home.path().join("raw.sqlite3"))?;
            connection.pragma_update(None, "journal_mode", "WAL")?;
            let level = if durability == Durability::Full { "FULL" } else { "NORMAL" };
            connection.pragma_update(None, "synchronous", level)?;
            connection.execute_batch(
                "CREATE TABLE batches (key INTEGER PRIMARY KEY, hash BLOB NOT NULL, body TEXT NOT NULL)",
            )?;
            Ok(connection)
        };
        let connection = made().unwrap_or_else(|error| panic!("{error}"));
        Self { connection, body: "z".repeat(700), next: 0, _home: home }
    }

    /// One row.
    pub(crate) fn insert(&mut self) {
        let inserted = self
            .connection
            .prepare_cached("INSERT INTO batches (key, hash, body) VALUES (?1, ?2, ?3)")
            .and_then(|mut row| row.execute(params![self.next, [7_u8; 32], self.body]));
        assert_eq!(inserted, Ok(1));
        self.next += 1;
    }

    /// This many rows in each of this many transactions.
    pub(crate) fn batched(&mut self, transactions: usize, rows: usize) {
        for _ in 0..transactions {
            assert_eq!(self.connection.execute_batch("BEGIN IMMEDIATE"), Ok(()));
            (0..rows).for_each(|_| self.insert());
            assert_eq!(self.connection.execute_batch("COMMIT"), Ok(()));
        }
    }
}
