//! The person whom a running tool may ask: a question of its agent, which ends with the call.

use spinney_kernel::port::{NoAnswer, Pending, PersonPort};
use spinney_kernel::primitives::{Actor, AgentId, CallId};
use spinney_kernel::record::{Event, Outcome, Question};
use spinney_kernel::rules::request::{Ask, AskReply, Withdraw};
use tokio::runtime::Handle;

use super::{RequestError, Tree};
use crate::bus::Watch;

/// Asks for one running call.
pub(super) struct CallPerson {
    pub(super) tree: Tree,
    pub(super) agent: AgentId,
    pub(super) call: CallId,
}

impl PersonPort for CallPerson {
    fn ask(&self, question: String, timeout_ms: u64) -> Pending<Result<String, NoAnswer>> {
        let (tree, agent, call) = (self.tree.clone(), self.agent.clone(), self.call);
        Box::pin(async move {
            // Watches before asking, so no answer can be missed.
            let ended =
                Watch { after: tree.status().seq, kind: Some("call_ended".to_owned()), ..Watch::default() };
            let mut watcher = tree.watch(ended);
            let question = Question::of_call(call, question);
            let ask = Ask { agent: agent.clone(), question, timeout_ms: Some(timeout_ms) };
            let asked = tree.request(Actor::Agent(agent.clone()), ask).await;
            let AskReply { question } = match asked {
                Ok(asked) => asked,
                Err(RequestError::Refused(refusal)) => return Err(NoAnswer::NotAsked(refusal.to_string())),
                Err(_) => return Err(NoAnswer::Ended),
            };
            let mut open = OpenQuestion { tree, agent, question: Some(question) };
            while let Some(Ok(traced)) = watcher.next_event().await {
                if let Event::CallEnded { call, outcome, .. } = &traced.recorded.event
                    && *call == question
                {
                    open.question = None;
                    return match outcome {
                        Outcome::Answered { answer, .. } => Ok(answer.text.clone()),
                        Outcome::Expired { .. } => Err(NoAnswer::Expired),
                        _ => Err(NoAnswer::Ended),
                    };
                }
            }
            Err(NoAnswer::Ended)
        })
    }
}

/// A question that nobody has answered. If nobody waits for it any more, it is withdrawn.
struct OpenQuestion {
    tree: Tree,
    agent: AgentId,
    question: Option<CallId>,
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        let (Some(call), Ok(runtime)) = (self.question.take(), Handle::try_current()) else { return };
        let (tree, agent) = (self.tree.clone(), self.agent.clone());
        runtime.spawn(async move {
            // If its call has ended meanwhile, so has the question.
            let _ = tree.request(Actor::Agent(agent.clone()), Withdraw { agent, call }).await;
        });
    }
}
