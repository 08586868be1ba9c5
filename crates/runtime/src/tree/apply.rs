//! Applies one request from outside to a tree that is not running. It is decided and written, and nothing starts: the
//! tree is suspended first, so released calls wait until the tree is resumed.

use std::sync::Arc;

use spinney_journal::{Append, Batch, Claim, Journal, JournalFault, catalog_of};
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{Actor, AgentId, Seq, Time, TimerId, TreeId};
use spinney_kernel::record::Work;
use spinney_kernel::rules::report::{Report, Suspended, Timer};
use spinney_kernel::rules::request::{Answer, OtherReply, Reply, Request};
use spinney_kernel::world::TreeState;
use tokio::sync::oneshot;

use super::enclosed::enclosed;
use super::live_state::{Decided, LiveState};
use super::rollback::PreparedRollback;
use super::run::{Begin, release};
use crate::drivers::DriverSource;
use crate::names::ReservedName;

/// Why a request to a tree that is not running was not done. Nothing of it was written; due timers may have been.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// It was refused.
    #[error(transparent)]
    Refused(Refusal),
    /// It runs in this home: send the request to the tree.
    #[error("tree {tree} is running in this home: ask it directly")]
    Running {
        /// The tree.
        tree: TreeId,
    },
    /// The journal failed.
    #[error(transparent)]
    Journal(JournalFault),
    /// The reply belongs to another request. This one may have been done.
    #[error(transparent)]
    Reply(OtherReply),
}

/// Decides one request from outside, appends it and stops. Due timers come first, as they would in a running tree. No
/// effect starts, and no lost call is handled, unless the root is being cancelled: then running calls are lost for
/// good.
pub(crate) async fn apply(
    begin: Begin,
    source: &dyn DriverSource,
    request: Request,
    bytes: Vec<Vec<u8>>,
) -> Result<Reply, ApplyError> {
    let journal = Arc::clone(&begin.journal);
    let claim = journal.claim(begin.tree).await.map_err(ApplyError::Journal)?;
    let applied = apply_as_owner(begin, claim, source, request, bytes).await;
    release(journal.as_ref(), claim).await;
    applied
}

async fn apply_as_owner(
    begin: Begin,
    claim: Claim,
    source: &dyn DriverSource,
    mut request: Request,
    bytes: Vec<Vec<u8>>,
) -> Result<Reply, ApplyError> {
    let Begin { tree, actor, journal, clock, draws, .. } = begin;
    let head = journal.head(tree).await.map_err(ApplyError::Journal)?;
    let head = head.ok_or(ApplyError::Journal(JournalFault::UnknownTree { tree }))?;
    let mut live = LiveState::new(tree, clock, draws);
    live.recover(journal.as_ref(), &head).await.map_err(ApplyError::Journal)?;
    // Nothing is written to it, not even a due timer.
    if let (Some(kind), false) = (live.world.sealed(), matches!(request, Request::Unseal(_))) {
        return Err(ApplyError::Refused(Refusal::Sealed { kind: kind.clone() }));
    }
    let counters = source.counters(tree, live.world.definition()).await;
    counters.count(&mut request);
    let mut blobs = enclosed(&counters, &mut request, bytes).map_err(ApplyError::Refused)?;
    let mut written = Vec::new();
    for opening in live.resume_reports(&head) {
        report(&mut live, opening, &mut written);
    }
    let opening = written.len();
    let root = live.world.agents().root().map(|root| live.world.agents().id(root).clone());
    let releases = releases(&request, root.as_ref());
    let late = late_answer(&live, &request).or_else(|| unread_answer(&live, &request));
    let due = if matches!(releases, Releases::Nothing | Releases::Seal) { Vec::new() } else { due(&live) };
    // What timers and the request release waits until the tree is resumed.
    if matches!(releases, Releases::Seal | Releases::Other) || !due.is_empty() {
        report(&mut live, Report::Suspended(Suspended::default()), &mut written);
    }
    let fired = fire(&mut live, due, &mut written);
    let kept = written.len();
    let decided = match late {
        Some(refusal) => Err(refusal),
        None => requested(&mut live, &actor, request, &journal, claim, &mut written).await,
    };
    // The request's own batch is the last so far, if it decided anything.
    let place = written.len().checked_sub(1).filter(|last| *last >= kept);
    match &decided {
        Ok(_) if releases == Releases::RootEnd => {
            for lost in live.lost() {
                report(&mut live, Report::Lost(lost), &mut written);
            }
        }
        Ok(_) => {}
        Err(refusal) if !fired => return Err(ApplyError::Refused(refusal.clone())),
        Err(_) => {
            // Due timers are facts, whatever the request's result.
            written.truncate(kept);
            blobs.clear();
        }
    }
    if written.len() == opening {
        // It changed nothing, so nothing is written.
        return decided.map_err(ApplyError::Refused);
    }
    let durability = live.world.definition().durability;
    let append = |(at, Written { after, batch, state }): (usize, Written)| {
        let blobs = if Some(at) == place { std::mem::take(&mut blobs).into() } else { Arc::default() };
        let catalog = catalog_of(tree, after, &batch);
        let batch = batch.encode()?;
        let epoch = claim.epoch;
        Ok(Append {
            tree,
            epoch,
            after,
            base: None,
            seed: None,
            before: None,
            batch,
            blobs,
            catalog,
            state,
            durability,
        })
    };
    let appends = written.into_iter().enumerate().map(append).collect::<Result<Vec<Append>, _>>();
    write(&journal, appends.map_err(ApplyError::Journal)?).await.map_err(ApplyError::Journal)?;
    decided.map_err(ApplyError::Refused)
}

/// Decides the request itself. A requested name must be free in the whole home.
async fn requested(
    live: &mut LiveState,
    by: &Actor,
    mut request: Request,
    journal: &Arc<dyn Journal>,
    claim: Claim,
    written: &mut Vec<Written>,
) -> Result<Reply, Refusal> {
    let tree = live.world.tree();
    if let Request::Rollback(rollback) = request {
        let back = PreparedRollback::read(journal.as_ref(), tree, rollback).await;
        let prior = back.prior(&live.world, by)?;
        let prior = decide(live, by, prior, written)?;
        request = back.request(prior, &mut live.contexts).0;
    }
    let name = ReservedName::new(journal, claim, &request).await?;
    let reply = decide(live, by, request, written)?;
    name.give();
    Ok(reply)
}

/// Why an answer is too late. Checked first, because the refusal is lost once the question's timer is decided.
fn late_answer(live: &LiveState, request: &Request) -> Option<Refusal> {
    let Request::Answer(answer) = request else { return None };
    live.world.late_answer(answer.question, Time(live.now_ms()))
}

/// Why nothing would read an answer. A call that asked ended with the process that ran it, which the tree learns when it is
/// resumed.
fn unread_answer(live: &LiveState, request: &Request) -> Option<Refusal> {
    let Request::Answer(Answer { question, .. }) = request else { return None };
    let asked = |work: &Work| match work {
        Work::Question(question) => Some(question.call),
        Work::Model(_) | Work::Tool(_) | Work::Child(_) | Work::Wait(_) => None,
    };
    let all = || live.world.calls().all().filter_map(|(id, call)| Some((id, asked(&call.work)?)));
    all().find(|(id, of)| id == question && of.is_some())?;
    let open = all().filter(|(_, of)| of.is_none()).map(|(id, _)| id).collect();
    Some(Refusal::UnknownQuestion { question: *question, open })
}

/// The due timers, earliest first.
fn due(live: &LiveState) -> Vec<TimerId> {
    let now = Time(live.now_ms());
    let mut due: Vec<_> =
        live.world.alarms().filter(|alarm| alarm.at <= now).map(|alarm| (alarm.at, alarm.timer)).collect();
    due.sort_unstable();
    due.into_iter().map(|(_, timer)| timer).collect()
}

/// Decides due timers. Returns whether any of them changed something.
fn fire(live: &mut LiveState, due: Vec<TimerId>, written: &mut Vec<Written>) -> bool {
    let before = written.len();
    for timer in due {
        // A timer that another one made void changes nothing.
        report(live, Report::Timer(Timer { timer }), written);
    }
    written.len() > before
}

/// What a request may release.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Releases {
    RootEnd,
    Nothing,
    /// Not even what is due.
    Seal,
    Other,
}

fn releases(request: &Request, root: Option<&AgentId>) -> Releases {
    match request {
        Request::Cancel(cancel) if Some(&cancel.agent) == root => Releases::RootEnd,
        Request::Checkpoint(_) | Request::Branch(_) | Request::Unseal(_) => Releases::Nothing,
        Request::Seal(_) => Releases::Seal,
        _ => Releases::Other,
    }
}

struct Written {
    after: Seq,
    batch: Batch,
    state: TreeState,
}

fn decide(
    live: &mut LiveState,
    by: &Actor,
    request: Request,
    written: &mut Vec<Written>,
) -> Result<Reply, Refusal> {
    let Decided { after, batch, reply } = live.request(by.clone(), request)?;
    keep(live, after, batch, written);
    Ok(reply)
}

fn report(live: &mut LiveState, report: Report, written: &mut Vec<Written>) {
    let Decided { after, batch, .. } = live.report(report);
    keep(live, after, batch, written);
}

fn keep(live: &LiveState, after: Seq, batch: Batch, written: &mut Vec<Written>) {
    if !batch.events.is_empty() {
        written.push(Written { after, batch, state: live.world.state() });
    }
}

/// Appends batches in order and waits until the last is durable.
pub(super) async fn write(
    journal: &Arc<dyn Journal>,
    appends: impl IntoIterator<Item = Append>,
) -> Result<(), JournalFault> {
    for append in appends {
        let (done, written) = oneshot::channel();
        journal.append(append, Box::new(move |result| drop(done.send(result))));
        written.await.unwrap_or(Err(JournalFault::Closed))?;
    }
    Ok(())
}
