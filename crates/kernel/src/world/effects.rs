//! Which effect follows from an event. Each effect follows from one event, and each started call ends in exactly one
//! report.

use std::fmt::Write as _;

use crate::primitives::{CallId, TreeId};
use crate::record::{Alarm, Effect, Event, Work};
use crate::world::World;

impl World {
    /// The effect of `event`, after it was applied and is durable.
    #[must_use]
    pub fn effect_of(&self, event: &Event) -> Option<Effect> {
        match event {
            Event::CallStarted { call, .. } | Event::CallResumed { call } => self.start_of(*call),
            Event::AgentEnding { agent, .. } => Some(Effect::StopCalls { agent: agent.clone() }),
            Event::AgentRedirected { agent, running, .. } if running.stops() => {
                Some(Effect::StopCalls { agent: agent.clone() })
            }
            Event::ContextRestored(restored) => Some(Effect::StopCalls { agent: restored.agent.clone() }),
            Event::CallWaiting { alarm, .. } | Event::ClockSet { alarm, .. } => alarm.map(set),
            Event::WaitStarted { alarm, .. } | Event::QuestionAsked { alarm, .. } => Some(set(*alarm)),
            Event::AgentSpawned(spawned) => spawned.due.alarm.map(set),
            Event::WrapUpStarted { agent, stops: true } => Some(Effect::StopCalls { agent: agent.clone() }),
            Event::TreeStarted { .. }
            | Event::AgentPaused { .. }
            | Event::WindowSet { .. }
            | Event::ContextShared { .. }
            | Event::ThreadJoined { .. }
            | Event::ThreadLeft { .. }
            | Event::ContextCut { .. }
            | Event::AgentUnpaused { .. }
            | Event::AgentRedirected { .. }
            | Event::AgentEnded { .. }
            | Event::CallAsked { .. }
            | Event::CallSwitched { .. }
            | Event::FirstToken { .. }
            | Event::ConnectionEnded { .. }
            | Event::ConnectionsOmitted { .. }
            | Event::ProgramConnected { .. }
            | Event::ProgramConnectionsOmitted { .. }
            | Event::SessionNamed { .. }
            | Event::FollowupStarted { .. }
            | Event::AttemptFailed { .. }
            | Event::CallHeldBack { .. }
            | Event::CallEnded { .. }
            | Event::ToolAnswered { .. }
            | Event::ValueWritten { .. }
            | Event::ValuesCleared { .. }
            | Event::Charged { .. }
            | Event::MessageSent { .. }
            | Event::MessagePublished { .. }
            | Event::WrapUpStarted { stops: false, .. }
            | Event::ApprovalRemembered { .. }
            | Event::RepeatsNoticed { .. }
            | Event::GraphStarted { .. }
            | Event::GraphReplanned { .. }
            | Event::NodeStarted(_)
            | Event::NodeEnded { .. }
            | Event::TreeHalted { .. }
            | Event::TreeUnhalted
            | Event::TreeSuspended
            | Event::TreeContinued
            | Event::LimitRaised { .. }
            | Event::TreeAdjusted(_)
            | Event::TreeSealed { .. }
            | Event::TreeUnsealed
            | Event::ModelAdded { .. }
            | Event::BreakerChanged { .. }
            | Event::CheckpointMade { .. }
            | Event::TreeBranched(_)
            | Event::RateLimited { .. } => None,
        }
    }

    fn start_of(&self, id: CallId) -> Option<Effect> {
        let call = self.call(id)?;
        let (attempt, agent) = (call.attempt, self.agent_id(call.agent).clone());
        match &call.work {
            Work::Model(work) => Some(Effect::CallModel {
                call: id,
                attempt,
                agent,
                model: work.model.clone(),
                output_cap: work.output_cap,
                key: key(self.tree(), id, Some(attempt)),
            }),
            Work::Tool(work) => {
                let (tool, ask, args) = (work.tool.clone(), work.ask, work.args.clone());
                Some(Effect::CallTool {
                    call: id,
                    attempt,
                    agent,
                    tool,
                    ask,
                    args,
                    key: key(self.tree(), id, None),
                })
            }
            Work::Child(_) | Work::Wait(_) | Work::Question(_) => None,
        }
    }
}

fn set(alarm: Alarm) -> Effect {
    Effect::SetTimer { timer: alarm.timer, at: alarm.at }
}

/// Idempotency key of a call, or of one attempt at it.
fn key(tree: TreeId, call: CallId, attempt: Option<u32>) -> String {
    let mut key = String::with_capacity(56);
    // Writing to a string cannot fail.
    let _ = write!(key, "{tree}/{}", call.0);
    if let Some(attempt) = attempt {
        let _ = write!(key, "/{attempt}");
    }
    key
}
