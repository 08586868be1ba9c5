//! The disk usage of a branch, and that a crash leaves a complete one or none.

use spinney_journal::{Append, Blocking, Journal, verify_chain};
use spinney_kernel::primitives::{Seq, TreeId};
use spinney_testkit::conformance;

use super::{TREE, file, open};

const BRANCH: TreeId = TreeId::new([2; 16]);
/// The header sizes of a WAL frame and of the WAL file.
const FRAME_BYTES: u64 = 24;
const HEAD_BYTES: u64 = 32;
const PAGE_BYTES: u64 = 4_096;

/// Writes a tree of this many batches, branches from its end, and counts the pages written for that.
fn pages_for_a_branch_after(batches: u64) -> Result<u64, Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    let batch = conformance::batches().swap_remove(1);
    let events = batch.events.len() as u64;
    let journal = open(home.path());
    let start = conformance::batches().swap_remove(0);
    let mut end = start.events.len() as u64;
    conformance::append(&journal, conformance::append_for(TREE, Seq(0), &start))?;
    for _ in 1..batches {
        conformance::append(&journal, conformance::append_for(TREE, Seq(end), &batch))?;
        end += events;
    }
    // Closing it empties the WAL file.
    drop(journal);
    let journal = open(home.path());
    // A catalog row is written with it, as with every new tree.
    let catalog = conformance::append_for(BRANCH, Seq(0), &start).catalog;
    let first = Append { base: Some(TREE), catalog, ..conformance::append_for(BRANCH, Seq(end), &batch) };
    conformance::append(&journal, first)?;
    let written = std::fs::metadata(file(home.path()).with_extension("sqlite3-wal"))?.len();
    assert!(verify_chain(&journal, BRANCH, None).wait().is_ok());
    let read = journal.read(BRANCH, Seq(0), usize::MAX).wait()?.len();
    assert!(read > 0);
    Ok((written - HEAD_BYTES) / (PAGE_BYTES + FRAME_BYTES))
}

/// P24: branching from a tree of ten thousand batches writes as much as from one of ten: its row and its head, an index
/// for each, its first batch, its name and the count of commits.
#[test]
fn p24_a_branch_writes_seven_pages_however_long_its_origin_is() {
    let pages = [10, 100, 10_000].map(|batches| pages_for_a_branch_after(batches).unwrap());
    println!("pages written: {pages:?}");
    assert!(pages.iter().all(|pages| *pages <= 7), "{pages:?}");
}
