//! The writer: one thread that takes whatever waits, writes it in one transaction and then says so. A job that is
//! refused is refused by itself; if the disk fails, everyone in the group hears it and nothing was written.

use std::sync::mpsc::{Receiver, SyncSender};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use spinney_kernel::port::journal::{Appended, Durability, JournalFault};

use super::change::{self, Change, Encoded, Tips};
use super::fault::from_sqlite;

/// Most jobs that wait for the writer; then whoever appends waits too.
pub(super) const QUEUE_MAX: usize = 4_096;
/// Most jobs in one transaction.
const GROUP_MAX: usize = 1_024;

/// Something for the writer to do.
pub(super) enum Job {
    Append(Box<Encoded>, Appended),
    Change(Change, SyncSender<Result<(), JournalFault>>),
}

impl Job {
    /// Says no to whoever waits.
    pub(super) fn refuse(self, fault: JournalFault) {
        match self {
            Self::Append(_, done) => done(Err(fault)),
            // Whoever asked may be gone.
            Self::Change(_, answer) => drop(answer.send(Err(fault))),
        }
    }

    fn durability(&self) -> Option<Durability> {
        match self {
            Self::Append(encoded, _) => Some(encoded.durability),
            Self::Change(..) => None,
        }
    }
}

type Answer = Box<dyn FnOnce(Result<(), JournalFault>)>;

/// Takes jobs until nobody can send any.
pub(super) fn run(connection: Connection, queue: &Receiver<Job>) {
    let mut pen = Pen { connection, tips: Tips::new(), synced: Durability::Normal };
    while let Ok(first) = queue.recv() {
        let rest = std::iter::from_fn(|| queue.try_recv().ok()).take(GROUP_MAX - 1);
        let group: Vec<Job> = std::iter::once(first).chain(rest).collect();
        pen.write(group);
    }
}

struct Pen {
    connection: Connection,
    tips: Tips,
    synced: Durability,
}

impl Pen {
    /// Writes a group and answers everyone in it.
    fn write(&mut self, group: Vec<Job>) {
        let mut answers: Vec<Answer> = Vec::with_capacity(group.len());
        let written = self.try_write(group, &mut answers);
        if written.is_err() {
            // Nothing was written; what we thought we knew may be wrong.
            self.tips.clear();
        }
        for answer in answers {
            answer(written.clone());
        }
    }

    fn try_write(&mut self, group: Vec<Job>, answers: &mut Vec<Answer>) -> Result<(), JournalFault> {
        let durability = group.iter().filter_map(Job::durability).max().unwrap_or_default();
        let begun = self.sync_as(durability).and_then(|()| {
            // One thread has this connection, and it begins no second transaction.
            Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)
                .map_err(|error| from_sqlite(&self.connection, &error))
        });
        let transaction = match begun {
            Ok(transaction) => transaction,
            Err(fault) => {
                group.into_iter().for_each(|job| job.refuse(fault.clone()));
                return Ok(());
            }
        };
        let mut broken = Ok(());
        for job in group {
            if let Err(fault) = &broken {
                job.refuse(JournalFault::clone(fault));
                continue;
            }
            let (ended, answer): (_, Answer) = match job {
                Job::Append(encoded, done) => match change::append(&transaction, &mut self.tips, &encoded) {
                    Ok(hash) => (Ok(()), Box::new(move |written| done(written.map(|()| hash)))),
                    Err(fault) => {
                        let no = fault.clone();
                        (Err(fault), Box::new(move |_| done(Err(no))))
                    }
                },
                Job::Change(change, answer) => {
                    let changed = change::change(&transaction, &mut self.tips, change);
                    let own = changed.clone();
                    (changed, Box::new(move |written| drop(answer.send(own.and(written)))))
                }
            };
            answers.push(answer);
            match ended {
                Err(fault) if !change::is_refusal(&fault) => broken = Err(fault),
                Ok(()) | Err(_) => {}
            }
        }
        broken?;
        transaction.commit().map_err(|error| from_sqlite(&self.connection, &error))
    }

    /// A group that holds any `full` tree is committed `full`.
    fn sync_as(&mut self, durability: Durability) -> Result<(), JournalFault> {
        if self.synced != durability {
            let level = match durability {
                Durability::Off => "OFF",
                Durability::Normal => "NORMAL",
                Durability::Full => "FULL",
            };
            self.connection
                .pragma_update(None, "synchronous", level)
                .map_err(|error| from_sqlite(&self.connection, &error))?;
            self.synced = durability;
        }
        Ok(())
    }
}
