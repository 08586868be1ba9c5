//! Whoever appends is told exactly once, outside any lock, whether the batch was written here or by the thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};

use rusqlite::Connection;
use spinney_journal::{Append, Batch, Journal, Shared};
use spinney_kernel::words::{Durability, Seq, TreeId, limit};
use spinney_store::MemoryJournal;
use spinney_testkit::conformance;

use super::{TREE, file, filled, open};

/// Appends the rest of the batches, each from the answer to the one before it.
fn go_on(journal: &Arc<dyn Journal>, mut rest: Vec<Batch>, after: u64, finished: SyncSender<u64>) {
    let Some(batch) = rest.pop() else { return finished.send(after).unwrap_or_default() };
    let append = conformance::of(TREE, Seq(after), &batch);
    let end = after + batch.events.len() as u64;
    let next = Arc::clone(journal);
    let done = move |written: Result<_, _>| {
        let head = next.head(TREE).ok().flatten();
        assert_eq!(head.map(|head| head.hash), written.ok());
        go_on(&next, rest, end, finished);
    };
    journal.append(append, Box::new(done));
}

#[test]
fn whoever_is_told_may_use_the_journal() {
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

/// Batches of one tree that are sent without waiting arrive in their order, however each is written.
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
        let append =
            Append { durability, ..conformance::of(tree, Seq(of_tree * batch.events.len() as u64), batch) };
        journal.append(append, Box::new(move |end| answer.send(end).unwrap_or_default()));
    }
    drop(answer);
    assert_eq!(answers.iter().filter(Result::is_ok).count(), 2_000);
}

/// Somebody else holds the file: whoever appends first keeps the pen and waits, so that the thread gets all the others,
/// as one group. The first of them that is told panics.
#[test]
fn an_answer_that_panics_stops_nobody_else() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path(), Durability::Normal);
    let journal = open(home.path());
    let other = |number| Append {
        durability: Durability::Full,
        ..conformance::of(TreeId::new([number; 16]), Seq(0), &conformance::batches()[0])
    };
    let holder = Connection::open(file(home.path())).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (told, all_told) = sync_channel(4);
    let (handed_over, all_handed_over) = sync_channel(4);
    let panicked = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        for number in 2..6 {
            let (told, handed_over, panicked) = (told.clone(), handed_over.clone(), Arc::clone(&panicked));
            let journal = &journal;
            scope.spawn(move || {
                let here = std::thread::current().id();
                let done = move |end: Result<_, _>| {
                    let by_thread = std::thread::current().id() != here;
                    told.send((by_thread, end.is_ok())).unwrap_or_default();
                    let first = by_thread && !panicked.swap(true, Ordering::AcqRel);
                    assert!(!first, "as this test wants it");
                };
                journal.append(other(number), Box::new(done));
                handed_over.send(()).unwrap_or_default();
            });
        }
        assert_eq!(all_handed_over.iter().take(3).count(), 3);
        holder.execute_batch("COMMIT").unwrap();
    });
    let mut all: Vec<(bool, bool)> = all_told.iter().take(4).collect();
    all.sort_unstable();
    assert_eq!(all, [(false, true), (true, true), (true, true), (true, true)]);
    assert!(panicked.load(Ordering::Acquire));
    // The thread lives: a change always goes through it.
    assert_eq!(journal.remove(TREE, Shared::Refuse), Ok(()));
    assert!(conformance::append(&journal, other(6)).is_ok());
    for number in 2..7 {
        assert!(journal.head(TreeId::new([number; 16])).unwrap().is_some());
    }
}

/// The journal may go while its own thread tells somebody; what was handed over is written all the same.
#[test]
fn whoever_is_told_may_be_the_last_to_hold_the_journal() {
    // Who writes for whom is a race; sooner or later its own thread does.
    assert!((0..100).any(|_| is_dropped_by_its_own_thread().unwrap()));
}

/// Three append while somebody else holds the file, so that some find the pen taken. Whether the journal's own thread
/// was the last to hold it.
fn is_dropped_by_its_own_thread() -> Result<bool, Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    let journal = Arc::new(open(home.path()));
    let holder = Connection::open(file(home.path()))?;
    holder.execute_batch("BEGIN IMMEDIATE")?;
    let (go, gone) = sync_channel::<()>(0);
    let gone = Arc::new(std::sync::Mutex::new(gone));
    let (told, all_told) = sync_channel(3);
    let (handed_over, all_handed_over) = sync_channel(3);
    std::thread::scope(|scope| -> Result<(), Box<dyn std::error::Error>> {
        for number in 2..5 {
            let (journal, kept, told) = (Arc::clone(&journal), Arc::clone(&journal), told.clone());
            let (gone, handed_over) = (Arc::clone(&gone), handed_over.clone());
            let append = move || {
                let done = move |end: Result<_, _>| {
                    let is_own = std::thread::current().name() != Some("append");
                    // Until nobody else holds it.
                    assert!(!is_own || gone.lock().is_ok_and(|gone| gone.recv().is_err()));
                    drop(kept);
                    told.send((is_own, end.is_ok())).unwrap_or_default();
                };
                let append = conformance::of(TreeId::new([number; 16]), Seq(0), &conformance::batches()[0]);
                journal.append(append, Box::new(done));
                handed_over.send(()).unwrap_or_default();
            };
            std::thread::Builder::new().name("append".to_owned()).spawn_scoped(scope, append)?;
        }
        assert_eq!(all_handed_over.iter().take(2).count(), 2);
        holder.execute_batch("COMMIT")?;
        Ok(())
    })?;
    drop((journal, go));
    let all: Vec<(bool, bool)> = all_told.iter().take(3).collect();
    assert!(all.iter().all(|(_, is_ok)| *is_ok), "{all:?}");
    Ok(all.iter().any(|(is_own, _)| *is_own))
}

/// So much is written at once that pages are moved meanwhile, and in the end nobody may write until all are: whatever
/// was put down by then is written all the same.
#[test]
fn appends_during_a_move_of_pages_are_written() {
    let home = tempfile::tempdir().unwrap();
    let journal = open(home.path());
    let mut play = spinney_testkit::Play::grow("root / a");
    play.run(&format!("send a {}", "x".repeat(limit::TEXT_BYTES_MAX)));
    let large = play.batches().last().cloned().unwrap();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (journal, large) = (&journal, &large);
            scope.spawn(move || {
                for after in 0..100 {
                    let after = Seq(after * large.events.len() as u64);
                    let append = conformance::of(TreeId::new([number; 16]), after, large);
                    conformance::append(journal, append).unwrap();
                }
            });
        }
    });
    assert_eq!(journal.heads(&[]).unwrap().len(), 8);
}
