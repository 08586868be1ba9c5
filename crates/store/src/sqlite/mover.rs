//! Moves pages from the write-ahead file to their places. It takes as long as the disk takes, so a thread does it
//! beside whoever writes.

use std::sync::mpsc::Receiver;

use super::link::Link;
use super::write::Desk;

/// How often pages are moved beside whoever writes: each time fewer are left that were written meanwhile.
const PASSES: usize = 2;

/// What the mover is told.
pub(super) enum Word {
    /// Enough pages wait in the write-ahead file.
    Full,
    /// Nothing is written any more.
    Closed,
}

/// Moves pages whenever it is told: most of them beside whoever writes, what was written meanwhile while nobody does.
/// Only then is nothing left, and the file begins anew instead of growing for ever. SQLite waits for the disk only when
/// nothing is left, for all that was moved; so most of that is on the disk before everybody has to wait.
pub(super) fn run(link: &Link, desk: &Desk, told: &Receiver<Word>) {
    while let Ok(Word::Full) = told.recv() {
        (0..PASSES).for_each(|_| move_pages(link));
        link.sync();
        desk.pause(|| move_pages(link));
    }
}

/// Moves what no reader needs where it is. What fails is tried again next time.
fn move_pages(link: &Link) {
    let _ = link.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
}
