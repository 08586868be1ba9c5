//! What every journal must do, whoever wrote it: one suite, run over each implementation.

use std::sync::mpsc::sync_channel;

use spinney_kernel::Batch;
use spinney_kernel::body::BlobRef;
use spinney_kernel::id::{Seq, TreeId};
use spinney_kernel::port::journal::{Append, ChainHash, Durability, Entry, Journal, JournalFault};

use crate::Play;

/// Runs the whole suite; each check starts on an empty journal.
///
/// # Panics
/// At the first thing that is not as it must be.
pub fn journal(open: &dyn Fn() -> Box<dyn Journal>) {
    let checks: [fn(&dyn Journal); 7] = [
        what_was_appended_is_read_back,
        pages_are_read_from_any_event,
        a_stale_writer_is_told_and_writes_nothing,
        heads_say_where_each_tree_stands,
        blobs_live_as_long_as_a_tree_that_uses_them,
        a_removed_tree_is_gone_and_may_come_again,
        trees_do_not_mix,
    ];
    for check in checks {
        check(open().as_ref());
    }
}

/// Appends and waits for the answer.
///
/// # Errors
/// What the journal answered.
///
/// # Panics
/// If the journal never answers.
pub fn append(journal: &dyn Journal, append: Append) -> Result<ChainHash, JournalFault> {
    let (answer, answered) = sync_channel(1);
    journal.append(append, Box::new(move |end| drop(answer.send(end))));
    answered.recv().unwrap_or_else(|_| panic!("the journal dropped an append without an answer"))
}

/// A journal's worth of batches, with one of every few kinds of event.
#[must_use]
pub fn batches() -> Vec<Batch> {
    let mut play = Play::grow("root $9.00 / a $2.00 / b");
    play.run("call b $0.20\ndone #1 $0.10\nsend a hello there\nask a Which?\nanswer #2 the second one");
    play.run(
        "call a $0.30\nfailed #3 server $0.10\npass 5s\nfinish b all done\nredirect a elsewhere\ncancel root",
    );
    play.batches().to_vec()
}

fn tree(number: u8) -> TreeId {
    TreeId::new([number; 16])
}

/// Writes the batches and gives the entries that must be read back.
fn write(journal: &dyn Journal, tree: TreeId, batches: &[Batch]) -> Vec<Entry> {
    let mut after = Seq(0);
    let entry = |batch: &Batch| {
        let entry = of(tree, after, batch);
        let hash = append(journal, entry).unwrap_or_else(|fault| panic!("{fault}"));
        let entry = Entry { after, batch: batch.clone(), hash };
        after = Seq(after.0 + batch.events.len() as u64);
        entry
    };
    batches.iter().map(entry).collect()
}

fn of(tree: TreeId, after: Seq, batch: &Batch) -> Append {
    let (batch, state) = (batch.clone(), "running");
    Append { tree, after, batch, blobs: Vec::new(), state, durability: Durability::Normal }
}

fn last(batches: &[Batch]) -> Seq {
    Seq(batches.iter().map(|batch| batch.events.len() as u64).sum())
}

fn what_was_appended_is_read_back(journal: &dyn Journal) {
    let written = write(journal, tree(1), &batches());
    assert_eq!(journal.read(tree(1), Seq(0), usize::MAX), Ok(written));
    let unknown = JournalFault::UnknownTree { tree: tree(2) };
    assert_eq!(journal.read(tree(2), Seq(0), 1), Err(unknown));
}

fn pages_are_read_from_any_event(journal: &dyn Journal) {
    let written = write(journal, tree(1), &batches());
    for (at, entry) in written.iter().enumerate() {
        let page = journal.read(tree(1), entry.after, 2).unwrap_or_else(|fault| panic!("{fault}"));
        let expected: Vec<Entry> = written.iter().skip(at).take(2).cloned().collect();
        assert_eq!(page, expected);
    }
    write(journal, tree(2), &batches());
    for beyond in [last(&batches()), Seq(1 << 40), Seq(u64::MAX)] {
        assert_eq!(journal.read(tree(1), beyond, 10), Ok(Vec::new()));
        assert_eq!(journal.read(tree(2), beyond, 10), Ok(Vec::new()));
    }
}

fn a_stale_writer_is_told_and_writes_nothing(journal: &dyn Journal) {
    let batches = batches();
    let written = write(journal, tree(1), &batches);
    let found = last(&batches).0;
    for expected in [0, 1, found - 1, found + 1, u64::MAX] {
        let stale = append(journal, of(tree(1), Seq(expected), &batches[0]));
        assert_eq!(stale, Err(JournalFault::Stale { tree: tree(1), expected, found }));
    }
    let early = append(journal, of(tree(2), Seq(5), &batches[0]));
    assert_eq!(early, Err(JournalFault::Stale { tree: tree(2), expected: 5, found: 0 }));
    assert_eq!(journal.read(tree(1), Seq(0), usize::MAX), Ok(written));
    assert_eq!(journal.head(tree(2)), Ok(None));
}

fn heads_say_where_each_tree_stands(journal: &dyn Journal) {
    let batches = batches();
    for number in [3, 1, 2] {
        write(journal, tree(number), &batches);
    }
    let heads = journal.heads().unwrap_or_else(|fault| panic!("{fault}"));
    let order: Vec<TreeId> = heads.iter().map(|head| head.tree).collect();
    assert_eq!(order, [tree(3), tree(1), tree(2)]);
    let entries = journal.read(tree(1), Seq(0), usize::MAX).unwrap_or_default();
    let head = journal.head(tree(1)).unwrap_or_default();
    let expected = entries.last().map(|entry| (last(&batches), entry.hash, "running".to_owned()));
    assert_eq!(head.map(|head| (head.seq, head.hash, head.state)), expected);
}

fn blobs_live_as_long_as_a_tree_that_uses_them(journal: &dyn Journal) {
    let bytes = vec![7_u8; 100_000];
    let hash = spinney_kernel::id::BlobHash::of(&bytes);
    let blob = BlobRef { hash, bytes: bytes.len() as u64 };
    assert_eq!(journal.blob(&blob), Ok(None));
    for number in [1, 2] {
        let append = of(tree(number), Seq(0), &batches()[0]);
        let with_blob = Append { blobs: vec![bytes.clone()], ..append };
        self::append(journal, with_blob).unwrap_or_else(|fault| panic!("{fault}"));
    }
    assert_eq!(journal.remove(tree(1)), Ok(()));
    assert_eq!(journal.blob(&blob), Ok(Some(bytes)));
    assert_eq!(journal.remove(tree(2)), Ok(()));
    assert_eq!(journal.blob(&blob), Ok(None));
}

fn a_removed_tree_is_gone_and_may_come_again(journal: &dyn Journal) {
    write(journal, tree(1), &batches());
    assert_eq!(journal.remove(tree(1)), Ok(()));
    assert_eq!(journal.remove(tree(1)), Err(JournalFault::UnknownTree { tree: tree(1) }));
    assert_eq!(journal.heads(), Ok(Vec::new()));
    let written = write(journal, tree(1), &batches());
    assert_eq!(journal.read(tree(1), Seq(0), usize::MAX), Ok(written));
}

/// Many writers at once: each tree has exactly its own batches, in order.
fn trees_do_not_mix(journal: &dyn Journal) {
    let batches = batches();
    std::thread::scope(|scope| {
        for number in 1..=20 {
            let batches = &batches;
            scope.spawn(move || write(journal, tree(number), batches));
        }
    });
    for number in 1..=20 {
        let read = journal.read(tree(number), Seq(0), usize::MAX).unwrap_or_else(|fault| panic!("{fault}"));
        let read: Vec<Batch> = read.into_iter().map(|entry| entry.batch).collect();
        assert_eq!(read, batches);
    }
}
