//! The list of trees: page by page, by state, while trees are added and removed.

use spinney_journal::{Append, Blocking, Head, HeadCursor, Journal, JournalFault, Shared};
use spinney_kernel::primitives::{Seq, TreeId, limit};
use spinney_kernel::record::ExitKind;
use spinney_kernel::world::TreeState;

use super::{append, append_for, batches, tree};

pub(super) const CHECKS: [fn(&dyn Journal); 4] = [
    heads_are_listed_page_by_page,
    a_tree_is_listed_once_whatever_comes_and_goes,
    a_page_is_bounded_in_trees,
    a_cursor_comes_back_as_text_or_is_refused,
];

fn heads_are_listed_page_by_page(journal: &dyn Journal) {
    let batch = &batches()[0];
    for number in 1..=9 {
        let state = if number % 3 == 0 { TreeState::Waiting } else { TreeState::Running };
        let appended = append(journal, Append { state, ..append_for(tree(number), Seq(0), batch) });
        assert!(appended.is_ok(), "{appended:?}");
    }
    for states in [
        &[][..],
        &[TreeState::Waiting],
        &[TreeState::Running],
        &[TreeState::Running, TreeState::Waiting],
        &[TreeState::Ended(ExitKind::Failed)],
    ] {
        let all = journal.heads(states).wait().unwrap_or_else(|fault| panic!("{fault}"));
        for heads_max in [1, 2, 3, 100] {
            let (mut listed, mut next) = (Vec::new(), Some(HeadCursor::START));
            while let Some(after) = next {
                let page = journal.head_page(states, after, heads_max).wait();
                let page = page.unwrap_or_else(|fault| panic!("{fault}"));
                assert!(
                    page.heads.len() <= heads_max && (page.next.is_none() || page.heads.len() == heads_max)
                );
                listed.extend(page.heads);
                next = page.next;
            }
            assert_eq!(listed, all, "{states:?}, {heads_max} at once");
        }
    }
}

/// Trees that were there all the time are on one page each, in every order of pages, additions and removals.
fn a_tree_is_listed_once_whatever_comes_and_goes(journal: &dyn Journal) {
    let batch = &batches()[0];
    let add = |number| {
        let added = append(journal, append_for(tree(number), Seq(0), batch));
        assert!(added.is_ok(), "{added:?}");
    };
    let remove = |number| assert_eq!(journal.remove(tree(number), Shared::Refuse).wait(), Ok(()));
    (1..=20).for_each(add);
    let (mut listed, mut next, mut new) = (Vec::new(), Some(HeadCursor::START), 100);
    while let Some(after) = next {
        let page = journal.head_page(&[], after, 3).wait().unwrap_or_else(|fault| panic!("{fault}"));
        listed.extend(page.heads.into_iter().map(|head| head.tree));
        next = page.next;
        if new < 106 {
            add(new);
            // One that is listed, one that is next, and one at the end.
            match new {
                100 => remove(1),
                101 => remove(7),
                102 => remove(20),
                _ => {}
            }
        }
        new += 1;
    }
    for number in (2..=19).filter(|number| *number != 7) {
        let count = listed.iter().filter(|listed| **listed == tree(number)).count();
        assert_eq!(count, 1, "tree {number} in {listed:?}");
    }
    let mut sorted: Vec<TreeId> = listed.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), listed.len(), "twice in {listed:?}");
}

fn a_page_is_bounded_in_trees(journal: &dyn Journal) {
    let batch = &batches()[0];
    for number in 0..=limit::HEADS_MAX as u128 {
        let first = append_for(TreeId::new(number.to_be_bytes()), Seq(0), batch);
        let added = append(journal, Append { catalog: Vec::new(), ..first });
        assert!(added.is_ok(), "{added:?}");
    }
    let page = journal.head_page(&[], HeadCursor::START, usize::MAX).wait();
    let page = page.unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(page.heads.len(), limit::HEADS_MAX);
    let rest = journal.head_page(&[], page.next.unwrap_or(HeadCursor::START), usize::MAX).wait();
    assert_eq!(rest.map(|rest| (rest.heads.len(), rest.next)), Ok((1, None)));
}

fn a_cursor_comes_back_as_text_or_is_refused(journal: &dyn Journal) {
    for number in [1, 2] {
        let added = append(journal, append_for(tree(number), Seq(0), &batches()[0]));
        assert!(added.is_ok(), "{added:?}");
    }
    let page = |cursor: HeadCursor| journal.head_page(&[], cursor, 1).wait();
    let next = page(HeadCursor::START).ok().and_then(|first| first.next).map(|next| next.to_string());
    let next = next.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no second page"));
    let trees = |heads: Vec<Head>| heads.into_iter().map(|head| head.tree).collect::<Vec<_>>();
    assert_eq!(page(next).map(|page| trees(page.heads)), Ok(vec![tree(2)]));
    assert_eq!(page(HeadCursor::from_bytes(&[7])), Err(JournalFault::UnknownCursor));
}
