//! Which checkpoints expire, and that exactly those are removed.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use spinney_journal::{
    Batch, Blocking, CatalogKind, CheckpointFacts, Cleaned, Journal, ListedCheckpoint, checkpoints, clean,
    expired, rebuild,
};
use spinney_kernel::primitives::limit::CHECKPOINTS_KEPT_MAX;
use spinney_kernel::primitives::{Actor, CheckpointKind, Seq, Time, TreeId};
use spinney_kernel::record::Event;
use spinney_kernel::rules::request::{Checkpoint, Request};
use spinney_kernel::rules::{Input, InputKind};
use spinney_store::MemoryJournal;
use spinney_testkit::conformance;

use CheckpointKind::{Automatic, Branch, Manual, Rollback};

const HOUR: u64 = 60 * 60 * 1_000;
const DAY: u64 = 24 * HOUR;
const NOW: Time = Time(1_700_000_000_000);

/// A checkpoint of this age.
fn aged(nth: usize, kind: CheckpointKind, number: u32, age_ms: u64) -> ListedCheckpoint {
    let (agent, made) = ("root".parse().unwrap(), Time(NOW.0 - age_ms));
    let known = CheckpointFacts { agent, kind, seq: Seq(nth as u64 + 1), made, number };
    ListedCheckpoint { name: format!("c{nth}").parse().unwrap(), tree: TreeId::new([1; 16]), known }
}

/// P26: all of a day, every tenth of a month, nothing older; other kinds forever.
#[test]
fn p26_age_and_number_say_which_automatic_ones_go() {
    let goes = [
        (Automatic, 1, 0, false),
        (Automatic, 1, DAY, false),
        (Automatic, 1, DAY + 1, true),
        (Automatic, 9, 2 * DAY, true),
        (Automatic, 10, DAY + 1, false),
        (Automatic, 11, 2 * DAY, true),
        (Automatic, 100, 30 * DAY, false),
        (Automatic, 101, 30 * DAY, true),
        (Automatic, 10, 30 * DAY + 1, true),
        (Automatic, 100, 400 * DAY, true),
        (Manual, 0, 400 * DAY, false),
        (Branch, 0, 400 * DAY, false),
        (Rollback, 0, 400 * DAY, false),
        (Rollback, 1, 2 * DAY, false),
    ];
    for (kind, number, age_ms, expected) in goes {
        let listed = [aged(0, kind, number, age_ms)];
        assert_eq!(!expired(&listed, NOW).is_empty(), expected, "{kind:?} {number} {age_ms}");
    }
    // A clock that was set back expires nothing.
    assert_eq!(expired(&[aged(0, Automatic, 1, 0)], Time(0)), Vec::<&ListedCheckpoint>::new());
}

/// P26: beyond a thousand in all, the oldest automatic ones are removed, whatever their age; other kinds never are.
#[test]
fn p26_beyond_a_thousand_the_oldest_automatic_ones_go() {
    let recent = |nth: usize| aged(nth, Automatic, 1, nth as u64);
    let mut listed: Vec<ListedCheckpoint> = (0..CHECKPOINTS_KEPT_MAX - 2).map(recent).collect();
    listed.push(aged(5_000, Manual, 0, 90 * DAY));
    listed.push(aged(5_001, Automatic, 10, 29 * DAY));
    assert_eq!(expired(&listed, NOW), Vec::<&ListedCheckpoint>::new());
    // One that expires anyway does not count.
    listed.push(aged(5_002, Automatic, 10, 31 * DAY));
    let names = |listed: &[ListedCheckpoint]| -> Vec<String> {
        expired(listed, NOW).iter().map(|listed| listed.name.to_string()).collect()
    };
    assert_eq!(names(&listed), ["c5002"]);
    listed.push(aged(5_003, Branch, 0, 0));
    listed.push(aged(5_004, Rollback, 0, 0));
    assert_eq!(names(&listed), ["c5002", "c5001", "c997"]);
    let people: Vec<ListedCheckpoint> =
        (0..=CHECKPOINTS_KEPT_MAX).map(|nth| aged(nth, Manual, 0, DAY)).collect();
    assert_eq!(names(&people), Vec::<String>::new());
}

/// A checkpoint to make: tree, kind, number, and age in hours.
type Planned = (u8, CheckpointKind, u32, u64);

fn planned() -> impl Strategy<Value = Planned> {
    let kind = prop_oneof![4 => Just(Automatic), 1 => Just(Manual), 1 => Just(Branch), 1 => Just(Rollback)];
    (1_u8..4, kind, 1_u32..25, 0_u64..40 * 24)
}

/// A journal of trees with these checkpoints, and more automatic ones of this hour.
fn journal_of(planned: &[Planned], more: usize) -> (MemoryJournal, BTreeMap<TreeId, Seq>) {
    let (journal, mut ends) = (MemoryJournal::new(), BTreeMap::new());
    let more = std::iter::repeat_n((1, Automatic, 1, 0), more);
    for (nth, (tree, kind, number, hours)) in planned.iter().copied().chain(more).enumerate() {
        let tree = TreeId::new([tree; 16]);
        let ListedCheckpoint { name, known, .. } = aged(nth, kind, number, hours * HOUR);
        let what = InputKind::Request {
            by: Actor::PERSON,
            request: Box::new(Request::Checkpoint(Checkpoint::manual(known.agent.clone(), None))),
        };
        let input = Input { now: known.made, draw: 1, what };
        let made = Event::CheckpointMade { agent: known.agent, name, kind, number };
        let end = ends.entry(tree).or_insert(Seq(0));
        let batch = Batch { input, events: vec![made] };
        conformance::append(&journal, conformance::append_for(tree, *end, &batch)).unwrap();
        end.0 += 1;
    }
    (journal, ends)
}

/// P26: the count is the number of removed rows, which are exactly the expired ones; no other kind, head or batch is
/// touched; and what a rebuild restores is removed again.
#[test]
fn p26_the_count_is_what_is_gone_and_no_other_kind_goes() {
    let config = ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() };
    let more = prop_oneof![3 => Just(0), 1 => CHECKPOINTS_KEPT_MAX - 30..CHECKPOINTS_KEPT_MAX + 20];
    proptest!(config, |(planned in vec(planned(), 0..60), more in more)| {
        let (journal, ends) = journal_of(&planned, more);
        let all = || checkpoints(&journal, None).wait().unwrap();
        let (before, heads) = (all(), journal.heads(&[]).wait().unwrap());
        let gone: Vec<ListedCheckpoint> = expired(&before, NOW).into_iter().cloned().collect();
        prop_assert!(gone.iter().all(|listed| listed.known.kind == Automatic));
        let kept: Vec<ListedCheckpoint> = before.iter().filter(|listed| !gone.contains(listed)).cloned().collect();
        let left = kept.iter().filter(|listed| listed.known.kind == Automatic).count();
        prop_assert!(kept.len() <= CHECKPOINTS_KEPT_MAX || left == 0);
        let expected = Cleaned { removed: gone.len(), left, failed: Vec::new() };
        prop_assert_eq!(clean(&journal, NOW).wait(), Ok(expected.clone()));
        prop_assert_eq!((all(), before.len() - all().len()), (kept.clone(), expected.removed));
        prop_assert_eq!(journal.heads(&[]).wait().unwrap(), heads);
        // Nothing is left to do; and what is restored is removed again.
        prop_assert_eq!(clean(&journal, NOW).wait(), Ok(Cleaned { removed: 0, ..expected.clone() }));
        ends.keys().for_each(|tree| rebuild(&journal, *tree).wait().unwrap());
        prop_assert_eq!(all(), before);
        prop_assert_eq!(clean(&journal, NOW).wait(), Ok(expected));
        prop_assert_eq!(all(), kept);
        prop_assert_eq!(journal.catalog(CatalogKind::Tree, "").wait(), Ok(Vec::new()));
    });
}
