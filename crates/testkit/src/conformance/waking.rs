//! Waiting until a tree is written.

use std::task::{Context, Poll, Waker};

use spinney_journal::{Blocking, Head, Journal, JournalFault, Reading, Shared};
use spinney_kernel::primitives::Seq;

use super::{append, append_for, batches, last, tree, write};

pub(super) const CHECKS: [fn(&dyn Journal); 4] = [
    what_is_there_already_is_not_waited_for,
    a_caller_waits_until_its_tree_is_written,
    a_caller_whose_tree_is_removed_waits_no_more,
    many_callers_wait_and_one_gives_up,
];

fn is_pending(changed: &mut Reading<Head>) -> bool {
    matches!(changed.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending)
}

fn what_is_there_already_is_not_waited_for(journal: &dyn Journal) {
    let unknown = JournalFault::UnknownTree { tree: tree(1) };
    assert_eq!(journal.changed(tree(1), Seq(0)).wait(), Err(unknown));
    write(journal, tree(1), &batches());
    let head = journal.head(tree(1)).wait().map(|head| head.unwrap_or_else(|| panic!("no head")));
    for known in [0, 1, last(&batches()).0 - 1] {
        assert_eq!(journal.changed(tree(1), Seq(known)).wait(), head);
    }
}

fn a_caller_waits_until_its_tree_is_written(journal: &dyn Journal) {
    let batches = batches();
    for number in [1, 2] {
        write(journal, tree(number), &batches[..1]);
    }
    let end = last(&batches[..1]);
    let mut changed = journal.changed(tree(1), end);
    assert!(is_pending(&mut changed));
    let other = append(journal, append_for(tree(2), end, &batches[1]));
    assert!(other.is_ok() && is_pending(&mut changed), "{other:?}");
    let stale = append(journal, append_for(tree(1), Seq(0), &batches[1]));
    assert!(stale.is_err() && is_pending(&mut changed), "{stale:?}");
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| changed.wait());
        let written = append(journal, append_for(tree(1), end, &batches[1]));
        let woken = waiter.join().unwrap_or_else(|_| panic!("the waiter panicked"));
        assert_eq!(woken.map(|head| (head.seq, Ok(head.hash))), Ok((last(&batches[..2]), written)));
    });
    // The next one waits for more.
    assert!(is_pending(&mut journal.changed(tree(1), last(&batches[..2]))));
}

fn a_caller_whose_tree_is_removed_waits_no_more(journal: &dyn Journal) {
    let written = write(journal, tree(1), &batches()[..1]);
    let mut changed = journal.changed(tree(1), written[0].end());
    assert!(is_pending(&mut changed));
    assert_eq!(journal.remove(tree(1), Shared::Refuse).wait(), Ok(()));
    assert_eq!(changed.wait(), Err(JournalFault::UnknownTree { tree: tree(1) }));
}

fn many_callers_wait_and_one_gives_up(journal: &dyn Journal) {
    let written = write(journal, tree(1), &batches()[..1]);
    let end = written[0].end();
    let mut waiting: Vec<Reading<Head>> = (0..50).map(|_| journal.changed(tree(1), end)).collect();
    assert!(waiting.iter_mut().all(is_pending));
    drop(waiting.swap_remove(7));
    let appended = append(journal, append_for(tree(1), end, &batches()[1]));
    assert!(appended.is_ok(), "{appended:?}");
    for changed in waiting {
        assert_eq!(changed.wait().map(|head| head.seq), Ok(last(&batches()[..2])));
    }
}
