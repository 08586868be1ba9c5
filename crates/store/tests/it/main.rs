//! The conformance suite over both journals; the other files test what is specific to SQLite.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod answers;
mod branches;
mod changed;
mod damage;
mod disk;
mod durable_runner;
mod fuzzed;
mod growth;
mod heads;
mod homes;
mod loss;
mod mutated;
mod older;
mod owners;
mod process;
mod waiting;

use std::path::{Path, PathBuf};

use spinney_journal::{Append, Blocking, Journal};
use spinney_kernel::primitives::{Durability, Seq, TreeId};
use spinney_store::{Access, MemoryJournal, SqliteJournal};
use spinney_testkit::conformance;

const TREE: TreeId = TreeId::new([1; 16]);

/// The journal's file in a home.
fn file(home: &Path) -> PathBuf {
    home.join("journal.sqlite3")
}

fn open(home: &Path) -> SqliteJournal {
    SqliteJournal::open(home, Access::Write).unwrap_or_else(|fault| panic!("{fault}"))
}

/// Writes the suite's batches and returns their number of events.
fn filled(home: &Path, durability: Durability) -> u64 {
    let journal = open(home);
    let mut after = 0;
    for batch in conformance::batches() {
        let events = batch.events.len() as u64;
        let append = Append { durability, ..conformance::append_for(TREE, Seq(after), &batch) };
        conformance::append(&journal, append).unwrap_or_else(|fault| panic!("{fault}"));
        after += events;
    }
    after
}

#[test]
fn memory_does_what_every_journal_must() {
    conformance::journal(&|| Box::new(MemoryJournal::new()));
}

#[test]
fn sqlite_does_what_every_journal_must() {
    let home = tempfile::tempdir().unwrap();
    let count = std::cell::Cell::new(0);
    conformance::journal(&|| {
        count.set(count.get() + 1);
        Box::new(open(&home.path().join(count.get().to_string())))
    });
}

#[test]
fn what_was_confirmed_is_there_when_the_home_is_opened_again() {
    for durability in [Durability::Off, Durability::Normal, Durability::Full] {
        let home = tempfile::tempdir().unwrap();
        let events = filled(home.path(), durability);
        let journal = open(home.path());
        let entries = journal.read(TREE, Seq(0), usize::MAX).wait().unwrap();
        assert_eq!(
            entries.iter().map(|entry| entry.batch.clone()).collect::<Vec<_>>(),
            conformance::batches()
        );
        assert_eq!(journal.head(TREE).wait().unwrap().unwrap().seq, Seq(events));
    }
}

#[test]
fn both_journals_give_the_same_hash_to_the_same_batches() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path(), Durability::Normal);
    let memory = MemoryJournal::new();
    let mut after = 0;
    for batch in conformance::batches() {
        let events = batch.events.len() as u64;
        let durability = Durability::Off;
        let append = Append { durability, ..conformance::append_for(TREE, Seq(after), &batch) };
        conformance::append(&memory, append).unwrap();
        after += events;
    }
    assert_eq!(open(home.path()).head(TREE).wait(), memory.head(TREE).wait());
}

/// Texts are stored once: an answer of 10,000 bytes takes little more than that.
#[test]
fn a_text_is_stored_once() {
    let mut play = spinney_testkit::Scenario::grow("root / a");
    play.run(&format!("finish a {}", "x".repeat(10_000)));
    let batch = play.batches().last().unwrap().clone();
    let mut folded = batch.clone();
    folded.fold();
    assert!(serde_json::to_string(&folded).unwrap().len() < 11_000);
    folded.unfold();
    assert_eq!(folded, batch);
}
