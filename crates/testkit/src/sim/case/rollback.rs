//! Rollback: a person rolls an agent of the simulated tree back, to its own checkpoint, to another agent's, or to one
//! that never existed. And the laws that must hold then.

use std::sync::Arc;

use spinney_kernel::context::{ContextSnapshot, Contexts, Message};
use spinney_kernel::primitives::{Actor, AgentId, CheckpointKind, Seq};
use spinney_kernel::record::{AgentSnapshot, Event};
use spinney_kernel::rules::InputKind;
use spinney_kernel::rules::request::{Checkpoint, Hold, HoldFor, Request, Rollback};
use spinney_kernel::world::{Agent, World};

use super::{Case, TREE, person};
use crate::fixture::parse;
use crate::sim::law::Law;
use crate::sim::moves;

impl Case {
    /// Names an agent's current context.
    pub(super) fn checkpoint(&mut self, agent: AgentId, kind: CheckpointKind) -> Law {
        self.input(person(Request::Checkpoint(Checkpoint { agent, name: None, kind })))
    }

    /// Rolls an agent back as a runtime does: reads the past, names the present, and sends the request.
    pub(super) fn roll_back(&mut self) -> Law {
        let Some((at, agent)) = self.a_checkpoint() else { return Ok(()) };
        let into = self.dice.once_in(4).then(|| moves::an_agent(&mut self.dice, &self.world));
        let stood = self.stood(&agent, at);
        let mut rollback = Rollback::to(agent, at, into);
        let Some((standing, known)) = stood.filter(|_| rollback.check(&self.world, &Actor::PERSON).is_ok())
        else {
            return self.input(person(Request::Rollback(rollback)));
        };
        rollback.standing = Some(Box::new(standing));
        self.checkpoint(rollback.target().clone(), CheckpointKind::Rollback)?;
        rollback.prior = Some(parse("prior"));
        let target = rollback.target().clone();
        let before = self.agent(&target).cloned();
        let spent = self.world.ledger().clone();
        let messages = rollback.standing.as_ref().map_or(0, |standing| standing.window.headers.len());
        self.contexts.hand(at, known);
        self.input(person(Request::Rollback(rollback)))?;
        self.tally.rollbacks += 1;
        let events = self.batches.last().map_or(&[][..], |batch| &batch.events);
        let Some(Event::ContextRestored(restored)) = events.first() else {
            return Err("a rollback that was checked was not done".to_owned());
        };
        // An agent without calls is asked for its next turn at once, which may end it.
        let (Some(before), Some(now)) = (before, self.agent(&target)) else { return Ok(()) };
        if now.progress.turns != before.progress.turns {
            return Err(format!("a rollback gave `{target}` turns back"));
        }
        let is_still =
            now.open.iter().any(|call| self.world.call(*call).is_some_and(|call| call.is_running()));
        let count =
            self.contexts.messages(&target).map_or(0, <[_]>::len) + self.contexts.unread(&target).count();
        // The end of a child in the same decision is a message more.
        let is_quiet = !events.iter().any(|event| matches!(event, Event::AgentEnded { .. }));
        if is_still && is_quiet && before.running > 0 && count != messages + restored.unanswered.len() {
            return Err(format!("`{target}` has {count} messages and was rolled back to {messages}"));
        }
        let account = before.account;
        if self.world.ledger().account(account).spent != spent.account(account).spent {
            return Err(format!("a rollback changed what `{target}` has spent"));
        }
        Ok(())
    }

    fn agent(&self, agent: &AgentId) -> Option<&Agent> {
        self.world.agents().living(self.world.agents().find(agent)?)
    }

    /// Mostly an existing checkpoint, preferably a recent one; sometimes one that does not exist.
    fn a_checkpoint(&mut self) -> Option<(Seq, AgentId)> {
        if self.dice.once_in(30) {
            return Some((Seq(self.dice.below(400)), moves::an_agent(&mut self.dice, &self.world)));
        }
        let made = self.events().zip(1..).filter_map(|(event, seq)| {
            let Event::CheckpointMade { agent, .. } = event else { return None };
            Some((Seq(seq), agent.clone()))
        });
        let made: Vec<(Seq, AgentId)> = made.collect();
        let newest = made.len().saturating_sub(4);
        if self.dice.once_in(2) { self.dice.pick(&made[newest..]) } else { self.dice.pick(&made) }
    }

    /// An agent's state at one of its own checkpoints, if it takes turns.
    fn stood(&self, agent: &AgentId, at: Seq) -> Option<(AgentSnapshot, ContextSnapshot)> {
        let events = self.events().take(at.0 as usize);
        let made = events.clone().last().filter(|_| self.world.seq() >= at)?;
        let is_its = matches!(made, Event::CheckpointMade { agent: whose, .. } if whose == agent);
        if !is_its {
            return None;
        }
        let contexts = crate::contexts_of(TREE, events.clone());
        let mut world = World::new(TREE);
        events.for_each(|event| world.apply(event));
        let known = contexts.known(agent)?;
        Some((AgentSnapshot::new(&world, agent, &known)?, known))
    }

    pub(super) fn events(&self) -> impl Iterator<Item = &Event> + Clone {
        self.batches.iter().flat_map(|batch| &batch.events)
    }
}

/// No fold lacks what rollbacks return to.
pub(super) fn check_contexts(contexts: &Contexts) -> Law {
    match contexts.lacks() {
        Some(seq) => Err(format!("event {} goes back to what was not so", seq.0)),
        None => Ok(()),
    }
}

/// Whether the simulator calls models for an agent.
pub(super) fn meddles(what: &InputKind) -> bool {
    let InputKind::Request { request, .. } = what else { return false };
    matches!(request.as_ref(), Request::Hold(Hold { effect: HoldFor::Model { .. }, .. }))
}

/// No packet has a tool call without its result.
pub(super) fn check_answered(world: &World, contexts: &Contexts) -> Law {
    for (_, call) in world.calls().all().filter(|(_, call)| !call.is_void()) {
        if !call.work.is_turn() || call.work.of_tool().is_some() {
            continue;
        }
        let agent = world.agents().id(call.agent);
        let packet = contexts.packet(agent, 0).unwrap_or_default();
        let mut messages = packet.messages.iter().peekable();
        while let Some(message) = messages.next() {
            let Message::Said { asks, .. } = message.as_ref() else { continue };
            // Shared messages may come in between.
            let is_same_turn = |message: &&Arc<Message>| !matches!(message.as_ref(), Message::Said { .. });
            let turn = std::iter::from_fn(|| messages.next_if(is_same_turn));
            let answers = turn.filter(|message| matches!(message.as_ref(), Message::Result { .. })).count();
            if answers != asks.len() {
                return Err(format!(
                    "the model of {agent} asked for {} tools and reads {answers}",
                    asks.len()
                ));
            }
        }
    }
    Ok(())
}
