//! Roll an agent back: its context becomes what it was at a checkpoint. Money stays spent and turns stay counted;
//! running work is stopped, and children that did not exist then are cancelled.

use serde::{Deserialize, Serialize};

use super::{Outside, Verb, person};
use crate::definition::Refusal;
use crate::primitives::{Actor, AgentId, CallId, CheckpointName, Seq};
use crate::record::{AgentSnapshot, Event, Exit, Restored, Work};
use crate::rules::{Draft, agent, turn};
use crate::world::{AgentIx, World};

/// A tree does not remember its past: the runtime makes a checkpoint of the current state, reads the past one from
/// the journal, and adds both to the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rollback {
    pub agent: AgentId,
    /// The last event of the checkpoint's batch.
    pub at: Seq,
    /// The agent that gets the context, if not the checkpoint's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub into: Option<AgentId>,
    /// The checkpoint of the current state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prior: Option<CheckpointName>,
    /// The agent's state at the checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<Box<AgentSnapshot>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollbackReply {
    pub agent: AgentId,
    pub messages: u64,
    /// Children that did not exist at the checkpoint; they are cancelled.
    pub cancelled: Vec<AgentId>,
    /// The checkpoint of its context before the rollback.
    pub prior: CheckpointName,
}

impl Verb for Rollback {
    type Reply = RollbackReply;

    fn outside(&self) -> Outside {
        // The runtime reads the past from the journal.
        if self.standing.is_none() && self.prior.is_none() { Outside::Open } else { Outside::RefersElsewhere }
    }
}

impl Rollback {
    /// As a person requests it.
    #[must_use]
    pub const fn to(agent: AgentId, at: Seq, into: Option<AgentId>) -> Self {
        Self { agent, at, into, prior: None, standing: None }
    }

    /// The agent that is rolled back.
    #[must_use]
    pub fn target(&self) -> &AgentId {
        self.into.as_ref().unwrap_or(&self.agent)
    }

    /// Checks everything that does not depend on the past.
    ///
    /// # Errors
    /// The refusal.
    pub fn check(&self, world: &World, by: &Actor) -> Result<AgentIx, Refusal> {
        person(by, "roll an agent back")?;
        let target = self.target();
        let over = |state: &str| Refusal::RollbackOver { agent: target.clone(), state: state.to_owned() };
        if world.is_over() {
            return Err(over("in a tree that has ended"));
        }
        if let Some(kind) = world.sealed() {
            return Err(Refusal::Sealed { kind: kind.clone() });
        }
        let found = world.living(target);
        if let Err(Refusal::AgentEnded { state, .. }) = &found {
            return Err(over(state));
        }
        let ix = found?;
        // Its wait for a person is in no checkpoint.
        if turn::is_kept(world, ix) || turn::waits_after_answer(world, ix) {
            return Err(self.no_past("a conversation only goes forward; a branch begins at the checkpoint"));
        }
        let agent = target.clone();
        match world.turns_of(ix).map(|turns| turns.turns_max) {
            None => Err(Refusal::RollbackTurnless { agent }),
            Some(turns_max) if world.agent(ix).progress.turns >= turns_max => {
                Err(Refusal::RollbackTurns { agent, turns_max })
            }
            Some(_) if self.at > world.seq() => {
                Err(Refusal::NoCheckpoint { agent: self.agent.clone(), at: self.at.0 })
            }
            Some(_) => match self.standing.as_ref().and_then(|standing| standing.wrong(world, self.at)) {
                Some(wrong) => Err(self.no_past(wrong)),
                None => Ok(ix),
            },
        }
    }

    fn no_past(&self, reason: &str) -> Refusal {
        Refusal::NoPast { agent: self.agent.clone(), at: self.at.0, reason: reason.to_owned() }
    }

    pub(in crate::rules) fn decide(
        &self,
        draft: &mut Draft<'_>,
        by: &Actor,
    ) -> Result<RollbackReply, Refusal> {
        let ix = self.check(draft, by)?;
        let (Some(prior), Some(standing)) = (&self.prior, self.standing.as_deref()) else {
            return Err(self.no_past("nobody read it"));
        };
        let leaving = self.leaving(draft, ix, standing);
        let named = leaving.iter().map(|child| draft.agent_id(*child).clone());
        let cancelled: Vec<AgentId> = named.collect();
        let stays = staying(draft, ix, &cancelled);
        let unanswered = standing.open.iter().filter(|(call, _)| !stays.contains(call)).map(|(_, ask)| *ask);
        let (agent, prior) = (self.target().clone(), prior.clone());
        draft.record(Event::ContextRestored(Box::new(Restored {
            agent: agent.clone(),
            from: self.agent.clone(),
            at: self.at,
            prior: prior.clone(),
            standing: standing.clone(),
            unanswered: unanswered.collect(),
            stays,
            cancelled: cancelled.clone(),
        })));
        let messages = draft.agent(ix).progress.window.messages();
        // A stopped child still ends the call that spawned it.
        agent::drop_waiting(draft, ix, |work| matches!(work, Work::Child(_)));
        for child in leaving {
            let reason = format!("`{agent}` was rolled back");
            agent::end(draft, child, Exit::Cancelled { reason }, None);
        }
        draft.moved(ix);
        Ok(RollbackReply { agent, messages, cancelled, prior })
    }

    /// The children that the context does not know: later ones, and all of them if it was another agent's.
    fn leaving(&self, world: &World, ix: AgentIx, standing: &AgentSnapshot) -> Vec<AgentIx> {
        let is_own = *self.target() == self.agent;
        let known = |child: &AgentIx| is_own && child.is_among_first(standing.born);
        world.agents().children(ix).filter(|child| !known(child)).collect()
    }
}

/// The agent's calls that wait for children that stay.
fn staying(world: &World, ix: AgentIx, cancelled: &[AgentId]) -> Vec<CallId> {
    // Results of calls that an earlier rollback voided stay discarded.
    let open = |id: &CallId| world.call(*id).filter(|call| !call.is_void);
    let stays = |id: &CallId| match open(id).map(|call| &call.work) {
        Some(Work::Child(child)) => !cancelled.contains(&child.agent),
        Some(Work::Model(_) | Work::Tool(_) | Work::Wait(_) | Work::Question(_)) | None => false,
    };
    world.agent(ix).open.iter().copied().filter(stays).collect()
}
