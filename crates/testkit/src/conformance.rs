//! The conformance suite: what every journal must do, run over each implementation.

mod branches;
mod listing;
mod owners;
mod reserving;
mod waking;

use spinney_kernel::record::ExitKind;
use spinney_kernel::world::TreeState;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use spinney_journal::{
    Append, Batch, Blocking, CatalogKind, CatalogRow, ChainHash, Entry, Epoch, Journal, JournalFault, Shared,
    catalog_of, pages, rebuild, verify_chain,
};
use spinney_kernel::primitives::{BlobHash, BlobRef, Durability, Seq, TreeId, limit};

use crate::Scenario;

/// Runs the whole suite; each check starts on an empty journal.
///
/// # Panics
/// At the first violation.
pub fn journal(open: &dyn Fn() -> Box<dyn Journal>) {
    let checks: [fn(&dyn Journal); 19] = [
        what_was_appended_is_read_back,
        pages_are_read_from_any_event,
        trees_that_are_written_in_turns_are_read_apart,
        a_page_is_bounded_in_bytes,
        a_whole_chain_is_verified,
        a_hash_does_not_depend_on_the_writers_hint,
        a_stale_writer_is_refused_and_writes_nothing,
        heads_have_each_trees_position,
        blobs_live_as_long_as_a_tree_that_uses_them,
        a_removed_tree_is_gone_and_may_come_again,
        trees_do_not_mix,
        heads_are_listed_by_state,
        a_row_of_the_catalog_lives_with_its_tree,
        a_key_belongs_to_the_tree_that_wrote_it,
        a_row_above_its_bound_is_refused,
        a_blob_above_its_bound_is_refused,
        a_blob_is_read_only_by_its_own_reference,
        a_tree_with_many_blobs_is_removed,
        the_catalog_is_computed_again_from_the_journal,
    ];
    for check in checks
        .into_iter()
        .chain(branches::CHECKS)
        .chain(listing::CHECKS)
        .chain(owners::CHECKS)
        .chain(waking::CHECKS)
        .chain(reserving::CHECKS)
    {
        check(open().as_ref());
    }
}

/// Appends and waits for the answer.
///
/// # Errors
/// The journal's fault.
///
/// # Panics
/// If the journal never answers.
pub fn append(journal: &dyn Journal, append: Append) -> Result<ChainHash, JournalFault> {
    let (answer, answered) = sync_channel(1);
    journal.append(append, Box::new(move |end| drop(answer.send(end))));
    answered.recv().unwrap_or_else(|_| panic!("the journal dropped an append without an answer"))
}

/// A list of batches with several kinds of events.
#[must_use]
pub fn batches() -> Vec<Batch> {
    let mut play = Scenario::grow("root $9.00 / a $2.00 / b");
    play.run("call b $0.20\ndone #1 $0.10\nsend a hello there\nask a Which?\nanswer #2 the second one");
    play.run(
        "call a $0.30\nfailed #3 server $0.10\npass 5s\nfinish b all done\nredirect a elsewhere\ncancel root",
    );
    play.batches().to_vec()
}

fn tree(number: u8) -> TreeId {
    TreeId::new([number; 16])
}

/// Writes the batches and returns the entries that must be read back.
fn write(journal: &dyn Journal, tree: TreeId, batches: &[Batch]) -> Vec<Entry> {
    let mut after = Seq(0);
    let entry = |batch: &Batch| {
        let entry = append_for(tree, after, batch);
        let hash = append(journal, entry).unwrap_or_else(|fault| panic!("{fault}"));
        let entry = Entry { after, batch: batch.clone(), hash };
        after = Seq(after.0 + batch.events.len() as u64);
        entry
    };
    batches.iter().map(entry).collect()
}

/// One batch of a tree that was never claimed again, with its changes to the catalog.
#[must_use]
pub fn append_for(tree: TreeId, after: Seq, batch: &Batch) -> Append {
    let catalog = catalog_of(tree, after, batch);
    let batch = batch.clone().encode().unwrap_or_else(|fault| panic!("{fault}"));
    let (state, durability) = (TreeState::Running, Durability::Normal);
    let epoch = Epoch::FIRST;
    Append {
        tree,
        epoch,
        after,
        base: None,
        seed: None,
        before: None,
        batch,
        blobs: Arc::default(),
        catalog,
        state,
        durability,
    }
}

/// An append that changes only these rows of the catalog.
fn with_rows(tree: TreeId, rows: &[(&str, Option<&str>)]) -> Append {
    let row = |(key, value): &(&str, Option<&str>)| CatalogRow {
        kind: CatalogKind::Checkpoint,
        key: (*key).to_owned(),
        value: value.map(str::to_owned),
    };
    Append { catalog: rows.iter().map(row).collect(), ..append_for(tree, Seq(0), &batches()[0]) }
}

/// Keys, trees and values of one kind.
fn catalog(journal: &dyn Journal, kind: CatalogKind, prefix: &str) -> Vec<(String, TreeId, String)> {
    let facts = journal.catalog(kind, prefix).wait().unwrap_or_else(|fault| panic!("{fault}"));
    facts.into_iter().map(|fact| (fact.key, fact.tree, fact.value)).collect()
}

fn last(batches: &[Batch]) -> Seq {
    Seq(batches.iter().map(|batch| batch.events.len() as u64).sum())
}

fn what_was_appended_is_read_back(journal: &dyn Journal) {
    let written = write(journal, tree(1), &batches());
    assert_eq!(journal.read(tree(1), Seq(0), usize::MAX).wait(), Ok(written));
    let unknown = JournalFault::UnknownTree { tree: tree(2) };
    assert_eq!(journal.read(tree(2), Seq(0), 1).wait(), Err(unknown));
}

fn pages_are_read_from_any_event(journal: &dyn Journal) {
    let written = write(journal, tree(1), &batches());
    for (at, entry) in written.iter().enumerate() {
        let page = journal.read(tree(1), entry.after, 2).wait().unwrap_or_else(|fault| panic!("{fault}"));
        let expected: Vec<Entry> = written.iter().skip(at).take(2).cloned().collect();
        assert_eq!(page, expected);
        // A read from the middle of a batch returns that batch again.
        for middle in entry.after.0..entry.end().0 {
            assert_eq!(journal.read(tree(1), Seq(middle), 2).wait().as_ref(), Ok(&expected));
        }
    }
    write(journal, tree(2), &batches());
    for beyond in [last(&batches()), Seq(1 << 40), Seq(u64::MAX)] {
        assert_eq!(journal.read(tree(1), beyond, 10).wait(), Ok(Vec::new()));
        assert_eq!(journal.read(tree(2), beyond, 10).wait(), Ok(Vec::new()));
    }
}

/// Trees that are written in turns, long enough that none is stored contiguously.
fn trees_that_are_written_in_turns_are_read_apart(journal: &dyn Journal) {
    let batch = &batches()[1];
    let events = batch.events.len() as u64;
    let count = 200;
    for number in 0..count {
        for which in [1, 2, 3] {
            // The third has only a few.
            if which < 3 || number % 70 == 0 {
                let after = Seq(events * if which < 3 { number } else { number / 70 });
                append(journal, append_for(tree(which), after, batch))
                    .unwrap_or_else(|fault| panic!("{fault}"));
            }
        }
    }
    for (which, count) in [(1, count), (2, count), (3, 3)] {
        for from in 0..=count {
            for batches_max in [1, 2, 63, 64, 65, 129, usize::MAX] {
                let page = journal.read(tree(which), Seq(from * events), batches_max).wait();
                let page = page.unwrap_or_else(|fault| panic!("{fault}"));
                let left = (count - from) as usize;
                let begins: Vec<u64> = page.iter().map(|entry| entry.after.0).collect();
                let expected: Vec<u64> = (from..).map(|batch| batch * events).take(page.len()).collect();
                assert_eq!(begins, expected, "tree {which} from {from}");
                assert!(page.len() <= batches_max, "{} batches from {from}", page.len());
                assert_eq!(page.is_empty(), left == 0, "tree {which} from {from}");
            }
        }
        assert!(verify_chain(journal, tree(which), None).wait().is_ok(), "tree {which}");
    }
    assert_eq!(journal.remove(tree(1), Shared::Refuse).wait(), Ok(()));
    assert!(verify_chain(journal, tree(2), None).wait().is_ok());
}

/// 20 MiB of journal: no page exceeds 4 MiB, and together they are complete.
fn a_page_is_bounded_in_bytes(journal: &dyn Journal) {
    let mut play = Scenario::grow("root / a");
    play.run(&format!("send a {}", "x".repeat(limit::TEXT_BYTES_MAX)));
    let large = play.batches().last().cloned().unwrap_or_else(|| panic!("nothing was played"));
    let batches = vec![large; 640];
    let written = write(journal, tree(1), &batches);
    let mut read = Vec::new();
    for page in pages(journal, tree(1), Seq(0)).blocking() {
        let page = page.unwrap_or_else(|fault| panic!("{fault}"));
        let texts = page.len() * limit::TEXT_BYTES_MAX;
        assert!(texts <= limit::PAGE_BYTES_MAX, "a page of {texts} bytes");
        read.extend(page);
    }
    assert!(read == written, "the pages are not what was written");
}

fn a_whole_chain_is_verified(journal: &dyn Journal) {
    let written = write(journal, tree(1), &batches());
    let [.., before, last] = &written[..] else { panic!("too few batches") };
    assert_eq!(verify_chain(journal, tree(1), None).wait(), Ok(last.hash));
    assert_eq!(verify_chain(journal, tree(1), Some(last.hash)).wait(), Ok(last.hash));
    let reason = format!("its hash is {}, and {} was expected", last.hash, before.hash);
    let damaged = JournalFault::Damaged { tree: tree(1), after: last.end().0, reason };
    assert_eq!(verify_chain(journal, tree(1), Some(before.hash)).wait(), Err(damaged));
    assert_eq!(verify_chain(journal, tree(2), None).wait(), Err(JournalFault::UnknownTree { tree: tree(2) }));
}

fn a_hash_does_not_depend_on_the_writers_hint(journal: &dyn Journal) {
    let written = write(journal, tree(1), &batches());
    let right = std::iter::once(ChainHash::start(tree(1))).chain(written.iter().map(|entry| entry.hash));
    let wrong = std::iter::repeat_n(ChainHash::start(tree(2)), written.len());
    let knows: [Vec<ChainHash>; 2] = [right.collect(), wrong.collect()];
    for before in knows {
        assert_eq!(journal.remove(tree(1), Shared::Refuse).wait(), Ok(()));
        for (entry, before) in written.iter().zip(before) {
            let known = Append { before: Some(before), ..append_for(tree(1), entry.after, &entry.batch) };
            assert_eq!(append(journal, known), Ok(entry.hash));
        }
        assert_eq!(verify_chain(journal, tree(1), None).wait(), Ok(written[written.len() - 1].hash));
    }
}

fn a_stale_writer_is_refused_and_writes_nothing(journal: &dyn Journal) {
    let batches = batches();
    let written = write(journal, tree(1), &batches);
    let found = last(&batches).0;
    for expected in [0, 1, found - 1, found + 1, u64::MAX] {
        let stale = append(journal, append_for(tree(1), Seq(expected), &batches[0]));
        assert_eq!(stale, Err(JournalFault::Stale { tree: tree(1), expected, found }));
    }
    let early = append(journal, append_for(tree(2), Seq(5), &batches[0]));
    assert_eq!(early, Err(JournalFault::Stale { tree: tree(2), expected: 5, found: 0 }));
    assert_eq!(journal.read(tree(1), Seq(0), usize::MAX).wait(), Ok(written));
    assert_eq!(journal.head(tree(2)).wait(), Ok(None));
}

fn heads_have_each_trees_position(journal: &dyn Journal) {
    let batches = batches();
    for number in [3, 1, 2] {
        write(journal, tree(number), &batches);
    }
    let heads = journal.heads(&[]).wait().unwrap_or_else(|fault| panic!("{fault}"));
    let order: Vec<TreeId> = heads.iter().map(|head| head.tree).collect();
    assert_eq!(order, [tree(3), tree(1), tree(2)]);
    let entries = journal.read(tree(1), Seq(0), usize::MAX).wait().unwrap_or_default();
    let head = journal.head(tree(1)).wait().unwrap_or_default();
    let expected = entries.last().map(|entry| (last(&batches), entry.hash, TreeState::Running));
    assert_eq!(head.map(|head| (head.seq, head.hash, head.state)), expected);
}

fn blobs_live_as_long_as_a_tree_that_uses_them(journal: &dyn Journal) {
    let bytes = vec![7_u8; 100_000];
    let blob = reference(&bytes);
    assert_eq!(journal.blob(&blob).wait(), Ok(None));
    for number in [1, 2] {
        let append = append_for(tree(number), Seq(0), &batches()[0]);
        let with_blob = Append { blobs: [bytes.clone()].into(), ..append };
        self::append(journal, with_blob).unwrap_or_else(|fault| panic!("{fault}"));
    }
    assert_eq!(journal.remove(tree(1), Shared::Refuse).wait(), Ok(()));
    assert_eq!(journal.blob(&blob).wait(), Ok(Some(bytes)));
    assert_eq!(journal.remove(tree(2), Shared::Refuse).wait(), Ok(()));
    assert_eq!(journal.blob(&blob).wait(), Ok(None));
}

fn a_blob_above_its_bound_is_refused(journal: &dyn Journal) {
    let of_sizes = |sizes: &[usize]| {
        let blobs = sizes.iter().map(|size| vec![1; *size]).collect();
        append(journal, Append { blobs, ..append_for(tree(1), Seq(0), &batches()[0]) })
    };
    let max = limit::BLOB_BYTES_MAX;
    for sizes in [&[5, max + 1][..], &[max; 5], &[1; limit::BLOBS_MAX + 1]] {
        let refused = of_sizes(sizes);
        assert!(matches!(refused, Err(JournalFault::TooLarge { .. })), "{refused:?}");
    }
    assert_eq!(journal.head(tree(1)).wait(), Ok(None));
    assert_eq!(journal.blob(&reference(&[1; 5])).wait(), Ok(None));
    let most = of_sizes(&[0, max]);
    assert!(most.is_ok(), "{most:?}");
    assert_eq!(journal.blob(&reference(&[])).wait(), Ok(Some(Vec::new())));
    assert_eq!(
        journal.blob(&reference(&vec![1; max])).wait().map(|bytes| bytes.map(|bytes| bytes.len())),
        Ok(Some(max))
    );
}

fn a_blob_is_read_only_by_its_own_reference(journal: &dyn Journal) {
    let bytes = b"what a tool said".to_vec();
    let with_blob = Append { blobs: [bytes.clone()].into(), ..append_for(tree(1), Seq(0), &batches()[0]) };
    append(journal, with_blob).unwrap_or_else(|fault| panic!("{fault}"));
    let blob = reference(&bytes);
    let damaged = JournalFault::DamagedBlob { hash: blob.hash.to_string() };
    assert_eq!(journal.blob(&BlobRef { bytes: blob.bytes + 1, ..blob.clone() }).wait(), Err(damaged));
    assert_eq!(journal.blob(&blob).wait(), Ok(Some(bytes)));
}

/// Detects quadratic work: as many blobs as a long run leaves, all used by two trees.
fn a_tree_with_many_blobs_is_removed(journal: &dyn Journal) {
    let batch = &batches()[0];
    let blob = |number: usize| number.to_le_bytes().to_vec();
    for number in [1, 2] {
        for page in 0..10 {
            let blobs = (page * 1_000..(page + 1) * 1_000).map(blob).collect();
            let after = Seq(page as u64 * batch.events.len() as u64);
            let append = Append { blobs, catalog: Vec::new(), ..append_for(tree(number), after, batch) };
            self::append(journal, append).unwrap_or_else(|fault| panic!("{fault}"));
        }
    }
    assert_eq!(journal.remove(tree(1), Shared::Refuse).wait(), Ok(()));
    assert_eq!(journal.blob(&reference(&blob(9_999))).wait(), Ok(Some(blob(9_999))));
    assert_eq!(journal.remove(tree(2), Shared::Refuse).wait(), Ok(()));
    assert_eq!(journal.blob(&reference(&blob(9_999))).wait(), Ok(None));
}

fn reference(bytes: &[u8]) -> BlobRef {
    BlobRef { hash: BlobHash::digest(bytes), bytes: bytes.len() as u64 }
}

fn a_removed_tree_is_gone_and_may_come_again(journal: &dyn Journal) {
    write(journal, tree(1), &batches());
    assert_eq!(journal.remove(tree(1), Shared::Refuse).wait(), Ok(()));
    assert_eq!(
        journal.remove(tree(1), Shared::Refuse).wait(),
        Err(JournalFault::UnknownTree { tree: tree(1) })
    );
    assert_eq!(journal.heads(&[]).wait(), Ok(Vec::new()));
    let written = write(journal, tree(1), &batches());
    assert_eq!(journal.read(tree(1), Seq(0), usize::MAX).wait(), Ok(written));
}

/// Concurrent writers: each tree has exactly its own batches, in order.
fn trees_do_not_mix(journal: &dyn Journal) {
    let batches = batches();
    std::thread::scope(|scope| {
        for number in 1..=20 {
            let batches = &batches;
            scope.spawn(move || write(journal, tree(number), batches));
        }
    });
    for number in 1..=20 {
        let read =
            journal.read(tree(number), Seq(0), usize::MAX).wait().unwrap_or_else(|fault| panic!("{fault}"));
        let read: Vec<Batch> = read.into_iter().map(|entry| entry.batch).collect();
        assert_eq!(read, batches);
    }
}

fn heads_are_listed_by_state(journal: &dyn Journal) {
    let batches = batches();
    let events = batches[0].events.len() as u64;
    for (number, state) in [
        (4, TreeState::Running),
        (3, TreeState::Ended(ExitKind::Completed)),
        (2, TreeState::Waiting),
        (1, TreeState::Running),
    ] {
        let append = Append { state: TreeState::New, ..append_for(tree(number), Seq(0), &batches[0]) };
        self::append(journal, append).unwrap_or_else(|fault| panic!("{fault}"));
        let append = Append { state, ..append_for(tree(number), Seq(events), &batches[1]) };
        self::append(journal, append).unwrap_or_else(|fault| panic!("{fault}"));
    }
    let listed = |states: &[TreeState]| -> Vec<TreeId> {
        let heads = journal.heads(states).wait().unwrap_or_else(|fault| panic!("{fault}"));
        heads.iter().map(|head| head.tree).collect()
    };
    assert_eq!(listed(&[]), [tree(4), tree(3), tree(2), tree(1)]);
    assert_eq!(listed(&[TreeState::Running]), [tree(4), tree(1)]);
    assert_eq!(
        listed(&[TreeState::Waiting, TreeState::Running, TreeState::Running]),
        [tree(4), tree(2), tree(1)]
    );
    assert_eq!(listed(&[TreeState::New]), []);
    assert_eq!(journal.remove(tree(4), Shared::Refuse).wait(), Ok(()));
    assert_eq!(listed(&[TreeState::Running]), [tree(1)]);
}

fn a_row_of_the_catalog_lives_with_its_tree(journal: &dyn Journal) {
    let kind = CatalogKind::Checkpoint;
    for append in [
        with_rows(tree(2), &[("b", Some("second")), ("a/x", Some("")), ("gone", Some("soon"))]),
        with_rows(tree(1), &[("a/\u{e9}", Some("\u{e9}")), ("c", Some("1")), ("c", Some("2"))]),
    ] {
        self::append(journal, append).unwrap_or_else(|fault| panic!("{fault}"));
    }
    let after = Seq(batches()[0].events.len() as u64);
    let change =
        Append { after, ..with_rows(tree(2), &[("gone", None), ("b", Some("changed")), ("no", None)]) };
    append(journal, change).unwrap_or_else(|fault| panic!("{fault}"));
    let row = |key: &str, number, value: &str| (key.to_owned(), tree(number), value.to_owned());
    let all = [row("a/x", 2, ""), row("a/\u{e9}", 1, "\u{e9}"), row("b", 2, "changed"), row("c", 1, "2")];
    assert_eq!(catalog(journal, kind, ""), all);
    assert_eq!(catalog(journal, kind, "a/"), all[..2]);
    assert_eq!(catalog(journal, kind, "b"), all[2..3]);
    assert_eq!(catalog(journal, kind, "bb"), []);
    assert_eq!(catalog(journal, CatalogKind::Tree, ""), []);
    assert_eq!(journal.remove(tree(2), Shared::Refuse).wait(), Ok(()));
    assert_eq!(catalog(journal, kind, ""), [all[1].clone(), all[3].clone()]);
}

fn a_key_belongs_to_the_tree_that_wrote_it(journal: &dyn Journal) {
    let kind = CatalogKind::Checkpoint;
    append(journal, with_rows(tree(1), &[("mine", Some("1"))])).unwrap_or_else(|fault| panic!("{fault}"));
    let taken = JournalFault::KeyTaken { kind, key: "mine".to_owned(), tree: tree(1) };
    for value in [Some("2"), None] {
        let refused = append(journal, with_rows(tree(2), &[("free", Some("2")), ("mine", value)]));
        assert_eq!(refused, Err(taken.clone()));
    }
    assert_eq!(journal.head(tree(2)).wait(), Ok(None));
    assert_eq!(catalog(journal, kind, ""), [("mine".to_owned(), tree(1), "1".to_owned())]);
    assert_eq!(journal.remove(tree(1), Shared::Refuse).wait(), Ok(()));
    let free = append(journal, with_rows(tree(2), &[("mine", Some("2"))]));
    assert!(free.is_ok(), "{free:?}");
}

fn a_row_above_its_bound_is_refused(journal: &dyn Journal) {
    let (key, value) = ("k".repeat(limit::CATALOG_KEY_BYTES_MAX), "v".repeat(limit::CATALOG_VALUE_BYTES_MAX));
    let many: Vec<(&str, Option<&str>)> = vec![("k", None); limit::CATALOG_ROWS_MAX + 1];
    let (long_key, long_value) = (format!("{key}k"), format!("{value}v"));
    for rows in [&many[..], &[(long_key.as_str(), None)], &[("k", Some(long_value.as_str()))]] {
        let refused = append(journal, with_rows(tree(1), rows));
        assert!(matches!(refused, Err(JournalFault::TooLarge { .. })), "{refused:?}");
    }
    assert_eq!(journal.head(tree(1)).wait(), Ok(None));
    let most = append(journal, with_rows(tree(1), &[(&key, Some(&value))]));
    assert!(most.is_ok(), "{most:?}");
}

fn the_catalog_is_computed_again_from_the_journal(journal: &dyn Journal) {
    for number in [2, 1] {
        write(journal, tree(number), &batches());
    }
    let named = |number| (tree(number).to_string(), tree(number), "fixture".to_owned());
    let all = [named(1), named(2)];
    assert_eq!(catalog(journal, CatalogKind::Tree, ""), all);
    assert_eq!(catalog(journal, CatalogKind::Tree, "02"), all[1..]);
    let at = last(&batches());
    let wrong = |key: &str| {
        vec![CatalogRow { kind: CatalogKind::Checkpoint, key: key.to_owned(), value: Some(String::new()) }]
    };
    assert_eq!(journal.replace_catalog(tree(1), at, wrong("x")).wait(), Ok(()));
    assert_eq!(catalog(journal, CatalogKind::Tree, ""), all[1..]);
    let stale = JournalFault::Stale { tree: tree(1), expected: 1, found: at.0 };
    assert_eq!(journal.replace_catalog(tree(1), Seq(1), Vec::new()).wait(), Err(stale));
    let taken = JournalFault::KeyTaken { kind: CatalogKind::Checkpoint, key: "x".to_owned(), tree: tree(1) };
    assert_eq!(journal.replace_catalog(tree(2), at, wrong("x")).wait(), Err(taken));
    assert_eq!(rebuild(journal, tree(1)).wait(), Ok(()));
    assert_eq!(catalog(journal, CatalogKind::Tree, ""), all);
    assert_eq!(catalog(journal, CatalogKind::Checkpoint, ""), []);
    assert_eq!(rebuild(journal, tree(3)).wait(), Err(JournalFault::UnknownTree { tree: tree(3) }));
}
