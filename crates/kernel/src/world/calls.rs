//! The table of a tree's open calls, and the order in which waiting ones may start.

pub(super) use crate::record::WaitReason;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU16;

use crate::budget::Amounts;
use crate::primitives::{CallId, Fault, ModelName, SessionId, Time, TimerId};
use crate::record::{WaitFor, Work};
use crate::world::AgentIx;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub agent: AgentIx,
    pub work: Work,
    pub stage: CallStage,
    pub attempt: u32,
    /// Whether a stop was requested; it ends with its next report.
    pub(crate) stopped: bool,
    /// Whether its agent was rolled back since: it is still settled, but its result is discarded.
    pub(crate) is_void: bool,
    /// The tool call of its agent's answer that ends with it.
    ask: Option<NonZeroU16>,
    /// How many of its connections are recorded.
    pub(crate) connections: u16,
    /// Its failures. Most calls have none.
    past: Option<Box<Past>>,
    pub(crate) timer: Option<TimerId>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Past {
    /// The fault of the last attempt; if set, the next attempt uses up a retry.
    pub(crate) fault: Option<Fault>,
    pub(crate) faults: u32,
    /// Attempts lost because their process died.
    pub(crate) losses: u32,
    /// Models that were tried or skipped before the current one.
    pub(crate) tried: Vec<ModelName>,
    /// Whether its packet was cut because it was too long for a model.
    pub(crate) is_shortened: bool,
    /// When a rate limit lets it ask again.
    pub(crate) not_before: Option<Time>,
    /// How often in a row its provider was down when it could have started.
    pub(crate) breaker_waits: u32,
    /// The output cap that an outside program asked for, if its call got a smaller one.
    pub(crate) asked_cap: Option<u64>,
    /// The session that a program is continued by.
    session: Option<SessionId>,
    /// How many it has named.
    pub(crate) sessions: u8,
    /// Whether it is recorded how its follow-up began.
    pub(crate) has_followup_start: bool,
}

impl Past {
    /// Records the session of a program.
    pub(crate) fn name(&mut self, session: &SessionId) {
        self.session = Some(session.clone());
        self.sessions += 1;
    }

    /// Records that it is known how its follow-up begins.
    pub(crate) const fn begin_followup(&mut self) {
        self.has_followup_start = true;
    }

    /// Records a fault, or an attempt lost with its process.
    pub(crate) fn take(&mut self, fault: Option<&Fault>) {
        match fault {
            Some(_) => self.faults += 1,
            None => self.losses += 1,
        }
        self.fault = fault.cloned();
        (self.not_before, self.breaker_waits) = (None, 0);
    }
}

impl Call {
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

    /// The session that a program is continued by, if it named one.
    #[must_use]
    pub fn session(&self) -> Option<&SessionId> {
        self.past()?.session.as_ref()
    }

    /// Whether its agent was rolled back since, so its result is discarded.
    #[must_use]
    pub const fn is_void(&self) -> bool {
        self.is_void
    }

    /// Discards its result from now on.
    pub(crate) const fn void(&mut self) {
        (self.stopped, self.is_void, self.ask) = (true, true, None);
    }

    /// The tool call of its agent's answer that ends with it.
    pub(crate) fn ask(&self) -> Option<u32> {
        self.ask.map(|ask| u32::from(ask.get() - 1))
    }

    #[must_use]
    pub const fn is_running(&self) -> bool {
        matches!(self.stage, CallStage::Running { .. })
    }

    /// Whether it is a tool call of this agent, runs, and was not stopped.
    pub(crate) fn is_live_tool_of(&self, agent: AgentIx) -> bool {
        self.agent == agent && self.is_running() && !self.stopped && matches!(self.work, Work::Tool(_))
    }

    /// Zero if no attempt runs.
    #[must_use]
    pub const fn held(&self) -> Amounts {
        match self.stage {
            CallStage::Running { held, .. } => held,
            CallStage::Asked | CallStage::Waiting(_) => Amounts::ZERO,
        }
    }

    /// When the running attempt started, if its price depends on that.
    #[must_use]
    pub const fn start(&self) -> Option<Time> {
        match self.stage {
            CallStage::Running { start, .. } => start,
            CallStage::Asked | CallStage::Waiting(_) => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallStage {
    /// Requested; decided in the same batch.
    Asked,
    Waiting(WaitReason),
    Running {
        held: Amounts,
        start: Option<Time>,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    open: BTreeMap<CallId, Box<Call>>,
    startable: BTreeSet<CallId>,
    /// Those that wait only for a free slot.
    slotless: BTreeSet<CallId>,
    /// Those that wait until a prompt prefix is cached.
    uncached: BTreeSet<CallId>,
    running: u32,
    /// Open waits for a message.
    listening: u32,
    /// Open calls that wait for other agents: for a message, for children, or as the child itself.
    resting: u32,
    last: u64,
}

impl Calls {
    #[must_use]
    pub fn find(&self, id: CallId) -> Option<&Call> {
        self.open.get(&id).map(Box::as_ref)
    }

    /// Oldest first.
    pub fn all(&self) -> impl Iterator<Item = (CallId, &Call)> {
        self.open.iter().map(|(id, call)| (*id, call.as_ref()))
    }

    #[must_use]
    pub const fn running(&self) -> u32 {
        self.running
    }

    /// Whether any open call waits for a message.
    pub(crate) const fn any_listens(&self) -> bool {
        self.listening > 0
    }

    /// Whether every open call waits for another agent.
    pub(crate) fn all_rest(&self) -> bool {
        self.resting as usize == self.open.len()
    }

    #[must_use]
    pub const fn next_id(&self) -> CallId {
        CallId(self.last + 1)
    }

    /// The first call after `id` that a change elsewhere can start.
    pub(crate) fn startable_after(&self, id: CallId) -> Option<CallId> {
        self.startable.range(CallId(id.0 + 1)..).next().copied()
    }

    pub(super) fn waiting_for_cache(&self) -> impl Iterator<Item = CallId> {
        self.uncached.iter().copied()
    }

    /// The number of calls, other than `id`, that wait only for a free slot.
    pub(crate) fn waiting_for_slots(&self, id: CallId) -> usize {
        self.slotless.len() - usize::from(self.slotless.contains(&id))
    }

    /// Whether an earlier call than `id` waits only for a free slot.
    pub(crate) fn is_behind(&self, id: CallId) -> bool {
        self.slotless.first().is_some_and(|first| *first < id)
    }

    pub(crate) fn insert(&mut self, id: CallId, agent: AgentIx, work: Work, ask: Option<u32>) {
        let (stage, attempt, stopped, is_void) = (CallStage::Asked, 0, false, false);
        // An answer has far fewer tool calls.
        let ask = ask.map(|ask| NonZeroU16::MIN.saturating_add(u16::try_from(ask).unwrap_or(u16::MAX)));
        let (connections, past, timer) = (0, None, None);
        self.listening += u32::from(is_listening(&work));
        self.resting += u32::from(is_resting(&work));
        let call = Call { agent, work, stage, attempt, stopped, is_void, ask, connections, past, timer };
        self.last = self.last.max(id.0);
        self.open.insert(id, Box::new(call));
    }

    pub(crate) fn remove(&mut self, id: CallId) {
        self.move_to(id, CallStage::Asked);
        if let Some(call) = self.open.remove(&id) {
            self.listening -= u32::from(is_listening(&call.work));
            self.resting -= u32::from(is_resting(&call.work));
        }
    }

    /// Panics if the call is not open: that is a bug, and stops this tree only.
    pub(crate) fn call_mut(&mut self, id: CallId) -> &mut Call {
        match self.open.get_mut(&id) {
            Some(call) => call,
            None => unreachable!("call {id} is not open"),
        }
    }

    /// Changes a call's stage and updates the counters.
    pub(crate) fn move_to(&mut self, id: CallId, stage: CallStage) {
        let call = self.call_mut(id);
        let before = std::mem::replace(&mut call.stage, stage);
        // A program takes no slot: its model calls need them. A call for a tool takes none: the tool has one.
        let counts = u32::from(!call.work.is_program() && call.work.of_tool().is_none());
        match before {
            CallStage::Waiting(_) => {
                self.startable.remove(&id);
                self.slotless.remove(&id);
                self.uncached.remove(&id);
            }
            CallStage::Running { .. } => self.running -= counts,
            CallStage::Asked => {}
        }
        match stage {
            CallStage::Waiting(why) if why.is_startable() => {
                self.startable.insert(id);
                match why {
                    WaitReason::Slot => drop(self.slotless.insert(id)),
                    WaitReason::Cache => drop(self.uncached.insert(id)),
                    _ => {}
                }
            }
            CallStage::Running { .. } => self.running += counts,
            CallStage::Waiting(_) | CallStage::Asked => {}
        }
    }
}

const fn is_listening(work: &Work) -> bool {
    matches!(work, Work::Wait(WaitFor::Message))
}

const fn is_resting(work: &Work) -> bool {
    matches!(work, Work::Wait(_) | Work::Child(_))
}
