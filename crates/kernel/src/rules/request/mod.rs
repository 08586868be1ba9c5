//! Requests: what an agent or a person may ask of a tree. One verb, one file; the listing is the feature list.
//!
//! A verb decides in two steps: everything that can be refused is checked first, then events are recorded. A refused
//! request records nothing.

mod answer;
mod ask;
mod branch;
mod broadcast;
mod cancel;
mod charge;
mod checkpoint;
mod fail;
mod finish;
mod followup;
mod hold;
mod pause;
mod publish;
mod raise;
mod redirect;
mod refresh;
mod rollback;
mod send;
mod spawn;
mod start;
mod unpause;
mod wait;

use serde::{Deserialize, Serialize};

pub use answer::Answer;
pub use ask::Ask;
pub use branch::Branch;
pub use broadcast::Broadcast;
pub use cancel::Cancel;
pub use charge::Charge;
pub use checkpoint::Checkpoint;
pub use fail::Fail;
pub use finish::Finish;
pub use followup::Followup;
pub use hold::Hold;
pub use hold::HoldFor;
pub use pause::Pause;
pub use publish::Publish;
pub use raise::Raise;
pub use redirect::Redirect;
pub use refresh::Refresh;
pub use rollback::Rollback;
pub use send::Send;
pub use spawn::Collect;
pub use spawn::Spawn;
pub use start::Start;
pub use unpause::Unpause;
pub use wait::Wait;

use crate::context::Goal;
use crate::definition::Refusal;
use crate::record::{OnTimeout, Question};
use crate::rules::{Draft, Reply};
use crate::words::{AgentId, By, Part, limit};
use crate::world::{AgentIx, World};

/// Everything that may be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "snake_case")]
pub enum Request {
    Start(Start),
    Spawn(Spawn),
    Followup(Followup),
    Hold(Hold),
    Charge(Charge),
    Send(Send),
    Publish(Publish),
    Refresh(Refresh),
    Broadcast(Broadcast),
    Wait(Wait),
    Ask(Ask),
    Answer(Answer),
    Finish(Finish),
    Fail(Fail),
    Pause(Pause),
    Unpause(Unpause),
    Cancel(Cancel),
    Redirect(Redirect),
    Raise(Raise),
    Checkpoint(Checkpoint),
    Branch(Branch),
    Rollback(Rollback),
}

impl Request {
    /// Has everything counted that stands in it and that a model will read. The kernel never tokenises: whoever asks
    /// brings the counts along, and without them bytes count.
    pub fn count(&mut self, tokens: &dyn Fn(&str) -> u64) {
        match self {
            Self::Start(start) => start.goal_tokens = Some(Goal::tokens(&start.definition.goal, tokens)),
            Self::Spawn(spawn) => {
                spawn.goal_tokens = Some(Goal::tokens(&spawn.goal, tokens));
                spawn.messages.iter_mut().for_each(|given| given.body.count(tokens));
                spawn.frame.output_schema.iter_mut().for_each(|schema| schema.count(tokens));
            }
            Self::Followup(followup) => {
                followup.task_tokens = Some(Goal::tokens(&followup.task, tokens));
            }
            Self::Send(send) => send.body.count(tokens),
            Self::Ask(Ask { question: Question { on_timeout: OnTimeout::Default(body), .. }, .. }) => {
                body.count(tokens);
            }
            Self::Answer(answer) => answer.answer.count(tokens),
            Self::Finish(finish) => finish.result.count(tokens),
            Self::Redirect(redirect) => redirect.tokens = Some(tokens(&redirect.instruction)),
            // What is published is for those who watch; no model reads it.
            Self::Publish(_)
            | Self::Refresh(_)
            | Self::Broadcast(_)
            | Self::Checkpoint(_)
            | Self::Branch(_)
            | Self::Rollback(_)
            | Self::Ask(_)
            | Self::Hold(_)
            | Self::Charge(_)
            | Self::Wait(_)
            | Self::Fail(_)
            | Self::Pause(_)
            | Self::Unpause(_)
            | Self::Cancel(_)
            | Self::Raise(_) => {}
        }
    }

    /// The images and files that stand in it: whoever asks brings their bytes along.
    pub fn parts_mut(&mut self) -> impl Iterator<Item = &mut Part> {
        let (send, spawn) = match self {
            Self::Send(send) => (Some(&mut send.body), None),
            Self::Spawn(spawn) => (None, Some(spawn.messages.iter_mut().map(|given| &mut given.body))),
            // Elsewhere they are refused.
            Self::Start(_)
            | Self::Followup(_)
            | Self::Rollback(_)
            | Self::Publish(_)
            | Self::Refresh(_)
            | Self::Broadcast(_)
            | Self::Checkpoint(_)
            | Self::Branch(_)
            | Self::Ask(_)
            | Self::Answer(_)
            | Self::Finish(_)
            | Self::Redirect(_)
            | Self::Hold(_)
            | Self::Charge(_)
            | Self::Wait(_)
            | Self::Fail(_)
            | Self::Pause(_)
            | Self::Unpause(_)
            | Self::Cancel(_)
            | Self::Raise(_) => (None, None),
        };
        let bodies = send.into_iter().chain(spawn.into_iter().flatten());
        bodies.flat_map(|body| body.parts_mut())
    }

    pub(crate) fn decide(&self, draft: &mut Draft<'_>, by: &By) -> Result<Reply, Refusal> {
        match self {
            Self::Start(request) => request.decide(draft, by),
            Self::Spawn(request) => request.decide(draft, by),
            Self::Followup(request) => request.decide(draft, by),
            Self::Hold(request) => request.decide(draft, by),
            Self::Charge(request) => request.decide(draft, by),
            Self::Send(request) => request.decide(draft, by),
            Self::Publish(request) => request.decide(draft, by),
            Self::Refresh(request) => request.decide(draft, by),
            Self::Broadcast(request) => request.decide(draft, by),
            Self::Wait(request) => request.decide(draft, by),
            Self::Ask(request) => request.decide(draft, by),
            Self::Answer(request) => request.decide(draft, by),
            Self::Finish(request) => request.decide(draft, by),
            Self::Fail(request) => request.decide(draft, by),
            Self::Pause(request) => request.decide(draft, by),
            Self::Unpause(request) => request.decide(draft, by),
            Self::Cancel(request) => request.decide(draft, by),
            Self::Redirect(request) => request.decide(draft, by),
            Self::Raise(request) => request.decide(draft, by),
            Self::Checkpoint(request) => request.decide(draft, by),
            Self::Branch(request) => request.decide(draft, by),
            Self::Rollback(request) => request.decide(draft, by),
        }
    }
}

/// The living agent that `by` may act for: itself, or anyone for a person.
fn acting(world: &World, by: &By, agent: &AgentId) -> Result<AgentIx, Refusal> {
    match by {
        By::Agent(id) if id != agent => Err(Refusal::NotYours { by: id.clone(), agent: agent.clone() }),
        By::Agent(_) | By::Person => world.living(agent),
    }
}

/// Refuses an agent what only a person may do.
fn person(by: &By, verb: &str) -> Result<(), Refusal> {
    match by {
        By::Person => Ok(()),
        By::Agent(_) => Err(Refusal::PersonOnly { verb: verb.to_owned() }),
    }
}

/// Refuses one more call to an agent that has too many open.
pub(crate) fn room_for_call(world: &World, ix: AgentIx) -> Result<(), Refusal> {
    let open = world.agent(ix).open.len();
    if open >= limit::OPEN_CALLS_MAX {
        return Err(Refusal::OpenCallsLimit { open, open_max: limit::OPEN_CALLS_MAX });
    }
    Ok(())
}

/// A timeout within bounds, or the default.
fn timeout(ms: Option<u64>, default: u64) -> Result<u64, Refusal> {
    match ms {
        Some(ms) if ms == 0 || ms > limit::TIMEOUT_MS_MAX => {
            Err(Refusal::BadTimeout { ms, ms_max: limit::TIMEOUT_MS_MAX })
        }
        Some(ms) => Ok(ms),
        None => Ok(default),
    }
}
