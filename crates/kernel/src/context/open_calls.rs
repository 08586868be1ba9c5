//! The open calls of a tree, for readers of its events. Events name calls by number, and only a call's first event
//! says which agent and purpose it has.

use std::collections::BTreeMap;

use crate::primitives::{AgentId, CallId, ModelName, ToolName};
use crate::record::{Attachment, Event, Restored, WaitFor, Work};

/// The open calls, each with the reader's own note.
#[derive(Clone, Debug)]
pub struct OpenCalls<N = ()> {
    calls: BTreeMap<CallId, OpenCall<N>>,
}

#[derive(Clone, Debug)]
pub struct OpenCall<N = ()> {
    pub agent: AgentId,
    pub purpose: CallPurpose,
    /// The index of the tool call in its agent's last answer, from 0.
    pub ask: Option<u32>,
    /// Whether its agent was rolled back since, so its result is discarded.
    pub is_void: bool,
    pub note: N,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallPurpose {
    Turn(ModelName),
    /// The agent's last turn, without tools.
    LastTurn(ModelName),
    /// A summary of what leaves a window.
    Summary(ModelName),
    /// A call of a program outside the tree.
    Outside(ModelName),
    Tool(ToolName),
    /// Waits for the child that the call spawned.
    Child,
    /// Waits for children or a message.
    Wait(Box<WaitFor>),
    /// Waits for a person's answer.
    Question,
}

impl CallPurpose {
    fn from_work(work: &Work) -> Self {
        match work {
            Work::Model(work) if work.summary.is_some() => Self::Summary(work.model.clone()),
            Work::Model(work) if work.wrap_up.is_some() => Self::LastTurn(work.model.clone()),
            Work::Model(work) if work.outside.is_some() => Self::Outside(work.model.clone()),
            Work::Model(work) => Self::Turn(work.model.clone()),
            Work::Tool(work) => Self::Tool(work.tool.clone()),
            Work::Child(_) => Self::Child,
            Work::Wait(wait) => Self::Wait(Box::new(wait.clone())),
            Work::Question(_) => Self::Question,
        }
    }

    #[must_use]
    pub const fn is_turn(&self) -> bool {
        matches!(self, Self::Turn(_) | Self::LastTurn(_))
    }

    #[must_use]
    pub const fn model(&self) -> Option<&ModelName> {
        match self {
            Self::Turn(model) | Self::LastTurn(model) | Self::Summary(model) | Self::Outside(model) => {
                Some(model)
            }
            Self::Tool(_) | Self::Child | Self::Wait(_) | Self::Question => None,
        }
    }

    fn switch(&mut self, to: &ModelName) {
        if let Self::Turn(model) | Self::LastTurn(model) | Self::Summary(model) | Self::Outside(model) = self
        {
            model.clone_from(to);
        }
    }
}

impl<N> Default for OpenCalls<N> {
    fn default() -> Self {
        Self { calls: BTreeMap::new() }
    }
}

impl<N: Default> OpenCalls<N> {
    /// Records what an event opens or changes, and returns the call that it opens. Call it before using the event.
    pub fn enter(&mut self, event: &Event) -> Option<&mut OpenCall<N>> {
        let (call, agent, purpose, ask) = match event {
            Event::AgentSpawned(spawned) => {
                let Attachment::Call { call, ask } = spawned.attachment else { return None };
                (call, spawned.parent.as_ref()?, CallPurpose::Child, ask)
            }
            Event::CallAsked { call, agent, work } => {
                let ask = if let Work::Tool(work) = work { work.ask } else { None };
                (*call, agent, CallPurpose::from_work(work), ask)
            }
            Event::WaitStarted { call, agent, wait, ask, .. } => {
                (*call, agent, CallPurpose::Wait(Box::new(wait.clone())), *ask)
            }
            Event::QuestionAsked { call, agent, ask, .. } => (*call, agent, CallPurpose::Question, *ask),
            Event::CallSwitched { call, model, .. } => {
                self.calls.get_mut(call)?.purpose.switch(model);
                return None;
            }
            Event::ContextRestored(restored) => {
                self.restored(restored);
                return None;
            }
            _ => return None,
        };
        let open = OpenCall { agent: agent.clone(), purpose, ask, is_void: false, note: N::default() };
        self.calls.insert(call, open);
        self.calls.get_mut(&call)
    }

    /// Removes and returns the call that an event ends. Call it after using the event.
    pub fn leave(&mut self, event: &Event) -> Option<OpenCall<N>> {
        if let Event::CallEnded { call, .. } = event { self.calls.remove(call) } else { None }
    }

    fn restored(&mut self, restored: &Restored) {
        for (call, open) in &mut self.calls {
            if open.agent == restored.agent && !restored.stays.contains(call) {
                (open.is_void, open.ask) = (true, None);
            }
        }
    }

    #[must_use]
    pub fn find(&self, call: CallId) -> Option<&OpenCall<N>> {
        self.calls.get(&call)
    }

    pub fn find_mut(&mut self, call: CallId) -> Option<&mut OpenCall<N>> {
        self.calls.get_mut(&call)
    }

    /// The open calls for tools of an agent's last answer, with the tool's index.
    pub fn asks_of(&self, agent: &AgentId) -> impl Iterator<Item = (CallId, u32)> {
        let open = self.calls.iter().filter(move |(_, open)| open.agent == *agent);
        open.filter_map(|(call, open)| Some((*call, open.ask?)))
    }
}
