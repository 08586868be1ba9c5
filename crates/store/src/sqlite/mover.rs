//! Moves pages from the write-ahead file to their places. It takes as long as the disk takes, so a thread does it
//! beside whoever writes.

use std::sync::mpsc::Receiver;

use rusqlite::Connection;

use super::write::Desk;

/// Pages in the write-ahead file that are too many: if some are left, nobody writes until all are moved, and it begins
/// anew.
const PAGES_MAX: i64 = 1_000;

/// What the mover is told.
pub(super) enum Word {
    /// Enough pages wait in the write-ahead file.
    Full,
    /// Nothing is written any more.
    Closed,
}

/// Moves pages whenever it is told.
pub(super) fn run(connection: &Connection, desk: &Desk, told: &Receiver<Word>) {
    while let Ok(Word::Full) = told.recv() {
        let left = move_pages(connection);
        if left.is_some_and(|left| left.pages > PAGES_MAX && left.unmoved > 0) {
            desk.pause(|| {
                move_pages(connection);
            });
        }
    }
}

/// What is in the write-ahead file afterwards.
struct Left {
    pages: i64,
    unmoved: i64,
}

/// Moves what no reader needs where it is. What fails is tried again next time.
fn move_pages(connection: &Connection) -> Option<Left> {
    let to_left = |row: &rusqlite::Row<'_>| {
        let (pages, moved): (i64, i64) = (row.get(1)?, row.get(2)?);
        Ok(Left { pages, unmoved: pages - moved })
    };
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], to_left).ok()
}
