//! Claims in a home that is closed and opened again.

use rusqlite::Connection;
use spinney_journal::{Append, Blocking, CatalogKind, Claim, Epoch, Journal, JournalFault, Reservation};
use spinney_kernel::primitives::{Durability, Seq, TreeId};
use spinney_store::{Access, SqliteJournal};
use spinney_testkit::conformance;

use super::{TREE, file, filled, open};

fn next(journal: &dyn Journal, epoch: Epoch) -> Append {
    let end = journal.head(TREE).wait().unwrap().map_or(Seq(0), |head| head.seq);
    Append { epoch, catalog: Vec::new(), ..conformance::append_for(TREE, end, &conformance::batches()[1]) }
}

#[test]
fn an_epoch_is_as_durable_as_what_was_appended_under_it() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path(), Durability::Normal);
    let mut epochs = vec![Epoch::FIRST];
    for _ in 0..3 {
        let journal = open(home.path());
        let Claim { epoch, .. } = journal.claim(TREE).wait().unwrap();
        conformance::append(&journal, next(&journal, epoch)).unwrap();
        for old in &epochs {
            assert!(*old < epoch, "{old:?}, {epoch:?}");
            let refused = conformance::append(&journal, next(&journal, *old));
            assert_eq!(refused, Err(JournalFault::Owned { tree: TREE }));
        }
        epochs.push(epoch);
    }
    // A process that opens it and claims nothing is not an owner.
    let journal = open(home.path());
    let refused = conformance::append(&journal, next(&journal, Epoch::FIRST));
    assert_eq!(refused, Err(JournalFault::Owned { tree: TREE }));
    conformance::append(&journal, next(&journal, epochs[3])).unwrap();
}

/// A claim commits nothing: the epoch is written with the next append.
#[test]
fn a_claim_writes_nothing_until_the_next_append() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path(), Durability::Full);
    let journal = open(home.path());
    let wal = |journal: &SqliteJournal| {
        assert!(journal.head(TREE).wait().unwrap().is_some());
        std::fs::metadata(home.path().join("journal.sqlite3-wal")).unwrap().len()
    };
    let before = wal(&journal);
    let claims: Vec<Claim> = (0..5).map(|_| journal.claim(TREE).wait().unwrap()).collect();
    assert_eq!(wal(&journal), before);
    let stored = || {
        let file = Connection::open(file(home.path())).unwrap();
        file.query_row("SELECT epoch FROM heads", [], |row| row.get::<_, i64>(0)).unwrap()
    };
    assert_eq!(stored(), 1);
    conformance::append(&journal, next(&journal, claims[4].epoch)).unwrap();
    assert_eq!((stored(), claims[4].epoch), (6, Epoch(6)));
}

/// A process dies between a reservation and its event: the name is taken until the tree has an owner again, and not forever.
#[test]
fn a_key_that_a_dead_process_reserved_is_free_when_its_tree_is_claimed() {
    let home = tempfile::tempdir().unwrap();
    let other = TreeId::new([9; 16]);
    filled(home.path(), Durability::Normal);
    let journal = open(home.path());
    conformance::append(&journal, conformance::append_for(other, Seq(0), &conformance::batches()[0]))
        .unwrap();
    let dead = journal.claim(TREE).wait().unwrap();
    let reserve =
        |journal: &SqliteJournal, claim| journal.reserve(claim, CatalogKind::Checkpoint, "x").wait();
    assert_eq!(reserve(&journal, dead), Ok(Reservation::Reserved));
    drop(journal);
    let journal = open(home.path());
    assert_eq!(reserve(&journal, Claim::first(other)), Ok(Reservation::Taken { tree: TREE }));
    journal.claim(TREE).wait().unwrap();
    assert_eq!(reserve(&journal, Claim::first(other)), Ok(Reservation::Reserved));
    // What the claim freed was counted as a commit: nothing is missing.
    drop(journal);
    assert!(open(home.path()).head(TREE).wait().unwrap().is_some());
}

#[test]
fn a_reader_claims_nothing() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path(), Durability::Normal);
    let looker = SqliteJournal::open(home.path(), Access::ReadOnly).unwrap();
    assert_eq!(looker.claim(TREE).wait(), Err(JournalFault::ReadOnly));
    assert_eq!(looker.release(Claim::first(TREE)).wait(), Ok(()));
}
