//! The model that a running tool may ask: a call of its agent, which nothing reads but the tool.

use spinney_kernel::port::{ModelPort, ModelReply, NoReply, Pending};
use spinney_kernel::primitives::{Actor, AgentId, Body, CallId, ModelName};
use spinney_kernel::record::{Event, Outcome, StopReason};
use spinney_kernel::rules::request::{Hold, HoldFor, HoldReply, Withdraw};
use tokio::runtime::Handle;

use super::{RequestError, Tree};
use crate::bus::Watch;

/// Asks for one running call.
pub(super) struct AskedModel {
    pub(super) tree: Tree,
    pub(super) agent: AgentId,
    /// The agent's model.
    pub(super) model: ModelName,
    pub(super) call: CallId,
}

impl ModelPort for AskedModel {
    fn ask(&self, message: String, output_cap: u64) -> Pending<Result<ModelReply, NoReply>> {
        let (tree, agent, model, call) =
            (self.tree.clone(), self.agent.clone(), self.model.clone(), self.call);
        Box::pin(async move {
            // Watches before asking, so no answer can be missed.
            let after = tree.status().seq;
            let mut watcher = tree.watch(Watch { after, kind: None, ..Watch::default() });
            let effect = HoldFor::OfTool { call, request: Body::text(message), output_cap };
            let held = tree.request(Actor::Agent(agent.clone()), Hold { agent: agent.clone(), effect }).await;
            let asked = match held {
                Ok(HoldReply::Started { call } | HoldReply::Waiting { call, .. }) => call,
                Ok(HoldReply::Refused { refusal, .. }) | Err(RequestError::Refused(refusal)) => {
                    return Err(NoReply::NotAsked(refusal.to_string()));
                }
                Err(_) => return Err(NoReply::Ended),
            };
            let mut open = OpenModelCall { tree, agent, call: Some(asked) };
            let mut model = model;
            while let Some(Ok(traced)) = watcher.next_event().await {
                match &traced.recorded.event {
                    Event::CallSwitched { call, model: other, .. } if *call == asked => {
                        model.clone_from(other);
                    }
                    Event::CallEnded { call, outcome, .. } if *call == asked => {
                        open.call = None;
                        return reply(outcome, model);
                    }
                    _ => {}
                }
            }
            Err(NoReply::Ended)
        })
    }
}

fn reply(outcome: &Outcome, model: ModelName) -> Result<ModelReply, NoReply> {
    match outcome {
        Outcome::Done { body, stop, .. } => {
            let is_cut = *stop == StopReason::OutputCap || body.rest().is_some();
            Ok(ModelReply { text: body.text.clone(), model, is_cut })
        }
        Outcome::Refused { refusal } => Err(NoReply::NotAsked(refusal.to_string())),
        Outcome::Failed { fault } => Err(NoReply::Failed(fault.kind.as_str().to_owned())),
        _ => Err(NoReply::Ended),
    }
}

/// A call that has not ended. It is withdrawn when its caller stops waiting, unless it has started.
struct OpenModelCall {
    tree: Tree,
    agent: AgentId,
    call: Option<CallId>,
}

impl Drop for OpenModelCall {
    fn drop(&mut self) {
        let (Some(call), Ok(runtime)) = (self.call.take(), Handle::try_current()) else { return };
        let (tree, agent) = (self.tree.clone(), self.agent.clone());
        runtime.spawn(async move {
            // If its call has ended meanwhile, so has this.
            let _ = tree.request(Actor::Agent(agent.clone()), Withdraw { agent, call }).await;
        });
    }
}
