//! A tree's disk usage grows only with what is new.

use std::sync::Arc;

use rusqlite::Connection;
use spinney_journal::{Append, Journal};
use spinney_kernel::primitives::{Durability, Seq};
use spinney_testkit::{TestHome, conformance};

use super::{TREE, file, open};

/// X9: a turn in the thousands takes as much space as the first ones, although the whole context goes into each call.
#[tokio::test(start_paused = true)]
async fn x9_a_late_turn_takes_no_more_room_than_an_early_one() {
    let home = tempfile::tempdir().unwrap();
    let words = "w".repeat(200);
    let script = format!(
        "rules:\n  - {{ when: {{ turn: 1001 }}, say: done }}\n  - {{ say: {words}, call: [{{ tool: look }}] }}\ntools: {{ look: {{ say: {words} }} }}"
    );
    let journal: Arc<dyn Journal> = Arc::new(open(home.path()));
    let stage = TestHome::on(journal, &script);
    let tree = stage.start(&stage.home(), "root turns=2000").await;
    tree.ended().await;
    assert_eq!(stage.model().model().calls(), 1_001);
    let connection = Connection::open(file(home.path())).unwrap();
    let mut rows = connection.prepare("SELECT length(body) FROM journal ORDER BY after").unwrap();
    let bytes: Vec<i64> = rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    // The first batch is the start; then each turn is two, and every tenth has a checkpoint in its second.
    let turn = |number: usize| bytes[2 * number - 1] + bytes[2 * number];
    let early: i64 = (1..=10).map(turn).sum();
    let late: i64 = (991..=1_000).map(turn).sum();
    assert!(late * 10 <= early * 11, "{early} bytes for the first ten turns, {late} for the last ten");
}

/// A WAL file that is written all the time is still reset: if it grew with every commit, it would slow down every
/// commit and fill the disk.
#[test]
fn a_busy_wal_file_is_reset() {
    const STEPS: usize = 6_000;
    const BYTES_MAX: u64 = 4_000 * 4_096;
    let home = tempfile::tempdir().unwrap();
    let journal = open(home.path());
    let batch = conformance::batches().swap_remove(3);
    let mut after = 0;
    for step in 0..STEPS {
        let durability = if step % 100 == 0 { Durability::Full } else { Durability::Normal };
        let append = Append { durability, ..conformance::append_for(TREE, Seq(after), &batch) };
        conformance::append(&journal, append).unwrap();
        after += batch.events.len() as u64;
    }
    let bytes = std::fs::metadata(file(home.path()).with_extension("sqlite3-wal")).unwrap().len();
    assert!(bytes <= 2 * BYTES_MAX, "{bytes} bytes after {STEPS} commits");
}
