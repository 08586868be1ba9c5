//! Requests: what an agent or a person may ask of a tree. One verb, one file; the folder listing is the feature list.
//!
//! A verb decides in two steps: it checks everything that can be refused, then records events. A refused request
//! records nothing.
//!
//! A new verb is one file with its request, its reply and its rules, and a line in [`Request`] and in each of the two
//! lists below it; a reply type of its own is one more line in `rules/verb.rs`.

mod add_model;
mod adjust;
mod answer;
mod ask;
mod branch;
mod broadcast;
mod cancel;
mod charge;
mod checkpoint;
mod conclude;
mod continue_ended;
mod fail;
mod finish;
mod followup;
mod hold;
mod pause;
mod publish;
mod raise;
mod record_connections;
mod redirect;
mod refresh;
mod replan;
mod rollback;
mod seal;
mod send;
mod spawn;
mod start;
mod unpause;
mod unseal;
mod wait;
mod withdraw;
mod write_value;

use serde::{Deserialize, Serialize};

pub use add_model::AddModel;
pub use adjust::Adjust;
pub use answer::Answer;
pub use ask::{Ask, AskReply};
pub use branch::Branch;
pub use broadcast::{Broadcast, BroadcastReply};
pub use cancel::Cancel;
pub use charge::Charge;
pub use checkpoint::{Checkpoint, CheckpointReply};
pub use conclude::Conclude;
pub use continue_ended::ContinueEnded;
pub use fail::Fail;
pub use finish::Finish;
pub use followup::Followup;
pub use hold::{Hold, HoldFor, HoldReply};
pub use pause::Pause;
pub use publish::Publish;
pub use raise::Raise;
pub use record_connections::RecordConnections;
pub use redirect::Redirect;
pub use refresh::{Refresh, RefreshReply};
pub use replan::Replan;
pub use rollback::{Rollback, RollbackReply};
pub use seal::Seal;
pub use send::{Send, SendReply};
pub(in crate::rules) use spawn::{AtSpentCeiling, check_agents, check_depth, check_room, terms};
pub use spawn::{Collect, Spawn, SpawnReply};
pub use start::{Start, StartReply};
pub use unpause::Unpause;
pub use unseal::Unseal;
pub use wait::{Wait, WaitReply};
pub use withdraw::Withdraw;
pub use write_value::{WriteValue, WriteValueReply};

pub use crate::rules::verb::{Accepted, OtherReply, Outside, Reply, Verb};

use crate::definition::Refusal;
use crate::primitives::{Actor, AgentId, Body, Part, SourceFile, TokenCount, limit};
use crate::rules::{Draft, program};
use crate::world::{AgentIx, World};

/// The version of requests, replies and views for other programs. It rises when one of them changes its meaning or
/// loses a field; a new optional field does not raise it. Journals have their own versions.
pub const VERSION: u32 = 2;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "snake_case")]
pub enum Request {
    Start(Start),
    Spawn(Spawn),
    Followup(Followup),
    Hold(Hold),
    Withdraw(Withdraw),
    AddModel(AddModel),
    Adjust(Adjust),
    Charge(Charge),
    Conclude(Conclude),
    ContinueEnded(ContinueEnded),
    RecordConnections(RecordConnections),
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
    Replan(Replan),
    Raise(Raise),
    Checkpoint(Checkpoint),
    Branch(Branch),
    Rollback(Rollback),
    WriteValue(WriteValue),
    Seal(Seal),
    Unseal(Unseal),
}

/// Runs the same code for every verb: the only match over all of them.
macro_rules! with_verb {
    ($request:expr, $verb:ident => $result:expr) => {
        match $request {
            Request::Start($verb) => $result,
            Request::Spawn($verb) => $result,
            Request::Followup($verb) => $result,
            Request::Hold($verb) => $result,
            Request::Withdraw($verb) => $result,
            Request::AddModel($verb) => $result,
            Request::Adjust($verb) => $result,
            Request::Charge($verb) => $result,
            Request::Conclude($verb) => $result,
            Request::ContinueEnded($verb) => $result,
            Request::RecordConnections($verb) => $result,
            Request::Send($verb) => $result,
            Request::Publish($verb) => $result,
            Request::Refresh($verb) => $result,
            Request::Broadcast($verb) => $result,
            Request::Wait($verb) => $result,
            Request::Ask($verb) => $result,
            Request::Answer($verb) => $result,
            Request::Finish($verb) => $result,
            Request::Fail($verb) => $result,
            Request::Pause($verb) => $result,
            Request::Unpause($verb) => $result,
            Request::Cancel($verb) => $result,
            Request::Redirect($verb) => $result,
            Request::Replan($verb) => $result,
            Request::Raise($verb) => $result,
            Request::Checkpoint($verb) => $result,
            Request::Branch($verb) => $result,
            Request::Rollback($verb) => $result,
            Request::WriteValue($verb) => $result,
            Request::Seal($verb) => $result,
            Request::Unseal($verb) => $result,
        }
    };
}

impl Request {
    pub(in crate::rules) fn decide(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<Reply, Refusal> {
        // A branch is another tree.
        if let (Some(kind), false) = (draft.sealed(), matches!(self, Self::Unseal(_) | Self::Branch(_))) {
            return Err(Refusal::Sealed { kind: kind.clone() });
        }
        with_verb!(self, verb => verb.decide(draft, by).map(Reply::from))
    }

    /// The images and files in it. The caller supplies their bytes.
    pub fn parts_mut(&mut self) -> impl Iterator<Item = &mut Part> {
        self.bodies_with_parts().into_iter().flat_map(|body| body.parts_mut())
    }
}

impl Verb for Request {
    type Reply = Reply;

    fn count(&mut self, tokens: &dyn Fn(&str) -> TokenCount) {
        with_verb!(self, verb => verb.count(tokens));
    }

    fn bodies_with_parts(&mut self) -> Vec<&mut Body> {
        with_verb!(self, verb => verb.bodies_with_parts())
    }

    fn sources(&self) -> &[SourceFile] {
        with_verb!(self, verb => verb.sources())
    }

    fn outside(&self) -> Outside {
        with_verb!(self, verb => verb.outside())
    }
}

macro_rules! verbs_into_request {
    ($($verb:ident)*) => {$(
        impl From<$verb> for Request {
            fn from(verb: $verb) -> Self {
                Self::$verb(verb)
            }
        }
    )*};
}

verbs_into_request! {
    Start Spawn Followup Hold Charge Conclude ContinueEnded RecordConnections Send Publish Refresh Broadcast Wait Ask Answer Finish Fail Pause Unpause Cancel
    Redirect Replan Raise Checkpoint Branch Rollback Withdraw AddModel Adjust WriteValue Seal Unseal
}

/// The living agent that `by` may act for: itself, or any agent for someone outside.
fn acting(world: &World, by: &Actor, agent: &AgentId) -> Result<AgentIx, Refusal> {
    match by {
        Actor::Agent(id) if id != agent => Err(Refusal::NotYours { by: id.clone(), agent: agent.clone() }),
        Actor::Agent(_) | Actor::Outside(_) => world.living(agent),
    }
}

/// Refuses an agent that only stands for a graph or a group of one: it reads nothing, and its result is its steps'.
pub(crate) fn check_not_for_steps(world: &World, ix: AgentIx) -> Result<(), Refusal> {
    let role = &world.agent(ix).terms.role;
    if role.is_of_graphs() && !world.definition().roles.contains_key(role) {
        return Err(Refusal::StandsForSteps { agent: world.agent_id(ix).clone() });
    }
    Ok(())
}

/// Refuses an agent to which nothing can be said: a program reads its task and nothing after it.
fn check_reads(world: &World, ix: AgentIx) -> Result<(), Refusal> {
    check_not_for_steps(world, ix)?;
    match program::of(world, ix) {
        Some(_) => Err(Refusal::ReadsNothing { agent: world.agent_id(ix).clone() }),
        None => Ok(()),
    }
}

/// Refuses agents a verb that only people, and programs on their behalf, may use.
fn person(by: &Actor, verb: &str) -> Result<(), Refusal> {
    match by {
        Actor::Outside(_) => Ok(()),
        Actor::Agent(_) => Err(Refusal::PersonOnly { verb: verb.to_owned() }),
    }
}

/// Refuses a further call if the agent has too many open ones.
pub(crate) fn room_for_call(world: &World, ix: AgentIx) -> Result<(), Refusal> {
    let open = world.agent(ix).open.len();
    if open >= limit::OPEN_CALLS_MAX {
        return Err(Refusal::OpenCallsLimit { open, open_max: limit::OPEN_CALLS_MAX });
    }
    Ok(())
}

/// A timeout within the limits, or the default.
fn timeout(ms: Option<u64>, default: u64) -> Result<u64, Refusal> {
    match ms {
        Some(ms) if ms == 0 || ms > limit::TIMEOUT_MS_MAX => {
            Err(Refusal::BadTimeout { ms, ms_max: limit::TIMEOUT_MS_MAX })
        }
        Some(ms) => Ok(ms),
        None => Ok(default),
    }
}
