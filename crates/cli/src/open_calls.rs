//! Who is on stage: the fold of events that knows what each open call is for. Events name calls by number and tools by
//! their place in an answer; people want to read what.

use std::collections::BTreeMap;

use spinney_kernel::record::{Attachment, Event, Outcome, ToolAsk, Work};
use spinney_kernel::words::{AgentId, CallId, ModelName, ToolName};

/// The living agents and their open calls.
#[derive(Default)]
pub(crate) struct OpenCalls {
    /// The tools that each one's last answer asked for.
    agents: BTreeMap<AgentId, Vec<ToolAsk>>,
    calls: BTreeMap<CallId, Open>,
}

/// A call that has not ended.
pub(crate) struct Open {
    /// Whose.
    pub(crate) agent: AgentId,
    /// What for.
    pub(crate) aim: Aim,
}

/// What a call is for.
pub(crate) enum Aim {
    /// A model is to answer.
    Model(ModelName),
    /// A model is to sum up what leaves a window.
    Summary(ModelName),
    /// A tool is to act.
    Tool(ToolName),
    /// A child, a message or a person.
    Wait,
}

impl OpenCalls {
    /// Takes in what an event brings. Comes before anything is said about the event.
    pub(crate) fn enter(&mut self, event: &Event) {
        match event {
            Event::AgentSpawned(spawned) => {
                self.agents.insert(spawned.agent.clone(), Vec::new());
                if let (Attachment::Call { call, .. }, Some(parent)) = (spawned.attachment, &spawned.parent) {
                    self.calls.insert(call, Open { agent: parent.clone(), aim: Aim::Wait });
                }
            }
            Event::CallAsked { call, agent, work } => {
                let aim = match work {
                    Work::Model(work) if work.summary.is_some() => Aim::Summary(work.model.clone()),
                    Work::Model(work) => Aim::Model(work.model.clone()),
                    Work::Tool(work) => Aim::Tool(work.tool.clone()),
                    Work::Child(_) | Work::Wait(_) | Work::Question(_) => Aim::Wait,
                };
                self.calls.insert(*call, Open { agent: agent.clone(), aim });
            }
            Event::WaitStarted { call, agent, .. } | Event::QuestionAsked { call, agent, .. } => {
                self.calls.insert(*call, Open { agent: agent.clone(), aim: Aim::Wait });
            }
            Event::CallEnded { call, outcome: Outcome::Done { asks, .. }, .. } => {
                if let Some(Open { agent, aim: Aim::Model(_) }) = self.calls.get(call)
                    && let Some(asked) = self.agents.get_mut(agent)
                {
                    asked.clone_from(asks);
                }
            }
            _ => {}
        }
    }

    /// Forgets what an event ended. Comes after everything was said about it.
    pub(crate) fn leave(&mut self, event: &Event) {
        if let Event::CallEnded { call, .. } = event {
            self.calls.remove(call);
        }
        if let Event::AgentEnded { agent, .. } = event {
            self.agents.remove(agent);
        }
    }

    /// An open call.
    pub(crate) fn call(&self, call: CallId) -> Option<&Open> {
        self.calls.get(&call)
    }

    /// One of the tools that an agent's last answer asked for.
    pub(crate) fn ask(&self, agent: &AgentId, ask: u32) -> Option<&ToolAsk> {
        self.agents.get(agent)?.get(ask as usize)
    }
}
