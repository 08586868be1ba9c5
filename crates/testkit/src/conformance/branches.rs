//! Branches: a tree that begins with another's batches reads like any other tree, and neither sees the other's changes.

use spinney_journal::{
    Append, Base, Batch, Blocking, EncodedBatch, Entry, Journal, JournalFault, Shared, StoredEntry, pages,
    verify_chain,
};
use spinney_kernel::primitives::{Seq, TreeId, limit};

use super::{append, append_for, batches, last, reference, tree, write};

pub(super) const CHECKS: [fn(&dyn Journal); 7] = [
    a_branch_reads_what_it_shares_and_what_is_its_own,
    a_branch_of_a_branch_reads_all_the_way_down,
    a_branch_begins_where_a_batch_ends,
    a_tree_with_branches_is_removed_only_by_force,
    a_lineage_has_an_end,
    blobs_are_handed_over_with_what_refers_to_them,
    a_branch_from_elsewhere_keeps_its_hashes,
];

/// The first batch of a branch.
fn branch(origin: TreeId, tree: TreeId, at: Seq, batch: &Batch) -> Append {
    Append { base: Some(origin), catalog: Vec::new(), ..append_for(tree, at, batch) }
}

fn own(tree: TreeId, after: Seq, batch: &Batch) -> Append {
    Append { catalog: Vec::new(), ..append_for(tree, after, batch) }
}

fn must(journal: &dyn Journal, append: Append) -> Entry {
    let after = append.after;
    let batch = append.batch.decode().unwrap_or_else(|error| panic!("{error}"));
    let hash = super::append(journal, append).unwrap_or_else(|fault| panic!("{fault}"));
    Entry { after, batch, hash }
}

/// Reads everything in small pages.
fn all(journal: &dyn Journal, tree: TreeId) -> Vec<Entry> {
    let mut read: Vec<Entry> = Vec::new();
    loop {
        let seen = read.last().map_or(Seq(0), Entry::end);
        let page = journal.read(tree, seen, 3).wait().unwrap_or_else(|fault| panic!("{fault}"));
        if page.is_empty() {
            break;
        }
        read.extend(page);
    }
    let paged: Vec<Entry> = pages(journal, tree, Seq(0))
        .blocking()
        .flat_map(|page| page.unwrap_or_else(|fault| panic!("{fault}")))
        .collect();
    assert!(read == paged, "pages of 3 are not what large pages are");
    read
}

/// A tree of many batches, and the end of each.
fn long(journal: &dyn Journal, number: u8) -> Vec<Entry> {
    let mut many = batches();
    while many.len() < 200 {
        many.extend(batches().into_iter().skip(1));
    }
    write(journal, tree(number), &many)
}

fn a_branch_reads_what_it_shares_and_what_is_its_own(journal: &dyn Journal) {
    let origin = long(journal, 1);
    let batch = &batches()[1];
    for (number, shared) in [(2, 1), (3, 64), (4, 65), (5, 150), (6, origin.len())] {
        let at = origin[shared - 1].end();
        let mut expected = origin[..shared].to_vec();
        expected.push(must(journal, branch(tree(1), tree(number), at, batch)));
        for _ in 0..70 {
            let after = expected.last().map_or(Seq(0), Entry::end);
            expected.push(must(journal, own(tree(number), after, batch)));
        }
        assert!(all(journal, tree(number)) == expected, "shares {shared}");
        let middle = Seq(at.0 - 1);
        let page = journal.read(tree(number), middle, 2).wait().unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(page.first(), origin.get(shared - 1));
        assert!(verify_chain(journal, tree(number), None).wait().is_ok(), "shares {shared}");
        let head = journal.head(tree(number)).wait().ok().flatten().map(|head| (head.base, head.seed));
        assert_eq!(head, Some((Some(Base { tree: tree(1), at }), tree(1))));
    }
    // The origin continues, and the branch does not see it.
    let after = last(&origin.iter().map(|entry| entry.batch.clone()).collect::<Vec<_>>());
    let mut longer = origin.clone();
    longer.push(must(journal, own(tree(1), after, &batches()[3])));
    assert!(all(journal, tree(1)) == longer);
    assert_eq!(all(journal, tree(6)).len(), origin.len() + 71);
    assert_eq!(journal.heads(&[]).wait().map(|heads| heads.len()), Ok(6));
}

fn a_branch_of_a_branch_reads_all_the_way_down(journal: &dyn Journal) {
    let first = write(journal, tree(1), &batches());
    let batch = &batches()[1];
    let mut second = first[..4].to_vec();
    second.push(must(journal, branch(tree(1), tree(2), first[3].end(), batch)));
    let after = second[4].end();
    second.push(must(journal, own(tree(2), after, batch)));
    let mut third = second[..5].to_vec();
    third.push(must(journal, branch(tree(2), tree(3), second[4].end(), &batches()[3])));
    // A branch from before its origin began is a branch of the origin's own origin.
    let mut fourth = first[..2].to_vec();
    fourth.push(must(journal, branch(tree(3), tree(4), first[1].end(), batch)));
    for (number, expected) in [(1, &first), (2, &second), (3, &third), (4, &fourth)] {
        assert_eq!(&all(journal, tree(number)), expected, "tree {number}");
        assert!(verify_chain(journal, tree(number), None).wait().is_ok(), "tree {number}");
    }
    let bases: Vec<Option<TreeId>> = [1, 2, 3, 4]
        .map(|number| journal.head(tree(number)).wait().ok().flatten().and_then(|head| head.base))
        .map(|base| base.map(|base| base.tree))
        .to_vec();
    assert_eq!(bases, [None, Some(tree(1)), Some(tree(2)), Some(tree(1))]);
}

fn a_branch_begins_where_a_batch_ends(journal: &dyn Journal) {
    let origin = write(journal, tree(1), &batches());
    let (batch, end) = (&batches()[1], last(&batches()));
    for at in (0..=end.0 + 1).filter(|at| !origin.iter().any(|entry| entry.end().0 == *at)) {
        let refused = append(journal, branch(tree(1), tree(2), Seq(at), batch));
        assert_eq!(refused, Err(JournalFault::NotABoundary { tree: tree(1), at }));
    }
    let unknown = append(journal, branch(tree(9), tree(2), end, batch));
    assert_eq!(unknown, Err(JournalFault::UnknownTree { tree: tree(9) }));
    must(journal, branch(tree(1), tree(2), end, batch));
    // An existing tree cannot become a branch.
    for at in [end, Seq(end.0 + batch.events.len() as u64)] {
        let again = append(journal, branch(tree(1), tree(2), at, batch));
        assert!(matches!(again, Err(JournalFault::Stale { .. })), "{again:?}");
    }
}

/// P27: a tree that branches read is not removed, and the error names all of them; by force it is removed, and no
/// branch loses anything.
fn a_tree_with_branches_is_removed_only_by_force(journal: &dyn Journal) {
    let origin = long(journal, 1);
    let batch = &batches()[1];
    let short = must(journal, branch(tree(1), tree(2), origin[9].end(), batch));
    let long = must(journal, branch(tree(1), tree(3), origin[149].end(), batch));
    let below = must(journal, branch(tree(3), tree(4), long.end(), batch));
    let before: Vec<Vec<Entry>> = [2, 3, 4].map(|number| all(journal, tree(number))).to_vec();
    let in_use = JournalFault::InUse { tree: tree(1), by: vec![tree(2), tree(3)] };
    assert_eq!(journal.remove(tree(1), Shared::Refuse).wait(), Err(in_use));
    assert_eq!(all(journal, tree(1)), origin);
    assert_eq!(journal.remove(tree(1), Shared::HandOver).wait(), Ok(()));
    assert_eq!(journal.head(tree(1)).wait(), Ok(None));
    let after: Vec<Vec<Entry>> = [2, 3, 4].map(|number| all(journal, tree(number))).to_vec();
    assert!(after == before, "a branch lost something");
    for number in [2, 3, 4] {
        assert!(verify_chain(journal, tree(number), None).wait().is_ok(), "tree {number}");
    }
    // They continue, and the one that now stores the batches is protected in turn.
    for (number, entry) in [(2, &short), (3, &long), (4, &below)] {
        must(journal, own(tree(number), entry.end(), batch));
        assert!(verify_chain(journal, tree(number), None).wait().is_ok(), "tree {number}");
    }
    let in_use = JournalFault::InUse { tree: tree(3), by: vec![tree(2), tree(4)] };
    assert_eq!(journal.remove(tree(3), Shared::Refuse).wait(), Err(in_use));
    for number in [4, 2, 3] {
        assert_eq!(journal.remove(tree(number), Shared::Refuse).wait(), Ok(()), "tree {number}");
    }
    assert_eq!(journal.heads(&[]).wait(), Ok(Vec::new()));
}

fn a_lineage_has_an_end(journal: &dyn Journal) {
    let mut end = write(journal, tree(0), &batches()[..2])[1].end();
    let batch = &batches()[1];
    for number in 1..=limit::LINEAGE_MAX as u8 {
        end = must(journal, branch(tree(number - 1), tree(number), end, batch)).end();
    }
    let deepest = limit::LINEAGE_MAX as u8;
    assert_eq!(all(journal, tree(deepest)).len(), 2 + limit::LINEAGE_MAX);
    let refused = append(journal, branch(tree(deepest), tree(deepest + 1), end, batch));
    assert!(matches!(refused, Err(JournalFault::TooLarge { .. })), "{refused:?}");
}

fn blobs_are_handed_over_with_what_refers_to_them(journal: &dyn Journal) {
    let bytes = b"what a tool said".to_vec();
    let first = Append { blobs: [bytes.clone()].into(), ..append_for(tree(1), Seq(0), &batches()[0]) };
    let end = must(journal, first).end();
    must(journal, branch(tree(1), tree(2), end, &batches()[1]));
    assert_eq!(journal.remove(tree(1), Shared::HandOver).wait(), Ok(()));
    assert_eq!(journal.blob(&reference(&bytes)).wait(), Ok(Some(bytes.clone())));
    assert_eq!(journal.remove(tree(2), Shared::HandOver).wait(), Ok(()));
    assert_eq!(journal.blob(&reference(&bytes)).wait(), Ok(None));
}

/// G31: what another journal has stored is written in the same bytes, with the shared part of a branch.
fn a_branch_from_elsewhere_keeps_its_hashes(journal: &dyn Journal) {
    let origin = write(journal, tree(1), &batches());
    let at = origin[1].end();
    must(journal, branch(tree(1), tree(2), at, &batches()[2]));
    let read = |after| {
        journal.read_stored(tree(2), after, usize::MAX).wait().unwrap_or_else(|fault| panic!("{fault}"))
    };
    let mut stored: Vec<StoredEntry> = Vec::new();
    loop {
        let page = read(stored.last().map_or(Seq(0), |last| last.entry.end()));
        if page.is_empty() {
            break;
        }
        stored.extend(page);
    }
    let entries: Vec<Entry> = stored.iter().map(|stored| stored.entry.clone()).collect();
    assert_eq!(entries, all(journal, tree(2)));
    journal.remove(tree(2), Shared::Refuse).wait().unwrap_or_else(|fault| panic!("{fault}"));
    for (place, StoredEntry { entry, bytes }) in stored.into_iter().enumerate() {
        let batch = EncodedBatch::from_stored(bytes).unwrap_or_else(|fault| panic!("{fault}"));
        let seed = (place == 0).then(|| tree(1));
        let copy = Append { seed, batch, ..own(tree(2), entry.after, &entry.batch) };
        if place > 0 {
            let wrong = append(journal, Append { seed: Some(tree(1)), ..copy.clone() });
            assert!(matches!(wrong, Err(JournalFault::Stale { .. })), "a seed in the middle: {wrong:?}");
        }
        assert_eq!(append(journal, copy), Ok(entry.hash), "batch {place}");
    }
    assert_eq!(all(journal, tree(2)), entries);
    let head = journal.head(tree(2)).wait().unwrap_or_else(|fault| panic!("{fault}"));
    let head = head.unwrap_or_else(|| panic!("it has a head"));
    assert_eq!((head.seed, head.base), (tree(1), None));
    verify_chain(journal, tree(2), None).wait().unwrap_or_else(|fault| panic!("{fault}"));
}
