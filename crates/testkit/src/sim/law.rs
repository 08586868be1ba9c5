//! The laws that must hold after every decision. Each is computed the slow and obvious way, from events and open calls,
//! and compared with the world.

use std::collections::{BTreeMap, BTreeSet};

use spinney_kernel::budget::{Account, Amounts, Fit, Resource, ResourceSet, Scan};
use spinney_kernel::definition::{Allow, Caps, FolderAccess, FolderGrants, Role};
use spinney_kernel::primitives::{AgentId, CallId, Time, limit};
use spinney_kernel::record::{Event, Spawned, WaitReason, Work};
use spinney_kernel::world::{AgentIx, AgentState, CallStage, World};

use super::fitted;

/// Whether what one may do at each folder that either names, and just below it, the other may do as well.
fn are_folders_within(own: Option<&FolderGrants>, other: Option<&FolderGrants>) -> bool {
    let named: BTreeSet<String> =
        own.into_iter().chain(other).flat_map(FolderGrants::iter).map(|(path, _)| path.to_string()).collect();
    let places = named.iter().flat_map(|path| [path.clone(), format!("{path}/below")]);
    places.into_iter().all(|place| folder_access(own, &place) <= folder_access(other, &place))
}

/// Goes up from a path to the first folder that is granted.
fn folder_access(grants: Option<&FolderGrants>, path: &str) -> Option<FolderAccess> {
    let mut at = path;
    while !at.is_empty() {
        if grants?.write.iter().any(|folder| folder.as_str() == at) {
            return Some(FolderAccess::Write);
        }
        if grants?.read.iter().any(|folder| folder.as_str() == at) {
            return Some(FolderAccess::Read);
        }
        at = at.rsplit_once('/').map_or("", |(above, _)| above);
    }
    None
}

/// Whether every right in `caps` is also in `other`.
#[must_use]
pub fn is_within(caps: &Caps, other: &Caps) -> bool {
    fn all<T: Ord>(allowed: &Allow<T>, other: &Allow<T>) -> bool {
        match (allowed, other) {
            (_, Allow::All) => true,
            (Allow::All, Allow::Only(_)) => false,
            (Allow::Only(these), Allow::Only(others)) => these.is_subset(others),
        }
    }
    all(&caps.models, &other.models)
        && all(&caps.below, &other.below)
        && all(&caps.tools, &other.tools)
        && all(&caps.spawn, &other.spawn)
        && caps.network.beyond(&other.network).is_denied()
        && caps.host_requests <= other.host_requests
        && are_folders_within(caps.folders.as_ref(), other.folders.as_ref())
        && caps.depth_max <= other.depth_max
}

/// What the events of a tree say, counted independently of the world.
#[derive(Clone, Debug, Default)]
pub(super) struct Witness {
    parents: BTreeMap<AgentId, Option<AgentId>>,
    caps: BTreeMap<AgentId, Caps>,
    owners: BTreeMap<CallId, AgentId>,
    spent: BTreeMap<AgentId, Amounts>,
    presumed: BTreeMap<AgentId, Amounts>,
    holding: BTreeSet<CallId>,
    /// The recorded connections of calls that have some.
    connections: BTreeMap<CallId, u16>,
    sessions: BTreeMap<CallId, u8>,
    followups: BTreeSet<CallId>,
    waiting: BTreeMap<CallId, (WaitReason, Option<AgentId>, Option<Time>)>,
    ended: BTreeSet<AgentId>,
    /// Agents that asked for a summary and have not cut their window since.
    summarising: BTreeSet<AgentId>,
    /// The sum of everything booked.
    pub(super) booked: Amounts,
    /// Whether anything exceeded its hold, or was charged from outside.
    pub(super) overrun_possible: bool,
    over: bool,
    sealed: bool,
}

/// A broken law with what was seen.
pub(super) type Law = Result<(), String>;

impl Witness {
    fn connected(&mut self, call: CallId) -> Law {
        hold(self.holding.contains(&call), || format!("{call} was connected while it did not run"))?;
        let count = self.connections.entry(call).or_default();
        *count += 1;
        hold(*count <= limit::CALL_CONNECTIONS_MAX, || format!("{call} has {count} connections"))
    }

    fn named_session(&mut self, call: CallId) -> Law {
        hold(self.holding.contains(&call), || format!("{call} named a session while it did not run"))?;
        let count = self.sessions.entry(call).or_default();
        *count += 1;
        hold(*count <= limit::CALL_SESSIONS_MAX, || format!("{call} has {count} sessions"))
    }

    fn followup_started(&mut self, call: CallId) -> Law {
        hold(self.holding.contains(&call), || format!("{call} began a follow-up while it did not run"))?;
        hold(self.followups.insert(call), || format!("{call} began its follow-up twice"))
    }

    /// Reads one event.
    #[expect(clippy::too_many_lines, reason = "one arm for each event")]
    pub(super) fn see(&mut self, event: &Event) -> Law {
        if self.over {
            return Err(format!("an event followed the root's end: {event:?}"));
        }
        // Clocks stop, and calls wait for another reason than before: nothing starts and nothing is spent.
        let may_follow = matches!(
            event,
            Event::TreeUnsealed
                | Event::TreeBranched(_)
                | Event::ClockSet { alarm: None, .. }
                | Event::CallWaiting { why: WaitReason::Suspended, .. }
        );
        hold(!self.sealed || may_follow, || format!("an event in a sealed tree: {event:?}"))?;
        match event {
            Event::TreeSealed { .. } => self.sealed = true,
            Event::TreeUnsealed | Event::TreeBranched(_) => self.sealed = false,
            _ => {}
        }
        match event {
            Event::AgentSpawned(spawned) => self.spawned(spawned),
            Event::CallAsked { call, agent, work } => {
                self.owners.insert(*call, agent.clone());
                self.asked(agent, work)
            }
            Event::ContextCut { agent, .. } => self.cut(agent),
            Event::ContextRestored(restored) => self.cut(&restored.agent),
            Event::CallWaiting { call, why, account, alarm } => {
                let now = (*why, account.clone(), alarm.map(|alarm| alarm.at));
                hold(self.waiting.insert(*call, now.clone()) != Some(now), || {
                    format!("{call} waits twice for the same")
                })
            }
            Event::CallStarted { call, .. } => {
                self.waiting.remove(call);
                hold(self.holding.insert(*call), || format!("{call} holds twice"))
            }
            Event::CallResumed { call } => {
                hold(self.holding.contains(call), || format!("{call} resumed without a hold"))
            }
            Event::ConnectionEnded { call, .. } => self.connected(*call),
            Event::SessionNamed { call, .. } => self.named_session(*call),
            Event::FollowupStarted { call, .. } => self.followup_started(*call),
            Event::AttemptFailed { call, spent, overrun, presumed, .. } => {
                hold(self.holding.remove(call), || format!("{call} settled twice"))?;
                self.book_call(*call, spent, overrun, presumed)
            }
            Event::CallHeldBack { call, .. } => {
                hold(self.holding.remove(call), || format!("{call} was held back without a hold"))
            }
            Event::CallEnded { call, spent, overrun, presumed, input_tokens, .. } => {
                let held = self.holding.remove(call);
                hold(held || spent.is_zero(), || format!("{call} was paid for without a hold"))?;
                let is_reported = input_tokens.is_some();
                hold(!is_reported || presumed.is_zero(), || format!("{call} was reported and presumed"))?;
                self.book_call(*call, spent, overrun, presumed)
            }
            Event::Charged { agent, amounts, .. } => {
                self.overrun_possible = true;
                self.book(agent, amounts, &Amounts::ZERO);
                Ok(())
            }
            Event::AgentEnded { agent, spent, presumed, .. } => self.agent_ended(agent, spent, presumed),
            Event::TreeBranched(_) => self.branched(),
            Event::TreeStarted { .. }
            | Event::WindowSet { .. }
            | Event::ContextShared { .. }
            | Event::ThreadJoined { .. }
            | Event::ThreadLeft { .. }
            | Event::AgentPaused { .. }
            | Event::AgentUnpaused { .. }
            | Event::AgentRedirected { .. }
            | Event::AgentEnding { .. }
            | Event::CallSwitched { .. }
            | Event::FirstToken { .. }
            | Event::ConnectionsOmitted { .. }
            | Event::ProgramConnected { .. }
            | Event::ProgramConnectionsOmitted { .. }
            | Event::WaitStarted { .. }
            | Event::QuestionAsked { .. }
            | Event::ToolAnswered { .. }
            | Event::ValueWritten { .. }
            | Event::ValuesCleared { .. }
            | Event::MessageSent { .. }
            | Event::MessagePublished { .. }
            | Event::TreeHalted { .. }
            | Event::TreeUnhalted
            | Event::TreeSuspended
            | Event::TreeContinued
            | Event::GraphStarted { .. }
            | Event::GraphReplanned { .. }
            | Event::NodeStarted(_)
            | Event::NodeEnded { .. }
            | Event::WrapUpStarted { .. }
            | Event::ApprovalRemembered { .. }
            | Event::RepeatsNoticed { .. }
            | Event::LimitRaised { .. }
            | Event::TreeAdjusted(_)
            | Event::TreeSealed { .. }
            | Event::TreeUnsealed
            | Event::ClockSet { .. }
            | Event::ModelAdded { .. }
            | Event::BreakerChanged { .. }
            | Event::CheckpointMade { .. }
            | Event::RateLimited { .. } => Ok(()),
        }
    }

    /// A requested summary has ended.
    fn cut(&mut self, agent: &AgentId) -> Law {
        self.summarising.remove(agent);
        Ok(())
    }

    /// There is at most one summary for each cut.
    fn asked(&mut self, agent: &AgentId, work: &Work) -> Law {
        if work.is_turn() {
            self.summarising.remove(agent);
        }
        let is_summary = matches!(work, Work::Model(_)) && !work.is_turn();
        let is_first = !is_summary || self.summarising.insert(agent.clone());
        hold(is_first, || format!("{agent} asked twice for a summary of the same"))
    }

    /// What was spent in its origin does not count here.
    fn branched(&mut self) -> Law {
        self.spent.clear();
        self.presumed.clear();
        self.booked = Amounts::ZERO;
        Ok(())
    }

    /// Compares the world with what the events said.
    pub(super) fn check(&self, world: &World) -> Law {
        let mut held: BTreeMap<AgentId, Amounts> = BTreeMap::new();
        let mut running = BTreeSet::new();
        for (id, call) in world.calls().all() {
            if call.is_running() {
                running.insert(id);
                self.add_up(world, world.agents().id(call.agent), call.held(), &mut held);
            }
        }
        hold(running == self.holding, || format!("running {running:?}, holding {:?}", self.holding))?;
        let lent = self.lent(world, &held);
        for ix in world.agents().all() {
            let Some(agent) = world.agents().living(ix) else { continue };
            let (id, account) = (world.agents().id(ix), world.ledger().account(agent.account));
            let nothing = Amounts::ZERO;
            same("held", id, &account.held, held.get(id).unwrap_or(&nothing))?;
            same("lent", id, &account.lent, lent.get(id).unwrap_or(&nothing))?;
            same("spent", id, &account.spent, self.spent.get(id).unwrap_or(&nothing))?;
            same("presumed", id, &account.presumed, self.presumed.get(id).unwrap_or(&nothing))?;
            self.within_ceiling(id, account)?;
        }
        files_within_limits(world)
    }

    /// No call waits that could start: not for available budget, a free slot, an end or a message that has arrived. So
    /// none waits forever.
    pub(super) fn check_nobody_stuck(world: &World) -> Law {
        for ix in world.agents().all() {
            let Some(agent) = world.agents().living(ix) else { continue };
            let role = world.definition().roles.get(&agent.terms.role);
            let moves =
                role.is_some_and(|role| role.turns.is_some()) && matches!(agent.state, AgentState::Live);
            hold(!moves || !agent.open.is_empty(), || {
                format!("{} takes turns and nothing of it is open", world.agents().id(ix))
            })?;
        }
        fitted::check_halt(world)?;
        let mut scan = Scan::default();
        let free = world.calls().running() < world.definition().limits.parallel_max;
        for (id, call) in world.calls().all() {
            let agent = world.agents().agent(call.agent);
            match call.stage {
                CallStage::Asked => return Err(format!("{id} was asked and forgotten")),
                CallStage::Waiting(WaitReason::Slot) => {
                    hold(!free, || format!("{id} waits for a slot that is free"))?;
                }
                CallStage::Waiting(WaitReason::Budget { ask }) => {
                    if let Some(needed) = fitted::ask(world, call) {
                        let is_needed = needed == ask || !free || world.halted().is_some();
                        hold(is_needed, || format!("{id} needs {needed:?} to start and waits for {ask:?}"))?;
                    }
                    match scan.fit(world.ledger(), agent.account, &ask) {
                        Fit::Wait(blocked, _) => scan.pass(blocked, &ask),
                        fit @ (Fit::Yes | Fit::Never(..) | Fit::Shut(_)) => {
                            hold(!free || world.halted().is_some(), || {
                                format!("{id} waits for budget: {fit:?}")
                            })?;
                        }
                    }
                }
                CallStage::Waiting(WaitReason::Ceiling) => {
                    let ask = fitted::needed(world, call);
                    let fit = world.ledger().fit(agent.account, &ask);
                    let is_above = matches!(fit, Fit::Never(..) | Fit::Shut(_));
                    hold(is_above || !free || world.halted().is_some(), || {
                        format!("{id} waits at a ceiling: {fit:?}")
                    })?;
                }
                // The only call that waits although it could start: another one fills the cache for it.
                CallStage::Waiting(WaitReason::Cache) => {
                    let is_led = world.leader_of(id).is_some();
                    hold(!free || is_led || world.halted().is_some(), || {
                        format!("{id} waits for a cached prompt, and nobody fills the cache")
                    })?;
                }
                CallStage::Waiting(WaitReason::Suspended) => {
                    hold(!free || world.is_suspended(), || {
                        format!("{id} waits although somebody runs the tree")
                    })?;
                }
                CallStage::Waiting(WaitReason::Message) => {
                    hold(agent.inbox.is_empty(), || format!("{id} waits for a message that came"))?;
                }
                CallStage::Waiting(_) | CallStage::Running { .. } => {}
            }
        }
        Ok(())
    }

    /// Only totals are left of a tree that has ended.
    pub(super) fn check_over(&self, world: &World) -> Law {
        hold(world.is_over(), || "the tree did not end".to_owned())?;
        hold(self.holding.is_empty(), || format!("holds left: {:?}", self.holding))?;
        hold(world.calls().all().next().is_none(), || "calls left".to_owned())?;
        hold(world.alarms().next().is_none(), || "timers left".to_owned())?;
        hold(world.ledger().is_empty(), || "accounts left".to_owned())?;
        hold(world.ledger().line_len() == 0, || "asks left in line".to_owned())?;
        let root = world.agents().root().map(|root| world.view(root).spent);
        hold(root == Some(self.booked), || format!("root spent {root:?}, booked {:?}", self.booked))
    }

    fn spawned(&mut self, spawned: &Spawned) -> Law {
        if let Some(parent) = &spawned.parent {
            let mut own = spawned.caps.clone();
            // The only tool that gives no right.
            if let Allow::Only(tools) = &mut own.tools {
                tools.remove("hand_back");
            }
            let within = self.caps.get(parent).is_some_and(|caps| is_within(&own, caps));
            hold(within, || format!("{} may do more than its parent", spawned.agent))?;
            hold(!self.ended.contains(parent), || format!("{} has a dead parent", spawned.agent))?;
        }
        self.caps.insert(spawned.agent.clone(), spawned.caps.clone());
        self.parents.insert(spawned.agent.clone(), spawned.parent.clone());
        Ok(())
    }

    fn agent_ended(&mut self, agent: &AgentId, spent: &Amounts, presumed: &Amounts) -> Law {
        hold(self.ended.insert(agent.clone()), || format!("{agent} ended twice"))?;
        let nothing = Amounts::ZERO;
        same("spent at the end", agent, spent, self.spent.get(agent).unwrap_or(&nothing))?;
        same("presumed at the end", agent, presumed, self.presumed.get(agent).unwrap_or(&nothing))?;
        let orphan = self
            .parents
            .iter()
            .find(|(child, parent)| parent.as_ref() == Some(agent) && !self.ended.contains(*child));
        hold(orphan.is_none(), || format!("{agent} left an orphan: {orphan:?}"))?;
        self.over = self.parents.get(agent).is_some_and(Option::is_none);
        Ok(())
    }

    /// Either all measured usage of a call is presumed, or none of it.
    fn book_call(&mut self, call: CallId, spent: &Amounts, overrun: &Amounts, presumed: &Amounts) -> Law {
        let is_whole = presumed.is_zero() || *presumed == spent.only(ResourceSet::MEASURED);
        hold(is_whole, || format!("{call} is presumed in part: {presumed:?} of {spent:?}"))?;
        self.overrun_possible |= !overrun.is_zero();
        if let Some(agent) = self.owners.get(&call).cloned() {
            self.book(&agent, spent, presumed);
        }
        Ok(())
    }

    fn book(&mut self, agent: &AgentId, amounts: &Amounts, presumed: &Amounts) {
        self.booked = self.booked.plus(amounts);
        let mut next = Some(agent.clone());
        while let Some(id) = next {
            let spent = self.spent.entry(id.clone()).or_default();
            *spent = spent.plus(amounts);
            if !presumed.is_zero() {
                let sum = self.presumed.entry(id.clone()).or_default();
                *sum = sum.plus(presumed);
            }
            next = self.parents.get(&id).cloned().flatten();
        }
    }

    fn within_ceiling(&self, id: &AgentId, account: &Account) -> Law {
        if !self.overrun_possible {
            hold(account.overrun.is_zero(), || format!("{id} shows an overrun that nobody caused"))?;
        }
        for resource in Resource::ALL {
            let Some(limit) = account.terms.limit.get(resource) else { continue };
            let used = account.spent.get(resource) + account.held.get(resource) + account.lent.get(resource);
            let most = limit + account.overrun.get(resource);
            hold(used <= most, || format!("{id} passed its ceiling of {resource}: {used} > {most}"))?;
        }
        Ok(())
    }

    /// What accounts with `lends` hold at their parents: what they have not spent, and never less than what runs below
    /// them.
    fn lent(&self, world: &World, held: &BTreeMap<AgentId, Amounts>) -> BTreeMap<AgentId, Amounts> {
        let mut lent: BTreeMap<AgentId, Amounts> = BTreeMap::new();
        let mut living: Vec<AgentIx> =
            world.agents().all().filter(|ix| world.agents().living(*ix).is_some()).collect();
        living.sort_by_key(|ix| std::cmp::Reverse(world.agents().agent(*ix).terms.depth));
        for ix in living {
            let (id, agent) = (world.agents().id(ix), world.agents().agent(ix));
            let account = world.ledger().account(agent.account);
            let below = |sums: &BTreeMap<AgentId, Amounts>| sums.get(id).copied().unwrap_or_default();
            let used = below(held).plus(&below(&lent));
            let claim = account.terms.lends.iter().fold(Amounts::ZERO, |claim, resource| {
                let limit = account.terms.limit.get(resource).unwrap_or_default();
                let unspent = limit.saturating_sub(account.spent.get(resource));
                claim.with(resource, unspent.max(used.get(resource)))
            });
            let up = claim.plus(&below(&lent).without(account.terms.lends));
            if let Some(parent) = self.parents.get(id).cloned().flatten() {
                let sum = lent.entry(parent).or_default();
                *sum = sum.plus(&up);
            }
        }
        lent
    }

    /// Adds an amount at an agent and its ancestors; an account that lends a resource covers those above it.
    fn add_up(&self, world: &World, at: &AgentId, amounts: Amounts, sums: &mut BTreeMap<AgentId, Amounts>) {
        let mut left = amounts;
        let mut next = Some(at.clone());
        while let Some(id) = next {
            let sum = sums.entry(id.clone()).or_default();
            *sum = sum.plus(&left);
            if let Some(agent) = world.agents().find(&id).and_then(|ix| world.agents().living(ix)) {
                left = left.without(world.ledger().account(agent.account).terms.lends);
            }
            next = self.parents.get(&id).cloned().flatten();
        }
    }
}

/// The files that are kept are those of living agents, and within their limits.
fn files_within_limits(world: &World) -> Law {
    for (ix, files) in world.outputs().all() {
        let id = world.agents().id(ix);
        let Some(agent) = world.agents().living(ix) else {
            return Err(format!("{id} is gone and has files"));
        };
        let limits = world.definition().roles.get(&agent.terms.role).map(Role::outputs).unwrap_or_default();
        let there: Vec<u64> = files.values().flatten().map(|blob| blob.bytes).collect();
        let (count, bytes) = (there.len(), there.iter().sum::<u64>());
        let is_within = count as u64 <= limits.files_max && bytes <= limits.bytes_max;
        hold(is_within, || format!("{id} has {count} files of {bytes} bytes"))?;
    }
    Ok(())
}

fn same(what: &str, id: &AgentId, kept: &Amounts, counted: &Amounts) -> Law {
    hold(kept == counted, || format!("{what} of {id}: the ledger says {kept:?}, the events say {counted:?}"))
}

/// A law that must hold.
pub(super) fn hold(holds: bool, law: impl FnOnce() -> String) -> Law {
    if holds { Ok(()) } else { Err(law()) }
}
