//! Continue a tree that has ended: a new tree whose root goes on with its context, its files and what is left of its
//! budget and time. It waits for a person first.

use serde::{Deserialize, Serialize};

use super::{Accepted, Verb, person};
use crate::budget::Terms;
use crate::definition::{Refusal, WrapUp};
use crate::primitives::{Actor, Millis, Time, TreeId};
use crate::record::{Alarm, Branched, ClockKind, ContinuedAs, Due, Event, TreeContinuation};
use crate::rules::turn::{Lead, with_reserve};
use crate::rules::{Draft, call, clock, turn};
use crate::world::EndedRoot;

/// Decided on the world of the tree that ended; the events are the first batch of the new tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContinueEnded {
    pub tree: TreeId,
    #[serde(default)]
    pub continued_as: ContinuedAs,
    /// When the last shared event was recorded. Time left at that moment is still left.
    pub since: Time,
}

impl Verb for ContinueEnded {
    type Reply = Accepted;
}

impl ContinueEnded {
    pub(in crate::rules) fn decide(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<Accepted, Refusal> {
        person(by, "continue a tree")?;
        let Some(root) = draft.agents().root() else { return Err(Refusal::TreeNotStarted) };
        let Some(ended) = draft.ended_root() else {
            return Err(Refusal::NotEndedYet { state: draft.state().to_string() });
        };
        let refused = |reason: &str| Refusal::CannotContinue { reason: reason.to_owned() };
        if draft.rules() < 8 {
            return Err(refused("an older release started it: start a new tree"));
        }
        let definition = draft.definition();
        let agent_terms = ended.terms();
        let Some(role) = definition
            .roles
            .get(&agent_terms.role)
            .filter(|role| role.turns.is_some() && definition.graph.is_none())
        else {
            return Err(refused("its root is not an agent that takes turns: start it again"));
        };
        if !ended.can_go_on() {
            return Err(refused(
                "its root ended while its tools ran, so no message can follow: branch from a checkpoint",
            ));
        }
        let due = self.due(draft, ended)?;
        let budget = definition.root_budget();
        let lead = Lead::new(
            definition,
            role,
            &agent_terms.caps,
            agent_terms.depth,
            &agent_terms.model,
            ended.tokens(),
            draft.now(),
        );
        let terms = with_reserve(Terms::plain(ended.left()), draft.rules(), &budget, lead.as_ref());
        let is_kept = self.continued_as == ContinuedAs::Conversation || definition.is_kept;
        let branched = Branched {
            tree: self.tree,
            from: draft.tree(),
            at: draft.seq(),
            name: definition.name.clone(),
            terms,
            later_ms: 0,
            continuation: Some(Box::new(TreeContinuation { due, is_kept })),
        };
        draft.record(Event::TreeBranched(Box::new(branched)));
        turn::wait_for_person(draft, root);
        // Nothing starts until it is run.
        call::suspend(draft);
        Ok(Accepted {})
    }

    /// The root's clocks, with what was left of each when it ended.
    fn due(&self, draft: &Draft<'_>, ended: &EndedRoot) -> Result<Due, Refusal> {
        let now = draft.now();
        let over = |given_ms: u64| Refusal::CannotContinue {
            reason: format!("its time of {} is used up: start a new tree", Millis(given_ms)),
        };
        let mut due = Due::default();
        if let Some(active) = ended.clock(ClockKind::Active) {
            due.active_ms = Some(active.left_at(self.since)).filter(|left| *left > 0);
            due.active_ms.ok_or_else(|| over(active.given_ms))?;
        }
        let Some(timeout) = ended.clock(ClockKind::Timeout) else { return Ok(due) };
        due.wall = ended.is_by_the_wall();
        let left_ms = timeout.left_at(if due.wall { now } else { self.since });
        if left_ms == 0 {
            return Err(over(timeout.given_ms));
        }
        let early_ms = match ended.terms().wrap_up {
            WrapUp::On => clock::early_ms(timeout.given_ms).min(left_ms),
            WrapUp::Off => 0,
        };
        let alarm = Alarm { timer: draft.next_timer(), at: now.after_ms(left_ms - early_ms) };
        Ok(Due { alarm: Some(alarm), early_ms, timeout_ms: Some(left_ms), ..due })
    }
}
