//! The open calls of a tree, for whoever reads its events. Events name calls by number, and only the first event of a call
//! says whose it is and what for.

use std::collections::BTreeMap;

use crate::record::{Attachment, Event, Restored, WaitFor, Work};
use crate::words::{AgentId, CallId, ModelName, ToolName};

/// The calls that have not ended, each with what the reader notes about it.
#[derive(Clone, Debug)]
pub struct OpenCalls<N = ()> {
    calls: BTreeMap<CallId, OpenCall<N>>,
}

/// A call that has not ended.
#[derive(Clone, Debug)]
pub struct OpenCall<N = ()> {
    pub agent: AgentId,
    pub aim: Aim,
    /// Which of the tools that its agent's last answer asked for it answers, counted from 0.
    pub ask: Option<u32>,
    /// Whether its agent was rolled back since: nobody reads what it brings.
    pub is_void: bool,
    /// What the reader notes about it.
    pub note: N,
}

/// What a call is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aim {
    /// A model is to answer.
    Turn(ModelName),
    /// A model is to answer for the last time, without tools.
    LastTurn(ModelName),
    /// A model is to sum up what leaves a window.
    Summary(ModelName),
    /// A tool is to act.
    Tool(ToolName),
    /// The child that the call spawned is to end.
    Child,
    /// Children are to end, or a message is to come.
    Wait(Box<WaitFor>),
    /// A person is to answer.
    Question,
}

impl Aim {
    fn of(work: &Work) -> Self {
        match work {
            Work::Model(work) if work.summary.is_some() => Self::Summary(work.model.clone()),
            Work::Model(work) if work.wrap_up.is_some() => Self::LastTurn(work.model.clone()),
            Work::Model(work) => Self::Turn(work.model.clone()),
            Work::Tool(work) => Self::Tool(work.tool.clone()),
            Work::Child(_) => Self::Child,
            Work::Wait(wait) => Self::Wait(Box::new(wait.clone())),
            Work::Question(_) => Self::Question,
        }
    }

    /// Whether a model is to take a turn of its agent.
    #[must_use]
    pub const fn is_turn(&self) -> bool {
        matches!(self, Self::Turn(_) | Self::LastTurn(_))
    }

    /// The model that is called, if one is.
    #[must_use]
    pub const fn model(&self) -> Option<&ModelName> {
        match self {
            Self::Turn(model) | Self::LastTurn(model) | Self::Summary(model) => Some(model),
            Self::Tool(_) | Self::Child | Self::Wait(_) | Self::Question => None,
        }
    }

    fn switch(&mut self, to: &ModelName) {
        if let Self::Turn(model) | Self::LastTurn(model) | Self::Summary(model) = self {
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
    /// Takes in what an event opens or changes, and gives the call that it opens. Comes before anything is said about
    /// the event.
    pub fn enter(&mut self, event: &Event) -> Option<&mut OpenCall<N>> {
        let (call, agent, aim, ask) = match event {
            Event::AgentSpawned(spawned) => {
                let Attachment::Call { call, ask } = spawned.attachment else { return None };
                (call, spawned.parent.as_ref()?, Aim::Child, ask)
            }
            Event::CallAsked { call, agent, work } => {
                let ask = if let Work::Tool(work) = work { work.ask } else { None };
                (*call, agent, Aim::of(work), ask)
            }
            Event::WaitStarted { call, agent, wait, ask, .. } => {
                (*call, agent, Aim::Wait(Box::new(wait.clone())), *ask)
            }
            Event::QuestionAsked { call, agent, ask, .. } => (*call, agent, Aim::Question, *ask),
            Event::CallSwitched { call, model, .. } => {
                self.calls.get_mut(call)?.aim.switch(model);
                return None;
            }
            Event::ContextRestored(restored) => {
                self.restored(restored);
                return None;
            }
            _ => return None,
        };
        let open = OpenCall { agent: agent.clone(), aim, ask, is_void: false, note: N::default() };
        self.calls.insert(call, open);
        self.calls.get_mut(&call)
    }

    /// Forgets the call that an event ends, and gives it. Comes after everything was said about the event.
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

    /// The calls that are to answer tools that an agent's last answer asked for, and which of them.
    pub fn asks_of(&self, agent: &AgentId) -> impl Iterator<Item = (CallId, u32)> {
        let open = self.calls.iter().filter(move |(_, open)| open.agent == *agent);
        open.filter_map(|(call, open)| Some((*call, open.ask?)))
    }
}
