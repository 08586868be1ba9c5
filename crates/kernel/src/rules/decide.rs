//! The one decision: input in, events out. Pure: no clock, no randomness, no IO; the same world and input decide the
//! same events for ever.
//!
//! Deciding and applying go hand in hand: a [`Draft`] applies each event the moment it is recorded, so that the next
//! step of the same decision sees it. Nothing else changes a world, and a refusal leaves it untouched.

use crate::definition::Refusal;
use crate::record::{Event, Why};
use crate::rules::{Draft, Input, What, call, checkpoint, clock, turn};
use crate::words::{AgentId, CallId, CheckpointName};
use crate::world::World;

/// What was decided: the events, already applied, and what to tell whoever asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The events, in order.
    pub events: Vec<Event>,
    /// The answer to the asker.
    pub reply: Reply,
}

/// What whoever asked is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Done,
    /// Nobody is called so yet; the message waits until somebody is.
    Queued {
        agent: AgentId,
    },
    /// These were told what somebody knows.
    Told {
        /// How many messages each of them was told, in the order in which they were named; 0 if nothing was new.
        messages: Vec<u32>,
    },
    /// This agent was spawned; the call, if any, ends with its result.
    Spawned {
        agent: AgentId,
        /// The call that waits for it.
        call: Option<CallId>,
    },
    /// The call has started.
    Started {
        call: CallId,
    },
    Waiting {
        call: CallId,
        why: Why,
    },
    /// The call was recorded and refused.
    Refused {
        call: CallId,
        refusal: Refusal,
    },
    /// The agent's context has this name now.
    Checkpoint {
        /// What it is called.
        name: CheckpointName,
    },
    /// The agent's context is what it was.
    RolledBack {
        agent: AgentId,
        /// How many messages it has.
        messages: u64,
        /// The children that it does not know any more; they are cancelled.
        cancelled: Vec<AgentId>,
        /// What its context as it was before is called.
        prior: CheckpointName,
    },
    /// The report concerns something that is over; nothing changed.
    Stale,
}

/// Decides one input and applies what was decided.
///
/// # Errors
/// A request may be refused; then no event was recorded and the world is as it was. A report never is.
pub fn decide(world: &mut World, input: &Input) -> Result<Decision, Refusal> {
    let mut draft = Draft::new(world, input);
    let reply = match &input.what {
        What::Request { by, request } => request.decide(&mut draft, by).inspect_err(|_| {
            assert!(draft.events().is_empty(), "a refused request leaves no trace");
        })?,
        What::Report(report) => report.decide(&mut draft),
    };
    settle(&mut draft);
    clock::follow(&mut draft);
    checkpoint::follow(&mut draft, &input.what);
    Ok(Decision { events: draft.into_events(), reply })
}

/// Lets every agent take its turn whose calls have ended, and every call start that can, until nothing moves.
fn settle(draft: &mut Draft<'_>) {
    while !draft.is_over() && !draft.is_settled() {
        for ix in draft.take_moved() {
            turn::advance(draft, ix);
        }
        if draft.take_stirred() && !draft.is_over() {
            call::pump(draft);
        }
    }
}
