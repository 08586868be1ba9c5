//! Reads agents' past contexts from a journal of any length with little memory: page by page. Of dropped messages, it keeps
//! only what later rollbacks need.

use crate::{Journal, JournalFault, pages};
use spinney_kernel::context::{ContextSnapshot, Contexts, Places};
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{AgentId, Seq, TreeId};
use spinney_kernel::record::{AgentSnapshot, Event};
use spinney_kernel::world::World;

/// The checkpoints that events of a tree return to, up to and including `until`.
///
/// # Errors
/// The journal's fault.
pub async fn places(journal: &dyn Journal, tree: TreeId, until: Seq) -> Result<Places, JournalFault> {
    let mut places = Places::default();
    each(journal, tree, until, |event, _| places.note(event)).await?;
    Ok(places)
}

/// Folds contexts that lacked a snapshot again from `fresh`, this time keeping it.
///
/// # Errors
/// The journal's fault, or damage if an event returns to a checkpoint that never existed.
pub async fn mended(
    journal: &dyn Journal,
    tree: TreeId,
    contexts: Contexts,
    mut fresh: Contexts,
) -> Result<Contexts, JournalFault> {
    if contexts.lacks().is_none() {
        return Ok(contexts);
    }
    let until = contexts.seq();
    fresh.keep(places(journal, tree, until).await?);
    each(journal, tree, until, |event, _| fresh.apply(event)).await?;
    match fresh.lacks() {
        None => Ok(fresh),
        Some(seq) => Err(damaged(tree, seq)),
    }
}

/// An event returns to a checkpoint that never existed.
#[must_use]
pub fn damaged(tree: TreeId, seq: Seq) -> JournalFault {
    let reason = format!("event {} refers to a checkpoint that does not match it", seq.0);
    JournalFault::Damaged { tree, after: seq.0.saturating_sub(1), reason }
}

/// An agent's state at a checkpoint of its tree: counts for the world, and texts. Refused if there is no such
/// checkpoint, or the agent takes no turns.
///
/// # Errors
/// The journal's fault.
pub async fn recall(
    journal: &dyn Journal,
    tree: TreeId,
    agent: &AgentId,
    at: Seq,
) -> Result<Result<(AgentSnapshot, ContextSnapshot), Refusal>, JournalFault> {
    let (mut world, mut contexts) = (World::new(tree), Contexts::new(tree));
    let mut has_checkpoint = false;
    each(journal, tree, at, |event, end| {
        world.apply(event);
        contexts.apply(event);
        let is_made = matches!(event, Event::CheckpointMade { agent: whose, .. } if whose == agent);
        has_checkpoint |= is_made && end == at;
    })
    .await?;
    if !has_checkpoint {
        return Ok(Err(Refusal::NoCheckpoint { agent: agent.clone(), at: at.0 }));
    }
    let contexts = mended(journal, tree, contexts, Contexts::new(tree)).await?;
    let known = contexts.known(agent);
    let found = known.and_then(|known| Some((AgentSnapshot::new(&world, agent, &known)?, known)));
    match found {
        Some((snapshot, known)) if known.fits(agent, &snapshot) => Ok(Ok((snapshot, known))),
        Some(_) => Err(damaged(tree, at)),
        None => Ok(Err(Refusal::RollbackTurnless { agent: agent.clone() })),
    }
}

/// Passes on the events of a tree up to and including `until`, each with the last of its batch.
async fn each(
    journal: &dyn Journal,
    tree: TreeId,
    until: Seq,
    mut take: impl FnMut(&Event, Seq),
) -> Result<(), JournalFault> {
    let mut pages = pages(journal, tree, Seq(0));
    while let Some(page) = pages.next().await? {
        for entry in page {
            let end = entry.end();
            for (event, seq) in entry.batch.events.iter().zip(entry.after.0 + 1..) {
                if seq > until.0 {
                    return Ok(());
                }
                take(event, end);
            }
        }
    }
    Ok(())
}
