//! Disk and file system faults: no space, no permission, something else in the way. Each is a typed fault that says
//! what to do, and nothing confirmed is lost.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use spinney_journal::{Append, Blocking, ChainHash, Entry, Journal, JournalFault, Shared};
use spinney_kernel::primitives::{Durability, Seq, TreeId};
use spinney_store::{Access, HomeRefusal, OpenHomeError, SqliteJournal};
use spinney_testkit::conformance;

use super::{TREE, file, filled, open};

const ROOM: u64 = 512 * 1024;

/// Appends 100,000 bytes at a time until a fault; returns what was confirmed, and the fault.
fn fill(journal: &dyn Journal, tree: TreeId) -> (Vec<ChainHash>, JournalFault) {
    let batch = conformance::batches().swap_remove(0);
    let mut confirmed: Vec<ChainHash> = Vec::new();
    loop {
        let number = confirmed.len() as u64;
        let blobs = vec![
            [number.to_le_bytes(), *tree.bytes().first_chunk().unwrap_or(&[0; 8])].concat().repeat(6_250),
        ];
        let after = Seq(number * batch.events.len() as u64);
        let append = Append {
            blobs: blobs.into(),
            catalog: Vec::new(),
            ..conformance::append_for(tree, after, &batch)
        };
        match conformance::append(journal, append) {
            Ok(hash) => confirmed.push(hash),
            Err(fault) => return (confirmed, fault),
        }
    }
}

fn hashes(read: Result<Vec<Entry>, JournalFault>) -> Vec<ChainHash> {
    read.unwrap_or_default().into_iter().map(|entry| entry.hash).collect()
}

#[test]
fn on_a_full_disk_nothing_confirmed_is_lost_and_freed_room_is_used() {
    let home = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open_bounded(home.path(), ROOM).unwrap();
    let (first, fault) = fill(&journal, TREE);
    assert_eq!(fault, JournalFault::Full);
    assert!(first.len() > 1, "{}", first.len());
    assert_eq!(hashes(journal.read(TREE, Seq(0), usize::MAX).wait()), first);
    let other = TreeId::new([2; 16]);
    let (none, fault) = fill(&journal, other);
    assert_eq!((none.len(), fault), (0, JournalFault::Full));
    assert_eq!(journal.head(other).wait(), Ok(None));
    // Removing a tree frees space …
    assert_eq!(journal.remove(TREE, Shared::Refuse).wait(), Ok(()));
    let (second, fault) = fill(&journal, other);
    assert_eq!((second.len(), fault), (first.len(), JournalFault::Full));
    drop(journal);
    // … and so does a larger limit.
    let journal = SqliteJournal::open_bounded(home.path(), 2 * ROOM).unwrap();
    assert_eq!(hashes(journal.read(other, Seq(0), usize::MAX).wait()), second);
    let (third, fault) = fill(&journal, TREE);
    assert_eq!(fault, JournalFault::Full);
    assert!(third.len() > 1, "{}", third.len());
}

/// Appends in the same transaction as one that does not fit fail too, and may be tried again.
#[test]
fn on_a_full_disk_everyone_hears_exactly_once() {
    let home = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open_bounded(home.path(), ROOM).unwrap();
    let batch = &conformance::batches()[0];
    let (answer, answers) = std::sync::mpsc::sync_channel(100);
    for number in 0..100_u8 {
        let answer = answer.clone();
        let blobs = vec![vec![number; 20_000]];
        let append = Append {
            blobs: blobs.into(),
            ..conformance::append_for(TreeId::new([number; 16]), Seq(0), batch)
        };
        journal.append(append, Box::new(move |end| answer.send((number, end)).unwrap()));
    }
    drop(answer);
    let answers: Vec<_> = answers.iter().collect();
    assert_eq!(answers.len(), 100);
    assert!(answers.iter().any(|(_, end)| *end == Err(JournalFault::Full)));
    for (number, end) in answers {
        let head = journal.head(TreeId::new([number; 16])).wait().unwrap();
        assert_eq!(head.map(|head| head.hash), end.ok());
    }
}

/// A folder that no user may write to, not even root.
fn forbidden(folder: &Path) -> Option<PathBuf> {
    let closed = folder.join("closed");
    fs::create_dir(&closed).ok()?;
    let mut permissions = fs::metadata(&closed).ok()?.permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&closed, permissions).ok()?;
    let kernels_own = PathBuf::from("/sys/kernel");
    [closed, kernels_own].into_iter().find(|place| {
        let made = fs::create_dir(place.join("probe"));
        made.is_err_and(|error| {
            matches!(
                error.kind(),
                std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem
            )
        })
    })
}

#[test]
fn a_home_that_may_not_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let Some(place) = forbidden(folder.path()) else { panic!("everything may be written here") };
    let home = place.join("home");
    let fault = SqliteJournal::open(&home, Access::Write).err();
    let Some(OpenHomeError::NotAllowed { path, .. }) = fault else { panic!("{fault:?}") };
    assert_eq!(path, home.display().to_string());
}

#[test]
fn something_else_where_the_home_should_be_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("file");
    fs::write(&plain, "not a folder").unwrap();
    for (home, access) in [
        (plain.clone(), Access::Write),
        (plain.clone(), Access::ReadOnly),
        (plain.join("below"), Access::Write),
        (plain.join("below"), Access::ReadOnly),
    ] {
        let fault = SqliteJournal::open(&home, access).err();
        assert_eq!(fault, Some(OpenHomeError::NotAHome { path: home.display().to_string() }), "{access:?}");
    }
    let taken = folder.path().join("taken");
    fs::create_dir_all(file(&taken)).unwrap();
    let fault = SqliteJournal::open(&taken, Access::Write).err();
    let path = file(&taken).display().to_string();
    assert_eq!(fault, Some(OpenHomeError::Refused { path, why: HomeRefusal::WrongKind }));
}

#[test]
fn looking_makes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("nowhere");
    let none = Some(OpenHomeError::NoHome { path: home.display().to_string() });
    assert_eq!(SqliteJournal::open(&home, Access::ReadOnly).err(), none);
    fs::create_dir(&home).unwrap();
    assert_eq!(SqliteJournal::open(&home, Access::ReadOnly).err(), none);
    assert_eq!(fs::read_dir(&home).unwrap().count(), 0);
    fs::write(file(&home), "").unwrap();
    assert_eq!(SqliteJournal::open(&home, Access::ReadOnly).err(), none);
}

#[test]
fn a_home_of_a_newer_version_is_refused_and_left_alone() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path(), Durability::Normal);
    let connection = Connection::open(file(home.path())).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let before = fs::read(file(home.path())).unwrap();
    for access in [Access::Write, Access::ReadOnly] {
        let refused = SqliteJournal::open(home.path(), access).err();
        assert_eq!(refused, Some(OpenHomeError::Newer { found: 99, known: 10 }));
    }
    assert_eq!(fs::read(file(home.path())).unwrap(), before);
}

#[test]
fn every_fault_says_what_to_do() {
    let (path, reason) = ("home/journal.sqlite3".to_owned(), "said so".to_owned());
    let faults = [
        (OpenHomeError::Full, "free some space"),
        (OpenHomeError::NotAllowed { path: path.clone(), reason: reason.clone() }, "choose another home"),
        (OpenHomeError::NotAHome { path: path.clone() }, "choose another home"),
        (OpenHomeError::NoHome { path: path.clone() }, "choose another home"),
        (
            OpenHomeError::Damaged { path: path.clone(), reason, salvage: String::new() },
            "restore it from a copy",
        ),
        (OpenHomeError::Busy { path }, "end its transaction"),
        (OpenHomeError::Locked { pid: 7 }, "process 7"),
        (OpenHomeError::Newer { found: 9, known: 8 }, "use a newer Spinney"),
        (OpenHomeError::Older { found: 1, known: 8 }, "open it once for writing"),
    ];
    for (fault, remedy) in faults {
        assert!(fault.to_string().contains(remedy), "{fault}");
    }
}

#[test]
fn a_looker_may_not_write() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path(), Durability::Normal);
    let journal = open(home.path());
    let looker = SqliteJournal::open(home.path(), Access::ReadOnly).unwrap();
    assert_eq!(looker.heads(&[]).wait(), journal.heads(&[]).wait());
    assert_eq!(looker.remove(TREE, Shared::Refuse).wait(), Err(JournalFault::ReadOnly));
    let more = conformance::append_for(TREE, Seq(0), &conformance::batches()[0]);
    assert_eq!(conformance::append(&looker, more), Err(JournalFault::ReadOnly));
    drop(journal);
    assert_eq!(open(home.path()).remove(TREE, Shared::Refuse).wait(), Ok(()));
}
