//! Any bytes as a journal: rows that nobody wrote are read without a panic. Rows are separated by 0xff; the first
//! byte of each says how it lies about its place, its hash and its type.

use rusqlite::{Connection, params};
use spinney_journal::{Blocking, ChainHash, Journal, rebuild, verify_chain};
use spinney_kernel::primitives::{Seq, TreeId};
use spinney_store::{Access, SqliteJournal};
use spinney_testkit::conformance;
use tempfile::TempDir;

const TREE: TreeId = TreeId::new([1; 16]);

thread_local! {
    static SHELF: Shelf = Shelf::new();
}

/// A journal, and a connection behind its back.
struct Shelf {
    journal: SqliteJournal,
    back: Connection,
    _home: TempDir,
}

impl Shelf {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let journal = SqliteJournal::open(home.path(), Access::Write).expect("a journal");
        let first = conformance::append_for(TREE, Seq(0), &conformance::batches()[0]);
        conformance::append(&journal, first).expect("a tree");
        let back = Connection::open(home.path().join("journal.sqlite3")).expect("a connection");
        back.execute_batch("PRAGMA synchronous = OFF").expect("it need not last");
        Self { journal, back, _home: home }
    }

    fn write(&self, bytes: &[u8]) -> rusqlite::Result<()> {
        self.back.execute_batch("BEGIN; DELETE FROM batches")?;
        let (mut after, mut batch, mut hash) = (0_i64, 1_i64, ChainHash::start(TREE));
        for row in bytes.split(|byte| *byte == 0xff) {
            let Some((lie, body)) = row.split_first() else { continue };
            hash = hash.then(Seq(after as u64), body);
            let stored: &[u8] = match lie & 3 {
                0 | 1 => hash.bytes(),
                2 => &[0; 32],
                _ => body,
            };
            let sql = if lie & 4 == 0 {
                "INSERT INTO batches VALUES (?1, 1, ?2, ?3, ?4, CAST(?5 AS TEXT))"
            } else {
                "INSERT INTO batches VALUES (?1, 1, ?2, ?3, ?4, ?5)"
            };
            // The way back may be broken.
            let before = if lie & 8 == 0 { batch - 1 } else { batch + i64::from(lie >> 4) - 8 };
            self.back.execute(sql, params![batch, after, before, stored, body])?;
            after += i64::from(lie >> 4);
            batch += 1;
        }
        let head = "UPDATE heads SET seq = ?1, hash = ?2, last = ?3";
        self.back.execute(head, params![after, hash.bytes(), batch - 1])?;
        self.back.execute_batch("COMMIT")
    }
}

pub(crate) fn run(bytes: &[u8]) {
    SHELF.with(|shelf| {
        shelf.write(bytes).expect("the rows are written");
        for after in [0, 1, u64::MAX] {
            let _ = shelf.journal.read(TREE, Seq(after), usize::MAX).wait();
        }
        let _ = verify_chain(&shelf.journal, TREE, None).wait();
        let _ = rebuild(&shelf.journal, TREE).wait();
    });
}
