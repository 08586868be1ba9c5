//! Every append is answered exactly once, outside any lock, by the writer thread.

use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use rusqlite::Connection;
use spinney_journal::{Append, Appended, Batch, Blocking, Journal, Shared};
use spinney_kernel::primitives::{Durability, Seq, TreeId, limit};
use spinney_store::{MemoryJournal, SqliteJournal};
use spinney_testkit::conformance;

use super::{TREE, file, filled, open};

/// Appends the rest of the batches, each from the answer to the previous one.
fn go_on(journal: &Arc<dyn Journal>, mut rest: Vec<Batch>, after: u64, finished: SyncSender<u64>) {
    let Some(batch) = rest.pop() else { return finished.send(after).unwrap_or_default() };
    let append = conformance::append_for(TREE, Seq(after), &batch);
    let end = after + batch.events.len() as u64;
    let next = Arc::clone(journal);
    let done = move |written: Result<_, _>| {
        let head = next.head(TREE).wait().ok().flatten();
        assert_eq!(head.map(|head| head.hash), written.ok());
        go_on(&next, rest, end, finished);
    };
    journal.append(append, Box::new(done));
}

#[test]
fn a_callback_may_use_the_journal() {
    let home = tempfile::tempdir().unwrap();
    let journals: [Arc<dyn Journal>; 2] = [Arc::new(MemoryJournal::new()), Arc::new(open(home.path()))];
    for journal in journals {
        let (finished, end) = sync_channel(1);
        let batches: Vec<Batch> = conformance::batches().into_iter().rev().collect();
        let events: u64 = batches.iter().map(|batch| batch.events.len() as u64).sum();
        go_on(&journal, batches, 0, finished);
        assert_eq!(end.recv(), Ok(events));
    }
}

/// Batches of one tree that are sent without waiting are stored in order.
#[test]
fn batches_sent_without_waiting_do_not_overtake_each_other() {
    let home = tempfile::tempdir().unwrap();
    let journal = open(home.path());
    let batch = &conformance::batches()[3];
    let (answer, answers) = sync_channel(2_000);
    for number in 0..2_000_u64 {
        let (tree, answer) = (TreeId::new([(number / 7 % 2) as u8; 16]), answer.clone());
        let of_tree = number / 14 * 7 + number % 7;
        let durability = if number % 5 == 0 { Durability::Full } else { Durability::Normal };
        let append = Append {
            durability,
            ..conformance::append_for(tree, Seq(of_tree * batch.events.len() as u64), batch)
        };
        journal.append(append, Box::new(move |end| answer.send(end).unwrap_or_default()));
    }
    drop(answer);
    assert_eq!(answers.iter().filter(Result::is_ok).count(), 2_000);
}

/// Appends to a few trees while another program locks the file, so they are committed as one group.
fn in_one_group(journal: &SqliteJournal, home: &Path, done: &dyn Fn(u8) -> Appended) {
    let holder = Connection::open(file(home)).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    for number in 2..6 {
        let batch = &conformance::batches()[0];
        journal.append(conformance::append_for(TreeId::new([number; 16]), Seq(0), batch), done(number));
    }
    holder.execute_batch("COMMIT").unwrap();
}

/// No append waits for the disk: it returns while another program locks the file.
#[test]
fn a_callback_that_panics_stops_no_other() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path(), Durability::Normal);
    let journal = open(home.path());
    let (answer, answers) = sync_channel(4);
    in_one_group(&journal, home.path(), &|number| {
        let (answer, here) = (answer.clone(), std::thread::current().id());
        Box::new(move |end| {
            assert_ne!(std::thread::current().id(), here);
            answer.send(end.is_ok()).unwrap_or_default();
            assert_ne!(number, 2, "as this test wants it");
        })
    });
    assert_eq!(answers.iter().take(4).collect::<Vec<_>>(), [true; 4]);
    // The thread is still running.
    assert_eq!(journal.remove(TREE, Shared::Refuse).wait(), Ok(()));
    for number in 2..6 {
        assert!(journal.head(TreeId::new([number; 16])).wait().unwrap().is_some());
    }
}

/// The journal may be dropped while its own thread answers; queued batches are written anyway.
#[test]
fn a_callback_may_drop_the_last_handle_of_the_journal() {
    let home = tempfile::tempdir().unwrap();
    let journal = Arc::new(open(home.path()));
    let (go, gone) = sync_channel::<()>(0);
    let gone = Arc::new(Mutex::new(gone));
    let (answer, answers) = sync_channel(4);
    in_one_group(&journal, home.path(), &|_| {
        let (kept, answer, gone) = (Arc::clone(&journal), answer.clone(), Arc::clone(&gone));
        Box::new(move |end| {
            // Until this is the only handle.
            assert!(gone.lock().is_ok_and(|gone| gone.recv().is_err()));
            drop(kept);
            answer.send(end.is_ok()).unwrap_or_default();
        })
    });
    drop((journal, go));
    assert_eq!(answers.iter().take(4).collect::<Vec<_>>(), [true; 4]);
}

/// So much is written at once that a WAL checkpoint runs meanwhile.
#[test]
fn appends_during_a_checkpoint_of_the_write_ahead_file_are_written() {
    let home = tempfile::tempdir().unwrap();
    let journal = open(home.path());
    let mut play = spinney_testkit::Scenario::grow("root / a");
    play.run(&format!("send a {}", "x".repeat(limit::TEXT_BYTES_MAX)));
    let large = play.batches().last().cloned().unwrap();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (journal, large) = (&journal, &large);
            scope.spawn(move || {
                for after in 0..100 {
                    let after = Seq(after * large.events.len() as u64);
                    let append = conformance::append_for(TreeId::new([number; 16]), after, large);
                    conformance::append(journal, append).unwrap();
                }
            });
        }
    });
    assert_eq!(journal.heads(&[]).wait().unwrap().len(), 8);
}
