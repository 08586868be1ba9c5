//! The trace: whom each event is about, who caused that, and since when. It is the fold of a tree's events that every
//! watcher, step file and story needs: events name calls by number, and a call's first event says whose it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Aim, OpenCalls};
use crate::definition::Tags;
use crate::record::{Event, Spawned};
use crate::words::{
    AgentId, By, CallId, Correlation, Envelope, Fault, MessageKind, ModelName, ThreadId, Time, Topic,
};

/// Living agents and open calls, by the events so far.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    agents: BTreeMap<AgentId, Arc<Life>>,
    calls: OpenCalls<CallNote>,
    tags: Arc<Tags>,
}

/// What is known of a living agent.
#[derive(Debug, PartialEq, Eq)]
pub struct Life {
    /// Ids from the root down to the agent itself.
    pub path: Vec<AgentId>,
    /// The conversation it belongs to.
    pub thread: ThreadId,
    /// When it was spawned.
    pub since: Time,
}

/// What is noted about a call that has not ended.
#[derive(Clone, Debug, Default)]
struct CallNote {
    since: Time,
    /// What its last attempt met, if that failed and nothing was done about it yet.
    fault: Option<Box<Fault>>,
}

/// Where an event stands in the story of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventContext {
    /// Whom it is about; none if it is about the whole tree.
    pub agent: Option<AgentId>,
    /// That agent's path and thread.
    pub life: Option<Arc<Life>>,
    /// Who caused it: the agent above, or whoever sent a message. None if it was a person.
    pub caller: Option<AgentId>,
    /// For whom it is, if it is a message or a result.
    pub recipient: Option<AgentId>,
    /// What it is about.
    pub topic: Topic,
    /// What sort of message it is, if it is one that says so.
    pub message: Option<MessageKind>,
    /// What it belongs to: the child of a spawn and its result, the call of a call, what a message says of itself.
    pub correlation: Option<Correlation>,
    /// When the agent or the call that it is about began.
    pub since: Option<Time>,
    /// Whether that is over with it.
    pub is_end: bool,
    /// What a model call leaves, if it goes on with other terms.
    pub switch: Option<Arc<Switch>>,
    /// What the tree was given for whoever watches it.
    pub tags: Arc<Tags>,
}

/// What a model call leaves when it goes on with other terms. Its event says what it goes on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The model that it leaves.
    pub from: ModelName,
    /// The fault that it met there; none if the budget is the reason.
    pub fault: Option<Fault>,
}

impl Switch {
    /// Why, as one word: the kind of fault, or `budget`.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        self.fault.as_ref().map_or("budget", |fault| fault.kind.word())
    }
}

impl EventContext {
    /// Ids from the root down to the agent; empty if it is about the whole tree.
    #[must_use]
    pub fn path(&self) -> &[AgentId] {
        self.life.as_ref().map_or(&[], |life| &life.path)
    }

    /// The conversation that the agent belongs to.
    #[must_use]
    pub fn thread(&self) -> Option<&ThreadId> {
        self.life.as_ref().map(|life| &life.thread)
    }
}

/// Before it is known whom an event is about.
struct Kind {
    agent: Option<AgentId>,
    topic: &'static str,
    correlation: Option<Correlation>,
    since: Option<Time>,
    is_end: bool,
}

impl Trace {
    /// Takes in the next event, which arrived at `at`, and says where it stands.
    pub fn take(&mut self, at: Time, event: &Event) -> EventContext {
        let switch = self.enter(at, event);
        let Kind { agent, topic, correlation, since, is_end } = self.kind(event);
        let life = agent.as_ref().and_then(|agent| self.agents.get(agent)).cloned();
        let above = life.as_ref().and_then(|life| life.path.iter().rev().nth(1)).cloned();
        let since = since.or_else(|| life.as_ref().map(|life| life.since));
        let mut context = EventContext {
            agent,
            life,
            caller: above.clone(),
            recipient: None,
            topic: own(topic),
            message: None,
            correlation,
            since,
            is_end,
            switch,
            tags: Arc::clone(&self.tags),
        };
        if let Event::AgentEnded { .. } = event {
            context.recipient = above;
        } else if let Event::MessageSent { from, to, envelope, .. } = event {
            context.recipient = Some(to.clone());
            context.addressed(from, envelope);
        } else if let Event::MessagePublished { from, envelope, .. } = event {
            context.addressed(from, envelope);
        }
        self.leave(event);
        context
    }

    /// Takes in who and what there is from here on; says what a call leaves that is switched.
    fn enter(&mut self, at: Time, event: &Event) -> Option<Arc<Switch>> {
        if let Event::TreeStarted { definition, .. } = event {
            self.tags = Arc::clone(&definition.tags);
        } else if let Event::AgentSpawned(spawned) = event {
            self.spawned(at, spawned);
        }
        let call = event.call().and_then(|call| self.calls.find_mut(call));
        let switch = match (event, call) {
            (Event::AttemptFailed { fault, .. }, Some(call)) => {
                call.note.fault = fault.clone().map(Box::new);
                None
            }
            (Event::CallStarted { .. }, Some(call)) => {
                call.note.fault = None;
                None
            }
            (Event::CallSwitched { .. }, Some(call)) => {
                let fault = call.note.fault.take().map(|fault| *fault);
                call.aim.model().map(|from| Arc::new(Switch { from: from.clone(), fault }))
            }
            _ => None,
        };
        if let Some(opened) = self.calls.enter(event) {
            opened.note.since = at;
        }
        switch
    }

    fn spawned(&mut self, at: Time, spawned: &Spawned) {
        let above = spawned.parent.as_ref().and_then(|parent| self.agents.get(parent));
        let mut path = above.map_or_else(Vec::new, |life| life.path.clone());
        path.push(spawned.agent.clone());
        let life = Life { path, thread: spawned.thread.clone(), since: at };
        self.agents.insert(spawned.agent.clone(), Arc::new(life));
    }

    fn leave(&mut self, event: &Event) {
        self.calls.leave(event);
        if let Event::AgentEnded { agent, .. } = event {
            self.agents.remove(agent);
        }
    }

    fn kind(&self, event: &Event) -> Kind {
        let topic = match event {
            Event::AgentSpawned(spawned) => return Kind::of_agent(&spawned.agent, "agent.spawn", false),
            Event::AgentEnded { agent, .. } => return Kind::of_agent(agent, "agent.result", true),
            Event::CallAsked { call, .. }
            | Event::CallWaiting { call, .. }
            | Event::CallStarted { call, .. }
            | Event::CallResumed { call }
            | Event::CallSwitched { call, .. }
            | Event::AttemptFailed { call, .. }
            | Event::WaitStarted { call, .. }
            | Event::QuestionAsked { call, .. } => return self.kind_of_call(*call, false),
            Event::CallEnded { call, .. } => return self.kind_of_call(*call, true),
            Event::AgentEnding { .. } => "agent.ending",
            Event::WindowSet { .. } => "context.window",
            Event::ContextShared { .. } => "context.share",
            Event::ThreadJoined { .. } => "thread.join",
            Event::ThreadLeft { .. } => "thread.leave",
            Event::ContextCut { .. } => "context.cut",
            Event::ContextRestored(_) => "context.restore",
            Event::AgentPaused { .. } => "agent.pause",
            Event::AgentUnpaused { .. } => "agent.unpause",
            Event::AgentRedirected { .. } => "agent.redirect",
            Event::ToolAnswered { .. } => "tool.answer",
            Event::Charged { .. } => "budget.charge",
            Event::WrapUpStarted { .. } => "agent.wrap_up",
            Event::LimitRaised { .. } => "budget.raise",
            Event::ClockSet { .. } => "agent.clock",
            Event::CheckpointMade { .. } => "agent.checkpoint",
            Event::MessageSent { .. } | Event::MessagePublished { .. } => "agent.message",
            Event::TreeHalted { .. } => "tree.halt",
            Event::TreeStarted { .. } => "tree.start",
            Event::TreeBranched(_) => "tree.branch",
            Event::TreeUnhalted => "tree.unhalt",
            Event::TreeSuspended => "tree.suspend",
            Event::TreeContinued => "tree.continue",
            Event::BreakerChanged { .. } => "model.breaker",
            Event::RateLimited { .. } => "model.rate",
        };
        Kind { agent: event.agent().cloned(), topic, correlation: None, since: None, is_end: false }
    }

    fn kind_of_call(&self, call: CallId, is_end: bool) -> Kind {
        let open = self.calls.find(call);
        let topic = match open.map(|open| &open.aim) {
            Some(Aim::Turn(_) | Aim::LastTurn(_)) => "model.call",
            Some(Aim::Summary(_)) => "model.summary",
            Some(Aim::Tool(_)) => "tool.call",
            Some(Aim::Child | Aim::Wait(_)) | None => "agent.wait",
            Some(Aim::Question) => "agent.question",
        };
        let agent = open.map(|open| open.agent.clone());
        let (since, correlation) = (open.map(|open| open.note.since), Some(Correlation::of_call(call)));
        Kind { agent, topic, correlation, since, is_end }
    }
}

/// A topic of a tree's own events. Messages of models may not carry one, so its first word has to be known.
fn own(topic: &'static str) -> Topic {
    let topic = Topic::of_word(topic);
    debug_assert!(topic.is_own(), "`{topic}` is missing in `OWN_TOPICS`");
    topic
}

impl Kind {
    fn of_agent(agent: &AgentId, topic: &'static str, is_end: bool) -> Self {
        let correlation = Some(Correlation::of_agent(agent));
        Self { agent: Some(agent.clone()), topic, correlation, since: None, is_end }
    }
}

impl EventContext {
    /// A message says itself who caused it and what it belongs to.
    fn addressed(&mut self, from: &By, envelope: &Envelope) {
        self.caller = match from {
            By::Person => None,
            By::Agent(agent) => Some(agent.clone()),
        };
        let Envelope { topic, kind, correlation, ttl: _, category: _ } = envelope.clone();
        if let Some(topic) = topic {
            self.topic = topic;
        }
        (self.message, self.correlation, self.since) = (kind, correlation, None);
    }
}
