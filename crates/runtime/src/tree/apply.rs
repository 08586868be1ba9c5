//! Applying: one request of a person to a tree that nobody runs. It is decided and written down, and nothing starts:
//! the tree is parked first, so that what the request sets free waits until the tree is resumed.

use std::sync::Arc;

use spinney_journal::{Append, Batch, Journal, JournalFault, catalog_of};
use spinney_kernel::definition::Refusal;
use spinney_kernel::rules::report::{Lost, Report, Timer};
use spinney_kernel::rules::request::{OtherReply, Pause, Reply, Request, Unpause};
use spinney_kernel::words::{AgentId, By, Seq, Time, TimerId, TreeId};
use spinney_kernel::world::AgentIx;
use tokio::sync::oneshot;

use super::enclosed::enclosed;
use super::live_state::{Decided, LiveState};
use super::rollback::Back;
use super::run::{Begin, STOPPED};
use crate::names::Names;

/// Why a request to a tree that nobody runs was not done. Nothing of it was written; timers that were due may be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// We say no.
    #[error(transparent)]
    Refused(Refusal),
    /// It runs in this home: ask the tree itself.
    #[error("tree {tree} is running in this home: ask it directly")]
    Running {
        /// Which tree.
        tree: TreeId,
    },
    /// The journal says no.
    #[error(transparent)]
    Journal(JournalFault),
    /// The tree answered another request. It may have done this one.
    #[error(transparent)]
    Reply(OtherReply),
}

/// Decides one request of a person, appends it and stops. Timers that are due come first, as they would if somebody ran
/// the tree. No effect starts, and no lost call is taken up, unless the root is being cancelled: then whatever was out
/// is lost for good.
pub(crate) async fn apply(
    begin: Begin,
    mut request: Request,
    bytes: Vec<Vec<u8>>,
) -> Result<Reply, ApplyError> {
    let Begin { tree, journal, drivers, clock, draws, names, .. } = begin;
    drivers.count(&mut request);
    let mut blobs = enclosed(&drivers, &mut request, bytes).map_err(ApplyError::Refused)?;
    let head = journal.head(tree).await.map_err(ApplyError::Journal)?;
    let head = head.ok_or(ApplyError::Journal(JournalFault::UnknownTree { tree }))?;
    let mut live = LiveState::new(tree, clock, draws);
    live.recover(journal.as_ref(), &head).await.map_err(ApplyError::Journal)?;
    let mut parked = head.state == STOPPED;
    let mut written = Vec::new();
    let resumed = live.resumed();
    let resumed = report(&mut live, resumed);
    written.extend(Some(resumed).filter(|(_, batch)| !batch.events.is_empty()));
    let opening = written.len();
    let root = live.world.agents().root().map(|root| live.world.agents().id(root).clone());
    let aim = aim(&request, root.as_ref());
    let late = late_answer(&live, &request);
    let due = due(&live);
    if let (Aim::Other, _) | (Aim::RootEnd, true) = (aim, !due.is_empty())
        && let Some(agent) = &root
    {
        parked |= park(&mut live, agent, &mut written);
    }
    // They are decided while the root is paused, so that what they set free waits.
    let is_paused = live.world.agents().root().is_some_and(|root| is_paused(&live, root));
    let fires_before = is_paused && aim != Aim::Nothing;
    let fired = fires_before && fire(&mut live, &due, &mut written);
    let (kept, state_kept) = (written.len(), state(&live, parked));
    let request = match aim {
        Aim::RootPause => whose_pause(request, &mut parked),
        Aim::RootEnd | Aim::Nothing | Aim::Other => Ok(request),
    };
    let decided = match (late, request) {
        (Some(refusal), _) | (None, Err(refusal)) => Err(refusal),
        (None, Ok(request)) => requested(&mut live, request, &journal, &names, &mut written).await,
    };
    let place = written.len().saturating_sub(1);
    if decided.is_ok() {
        if aim == Aim::RootPause && !fires_before {
            fire(&mut live, &due, &mut written);
        }
        if aim == Aim::RootEnd {
            lose_all(&mut live, &mut written);
        }
    }
    let last = match &decided {
        Ok(_) => state(&live, parked),
        Err(refusal) if !fired => return Err(ApplyError::Refused(refusal.clone())),
        Err(_) => {
            // What was due is a fact, whatever became of the request.
            written.truncate(kept);
            blobs.clear();
            state_kept
        }
    };
    if written.iter().skip(opening).all(|(_, batch)| batch.events.is_empty()) {
        // It changed nothing. That somebody asked is no reason to write anything.
        return decided.map_err(ApplyError::Refused);
    }
    if written.get(place).is_some_and(|(_, batch)| batch.events.is_empty()) {
        blobs.clear();
    }
    written.retain(|(_, batch)| !batch.events.is_empty());
    let durability = live.world.definition().durability;
    // Until the last batch is written the tree is not what it will be: whoever comes after a crash takes it up.
    let count = written.len();
    let append = |(at, (after, batch)): (usize, (Seq, Batch))| {
        let state = if at + 1 == count { last } else { STOPPED };
        let blobs = if at == place { std::mem::take(&mut blobs) } else { Vec::new() };
        let catalog = catalog_of(tree, after, &batch);
        Append { tree, after, base: None, before: None, batch, blobs, catalog, state, durability }
    };
    write(&journal, written.into_iter().enumerate().map(append)).await.map_err(ApplyError::Journal)?;
    decided.map_err(ApplyError::Refused)
}

/// Decides the request itself; a name that it asks for must be free in the whole home.
async fn requested(
    live: &mut LiveState,
    mut request: Request,
    journal: &Arc<dyn Journal>,
    names: &Arc<Names>,
    written: &mut Vec<(Seq, Batch)>,
) -> Result<Reply, Refusal> {
    let tree = live.world.tree();
    if let Request::Rollback(rollback) = request {
        let back = Back::read(journal.as_ref(), tree, rollback).await;
        let prior = back.prior(&live.world, &By::Person)?;
        let (batch, prior) = decide(live, prior)?;
        written.push(batch);
        request = back.request(prior, &mut live.contexts).0;
    }
    let at = Seq(live.world.seq().0 + 1);
    let reservation = names.reserve(&request, tree).await?;
    let (batch, reply) = decide(live, request)?;
    reservation.give(tree, at);
    written.push(batch);
    Ok(reply)
}

/// The state that the journal's head is to show.
fn state(live: &LiveState, parked: bool) -> &'static str {
    if parked && !live.world.is_over() { STOPPED } else { live.world.state().word() }
}

/// Why an answer comes too late. Once the question's timer is decided, nobody could say that any more.
fn late_answer(live: &LiveState, request: &Request) -> Option<Refusal> {
    let Request::Answer(answer) = request else { return None };
    live.world.late_answer(answer.question, Time(live.now_ms()))
}

fn is_paused(live: &LiveState, root: AgentIx) -> bool {
    live.world.agents().living(root).is_some_and(|root| root.paused)
}

/// The timers that are due, the earliest first.
fn due(live: &LiveState) -> Vec<TimerId> {
    let now = Time(live.now_ms());
    let mut due: Vec<_> =
        live.world.alarms().filter(|alarm| alarm.at <= now).map(|alarm| (alarm.at, alarm.timer)).collect();
    due.sort_unstable();
    due.into_iter().map(|(_, timer)| timer).collect()
}

/// Decides timers that are due; says whether any of them changed something.
fn fire(live: &mut LiveState, due: &[TimerId], written: &mut Vec<(Seq, Batch)>) -> bool {
    let before = written.len();
    for timer in due {
        let fired = report(live, Report::Timer(Timer { timer: *timer }));
        // One about a timer that another one made void changes nothing.
        written.extend(Some(fired).filter(|(_, batch)| !batch.events.is_empty()));
    }
    written.len() > before
}

/// Everything that was out is lost for good.
fn lose_all(live: &mut LiveState, written: &mut Vec<(Seq, Batch)>) {
    let calls = live.world.calls().all().filter(|(_, call)| call.is_running());
    let out: Vec<Lost> = calls.map(|(call, found)| Lost { call, attempt: found.attempt }).collect();
    written.extend(out.into_iter().map(|lost| report(live, Report::Lost(lost))));
}

/// Pauses the root for as long as nobody runs the tree; says whether that was needed.
fn park(live: &mut LiveState, root: &AgentId, written: &mut Vec<(Seq, Batch)>) -> bool {
    let pause = Request::Pause(Pause { agent: root.clone() });
    // One that is paused already, by whomever, stays so.
    let decided = decide(live, pause).ok();
    written.extend(decided.iter().map(|(batch, _)| batch.clone()));
    decided.is_some()
}

/// A person pauses or unpauses the root of a tree that nobody runs. If we parked it, they find it as it was before. It
/// stays paused either way, so that no call starts that nobody carries out: only whose pause it is changes.
fn whose_pause(request: Request, parked: &mut bool) -> Result<Request, Refusal> {
    match (request, *parked) {
        (Request::Unpause(Unpause { agent, .. }), true) => Err(Refusal::NotPaused { agent }),
        (Request::Unpause(Unpause { agent, .. }), false) => {
            *parked = true;
            Ok(Request::Unpause(Unpause::when_resumed(agent)))
        }
        (Request::Pause(Pause { agent }), true) => {
            *parked = false;
            Ok(Request::Unpause(Unpause::when_resumed(agent)))
        }
        (request, _) => Ok(request),
    }
}

/// What a request means to do to the root.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Aim {
    RootEnd,
    RootPause,
    /// Something that sets nothing free.
    Nothing,
    Other,
}

fn aim(request: &Request, root: Option<&AgentId>) -> Aim {
    match request {
        Request::Cancel(cancel) if Some(&cancel.agent) == root => Aim::RootEnd,
        Request::Pause(pause) if Some(&pause.agent) == root => Aim::RootPause,
        Request::Unpause(unpause) if Some(&unpause.agent) == root => Aim::RootPause,
        Request::Checkpoint(_) | Request::Branch(_) => Aim::Nothing,
        _ => Aim::Other,
    }
}

/// Decides what a person asks.
pub(super) fn decide(live: &mut LiveState, request: Request) -> Result<((Seq, Batch), Reply), Refusal> {
    let Decided { after, batch, reply } = live.request(By::Person, request)?;
    Ok(((after, batch), reply))
}

fn report(live: &mut LiveState, report: Report) -> (Seq, Batch) {
    let Decided { after, batch, .. } = live.report(report);
    (after, batch)
}

/// Appends batches in order and waits until the last is durable.
pub(super) async fn write(
    journal: &Arc<dyn Journal>,
    appends: impl Iterator<Item = Append>,
) -> Result<(), JournalFault> {
    for append in appends.filter(|append| !append.batch.events.is_empty()) {
        let (done, written) = oneshot::channel();
        journal.append(append, Box::new(move |result| drop(done.send(result))));
        written.await.unwrap_or(Err(JournalFault::Closed))?;
    }
    Ok(())
}
