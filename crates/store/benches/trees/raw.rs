//! The reference: bare inserts through the same library.

use std::fs;

use rusqlite::{Connection, params};
use spinney_kernel::primitives::Durability;
use tempfile::TempDir;

use crate::tree;

/// The minimum that any store must do: a row like ours in a table like ours.
pub(crate) struct Raw {
    connection: Connection,
    body: String,
    next: i64,
    home: TempDir,
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
                "CREATE TABLE batches (key INTEGER PRIMARY KEY, hash BLOB NOT NULL, body TEXT NOT NULL);
                 CREATE TABLE blobs (hash BLOB PRIMARY KEY, bytes BLOB NOT NULL) WITHOUT ROWID",
            )?;
            Ok(connection)
        };
        let connection = made().unwrap_or_else(|error| panic!("{error}"));
        Self { connection, body: "z".repeat(700), next: 0, home }
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

    /// A row, a row with a blob in one transaction, and a file with the same bytes that is written whole or not at all.
    pub(crate) fn write_file(&mut self, bytes: usize) {
        self.insert();
        let text = vec![b'f'; bytes];
        let (new, file) = (self.home.path().join("file.new"), self.home.path().join("file.md"));
        let written = fs::write(&new, &text).and_then(|()| fs::rename(&new, &file));
        assert!(written.is_ok(), "{written:?}");
        assert_eq!(self.connection.execute_batch("BEGIN IMMEDIATE"), Ok(()));
        self.insert();
        let mut hash = [0; 32];
        hash[..8].copy_from_slice(&self.next.to_be_bytes());
        let inserted = self
            .connection
            .prepare_cached("INSERT INTO blobs (hash, bytes) VALUES (?1, ?2)")
            .and_then(|mut row| row.execute(params![hash, text]));
        assert_eq!(inserted, Ok(1));
        assert_eq!(self.connection.execute_batch("COMMIT"), Ok(()));
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
