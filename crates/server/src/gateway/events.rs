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
use super::rendezvous::{CallStatus, Rendezvous};

/// Follows the events of a tree after `after`, until it has ended or is no longer run.
pub(super) async fn follow(
    tree: Tree,
    after: Seq,
    rendezvous: Arc<Rendezvous>,
    halt: watch::Sender<Option<Halt>>,
    on_notice: OnNotice,
) {
    let mut events = tree.watch(Watch::after(after));
    loop {
        match events.next_event().await {
            Some(Ok(traced)) => take(&traced.recorded.event, &rendezvous, &halt, &on_notice),
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

fn take(event: &Event, rendezvous: &Rendezvous, halt: &watch::Sender<Option<Halt>>, on_notice: &OnNotice) {
    match event {
        Event::CallAsked { call, work: Work::Model(work), .. } if work.outside.is_some() => {
            rendezvous.tell(*call, CallStatus::Asked);
        }
        Event::CallWaiting { call, why, .. } => rendezvous.tell(*call, CallStatus::Waiting(*why)),
        Event::CallStarted { call, .. } => rendezvous.tell(*call, CallStatus::Started),
        Event::CallEnded { call, outcome, .. } => {
            rendezvous.tell(*call, CallStatus::Ended(Box::new(outcome.clone())));
        }
        Event::TreeHalted { agent, call, account, short } => {
            halt.send_replace(Some(Halt { call: *call, account: account.clone(), short: *short }));
            on_notice(Notice::Halted { agent: agent.clone(), account: account.clone(), short: *short });
        }
        Event::TreeUnhalted => {
            halt.send_replace(None);
            on_notice(Notice::Continued);
        }
        _ => {}
    }
}
