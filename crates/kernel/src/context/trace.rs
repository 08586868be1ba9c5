//! The trace: which agent each event is about, who caused it, and when that began. Events name calls by number, and
//! only a call's first event names its agent, so watchers, step files and event texts need this fold.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{CallPurpose, OpenCalls};
use crate::definition::Tags;
use crate::primitives::{
    Actor, AgentId, CallId, Correlation, Envelope, Fault, MessageKind, ModelName, ThreadId, Time, Topic,
};
use crate::record::{Event, Spawned};

/// Living agents and open calls, according to the events so far.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    agents: BTreeMap<AgentId, Arc<Life>>,
    calls: OpenCalls<CallNote>,
    tags: Arc<Tags>,
    /// The root when it has ended: another tree may continue this one.
    ended_root: Option<(AgentId, Arc<Life>)>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Life {
    /// Ids from the root down to the agent itself.
    pub path: Vec<AgentId>,
    pub thread: ThreadId,
    pub since: Time,
}

#[derive(Clone, Debug, Default)]
struct CallNote {
    since: Time,
    /// The fault of its last attempt, until the call retries, switches or ends.
    fault: Option<Box<Fault>>,
}

/// An event's context: agent, cause, topic and start time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventContext {
    /// `None` if it is about the whole tree.
    pub agent: Option<AgentId>,
    pub life: Option<Arc<Life>>,
    /// Who caused it: the parent, or the sender of a message. `None` for someone outside the tree.
    pub caller: Option<AgentId>,
    /// The recipient, if it is a message, a spawn or a result.
    pub recipient: Option<AgentId>,
    pub topic: Topic,
    /// The kind of message, if it has one; `spawn_request` and `spawn_result` for a child.
    pub message: Option<MessageKind>,
    /// Ties it to related events: the child's for a spawn and its result, the call's for a call, a message's own.
    pub correlation: Option<Correlation>,
    /// When its agent or call began.
    pub since: Option<Time>,
    /// Whether it ends that agent or call.
    pub is_end: bool,
    /// What a model call switches from, if it switches.
    pub switch: Option<Arc<Switch>>,
    /// The tree's tags.
    pub tags: Arc<Tags>,
}

/// What a model call switches from. The event has what it switches to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    pub from: ModelName,
    /// The fault that caused it; `None` if the budget did.
    pub fault: Option<Fault>,
}

impl Switch {
    /// The kind of fault, or `budget`.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        self.fault.as_ref().map_or("budget", |fault| fault.kind.as_str())
    }
}

impl EventContext {
    /// Ids from the root down to the agent; empty if it is about the whole tree.
    #[must_use]
    pub fn path(&self) -> &[AgentId] {
        self.life.as_ref().map_or(&[], |life| &life.path)
    }

    #[must_use]
    pub fn thread(&self) -> Option<&ThreadId> {
        self.life.as_ref().map(|life| &life.thread)
    }
}

/// An event's context before its agent is looked up.
struct Kind {
    agent: Option<AgentId>,
    topic: &'static str,
    correlation: Option<Correlation>,
    since: Option<Time>,
    is_end: bool,
}

impl Trace {
    /// Applies the next event, recorded at `at`, and returns its context.
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
        // The root is nobody's child.
        if let (Event::AgentEnded { .. }, Some(parent)) = (event, &above) {
            context.recipient = Some(parent.clone());
            context.message = Some(MessageKind::spawn_result());
        } else if let (Event::AgentSpawned(spawned), Some(_)) = (event, &above) {
            context.recipient = Some(spawned.agent.clone());
            context.message = Some(MessageKind::spawn_request());
        } else if let Event::MessageSent { from, to, envelope, .. } = event {
            context.recipient = Some(to.clone());
            context.addressed(from, envelope);
        } else if let Event::MessagePublished { from, envelope, .. } = event {
            context.addressed(from, envelope);
        }
        self.leave(event);
        context
    }

    /// Records what the event opens. Returns what a call switches from.
    fn enter(&mut self, at: Time, event: &Event) -> Option<Arc<Switch>> {
        if let Event::TreeStarted { definition, .. } = event {
            self.tags = Arc::clone(&definition.tags);
        } else if let Event::AgentSpawned(spawned) = event {
            self.spawned(at, spawned);
        } else if let Event::TreeBranched(branched) = event
            && branched.continuation.is_some()
        {
            self.agents.extend(self.ended_root.take());
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
                call.purpose.model().map(|from| Arc::new(Switch { from: from.clone(), fault }))
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
            let root = self.agents.remove_entry(agent).filter(|(_, life)| life.path.len() == 1);
            self.ended_root = root.or(self.ended_root.take());
        }
    }

    fn kind(&self, event: &Event) -> Kind {
        let is_end = matches!(event, Event::AgentEnded { .. } | Event::CallEnded { .. });
        match (event.topic(), event) {
            (Some(topic), Event::AgentSpawned(spawned)) => Kind::of_agent(&spawned.agent, topic, is_end),
            (Some(topic), Event::AgentEnded { agent, .. }) => Kind::of_agent(agent, topic, is_end),
            (Some(topic), _) => {
                Kind { agent: event.agent().cloned(), topic, correlation: None, since: None, is_end }
            }
            (None, _) => match event.call() {
                Some(call) => self.kind_of_call(call, is_end),
                None => unreachable!("only events of a call have no topic of their own"),
            },
        }
    }

    fn kind_of_call(&self, call: CallId, is_end: bool) -> Kind {
        let open = self.calls.find(call);
        let topic = match open.map(|open| &open.purpose) {
            Some(CallPurpose::Turn(_) | CallPurpose::LastTurn(_) | CallPurpose::Outside(_)) => "model.call",
            Some(CallPurpose::Summary(_)) => "model.summary",
            Some(CallPurpose::Tool(_)) => "tool.call",
            Some(CallPurpose::Child | CallPurpose::Wait(_)) | None => "agent.wait",
            Some(CallPurpose::Question) => "agent.question",
        };
        let agent = open.map(|open| open.agent.clone());
        let (since, correlation) = (open.map(|open| open.note.since), Some(Correlation::of_call(call)));
        Kind { agent, topic, correlation, since, is_end }
    }
}

/// A topic of a tree's own events. Models' messages must not use one, so its first word must be in `OWN_TOPICS`.
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
    /// A message names its own sender and correlation.
    fn addressed(&mut self, from: &Actor, envelope: &Envelope) {
        self.caller = from.agent().cloned();
        let Envelope { topic, kind, correlation, ttl: _, category: _ } = envelope.clone();
        if let Some(topic) = topic {
            self.topic = topic;
        }
        (self.message, self.correlation, self.since) = (kind, correlation, None);
    }
}
