//! Waiting for a tree that another process writes, or for a journal that is closed.

use std::task::{Context, Poll, Waker};

use spinney_journal::{Blocking, Head, Journal, JournalFault, Reading};
use spinney_kernel::primitives::{Durability, Seq};
use spinney_store::{Access, MemoryJournal, SqliteJournal};
use spinney_testkit::conformance;

use super::{TREE, filled, open};

fn is_pending(changed: &mut Reading<Head>) -> bool {
    matches!(changed.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending)
}

/// A reader has no part in the writes, as if another process made them.
#[test]
fn a_reader_notices_what_a_writer_writes_and_then_waits_again() {
    let home = tempfile::tempdir().unwrap();
    let mut end = filled(home.path(), Durability::Normal);
    let (journal, looker) = (open(home.path()), SqliteJournal::open(home.path(), Access::ReadOnly).unwrap());
    let batch = &conformance::batches()[1];
    for _ in 0..3 {
        let mut changed = looker.changed(TREE, Seq(end));
        assert!(is_pending(&mut changed));
        conformance::append(&journal, conformance::append_for(TREE, Seq(end), batch)).unwrap();
        end += batch.events.len() as u64;
        assert_eq!(changed.wait().unwrap().seq, Seq(end));
    }
}

#[test]
fn a_caller_of_a_closed_journal_waits_no_more() {
    let home = tempfile::tempdir().unwrap();
    let end = Seq(filled(home.path(), Durability::Normal));
    let memory = MemoryJournal::new();
    conformance::append(&memory, conformance::append_for(TREE, Seq(0), &conformance::batches()[0])).unwrap();
    let first = memory.head(TREE).wait().unwrap().unwrap().seq;
    let looker = SqliteJournal::open(home.path(), Access::ReadOnly).unwrap();
    let journals: [(Box<dyn Journal>, Seq); 3] =
        [(Box::new(memory), first), (Box::new(open(home.path())), end), (Box::new(looker), end)];
    for (journal, end) in journals {
        let mut changed = journal.changed(TREE, end);
        assert!(is_pending(&mut changed));
        drop(journal);
        assert_eq!(changed.wait(), Err(JournalFault::Closed));
    }
}
