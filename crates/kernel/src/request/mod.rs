//! Requests: what an agent or a person may ask of a tree. One verb, one file; the listing is the feature list.
//!
//! A verb decides in two steps: everything that can be refused is checked first, then events are recorded. A refused
//! request records nothing.

mod answer;
mod ask;
mod branch;
mod cancel;
mod charge;
mod checkpoint;
mod fail;
mod finish;
mod hold;
mod pause;
mod publish;
mod raise;
mod redirect;
mod send;
mod spawn;
mod start;
mod unpause;
mod wait;

use serde::{Deserialize, Serialize};

pub use answer::Answer;
pub use ask::Ask;
pub use branch::Branch;
pub use cancel::Cancel;
pub use charge::Charge;
pub use checkpoint::Checkpoint;
pub use fail::Fail;
pub use finish::Finish;
pub use hold::{Hold, HoldFor};
pub use pause::Pause;
pub use publish::Publish;
pub use raise::Raise;
pub use redirect::Redirect;
pub use send::Send;
pub use spawn::{Collect, Spawn};
pub use start::Start;
pub use unpause::Unpause;
pub use wait::Wait;

use crate::agent::AgentIx;
use crate::decide::{Draft, Reply};
use crate::id::AgentId;
use crate::input::By;
use crate::limit;
use crate::refusal::Refusal;
use crate::world::World;

/// Everything that may be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "snake_case")]
#[expect(missing_docs, reason = "each verb is documented in its own file")]
pub enum Request {
    Start(Start),
    Spawn(Spawn),
    Hold(Hold),
    Charge(Charge),
    Send(Send),
    Publish(Publish),
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
}

impl Request {
    pub(crate) fn decide(&self, draft: &mut Draft<'_>, by: &By) -> Result<Reply, Refusal> {
        match self {
            Self::Start(request) => request.decide(draft, by),
            Self::Spawn(request) => request.decide(draft, by),
            Self::Hold(request) => request.decide(draft, by),
            Self::Charge(request) => request.decide(draft, by),
            Self::Send(request) => request.decide(draft, by),
            Self::Publish(request) => request.decide(draft, by),
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
