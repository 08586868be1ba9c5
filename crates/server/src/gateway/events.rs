//! Follows the tree's events: tells waiting calls why they wait and how they ended, and people when everything stands
//! still.

use std::sync::Arc;

use spinney::Tree;
use spinney::bus::{Watch, WatchFault};
use spinney_kernel::record::{Event, Work};
use spinney_kernel::words::Seq;
use spinney_kernel::world::Halt;
use tokio::sync::watch;

use super::notice::{Notice, OnNotice};
use super::pending_calls::{CallStatus, PendingCalls};
use super::run::GivenUp;

/// Whom the events of a tree concern.
pub(super) struct Follower {
    pub(super) pending_calls: Arc<PendingCalls>,
    pub(super) halt: watch::Sender<Option<Halt>>,
    pub(super) given_up: GivenUp,
    pub(super) on_notice: OnNotice,
}

/// Follows the events of a tree after `after`, until it has ended or is no longer run.
pub(super) async fn follow(tree: Tree, after: Seq, follower: Follower) {
    let mut events = tree.watch(Watch::after(after));
    loop {
        match events.next_event().await {
            Some(Ok(traced)) => follower.take(&traced.recorded.event),
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
    fn take(&self, event: &Event) {
        match event {
            Event::CallAsked { call, work: Work::Model(work), .. } if work.outside.is_some() => {
                self.pending_calls.update(*call, CallStatus::Asked);
            }
            Event::CallWaiting { call, why, .. } => {
                self.pending_calls.update(*call, CallStatus::Waiting(*why));
            }
            Event::LimitRaised { .. } => self.given_up.set(false),
            Event::CallStarted { call, .. } => {
                self.given_up.set(false);
                self.pending_calls.update(*call, CallStatus::Started);
            }
            Event::CallEnded { call, outcome, .. } => {
                self.pending_calls.update(*call, CallStatus::Ended(Box::new(outcome.clone())));
            }
            Event::TreeHalted { agent, call, account, short } => {
                self.halt.send_replace(Some(Halt { call: *call, account: account.clone(), short: *short }));
                let (agent, account) = (agent.clone(), account.clone());
                if !self.given_up.is_set() {
                    (self.on_notice)(Notice::Halted { agent, account, short: *short });
                }
            }
            Event::TreeUnhalted => {
                self.halt.send_replace(None);
                // If the last call that waited was given up, nothing goes on.
                if !self.given_up.is_set() {
                    (self.on_notice)(Notice::Continued);
                }
            }
            _ => {}
        }
    }
}
