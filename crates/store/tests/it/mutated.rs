//! Randomly mutated batches are a typed fault or the same batch, and never a panic.

use proptest::collection::vec;
use proptest::prelude::*;
use rusqlite::{Connection, params};
use spinney_journal::{Batch, Blocking, ChainHash, Journal, JournalFault};
use spinney_kernel::primitives::Seq;
use spinney_testkit::conformance;
use tempfile::TempDir;

use super::{TREE, file, open};

/// What happens to some bytes.
#[derive(Clone, Debug)]
enum Mutation {
    Flip { at: usize, bit: u8 },
    Cut { at: usize },
    Drop { at: usize, count: usize },
    Repeat { at: usize, count: usize },
    Insert { at: usize, bytes: Vec<u8> },
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = 0_usize..4_096;
    prop_oneof![
        4 => (at.clone(), 0_u8..8).prop_map(|(at, bit)| Mutation::Flip { at, bit }),
        1 => at.clone().prop_map(|at| Mutation::Cut { at }),
        2 => (at.clone(), 1_usize..40).prop_map(|(at, count)| Mutation::Drop { at, count }),
        2 => (at.clone(), 1_usize..40).prop_map(|(at, count)| Mutation::Repeat { at, count }),
        2 => (at, vec(any::<u8>(), 1..8)).prop_map(|(at, bytes)| Mutation::Insert { at, bytes }),
    ]
}

fn mutate(bytes: &mut Vec<u8>, mutation: &Mutation) {
    let place = |at: usize| at % bytes.len().max(1);
    let end = |at: usize, count: usize| (at + count).min(bytes.len());
    match *mutation {
        Mutation::Flip { at, bit } => {
            let at = place(at);
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << bit;
            }
        }
        Mutation::Cut { at } => bytes.truncate(at % (bytes.len() + 1)),
        Mutation::Drop { at, count } => {
            let range = place(at)..end(place(at), count);
            bytes.drain(range);
        }
        Mutation::Repeat { at, count } => {
            let part = bytes[place(at)..end(place(at), count)].to_vec();
            let at = place(at);
            bytes.splice(at..at, part);
        }
        Mutation::Insert { at, bytes: ref more } => {
            let at = place(at);
            bytes.splice(at..at, more.iter().copied());
        }
    }
}

/// A journal of one batch that the test can change.
struct OneBatchJournal {
    journal: spinney_store::SqliteJournal,
    back: Connection,
    _home: TempDir,
}

impl OneBatchJournal {
    fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let home = tempfile::tempdir()?;
        let journal = open(home.path());
        conformance::append(&journal, conformance::append_for(TREE, Seq(0), &conformance::batches()[0]))?;
        let back = Connection::open(file(home.path()))?;
        Ok(Self { journal, back, _home: home })
    }

    /// Replaces the batch's bytes and reads it.
    fn read(&self, bytes: &[u8], hash: ChainHash) -> Result<Batch, JournalFault> {
        let change = "UPDATE batches SET hash = ?1, body = CAST(?2 AS TEXT) WHERE tree > 0";
        let changed = self.back.execute(change, params![hash.bytes(), bytes]);
        assert_eq!(changed, Ok(1));
        self.journal.read(TREE, Seq(0), 1).wait().map(|mut page| page.remove(0).batch)
    }
}

fn encoded(mut batch: Batch) -> Vec<u8> {
    batch.fold();
    serde_json::to_vec(&batch).unwrap_or_default()
}

#[test]
fn mutated_bytes_are_a_typed_fault_or_the_same_batch() {
    let shelf = OneBatchJournal::new().unwrap();
    let batches = conformance::batches();
    let start = ChainHash::start(TREE);
    let cases = (0..batches.len(), vec(mutation(), 1..6));
    let config = ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |((number, mutations) in cases)| {
        let right = encoded(batches[number].clone());
        let mut bytes = right.clone();
        mutations.iter().for_each(|mutation| mutate(&mut bytes, mutation));
        let is_damaged = |read: &Result<Batch, JournalFault>| matches!(read, Err(JournalFault::Damaged { .. }));
        // A change to the bytes alone is always detected.
        let read = shelf.read(&bytes, start.then(Seq(0), &right));
        let as_expected =
            if bytes == right { read == Ok(batches[number].clone()) } else { is_damaged(&read) };
        prop_assert!(as_expected);
        // With a forged hash the result is a batch or a fault; a batch that was read survives writing and reading.
        match shelf.read(&bytes, start.then(Seq(0), &bytes)) {
            Ok(batch) => {
                let again = encoded(batch.clone());
                prop_assert_eq!(shelf.read(&again, start.then(Seq(0), &again)), Ok(batch));
            }
            fault => prop_assert!(is_damaged(&fault)),
        }
    });
}
