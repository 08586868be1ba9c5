//! The outside world, as effects see it: what was called, how often, and whether that was right. Like the real one, it
//! survives every crash.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spinney_kernel::definition::OnLost;
use spinney_kernel::primitives::CallId;

use super::record::Record;

/// Everything that effects did.
pub(super) struct Outside {
    record: Arc<Record>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    starts: BTreeMap<String, u64>,
    /// Keys of completed effects. A second effect under the same key changes nothing.
    applied: BTreeSet<String>,
    tools: u64,
    models: u64,
}

/// The outcome of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Applied {
    Now,
    /// The key was known: nothing happened again.
    Before,
}

impl Outside {
    pub(super) fn new(record: Arc<Record>) -> Self {
        Self { record, seen: Mutex::default() }
    }

    /// An attempt at a model call reaches its provider. Under one key that happens once, and once more for each
    /// decision to resume it.
    pub(super) fn model_called(&self, key: &str, attempt: u32) {
        self.seen().models += 1;
        let starts = self.start(key);
        // A model's key ends with the attempt, after the call.
        let call = key.rsplit('/').nth(1).and_then(|number| number.parse().ok()).map(CallId);
        self.record.judge_start(call, attempt, key);
        let resumes = call.map_or(0, |call| self.record.resumes(call));
        if starts > 1 + resumes {
            self.record
                .broken(format!("model call {key} was made {starts} times and resumed {resumes} times"));
        }
    }

    /// An attempt at a tool call reaches the tool. A tool that cannot be repeated is reached only once.
    pub(super) fn tool_called(&self, key: &str, attempt: u32, lost: OnLost) {
        self.seen().tools += 1;
        let starts = self.start(key);
        let call = key.rsplit('/').next().and_then(|number| number.parse().ok()).map(CallId);
        self.record.judge_start(call, attempt, key);
        let most = match lost {
            OnLost::Presumed => 1,
            OnLost::Repeatable => u64::from(attempt) + call.map_or(0, |call| self.record.resumes(call)),
        };
        if starts > most {
            self.record
                .broken(format!("tool call {key} was started {starts} times, {most} at most are right"));
        }
    }

    /// Executes an effect, once for each key.
    pub(super) fn apply(&self, key: &str) -> Applied {
        if self.seen().applied.insert(key.to_owned()) { Applied::Now } else { Applied::Before }
    }

    /// How many model and tool calls were made.
    pub(super) fn calls(&self) -> (u64, u64) {
        let seen = self.seen();
        (seen.models, seen.tools)
    }

    fn start(&self, key: &str) -> u64 {
        let mut seen = self.seen();
        let starts = seen.starts.entry(key.to_owned()).or_default();
        *starts += 1;
        *starts
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
