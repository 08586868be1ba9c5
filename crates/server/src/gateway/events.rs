//! Follows the tree's events: tells waiting calls why they wait and how they ended, and people when everything stops
//! still.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use spinney::Tree;
use spinney::bus::{Watch, WatchFault};
use spinney_kernel::budget::Shortfall;
use spinney_kernel::primitives::{AgentId, CallId, Seq, Time};
use spinney_kernel::record::{Event, ModelCall, Work};
use spinney_kernel::world::Halt;
use tokio::sync::watch;

use super::halted_call::{HaltedCall, large_cap};
use super::models::Models;
use super::notice::{Notice, OnNotice};
use super::pending_calls::{CallStatus, PendingCalls};
use super::run::GivenUp;

/// Whom the events of a tree concern.
pub(super) struct Follower {
    pending_calls: Arc<PendingCalls>,
    models: Arc<Models>,
    halt: watch::Sender<Option<HaltedCall>>,
    given_up: GivenUp,
    on_notice: OnNotice,
    /// The agents of the program that have been seen: itself, and everything below it.
    agents: BTreeSet<AgentId>,
    /// Its calls that have not ended.
    calls: BTreeSet<CallId>,
    /// Those of them that have not started.
    waiting: BTreeMap<CallId, ModelCall>,
    /// Whether a halt is over and no call has started since. It may also be over because its call was given up, or because
    /// the run stops.
    is_unhalted: bool,
}

/// Follows the events of a tree after `after`, until it has ended or is no longer run.
pub(super) async fn follow(tree: Tree, after: Seq, mut follower: Follower) {
    let mut events = tree.watch(Watch::after(after));
    loop {
        match events.next_event().await {
            Some(Ok(traced)) => follower.take(&traced.recorded.event, traced.recorded.at),
            Some(Err(WatchFault::TooSlow { seen })) => events = tree.watch(Watch::after(seen)),
            Some(Err(WatchFault::Journal(fault))) => {
                // The tree stops at the same fault, and then every call ends.
                tracing::error!(tree = %tree.id(), %fault, "the gateway cannot follow its tree");
                return;
            }
            None => return,
        }
    }
}

impl Follower {
    pub(super) fn new(
        agents: BTreeSet<AgentId>,
        pending_calls: Arc<PendingCalls>,
        models: Arc<Models>,
        halt: watch::Sender<Option<HaltedCall>>,
        given_up: GivenUp,
        on_notice: OnNotice,
    ) -> Self {
        let (calls, waiting, is_unhalted) = (BTreeSet::new(), BTreeMap::new(), false);
        Self { pending_calls, models, halt, given_up, on_notice, agents, calls, waiting, is_unhalted }
    }

    fn take(&mut self, event: &Event, at: Time) {
        match event {
            Event::AgentSpawned(spawned)
                if spawned.parent.as_ref().is_some_and(|parent| self.agents.contains(parent)) =>
            {
                self.agents.insert(spawned.agent.clone());
            }
            Event::AgentEnded { agent, .. } => drop(self.agents.remove(agent)),
            Event::CallAsked { call, agent, work: Work::Model(work) }
                if work.outside.is_some() && self.agents.contains(agent) =>
            {
                self.calls.insert(*call);
                let ModelCall { model, input_tokens, output_cap, .. } = work;
                self.waiting.insert(*call, ModelCall::new(model.clone(), *input_tokens, *output_cap));
                self.pending_calls.update(*call, CallStatus::Asked);
            }
            Event::CallWaiting { call, why, .. } if self.calls.contains(call) => {
                self.pending_calls.update(*call, CallStatus::Waiting(*why));
            }
            Event::LimitRaised { .. } => self.given_up.set(false),
            Event::CallStarted { call, .. } => {
                if self.calls.contains(call) {
                    self.given_up.set(false);
                    self.waiting.remove(call);
                    self.pending_calls.update(*call, CallStatus::Started);
                }
                if std::mem::take(&mut self.is_unhalted) {
                    (self.on_notice)(Notice::Continued);
                }
            }
            Event::CallEnded { call, outcome, .. } if self.calls.remove(call) => {
                self.waiting.remove(call);
                self.pending_calls.update(*call, CallStatus::Ended(Box::new(outcome.clone())));
            }
            Event::TreeHalted { agent, call, account, short, also } => {
                self.is_unhalted = false;
                let large_cap = self.large_cap(*call, short, at);
                let (account, also) = (account.clone(), also.clone());
                let halt = Halt { call: *call, account: account.clone(), short: *short, also: also.clone() };
                self.halt.send_replace(Some(HaltedCall { halt, large_cap }));
                if !self.given_up.is_set() {
                    let agent = agent.clone();
                    (self.on_notice)(Notice::Halted { agent, account, short: *short, also, large_cap });
                }
            }
            Event::TreeUnhalted => {
                self.halt.send_replace(None);
                self.is_unhalted = true;
            }
            _ => {}
        }
    }
    fn large_cap(&self, call: CallId, short: &Shortfall, at: Time) -> Option<u64> {
        let call = self.waiting.get(&call)?;
        large_cap(call, &self.models.price_of(&call.model)?, short, at)
    }
}
