//! The table of open calls of a tree, and the order in which those that wait may start.

pub(super) use crate::record::Why;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU16;

use crate::budget::Amounts;
use crate::record::Work;
use crate::words::{CallId, Fault, ModelName, Time, TimerId};
use crate::world::AgentIx;

/// A call that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub agent: AgentIx,
    pub work: Work,
    pub stage: CallStage,
    /// How many attempts were started.
    pub attempt: u32,
    /// Whether it was told to stop; it ends with its next report.
    pub(crate) stopped: bool,
    /// Whether its agent was rolled back since: it is settled, and nobody reads what it brings.
    pub(crate) is_void: bool,
    /// Which of the tools that its agent's model asked for ends with it.
    ask: Option<NonZeroU16>,
    /// What went wrong so far. Most calls have nothing of it.
    past: Option<Box<Past>>,
    /// The timer it waits for.
    pub(crate) timer: Option<TimerId>,
}

/// What went wrong with a call so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Past {
    /// What the last attempt met, if it met a fault; the next one uses up a retry.
    pub(crate) fault: Option<Fault>,
    /// How many attempts met a fault.
    pub(crate) faults: u32,
    /// How many attempts were lost with their process.
    pub(crate) losses: u32,
    /// Models that were tried or passed over before the present one.
    pub(crate) tried: Vec<ModelName>,
}

impl Past {
    /// An attempt met this, or was lost with its process.
    pub(crate) fn take(&mut self, fault: Option<&Fault>) {
        match fault {
            Some(_) => self.faults += 1,
            None => self.losses += 1,
        }
        self.fault = fault.cloned();
    }
}

impl Call {
    /// What went wrong so far, if anything did.
    pub(crate) fn past(&self) -> Option<&Past> {
        self.past.as_deref()
    }

    pub(crate) fn past_mut(&mut self) -> &mut Past {
        self.past.get_or_insert_default()
    }

    /// Whether the next attempt follows a fault and so uses up a retry.
    #[must_use]
    pub fn is_retry(&self) -> bool {
        self.past().is_some_and(|past| past.fault.is_some())
    }

    /// Whether its agent was rolled back since: nobody reads what it brings.
    #[must_use]
    pub const fn is_void(&self) -> bool {
        self.is_void
    }

    /// Nobody reads what it brings from here on.
    pub(crate) const fn void(&mut self) {
        (self.stopped, self.is_void, self.ask) = (true, true, None);
    }

    /// Which of the tools that its agent's model asked for ends with it.
    pub(crate) fn ask(&self) -> Option<u32> {
        self.ask.map(|ask| u32::from(ask.get() - 1))
    }

    /// Whether an attempt is out.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        matches!(self.stage, CallStage::Running { .. })
    }

    /// What the running attempt holds; nothing if none runs.
    #[must_use]
    pub const fn held(&self) -> Amounts {
        match self.stage {
            CallStage::Running { held, .. } => held,
            CallStage::Asked | CallStage::Waiting(_) => Amounts::ZERO,
        }
    }

    /// When the running attempt started, if what its model costs depends on that.
    #[must_use]
    pub const fn start(&self) -> Option<Time> {
        match self.stage {
            CallStage::Running { start, .. } => start,
            CallStage::Asked | CallStage::Waiting(_) => None,
        }
    }
}

/// Where a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallStage {
    /// Asked, and about to be decided in the same batch.
    Asked,
    /// It cannot go on yet.
    Waiting(Why),
    /// An attempt is out.
    Running { held: Amounts, start: Option<Time> },
}

/// Every open call of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    open: BTreeMap<CallId, Box<Call>>,
    startable: BTreeSet<CallId>,
    /// Those of them that wait only for a slot.
    slotless: BTreeSet<CallId>,
    running: u32,
    last: u64,
}

impl Calls {
    /// The call with this id, if it is open.
    #[must_use]
    pub fn find(&self, id: CallId) -> Option<&Call> {
        self.open.get(&id).map(Box::as_ref)
    }

    /// Every open call, the oldest first.
    pub fn all(&self) -> impl Iterator<Item = (CallId, &Call)> {
        self.open.iter().map(|(id, call)| (*id, call.as_ref()))
    }

    /// How many effects run.
    #[must_use]
    pub const fn running(&self) -> u32 {
        self.running
    }

    /// The id of the next call.
    #[must_use]
    pub const fn next_id(&self) -> CallId {
        CallId(self.last + 1)
    }

    /// The first call after `id` that only waits for something to change.
    pub(crate) fn startable_after(&self, id: CallId) -> Option<CallId> {
        self.startable.range(CallId(id.0 + 1)..).next().copied()
    }

    /// Whether a call that asked before `id` waits only for a slot.
    pub(crate) fn is_behind(&self, id: CallId) -> bool {
        self.slotless.first().is_some_and(|first| *first < id)
    }

    pub(crate) fn insert(&mut self, id: CallId, agent: AgentIx, work: Work, ask: Option<u32>) {
        let (stage, attempt, stopped, is_void) = (CallStage::Asked, 0, false, false);
        // An answer asks for far fewer.
        let ask = ask.map(|ask| NonZeroU16::MIN.saturating_add(u16::try_from(ask).unwrap_or(u16::MAX)));
        let call = Call { agent, work, stage, attempt, stopped, is_void, ask, past: None, timer: None };
        self.last = self.last.max(id.0);
        self.open.insert(id, Box::new(call));
    }

    pub(crate) fn remove(&mut self, id: CallId) {
        self.move_to(id, CallStage::Asked);
        self.open.remove(&id);
    }

    /// The open call with this id. Changing one that is not open is a bug, and stops this tree only.
    pub(crate) fn call_mut(&mut self, id: CallId) -> &mut Call {
        match self.open.get_mut(&id) {
            Some(call) => call,
            None => unreachable!("call {id} is not open"),
        }
    }

    /// Moves a call to another stage and keeps the counts true.
    pub(crate) fn move_to(&mut self, id: CallId, stage: CallStage) {
        let before = std::mem::replace(&mut self.call_mut(id).stage, stage);
        match before {
            CallStage::Waiting(_) => {
                self.startable.remove(&id);
                self.slotless.remove(&id);
            }
            CallStage::Running { .. } => self.running -= 1,
            CallStage::Asked => {}
        }
        match stage {
            CallStage::Waiting(why) if why.is_startable() => {
                self.startable.insert(id);
                if why == Why::Slot {
                    self.slotless.insert(id);
                }
            }
            CallStage::Running { .. } => self.running += 1,
            CallStage::Waiting(_) | CallStage::Asked => {}
        }
    }
}
