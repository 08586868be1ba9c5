//! The one decision: input in, events out. Pure: no clock, no randomness, no IO; the same world and input decide the
//! same events for ever.
//!
//! Deciding and applying go hand in hand: a [`Draft`] applies each event the moment it is recorded, so that the next
//! step of the same decision sees it. Nothing else changes a world, and a refusal leaves it untouched.

use crate::definition::Refusal;
use crate::record::Event;
use crate::rules::{Draft, Input, Reply, Report, Request, What, call, checkpoint, clock, turn};
use crate::words::{By, Time};
use crate::world::World;

/// What was decided: the events, already applied, and the reply to whoever asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision<R> {
    pub events: Vec<Event>,
    pub reply: R,
}

/// The reply to an input of either kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputReply {
    Request(Reply),
    Report(Receipt),
}

/// What became of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// The tree took it into account.
    Applied,
    /// It concerns something that is over; nothing changed.
    Stale,
}

/// Decides one input and applies what was decided.
///
/// # Errors
/// A request may be refused; then no event was recorded and the world is as it was. A report never is.
pub fn decide(world: &mut World, input: &Input) -> Result<Decision<InputReply>, Refusal> {
    let Input { now, draw, what } = input;
    match what {
        What::Request { by, request } => {
            let Decision { events, reply } = decide_request(world, *now, *draw, by, request)?;
            Ok(Decision { events, reply: InputReply::Request(reply) })
        }
        What::Report(report) => {
            let Decision { events, reply } = decide_report(world, *now, *draw, report);
            Ok(Decision { events, reply: InputReply::Report(reply) })
        }
    }
}

/// Decides one request and applies what was decided.
///
/// # Errors
/// The refusal; then no event was recorded and the world is as it was.
pub fn decide_request(
    world: &mut World,
    now: Time,
    draw: u64,
    by: &By,
    request: &Request,
) -> Result<Decision<Reply>, Refusal> {
    let mut draft = Draft::new(world, now, draw);
    let reply = request.decide(&mut draft, by).inspect_err(|_| {
        assert!(draft.events().is_empty(), "a refused request leaves no trace");
    })?;
    settle(&mut draft);
    clock::follow(&mut draft);
    if let Request::Branch(branch) = request {
        checkpoint::of_branch(&mut draft, &branch.agent);
    }
    checkpoint::follow(&mut draft);
    Ok(Decision { events: draft.into_events(), reply })
}

/// Decides one report and applies what was decided.
pub fn decide_report(world: &mut World, now: Time, draw: u64, report: &Report) -> Decision<Receipt> {
    let mut draft = Draft::new(world, now, draw);
    let reply = report.decide(&mut draft);
    settle(&mut draft);
    clock::follow(&mut draft);
    checkpoint::follow(&mut draft);
    Decision { events: draft.into_events(), reply }
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
