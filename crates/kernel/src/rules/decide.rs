//! The one decision: input in, events out. Pure: no clock, no randomness, no IO; the same world and input always
//! decide the same events.
//!
//! A [`Draft`] applies each event as soon as it is recorded, so the next step of the same decision sees it.
//! Nothing else changes a world, and a refusal leaves it untouched.

use crate::definition::Refusal;
use crate::primitives::{Actor, Time};
use crate::record::Event;
use crate::rules::{Draft, Input, InputKind, Reply, Report, Request, call, checkpoint, clock, graph, turn};
use crate::world::World;

/// The decided events, already applied, and the reply to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision<R> {
    pub events: Vec<Event>,
    pub reply: R,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputReply {
    Request(Reply),
    Report(Receipt),
}

/// What happened to a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    Applied,
    /// It concerns something that is over; nothing changed.
    Stale,
}

/// Decides one input and applies the events.
///
/// # Errors
/// A request may be refused; then no event was recorded and the world is unchanged. A report is never refused.
pub fn decide(world: &mut World, input: &Input) -> Result<Decision<InputReply>, Refusal> {
    let Input { now, draw, what } = input;
    match what {
        InputKind::Request { by, request } => {
            let Decision { events, reply } = decide_request(world, *now, *draw, by, request)?;
            Ok(Decision { events, reply: InputReply::Request(reply) })
        }
        InputKind::Report(report) => {
            let Decision { events, reply } = decide_report(world, *now, *draw, report);
            Ok(Decision { events, reply: InputReply::Report(reply) })
        }
    }
}

/// Decides one request and applies the events.
///
/// # Errors
/// The refusal; then no event was recorded and the world is unchanged.
pub fn decide_request(
    world: &mut World,
    now: Time,
    draw: u64,
    by: &Actor,
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

pub fn decide_report(world: &mut World, now: Time, draw: u64, report: &Report) -> Decision<Receipt> {
    let mut draft = Draft::new(world, now, draw);
    let reply = report.decide(&mut draft);
    settle(&mut draft);
    clock::follow(&mut draft);
    checkpoint::follow(&mut draft);
    Decision { events: draft.into_events(), reply }
}

/// Lets graphs continue, agents without open calls take turns and startable calls start, until nothing changes. A seal is
/// the last event of its tree.
fn settle(draft: &mut Draft<'_>) {
    while !draft.is_over()
        && draft.sealed().is_none()
        && (!draft.is_settled() || call::end_idle_waits(draft) || graph::end_idle_wait(draft))
    {
        while let Some(over) = draft.take_step() {
            graph::step_over(draft, &over);
        }
        if draft.take_values_written() {
            graph::begin_waiting(draft);
        }
        for ix in draft.take_moved() {
            turn::advance(draft, ix);
        }
        if draft.take_stirred() && !draft.is_over() {
            call::reconsider_waiting(draft);
        }
    }
}
