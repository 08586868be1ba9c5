//! Owners of trees: each claim ends the one before it, for that tree alone.

use std::sync::mpsc::sync_channel;

use spinney_journal::{Append, Blocking, Claim, Epoch, Journal, JournalFault, Shared, verify_chain};
use spinney_kernel::primitives::{Seq, TreeId};

use super::{append, append_for, batches, tree, write};

pub(super) const CHECKS: [fn(&dyn Journal); 8] = [
    a_claim_ends_the_one_before_it_for_that_tree_alone,
    a_tree_that_does_not_exist_is_claimed_by_its_first_append,
    a_tree_can_be_released_and_claimed_again,
    an_outdated_claim_releases_nothing,
    a_claim_changes_nothing_that_is_read,
    a_new_owner_finds_what_was_appended_before_its_claim,
    a_branch_belongs_to_the_owner_that_made_it,
    a_removed_tree_takes_its_claims_with_it,
];

fn claim(journal: &dyn Journal, tree: TreeId) -> Claim {
    journal.claim(tree).wait().unwrap_or_else(|fault| panic!("{fault}"))
}

fn end(journal: &dyn Journal, tree: TreeId) -> Seq {
    journal.head(tree).wait().ok().flatten().map_or(Seq(0), |head| head.seq)
}

/// The next batch of a tree, under a claim.
fn next(journal: &dyn Journal, claim: Claim) -> Append {
    let next = append_for(claim.tree, end(journal, claim.tree), &batches()[1]);
    Append { epoch: claim.epoch, catalog: Vec::new(), ..next }
}

fn goes(journal: &dyn Journal, claim: Claim) {
    let appended = append(journal, next(journal, claim));
    assert!(appended.is_ok(), "{claim:?}: {appended:?}");
}

fn is_refused(journal: &dyn Journal, claim: Claim) {
    let (tree, before) = (claim.tree, journal.head(claim.tree).wait());
    assert_eq!(append(journal, next(journal, claim)), Err(JournalFault::Owned { tree }), "{claim:?}");
    assert_eq!(journal.head(tree).wait(), before);
}

/// One owner of two trees loses one of them to a second owner, and writes on in the other.
fn a_claim_ends_the_one_before_it_for_that_tree_alone(journal: &dyn Journal) {
    for number in [1, 2] {
        write(journal, tree(number), &batches()[..1]);
    }
    let (lost, kept) = (claim(journal, tree(1)), claim(journal, tree(2)));
    goes(journal, lost);
    goes(journal, kept);
    let second = claim(journal, tree(1));
    assert!(second.epoch > lost.epoch, "{second:?} after {lost:?}");
    is_refused(journal, lost);
    goes(journal, kept);
    goes(journal, second);
    // Also at the position that it knew.
    let old = Append { after: Seq(1), ..next(journal, lost) };
    assert_eq!(append(journal, old), Err(JournalFault::Owned { tree: tree(1) }));
    goes(journal, second);
    goes(journal, kept);
    assert!(verify_chain(journal, tree(1), None).wait().is_ok());
}

fn a_tree_that_does_not_exist_is_claimed_by_its_first_append(journal: &dyn Journal) {
    let unknown = JournalFault::UnknownTree { tree: tree(1) };
    assert_eq!(journal.claim(tree(1)).wait(), Err(unknown.clone()));
    let early = Append { epoch: Epoch(2), ..append_for(tree(1), Seq(0), &batches()[0]) };
    assert_eq!(append(journal, early), Err(unknown));
    let first = Claim::first(tree(1));
    write(journal, tree(1), &batches()[..1]);
    goes(journal, first);
    let second = claim(journal, tree(1));
    assert!(second.epoch > first.epoch, "{second:?}");
    is_refused(journal, first);
    goes(journal, second);
}

fn a_tree_can_be_released_and_claimed_again(journal: &dyn Journal) {
    write(journal, tree(1), &batches()[..1]);
    let mut claims = vec![Claim::first(tree(1))];
    for number in 0..6 {
        let last = claims[claims.len() - 1];
        if number % 2 == 0 {
            goes(journal, last);
        }
        assert_eq!(journal.release(last).wait(), Ok(()));
        let next = claim(journal, tree(1));
        claims.iter().for_each(|old| assert!(old.epoch < next.epoch, "{old:?}, {next:?}"));
        claims.iter().for_each(|old| is_refused(journal, *old));
        claims.push(next);
    }
}

fn an_outdated_claim_releases_nothing(journal: &dyn Journal) {
    write(journal, tree(1), &batches()[..1]);
    let first = claim(journal, tree(1));
    let second = claim(journal, tree(1));
    assert_eq!(journal.release(first).wait(), Ok(()));
    is_refused(journal, first);
    goes(journal, second);
}

fn a_claim_changes_nothing_that_is_read(journal: &dyn Journal) {
    let written = write(journal, tree(1), &batches());
    let before = journal.head(tree(1)).wait();
    claim(journal, tree(1));
    assert_eq!(journal.head(tree(1)).wait(), before);
    assert_eq!(journal.read(tree(1), Seq(0), usize::MAX).wait(), Ok(written));
}

/// Appends that the old owner had sent when the tree was claimed are there or refused, and the new owner sees which.
fn a_new_owner_finds_what_was_appended_before_its_claim(journal: &dyn Journal) {
    write(journal, tree(1), &batches()[..1]);
    for _ in 0..20 {
        let old = claim(journal, tree(1));
        let (answer, answered) = sync_channel(1);
        journal.append(next(journal, old), Box::new(move |end| drop(answer.send(end))));
        let new = claim(journal, tree(1));
        let seen = journal.head(tree(1)).wait().ok().flatten().map(|head| head.hash);
        match answered.recv() {
            Ok(Ok(hash)) => assert_eq!(seen, Some(hash)),
            Ok(Err(fault)) => assert_eq!(fault, JournalFault::Owned { tree: tree(1) }),
            Err(_) => panic!("the journal dropped an append without an answer"),
        }
        is_refused(journal, old);
        goes(journal, new);
    }
}

fn a_branch_belongs_to_the_owner_that_made_it(journal: &dyn Journal) {
    let written = write(journal, tree(1), &batches()[..2]);
    let origin = claim(journal, tree(1));
    let at = written[1].end();
    let first = Append { base: Some(tree(1)), catalog: Vec::new(), ..append_for(tree(2), at, &batches()[2]) };
    let early = append(journal, Append { epoch: origin.epoch, ..first.clone() });
    assert_eq!(early, Err(JournalFault::UnknownTree { tree: tree(2) }));
    let appended = append(journal, first);
    assert!(appended.is_ok(), "{appended:?}");
    goes(journal, Claim::first(tree(2)));
    goes(journal, origin);
    let other = claim(journal, tree(2));
    is_refused(journal, Claim::first(tree(2)));
    goes(journal, other);
    goes(journal, origin);
}

fn a_removed_tree_takes_its_claims_with_it(journal: &dyn Journal) {
    write(journal, tree(1), &batches()[..1]);
    let old = claim(journal, tree(1));
    goes(journal, old);
    let unwritten = claim(journal, tree(1));
    assert_eq!(journal.remove(tree(1), Shared::Refuse).wait(), Ok(()));
    write(journal, tree(1), &batches()[..1]);
    for gone in [old, unwritten] {
        is_refused(journal, gone);
    }
    goes(journal, Claim::first(tree(1)));
}
