//! Applying: one request of a person to a tree that nobody runs. It is decided and written down, and nothing starts:
//! the tree is parked first, so that what the request sets free waits until the tree is resumed.

use std::sync::Arc;

use spinney_kernel::id::{AgentId, Seq, TreeId};
use spinney_kernel::port::catalog::catalog_of;
use spinney_kernel::port::journal::{Append, Journal, JournalFault};
use spinney_kernel::report::Lost;
use spinney_kernel::request::{Pause, Unpause};
use spinney_kernel::{Batch, By, Refusal, Reply, Report, Request, What};
use tokio::sync::oneshot;

use super::enclosed::enclosed;
use super::mind::Mind;
use super::rollback::Back;
use super::run::{Begin, STOPPED};

/// Why a request to a tree that nobody runs was not done. Nothing was written.
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
}

/// Decides one request of a person, appends it and stops. No effect starts, and no lost call is taken up, unless the
/// root is being cancelled: then whatever was out is lost for good.
pub(crate) async fn apply(
    begin: Begin,
    mut request: Request,
    bytes: Vec<Vec<u8>>,
) -> Result<Reply, ApplyError> {
    let Begin { tree, journal, drivers, clock, draws, names, .. } = begin;
    drivers.count(&mut request);
    let mut blobs = enclosed(&drivers, &mut request, bytes).map_err(ApplyError::Refused)?;
    let head = journal.head(tree).map_err(ApplyError::Journal)?;
    let head = head.ok_or(ApplyError::Journal(JournalFault::UnknownTree { tree }))?;
    let mut mind = Mind::new(tree, clock, draws);
    mind.recover(journal.as_ref(), &head).map_err(ApplyError::Journal)?;
    let mut parked = head.state == STOPPED;
    let mut written = Vec::new();
    let root = mind.world.agents().root().map(|root| mind.world.agents().id(root).clone());
    let aim = aim(&request, root.as_ref());
    match (aim, &root) {
        // Our own pause is not a person's: who pauses or unpauses the root finds it as it was before we parked it.
        (Aim::RootPause, Some(agent)) if parked => {
            let unpause = Request::Unpause(Unpause { agent: agent.clone() });
            written.extend(decide(&mut mind, What::person(unpause)).ok().map(|decided| decided.0));
            parked = false;
        }
        (Aim::Other, Some(agent)) => parked |= park(&mut mind, agent, &mut written),
        (Aim::RootEnd | Aim::RootPause | Aim::Other | Aim::Nothing, _) => {}
    }
    if let Request::Rollback(rollback) = request {
        let back = Back::read(journal.as_ref(), tree, rollback);
        let prior = back.prior(&mind.world, &By::Person).map_err(ApplyError::Refused)?;
        let (batch, prior) = decide(&mut mind, What::person(prior)).map_err(ApplyError::Refused)?;
        written.push(batch);
        request = back.request(prior, &mut mind.contexts).0;
    }
    let at = Seq(mind.world.seq().0 + 1);
    let name = names.give(&request, (tree, at)).map_err(ApplyError::Refused)?;
    let (batch, reply) = decide(&mut mind, What::person(request)).map_err(|refusal| {
        names.take_back(name.as_ref());
        ApplyError::Refused(refusal)
    })?;
    let place = written.len();
    written.push(batch);
    if let (Aim::RootPause, Some(agent)) = (aim, &root) {
        // What an unpause sets free waits until the tree is resumed. One that was paused stays paused.
        parked = park(&mut mind, agent, &mut written);
    }
    if aim == Aim::RootEnd {
        let calls = mind.world.calls().all().filter(|(_, call)| call.is_running());
        let out: Vec<Lost> = calls.map(|(call, found)| Lost { call, attempt: found.attempt }).collect();
        let lost =
            out.into_iter().filter_map(|lost| decide(&mut mind, What::Report(Report::Lost(lost))).ok());
        written.extend(lost.map(|(batch, _)| batch));
    }
    let last = if parked && !mind.world.is_over() { STOPPED } else { mind.world.state().word() };
    let durability = mind.world.definition().durability;
    // Until the last batch is written the tree is not what it will be: whoever comes after a crash takes it up.
    let count = written.len();
    let append = |(at, (after, batch)): (usize, (Seq, Batch))| {
        let state = if at + 1 == count { last } else { STOPPED };
        let blobs = if at == place { std::mem::take(&mut blobs) } else { Vec::new() };
        let catalog = catalog_of(tree, after, &batch);
        Append { tree, after, base: None, before: None, batch, blobs, catalog, state, durability }
    };
    write(&journal, written.into_iter().enumerate().map(append)).await.map_err(ApplyError::Journal)?;
    Ok(reply)
}

/// Pauses the root for as long as nobody runs the tree; says whether that was needed.
fn park(mind: &mut Mind, root: &AgentId, written: &mut Vec<(Seq, Batch)>) -> bool {
    let pause = What::person(Request::Pause(Pause { agent: root.clone() }));
    // One that is paused already, by whomever, stays so.
    let decided = decide(mind, pause).ok();
    written.extend(decided.iter().map(|(batch, _)| batch.clone()));
    decided.is_some()
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
        Request::Start(_)
        | Request::Spawn(_)
        | Request::Followup(_)
        | Request::Hold(_)
        | Request::Charge(_)
        | Request::Send(_)
        | Request::Publish(_)
        | Request::Refresh(_)
        | Request::Broadcast(_)
        | Request::Wait(_)
        | Request::Ask(_)
        | Request::Answer(_)
        | Request::Finish(_)
        | Request::Fail(_)
        | Request::Pause(_)
        | Request::Unpause(_)
        | Request::Cancel(_)
        | Request::Redirect(_)
        | Request::Raise(_)
        | Request::Rollback(_) => Aim::Other,
    }
}

pub(super) fn decide(mind: &mut Mind, what: What) -> Result<((Seq, Batch), Reply), Refusal> {
    let (after, decision, input) = mind.decide(what)?;
    Ok(((after, Batch { input, events: decision.events }), decision.reply))
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
