//! The world: the whole state of a tree. It changes only by applying events, and two worlds that applied the same
//! events are equal.

mod agent;
mod apply;
mod approvals;
mod branch;
mod calls;
mod clocks;
mod continuation;
mod effects;
mod graph;
mod outputs;
mod prefixes;
mod programs;
mod rollback;
mod shared;
mod threads;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::budget::{Account, AccountIx, Ledger, Shortfall};
use crate::definition::{Definition, Refusal, TreeLimits, Turns};
use crate::primitives::{AgentId, CallId, ModelName, SealKind, Seq, Time, TimerId, TokenCount, TreeId};
use crate::record::{AccountShortfall, Alarm, BreakerState, ClockKind, RULES, Work};

pub use agent::*;
pub use approvals::Approvals;

pub use calls::{Call, CallStage, Calls};
use clocks::Timeouts;
pub use continuation::EndedRoot;
pub use graph::{EndedStep, GraphRun, Graphs, NodeFrame};
pub use outputs::AgentOutputs;
pub(crate) use outputs::Wrote;
pub(crate) use prefixes::Prefix;
use prefixes::{PrefixKey, Prefixes};
pub(crate) use shared::bytes_of;
pub use shared::{SharedHeader, SharedStore};
pub use threads::{Thread, Threads};
pub use view::{AgentView, TreeState};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct World {
    tree: TreeId,
    /// The version of the rules that decide this tree.
    rules: u32,
    seq: Seq,
    definition: Option<Arc<Definition>>,
    agents: Agents,
    /// The agent of each account, to name it in a refusal.
    owners: Vec<AgentIx>,
    ledger: Ledger,
    calls: Calls,
    timers: Timers,
    timeouts: Timeouts,
    gates: BTreeMap<ModelName, Gate>,
    prefixes: Prefixes,
    halted: Option<Halt>,
    /// Whether no process runs the tree, or the process is stopping. A crash does not set it.
    suspended: bool,
    /// Why nothing more is done with it, if that is so.
    sealed: Option<(SealKind, Time)>,
    /// Messages for agents that do not exist yet.
    unspawned: BTreeMap<AgentId, Vec<QueuedMessage>>,
    threads: Threads,
    graphs: Graphs,
    shared: SharedStore,
    outputs: AgentOutputs,
    approvals: Approvals,
    /// How many connections of programs that it did not start are recorded.
    program_connections: u16,
    /// The root as it was when it ended, for a tree that continues this one.
    ended_root: Option<Box<EndedRoot>>,
    /// The root's clocks when its end was decided.
    ended_clocks: Option<Box<AgentClocks>>,
}

/// Why the tree starts no new work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Halt {
    /// The call that needed more.
    pub call: CallId,
    pub account: AgentId,
    pub short: Shortfall,
    /// What else the call lacks. Absent in trees of rules 5 and older.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<AccountShortfall>,
}

impl Halt {
    fn new(call: CallId, account: &AgentId, short: &Shortfall, also: &[AccountShortfall]) -> Self {
        Self { call, account: account.clone(), short: *short, also: also.to_vec() }
    }

    /// Everything that the call lacks.
    pub fn shortfalls(&self) -> impl Iterator<Item = (&AgentId, &Shortfall)> {
        let also = self.also.iter().map(|other| (&other.account, &other.short));
        std::iter::once((&self.account, &self.short)).chain(also)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Timers {
    pending: BTreeMap<TimerId, (Time, Subject)>,
    last: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Call(CallId),
    Clock(AgentIx, ClockKind),
}

/// What blocks calls to a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Gate {
    breaker: BreakerState,
    /// When an open breaker lets calls try again, if that is known.
    broken_until: Option<Time>,
    limited_until: Option<Time>,
}

impl World {
    /// A tree that has not started.
    #[must_use]
    pub fn new(tree: TreeId) -> Self {
        Self::under(RULES, tree)
    }

    /// For a tree under older rules, to decide an old journal again.
    #[must_use]
    pub fn under(rules: u32, tree: TreeId) -> Self {
        Self {
            tree,
            rules,
            seq: Seq(0),
            definition: None,
            agents: Agents::default(),
            owners: Vec::new(),
            ledger: Ledger::default(),
            calls: Calls::default(),
            timers: Timers::default(),
            timeouts: Timeouts::default(),
            gates: BTreeMap::new(),
            prefixes: Prefixes::default(),
            halted: None,
            suspended: false,
            unspawned: BTreeMap::new(),
            threads: Threads::default(),
            graphs: Graphs::default(),
            shared: SharedStore::default(),
            outputs: AgentOutputs::default(),
            approvals: Approvals::default(),
            program_connections: 0,
            ended_root: None,
            ended_clocks: None,
            sealed: None,
        }
    }

    #[must_use]
    pub const fn tree(&self) -> TreeId {
        self.tree
    }

    /// The version of the rules that decide this tree.
    #[must_use]
    pub const fn rules(&self) -> u32 {
        self.rules
    }

    #[must_use]
    pub const fn seq(&self) -> Seq {
        self.seq
    }

    /// Living and ended.
    #[must_use]
    pub const fn agents(&self) -> &Agents {
        &self.agents
    }

    #[must_use]
    pub const fn threads(&self) -> &Threads {
        &self.threads
    }

    /// The graphs that run.
    #[must_use]
    pub const fn graphs(&self) -> &Graphs {
        &self.graphs
    }

    /// The headers of the values that its agents share.
    #[must_use]
    pub const fn shared(&self) -> &SharedStore {
        &self.shared
    }

    /// Why nothing more is done with it, if that is so.
    #[must_use]
    pub const fn sealed(&self) -> Option<&SealKind> {
        match &self.sealed {
            Some((kind, _)) => Some(kind),
            None => None,
        }
    }

    /// Since when it is sealed. No time passes for its agents meanwhile.
    #[must_use]
    pub fn sealed_at(&self) -> Option<Time> {
        self.sealed.as_ref().map(|(_, at)| *at)
    }

    /// The root as it was when it ended, if it has.
    #[must_use]
    pub fn ended_root(&self) -> Option<&EndedRoot> {
        self.ended_root.as_deref()
    }

    pub(crate) const fn program_connections(&self) -> u16 {
        self.program_connections
    }

    /// What persons approved for more than one call.
    #[must_use]
    pub const fn approvals(&self) -> &Approvals {
        &self.approvals
    }

    /// The files of its living agents.
    #[must_use]
    pub const fn outputs(&self) -> &AgentOutputs {
        &self.outputs
    }

    /// Messages for agents that do not exist yet.
    #[must_use]
    pub const fn unspawned(&self) -> &BTreeMap<AgentId, Vec<QueuedMessage>> {
        &self.unspawned
    }

    #[must_use]
    pub const fn calls(&self) -> &Calls {
        &self.calls
    }

    #[must_use]
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    #[must_use]
    pub fn call(&self, id: CallId) -> Option<&Call> {
        self.calls.find(id)
    }

    #[must_use]
    pub const fn halted(&self) -> Option<&Halt> {
        self.halted.as_ref()
    }

    /// Whether nothing starts until the tree is resumed.
    #[must_use]
    pub const fn is_suspended(&self) -> bool {
        self.suspended
    }

    /// Whether the root has ended, after which nothing follows.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.agents.root().is_some_and(|root| self.agents.ended(root).is_some())
    }

    /// The agent with this id, if it exists, lives and is not being stopped.
    ///
    /// # Errors
    /// Says whether it never existed, has ended or is ending, or that the tree has not started.
    pub fn living(&self, id: &AgentId) -> Result<AgentIx, Refusal> {
        self.check_running()?;
        let ix = self.agents.find(id).ok_or_else(|| Refusal::UnknownAgent { agent: id.clone() })?;
        let state = match (self.agents.living(ix), self.agents.ended(ix)) {
            (Some(agent), _) if matches!(agent.state, AgentState::Live) => return Ok(ix),
            (_, Some(ended)) => ended.exit.as_str(),
            (_, None) => "ending",
        };
        Err(Refusal::AgentEnded { agent: id.clone(), state: state.to_owned() })
    }

    pub(crate) fn check_running(&self) -> Result<(), Refusal> {
        if self.definition.is_none() {
            return Err(Refusal::TreeNotStarted);
        }
        if self.is_over() { Err(Refusal::TreeEnded) } else { Ok(()) }
    }

    /// Panics before the tree has started: that is a bug.
    #[must_use]
    pub fn definition(&self) -> &Definition {
        match &self.definition {
            Some(definition) => definition,
            None => unreachable!("the tree has started"),
        }
    }

    pub(crate) const fn has_started(&self) -> bool {
        self.definition.is_some()
    }

    pub(crate) fn limits(&self) -> TreeLimits {
        self.definition.as_ref().map(|definition| definition.limits).unwrap_or_default()
    }

    pub(crate) fn agent(&self, ix: AgentIx) -> &Agent {
        self.agents.agent(ix)
    }

    pub(crate) fn agent_id(&self, ix: AgentIx) -> &AgentId {
        self.agents.id(ix)
    }

    pub(crate) fn account_of(&self, ix: AgentIx) -> &Account {
        self.ledger.account(self.agent(ix).account)
    }

    pub(crate) fn owner(&self, account: AccountIx) -> AgentId {
        match self.owners.get(account.place()) {
            Some(ix) => self.agent_id(*ix).clone(),
            None => unreachable!("every open account has an owner"),
        }
    }

    /// Whether `ix` or an ancestor is paused.
    pub(crate) fn is_paused(&self, ix: AgentIx) -> bool {
        self.agent(ix).paused || self.agents.above(ix).any(|above| self.agent(above).paused)
    }

    /// Whether the provider of `model` is down at this moment.
    #[must_use]
    pub fn is_broken(&self, model: &ModelName, now: Time) -> bool {
        self.gates.get(model).is_some_and(|gate| {
            gate.breaker == BreakerState::Open && gate.broken_until.is_none_or(|until| until > now)
        })
    }

    /// When the provider of `model` may be asked again, if it is down and that is known.
    pub(crate) fn broken_until(&self, model: &ModelName) -> Option<Time> {
        self.gates.get(model).and_then(|gate| gate.broken_until)
    }

    /// Until when `model` takes no calls; may be in the past.
    #[must_use]
    pub fn rate_limit(&self, model: &ModelName) -> Option<Time> {
        self.gates.get(model).and_then(|gate| gate.limited_until)
    }

    /// The prompt prefix of a model call. Calls of one model by agents of one role with the same tools share it.
    fn prefix_of(&self, id: CallId) -> PrefixKey {
        let Some(Call { agent, work: Work::Model(work), .. }) = self.call(id) else {
            unreachable!("only a model call has a prompt")
        };
        let agent_terms = &self.agent(*agent).terms;
        let (model, role, tools) =
            (work.model.clone(), agent_terms.role.clone(), agent_terms.caps.tools.clone());
        PrefixKey { model, role, tools }
    }

    /// What is known about the prompt prefix of a model call.
    pub(crate) fn prefix(&self, id: CallId) -> Option<&Prefix> {
        self.prefixes.find(&self.prefix_of(id))
    }

    /// Whether calls with the same prompt prefix wait for this one, or would.
    #[must_use]
    pub fn leads(&self, call: CallId) -> bool {
        self.prefixes.is_leader(call)
    }

    /// The running call that fills the provider's cache with the prompt prefix of a model call.
    #[must_use]
    pub fn leader_of(&self, call: CallId) -> Option<CallId> {
        self.prefix(call)?.leader.map(|(leader, _)| leader)
    }

    /// Whether a call waits until the provider has cached the prompt of this one.
    #[must_use]
    pub fn is_cache_awaited(&self, leader: CallId) -> bool {
        self.leads(leader) && self.calls.waiting_for_cache().any(|id| self.leader_of(id) == Some(leader))
    }

    /// How an agent takes turns on its own, if it does.
    pub(crate) fn turns_of(&self, ix: AgentIx) -> Option<&Turns> {
        self.definition().roles.get(&self.agent(ix).terms.role)?.turns.as_ref()
    }

    /// The tokens of a facts line for this agent.
    pub(crate) fn facts_tokens(&self, ix: AgentIx) -> TokenCount {
        self.turns_of(ix).and_then(|turns| turns.facts_tokens).unwrap_or_default()
    }

    pub(crate) fn next_timer(&self) -> TimerId {
        TimerId::after(self.timers.last)
    }

    pub(crate) fn subject(&self, timer: TimerId) -> Option<(Time, Subject)> {
        self.timers.pending.get(&timer).copied()
    }

    /// Why an answer to an open question is too late, if it is: the question has timed out, even if its timer is not
    /// decided yet.
    #[must_use]
    pub fn late_answer(&self, question: CallId, now: Time) -> Option<Refusal> {
        let call = self.call(question).filter(|call| matches!(call.work, Work::Question(_)))?;
        let (at, _) = self.subject(call.timer?)?;
        let is_late = self.rules >= 3 && at <= now;
        is_late.then(|| Refusal::AnswerLate { question, late_ms: now.0 - at.0 })
    }

    /// The alarms of agents' clocks among [`alarms`](Self::alarms).
    pub fn clock_alarms(&self) -> impl Iterator<Item = Alarm> {
        let clocks = self.timers.pending.iter().filter(|(_, (_, of))| matches!(of, Subject::Clock(..)));
        clocks.map(|(timer, (at, _))| Alarm { timer: *timer, at: *at })
    }

    /// Every timer that has not fired; set again after a restart.
    pub fn alarms(&self) -> impl Iterator<Item = Alarm> {
        self.timers.pending.iter().map(|(timer, (at, _))| Alarm { timer: *timer, at: *at })
    }
}
