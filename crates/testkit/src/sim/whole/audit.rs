//! The audit: checks every law over an existing journal.

use std::collections::BTreeMap;

use spinney_journal::{Batch, Blocking, Journal};
use spinney_kernel::budget::Amounts;
use spinney_kernel::primitives::{CallId, Seq, Time, TreeId};
use spinney_kernel::record::{Event, Outcome};

use super::record::Record;

/// Batches read at once.
const PAGE: usize = 512;

/// Totals of a journal.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    /// Agents that were spawned; all of them have ended.
    pub agents: u64,
    /// Of them, those that completed.
    pub completed: u64,
    /// Messages sent.
    pub messages: u64,
    /// Questions asked.
    pub questions: u64,
    /// Questions answered.
    pub answers: u64,
    /// How often each call was resumed under its key.
    pub resumed: BTreeMap<CallId, u64>,
    /// Calls that were reported lost.
    pub lost: u64,
    /// What attempts lost in a crash were presumed to have used.
    pub presumed: Amounts,
    /// The total usage.
    pub spent: Amounts,
}

/// Reads the journal of an ended tree and checks every law.
///
/// # Errors
/// The first broken law.
pub fn audit(journal: &dyn Journal, tree: TreeId) -> Result<Audit, String> {
    let record = Record::new();
    // A process that is down fires no timer, and for how long is unknown.
    record.opened(Time(u64::MAX / 2));
    let (mut audit, mut after) = (Audit::default(), Seq(0));
    loop {
        let page = journal.read(tree, after, PAGE).wait().map_err(|fault| fault.to_string())?;
        if page.is_empty() {
            break;
        }
        for entry in page {
            record.written(tree, entry.after, &entry.batch);
            record.verdict()?;
            after = Seq(entry.after.0 + entry.batch.events.len() as u64);
            audit.take(&entry.batch);
        }
    }
    record.check_over()?;
    audit.spent =
        record.snapshot().and_then(|snapshot| snapshot.end).map(|end| end.spent).unwrap_or_default();
    Ok(audit)
}

impl Audit {
    fn take(&mut self, batch: &Batch) {
        for event in &batch.events {
            match event {
                Event::AgentSpawned(_) => self.agents += 1,
                Event::AgentEnded { exit, .. } => self.completed += u64::from(exit.is_success()),
                Event::MessageSent { .. } | Event::MessagePublished { .. } => self.messages += 1,
                Event::QuestionAsked { .. } => self.questions += 1,
                Event::CallResumed { call } => *self.resumed.entry(*call).or_default() += 1,
                Event::AttemptFailed { fault: None, spent, .. } => {
                    self.presumed = self.presumed.plus(spent);
                }
                Event::CallEnded { outcome: Outcome::Lost, spent, .. } => {
                    self.lost += 1;
                    self.presumed = self.presumed.plus(spent);
                }
                Event::CallEnded { outcome: Outcome::Answered { .. } | Outcome::Approved, .. } => {
                    self.answers += 1;
                }
                _ => {}
            }
        }
    }
}
