//! Heads: the position of each tree, also in a home that crashed.

use spinney_kernel::world::TreeState;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rusqlite::Connection;
use spinney_journal::{
    Append, Batch, Blocking, ChainHash, Head, Journal, JournalFault, Shared, verify_chain,
};
use spinney_kernel::primitives::{Seq, TreeId};
use spinney_store::{Access, SqliteJournal};
use spinney_testkit::conformance;
use tempfile::TempDir;

use super::{file, open};

const TREES: u64 = 400;
const ROUNDS: u64 = 12;

type Confirmed = BTreeMap<TreeId, (Seq, ChainHash, TreeState)>;

fn tree(number: u64) -> TreeId {
    let mut bytes = [3; 16];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    TreeId::new(bytes)
}

/// A batch without references, so every tree may have it repeatedly.
fn batch() -> Batch {
    conformance::batches().swap_remove(3)
}

/// The files of an open home as a crash would leave them.
pub(crate) fn crashed(home: &Path) -> Result<TempDir, std::io::Error> {
    let copy = tempfile::tempdir()?;
    let log = |home: &Path| file(home).with_extension("sqlite3-wal");
    fs::copy(file(home), file(copy.path()))?;
    fs::copy(log(home), log(copy.path()))?;
    // Another program's database has none.
    let count = home.join("journal.head");
    if count.exists() {
        fs::copy(&count, copy.path().join("journal.head"))?;
    }
    Ok(copy)
}

/// Appends another batch to a tree and records the confirmation.
fn write(journal: &SqliteJournal, confirmed: &mut Confirmed, number: u64, state: TreeState) {
    let (tree, batch) = (tree(number), batch());
    let after = confirmed.get(&tree).map_or(Seq(0), |(seq, ..)| *seq);
    let append = Append { state, ..conformance::append_for(tree, after, &batch) };
    let hash = conformance::append(journal, append).unwrap_or_else(|fault| panic!("{fault}"));
    confirmed.insert(tree, (Seq(after.0 + batch.events.len() as u64), hash, state));
}

fn stand(head: &Head) -> (TreeId, (Seq, ChainHash, TreeState)) {
    (head.tree, (head.seq, head.hash, head.state))
}

/// All reads of heads agree with the confirmations.
fn check(journal: &SqliteJournal, confirmed: &Confirmed) {
    let all = journal.heads(&[]).wait().unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(&all.iter().map(stand).collect::<Confirmed>(), confirmed);
    for state in [TreeState::Running, TreeState::Waiting] {
        let found = journal.heads(&[state]).wait().unwrap_or_else(|fault| panic!("{fault}"));
        let of_state = confirmed.iter().filter(|(_, (.., confirmed))| *confirmed == state);
        let of_state = of_state.map(|(tree, stand)| (*tree, *stand));
        assert_eq!(found.iter().map(stand).collect::<Confirmed>(), of_state.collect::<Confirmed>());
    }
    for tree in confirmed.keys().step_by(37) {
        let head = journal.head(*tree).wait().unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(head.as_ref().map(stand).as_ref().map(|(_, stand)| stand), confirmed.get(tree));
        assert_eq!(verify_chain(journal, *tree, None).wait(), Ok(confirmed[tree].1));
    }
}

/// What the tables themselves say: the last batch of each tree.
fn bare(home: &Path) -> rusqlite::Result<BTreeMap<TreeId, [u8; 32]>> {
    let connection = Connection::open(file(home))?;
    let last = "SELECT trees.tree, batches.hash FROM batches JOIN trees ON trees.id = batches.tree
        WHERE batches.id IN (SELECT max(id) FROM batches GROUP BY tree)";
    let mut last = connection.prepare(last)?;
    last.query_map([], |row| Ok((TreeId::new(row.get(0)?), row.get(1)?)))?.collect()
}

/// Each head is at its tree's last batch, in a home that crashed at any moment: for readers, for the next writer, and
/// in the lists by state.
#[test]
fn a_home_that_was_never_closed_has_every_trees_head() {
    let home = tempfile::tempdir().unwrap();
    let journal = open(home.path());
    let mut confirmed = Confirmed::new();
    for round in 0..ROUNDS {
        // Fewer and fewer trees write, and some of them wait.
        for number in (0..TREES).filter(|number| number % (round + 1) == 0) {
            let state = if (number + round) % 7 == 3 { TreeState::Waiting } else { TreeState::Running };
            write(&journal, &mut confirmed, number, state);
        }
        let copy = crashed(home.path()).unwrap();
        let hashes = confirmed.iter().map(|(tree, (_, hash, _))| (*tree, *hash.bytes()));
        assert_eq!(bare(copy.path()).unwrap(), hashes.collect());
        check(&SqliteJournal::open(copy.path(), Access::ReadOnly).unwrap(), &confirmed);
        check(&journal, &confirmed);
        let (next, mut confirmed) = (open(copy.path()), confirmed.clone());
        check(&next, &confirmed);
        (0..TREES).step_by(61).for_each(|number| write(&next, &mut confirmed, number, TreeState::Running));
        check(&next, &confirmed);
    }
}

/// A tree may reuse the row id of a removed one, but not its head.
#[test]
fn a_new_tree_does_not_inherit_a_removed_trees_head() {
    let home = tempfile::tempdir().unwrap();
    let (journal, mut confirmed) = (open(home.path()), Confirmed::new());
    (0..5)
        .for_each(|_| (0..3).for_each(|number| write(&journal, &mut confirmed, number, TreeState::Running)));
    assert_eq!(journal.remove(tree(2), Shared::Refuse).wait(), Ok(()));
    confirmed.remove(&tree(2));
    check(&journal, &confirmed);
    write(&journal, &mut confirmed, 3, TreeState::Running);
    check(&journal, &confirmed);
    let copy = crashed(home.path()).unwrap();
    let numbers: i64 = Connection::open(file(copy.path()))
        .and_then(|file| file.query_row("SELECT max(id) FROM trees", [], |row| row.get(0)))
        .unwrap();
    assert_eq!(numbers, 3);
    check(&open(copy.path()), &confirmed);
}

/// Changes to a home that crashed are detected as in one that was closed: a truncated tree, a last batch with another
/// hash.
#[test]
fn damage_to_a_home_that_was_never_closed_is_found() {
    let home = tempfile::tempdir().unwrap();
    let (journal, mut confirmed) = (open(home.path()), Confirmed::new());
    (0..5)
        .for_each(|_| (0..3).for_each(|number| write(&journal, &mut confirmed, number, TreeState::Running)));
    let changes = [
        ("DELETE FROM batches WHERE id = (SELECT max(id) FROM batches)", "its head is at event"),
        ("UPDATE batches SET hash = zeroblob(32) WHERE id = (SELECT max(id) FROM batches)", "their hash"),
    ];
    for (change, said) in changes {
        let copy = crashed(home.path()).unwrap();
        let back = Connection::open(file(copy.path())).unwrap();
        assert_eq!(back.execute(change, []), Ok(1), "{change}");
        drop(back);
        let next = open(copy.path());
        let found = verify_chain(&next, tree(2), None).wait().err();
        assert!(found.as_ref().is_some_and(|fault| fault.to_string().contains(said)), "{change}: {found:?}");
        let append = conformance::append_for(tree(2), confirmed[&tree(2)].0, &batch());
        let refused = conformance::append(&next, append);
        let is_damage =
            matches!(refused, Err(JournalFault::Damaged { .. } | JournalFault::DamagedStore { .. }));
        assert!(is_damage, "{change}: {refused:?}");
        drop(next);
        // Closing the home does not hide it.
        let found = verify_chain(&open(copy.path()), tree(2), None).wait().err();
        assert!(found.is_some(), "{change}");
    }
}
