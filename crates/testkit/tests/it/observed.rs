//! A play seen from outside: its events and effects, and that refusals change nothing.

use std::fmt::Debug;
use std::str::FromStr;

use spinney_kernel::budget::{Amounts, Resource};
use spinney_kernel::context::{Contexts, Message};
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{Actor, AgentId, CallId};
use spinney_kernel::record::{Effect, Event, Exit, Outcome, Spawned};
use spinney_kernel::rules::report::Report;
use spinney_kernel::rules::request::{Hold, HoldFor, Request};
use spinney_kernel::rules::{InputKind, InputReply, Receipt};
use spinney_testkit::Scenario;

/// Parses an id or name.
pub(crate) fn name<T: FromStr<Err: Debug>>(text: &str) -> T {
    text.parse().unwrap_or_else(|error| panic!("{error:?}"))
}

/// A person's request.
pub(crate) fn person(request: Request) -> InputKind {
    InputKind::Request { by: Actor::PERSON, request: Box::new(request) }
}

/// An agent's request.
pub(crate) fn agent(by: &str, request: Request) -> InputKind {
    InputKind::Request { by: Actor::Agent(name(by)), request: Box::new(request) }
}

/// A request for a call of the agent's own model with at most `tokens` output tokens.
pub(crate) fn model_call(agent: &str, tokens: u64) -> Request {
    let effect = HoldFor::Model { model: None, input_tokens: 0, output_cap: Some(tokens) };
    Request::Hold(Hold { agent: name(agent), effect })
}

/// The refusal of a request, which must not change the world.
pub(crate) fn refused(play: &mut Scenario, what: InputKind) -> Refusal {
    let (before, asked) = (play.world().clone(), format!("{what:?}"));
    let refusal = match play.input(what) {
        Err(refusal) => refusal,
        Ok(decision) => panic!("{asked} was not refused: {decision:?}"),
    };
    assert_eq!(&before, play.world(), "a refusal leaves the world as it was");
    refusal
}

/// Reports something that has ended: nothing may change.
pub(crate) fn ignored(play: &mut Scenario, report: Report) {
    let before = play.world().clone();
    let decision = play.input(InputKind::Report(report)).unwrap_or_else(|refusal| panic!("{refusal}"));
    assert_eq!((decision.events, decision.reply), (Vec::new(), InputReply::Report(Receipt::Stale)));
    assert_eq!(&before, play.world(), "a stale report leaves the world as it was");
}

/// Every event so far.
pub(crate) fn events(play: &Scenario) -> Vec<Event> {
    play.batches().iter().flat_map(|batch| batch.events.clone()).collect()
}

/// The effects of a script.
pub(crate) fn effects(play: &mut Scenario, script: &str) -> Vec<Effect> {
    let before = play.batches().len();
    play.run(script);
    let events = play.batches()[before..].iter().flat_map(|batch| &batch.events);
    events.filter_map(|event| play.world().effect_of(event)).collect()
}

/// The calls that run.
pub(crate) fn running(play: &Scenario) -> Vec<CallId> {
    play.world().calls().all().filter(|(_, call)| call.is_running()).map(|(id, _)| id).collect()
}

/// How many attempts were ever started.
pub(crate) fn attempts(play: &Scenario) -> usize {
    events(play).iter().filter(|event| matches!(event, Event::CallStarted { .. })).count()
}

/// How calls ended, in order.
pub(crate) fn outcomes(play: &Scenario) -> Vec<Outcome> {
    let outcome = |event| if let Event::CallEnded { outcome, .. } = event { Some(outcome) } else { None };
    events(play).into_iter().filter_map(outcome).collect()
}

/// The refusals of calls that were recorded, in order.
pub(crate) fn refusals(play: &Scenario) -> Vec<Refusal> {
    let refusal = |outcome| if let Outcome::Refused { refusal } = outcome { Some(refusal) } else { None };
    outcomes(play).into_iter().filter_map(refusal).collect()
}

/// All spawns, in order.
pub(crate) fn births(play: &Scenario) -> Vec<Spawned> {
    let birth = |event| if let Event::AgentSpawned(spawned) = event { Some(*spawned) } else { None };
    events(play).into_iter().filter_map(birth).collect()
}

/// Which agents ended, how, and what they had spent, in order.
pub(crate) fn ends(play: &Scenario) -> Vec<(AgentId, Exit, Amounts)> {
    let end = |event| {
        if let Event::AgentEnded { agent, exit, spent, .. } = event {
            Some((agent, exit, spent))
        } else {
            None
        }
    };
    events(play).into_iter().filter_map(end).collect()
}

/// What a call of the model `m` with `tokens` output tokens uses: money, tokens and one step.
pub(crate) fn turn(tokens: u64) -> Amounts {
    Amounts::cost(tokens * spinney_testkit::fixture::NANOS_PER_TOKEN)
        .with(Resource::Tokens, tokens)
        .with(Resource::Steps, 1)
}

/// What an agent and everything below it has spent and holds of a resource.
pub(crate) fn taken(play: &Scenario, agent: &str, resource: Resource) -> u64 {
    let view = play.view(agent);
    view.spent.get(resource) + view.held.get(resource)
}

/// The window of a living agent, unread messages included.
pub(crate) fn window<'c>(contexts: &'c Contexts, agent: &AgentId) -> impl Iterator<Item = &'c Message> {
    let read = contexts.messages(agent).unwrap_or_default().iter().map(AsRef::as_ref);
    read.chain(contexts.unread(agent))
}
