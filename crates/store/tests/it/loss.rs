//! Missing confirmed commits: a damaged, truncated or deleted WAL file is detected and named before anything runs, and
//! a process that was only killed is never mistaken for that.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use spinney_journal::{Append, Blocking, Journal, Shared, verify_chain};
use spinney_kernel::primitives::{Durability, Seq, TreeId};
use spinney_kernel::record::ExitKind;
use spinney_kernel::world::TreeState;
use spinney_store::{Access, OpenHomeError, SqliteJournal};
use spinney_testkit::conformance;
use tempfile::TempDir;

use super::{TREE, file, open};

const COMMITS: u64 = 40;

fn wal(home: &Path) -> PathBuf {
    file(home).with_extension("sqlite3-wal")
}

fn count_file(home: &Path) -> PathBuf {
    home.join("journal.head")
}

/// A batch without references, so a tree may have it repeatedly.
fn append(journal: &SqliteJournal, number: u64, durability: Durability) {
    let batch = conformance::batches().swap_remove(3);
    let after = Seq(number * batch.events.len() as u64);
    let catalog = Vec::new();
    let append = Append { durability, catalog, ..conformance::append_for(TREE, after, &batch) };
    conformance::append(journal, append).unwrap_or_else(|fault| panic!("{fault}"));
}

/// The files of a home whose process was killed: all commits are still in the WAL file, or all of them in the database
/// as well.
fn killed(is_moved: bool) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let journal = open(home.path());
    (0..COMMITS).for_each(|number| append(&journal, number, Durability::Normal));
    if is_moved {
        let other = Connection::open(file(home.path())).unwrap();
        other.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).unwrap();
    }
    copy(home.path())
}

fn copy(home: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for path in [file(home), wal(home), count_file(home)] {
        if path.exists() {
            fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    copy
}

/// The bytes of all journal files of a home, without those that SQLite recreates: an empty WAL file equals none.
fn bytes(home: &Path) -> [Vec<u8>; 3] {
    [file(home), wal(home), count_file(home)].map(|path| fs::read(path).unwrap_or_default())
}

/// The fault when such a home is opened, for writing and for reading; the files must not change.
fn refused(home: &Path) -> Option<OpenHomeError> {
    let before = bytes(home);
    let faults = [Access::Write, Access::ReadOnly].map(|access| SqliteJournal::open(home, access).err());
    let changed: Vec<(usize, usize, usize)> = bytes(home)
        .iter()
        .zip(&before)
        .enumerate()
        .filter(|(_, (now, before))| now != before)
        .map(|(at, (now, before))| (at, before.len(), now.len()))
        .collect();
    assert_eq!(changed, [], "looking for damage changed these files, from so many bytes to so many");
    assert_eq!(faults[0], faults[1]);
    let [fault, _] = faults;
    fault
}

/// Accepts the loss, and returns how many commits are left. The rest must be valid.
fn given_up(home: &Path) -> u64 {
    let found = fs::read(wal(home)).unwrap_or_default();
    let loss = SqliteJournal::accept_loss(home).unwrap().unwrap();
    assert_eq!(
        fs::read(loss.set_aside.join("journal.sqlite3-wal")).unwrap_or_default(),
        found,
        "what was found is kept"
    );
    let journal = open(home);
    if journal.head(TREE).wait().unwrap().is_some() {
        verify_chain(&journal, TREE, None).wait().unwrap();
    }
    let left = journal.read(TREE, Seq(0), usize::MAX).wait().map_or(0, |entries| entries.len() as u64);
    drop(journal);
    assert_eq!(SqliteJournal::accept_loss(home), Ok(None), "nothing is missing any more");
    left
}

/// G13 (the store's part): a flipped bit anywhere in the WAL file is detected, and named where possible.
#[test]
fn g13_a_flipped_bit_in_the_write_ahead_file_is_named_and_nothing_is_run() {
    let whole = killed(false);
    assert!(
        SqliteJournal::open(copy(whole.path()).path(), Access::Write).is_ok(),
        "a plain kill is no damage"
    );
    let right = fs::read(wal(whole.path())).unwrap();
    let frame = 24 + 4_096;
    for at in (0..150).map(|number| number * right.len() / 150 + number % 24) {
        let home = copy(whole.path());
        let mut flipped = right.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(wal(home.path()), &flipped).unwrap();
        let fault = refused(home.path());
        let Some(OpenHomeError::Lost { found, confirmed, place, .. }) = fault else {
            panic!("byte {at}: {fault:?}")
        };
        assert!(found < confirmed && confirmed == COMMITS, "byte {at}: {found} of {confirmed}");
        if at < 32 {
            assert_eq!(place, "the header of the write-ahead file is damaged", "byte {at}");
        } else if at + 4 * frame < right.len() {
            let number = (at - 32) / frame;
            let said = format!(
                "frame {} of the write-ahead file, at byte {}, is damaged",
                number + 1,
                32 + number * frame
            );
            assert_eq!(place, said, "byte {at}");
        }
        if at % 10 == 0 {
            assert_eq!(given_up(home.path()), found, "byte {at}");
        }
    }
}

/// G13 (the store's part): truncation or deletion leaves no trace in the database; the count of commits shows it.
#[test]
fn g13_a_write_ahead_file_that_was_cut_or_deleted_is_named() {
    let whole = killed(false);
    let right = fs::read(wal(whole.path())).unwrap();
    for length in (0..50).map(|number| number * right.len() / 50) {
        let home = copy(whole.path());
        fs::write(wal(home.path()), &right[..length]).unwrap();
        let fault = refused(home.path());
        assert!(matches!(fault, Some(OpenHomeError::Lost { .. })), "{length}: {fault:?}");
    }
    let home = copy(whole.path());
    fs::remove_file(wal(home.path())).unwrap();
    let fault = refused(home.path());
    let Some(OpenHomeError::Lost { found: 0, confirmed: COMMITS, place, .. }) = fault else {
        panic!("{fault:?}")
    };
    assert_eq!(place, "there is no write-ahead file");
    assert_eq!(given_up(home.path()), 0);
    // All files of the database are gone, and only the count is left.
    let home = copy(whole.path());
    fs::remove_file(wal(home.path())).unwrap();
    fs::remove_file(file(home.path())).unwrap();
    fs::write(home.path().join("lock"), "").unwrap();
    let fault = SqliteJournal::open(home.path(), Access::Write).err();
    assert!(matches!(fault, Some(OpenHomeError::Lost { found: 0, .. })), "{fault:?}");
}

#[test]
fn without_the_count_of_commits_nothing_is_run() {
    let whole = killed(false);
    let right = fs::read(count_file(whole.path())).unwrap();
    for change in [None, Some(&right[..7]), Some(&[&right[..31], &[!right[31]]].concat()[..])] {
        let home = copy(whole.path());
        match change {
            None => fs::remove_file(count_file(home.path())).unwrap(),
            Some(bytes) => fs::write(count_file(home.path()), bytes).unwrap(),
        }
        let fault = refused(home.path());
        assert!(matches!(fault, Some(OpenHomeError::UnknownLoss { .. })), "{change:?}: {fault:?}");
        assert_eq!(given_up(home.path()), COMMITS, "{change:?}");
    }
}

/// WAL checkpoints copy pages long before the WAL file is reset. If it is damaged then, the database has more commits
/// than SQLite would still accept from the file.
#[test]
fn a_damaged_wal_file_after_a_full_checkpoint_loses_nothing() {
    let home = killed(true);
    let mut flipped = fs::read(wal(home.path())).unwrap();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    fs::write(wal(home.path()), &flipped).unwrap();
    let fault = refused(home.path());
    assert!(matches!(fault, Some(OpenHomeError::Lost { .. })), "{fault:?}");
    assert_eq!(given_up(home.path()), COMMITS);
}

/// The head of a removed tree had the number of its last commit.
#[test]
fn removing_the_newest_tree_loses_no_count() {
    let home = tempfile::tempdir().unwrap();
    let other = TreeId::new([2; 16]);
    for _ in 0..3 {
        let journal = open(home.path());
        append(&journal, 0, Durability::Normal);
        let batch = conformance::batches().swap_remove(3);
        let newest = Append { catalog: Vec::new(), ..conformance::append_for(other, Seq(0), &batch) };
        conformance::append(&journal, newest).unwrap();
        journal.remove(other, Shared::Refuse).wait().unwrap();
        let killed = copy(home.path());
        assert!(SqliteJournal::open(killed.path(), Access::Write).is_ok());
        journal.remove(TREE, Shared::Refuse).wait().unwrap();
    }
}

#[test]
fn what_is_missing_names_the_trees_that_can_have_lost_events() {
    let home = tempfile::tempdir().unwrap();
    let journal = open(home.path());
    let batch = conformance::batches().swap_remove(3);
    let (ended, running) = (TreeId::new([2; 16]), TreeId::new([3; 16]));
    for (tree, state) in [(ended, TreeState::Ended(ExitKind::Completed)), (running, TreeState::Running)] {
        let append = Append { state, catalog: Vec::new(), ..conformance::append_for(tree, Seq(0), &batch) };
        conformance::append(&journal, append).unwrap();
    }
    append(&journal, 0, Durability::Normal);
    let copy = copy(home.path());
    let mut bytes = fs::read(wal(copy.path())).unwrap();
    bytes.truncate(bytes.len() - 1);
    fs::write(wal(copy.path()), bytes).unwrap();
    let fault = refused(copy.path()).unwrap();
    assert_eq!(
        fault.to_string(),
        "commits 3 to 3 of this home were confirmed but are missing (the write-ahead file ends after frame \
         [frames]); trees that may have lost events: 03030303030303030303030303030303; trees that started \
         since then are gone. Nothing was run. Restore the home from a copy, or give them up, which is the \
         way to continue after a power loss with durability `normal`"
            .replace(
                "[frames]",
                &((fs::metadata(wal(copy.path())).unwrap().len() - 32) / (24 + 4_096)).to_string()
            )
    );
}

/// SQLite deletes the WAL file of an empty database as soon as anything reads it.
#[test]
fn an_emptied_or_deleted_database_does_not_take_its_write_ahead_file_along() {
    for is_deleted in [false, true] {
        let home = killed(false);
        fs::write(home.path().join("lock"), "").unwrap();
        if is_deleted {
            fs::remove_file(file(home.path())).unwrap();
        } else {
            fs::write(file(home.path()), "").unwrap();
        }
        let found = fs::read(wal(home.path())).unwrap();
        let fault = SqliteJournal::open(home.path(), Access::Write).err();
        assert!(matches!(fault, Some(OpenHomeError::Damaged { .. })), "{fault:?}");
        assert!(SqliteJournal::open(home.path(), Access::ReadOnly).is_err());
        assert!(fs::read(wal(home.path())).unwrap() == found, "it is still there");
        let loss = SqliteJournal::accept_loss(home.path()).unwrap().unwrap();
        assert!(fs::read(loss.set_aside.join("journal.sqlite3-wal")).unwrap() == found);
        assert_eq!(open(home.path()).heads(&[]).wait(), Ok(Vec::new()));
    }
    let nowhere = tempfile::tempdir().unwrap();
    assert_eq!(SqliteJournal::accept_loss(nowhere.path()), Ok(None));
    assert_eq!(fs::read_dir(nowhere.path()).unwrap().count(), 0, "nothing was made");
}
