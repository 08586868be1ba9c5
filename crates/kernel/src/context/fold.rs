//! The fold: events in, contexts out. It holds the texts of living agents and nothing of those that ended, but for
//! results that their parent has not read.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::brief::{Brief, Briefs, System};
use super::told::{child_told, heard, shown, told};
use super::{Message, Origin, Packet, ToolAsk};
use crate::agent::{Attachment, Exit, Spawned};
use crate::body::Body;
use crate::budget::Amounts;
use crate::call::{Outcome, Work};
use crate::definition::Definition;
use crate::event::Event;
use crate::hash::{ByName, make_room};
use crate::id::{AgentId, CallId, Seq, TreeId};
use crate::input::By;

/// The contexts of a tree's living agents, and how the tree ended.
#[derive(Clone, Debug)]
pub struct Contexts {
    tree: TreeId,
    seq: Seq,
    definition: Option<Arc<Definition>>,
    briefs: Briefs,
    agents: ByName<AgentId, Context>,
    open: BTreeMap<CallId, Opened>,
    end: Option<End>,
    /// Letters for agents that are not there yet.
    unborn: BTreeMap<AgentId, Vec<(Seq, Message)>>,
}

/// How a tree ended, in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// How.
    pub exit: Exit,
    /// What there is to show: the answer, or as far as it got.
    pub shown: Body,
    /// What all of it used.
    pub spent: Amounts,
}

#[derive(Clone, Debug)]
struct Context {
    origin: Arc<Origin>,
    /// Whether a call of its parent waits for it.
    is_waited_for: bool,
    brief: Arc<Brief>,
    messages: Arc<Vec<Arc<Message>>>,
    /// What came and is no message yet. Most agents have nothing of it most of the time.
    unread: Option<Box<Unread>>,
}

/// What came to an agent and its model has not been shown.
#[derive(Clone, Debug, Default)]
struct Unread {
    /// What the tools of the last answer returned, in the order they were asked for: what a model reads does not
    /// depend on which was faster.
    answers: BTreeMap<u32, Message>,
    /// Letters, by the event that brought them.
    letters: Vec<(Seq, Message)>,
    /// Results of attached children that no call has taken yet.
    results: BTreeMap<Seq, String>,
}

impl Unread {
    fn with(letters: Vec<(Seq, Message)>) -> Box<Self> {
        Box::new(Self { letters, ..Self::default() })
    }
}

/// A call that has not ended, as far as its result will be read.
#[derive(Clone, Debug)]
struct Opened {
    agent: AgentId,
    kind: Kind,
}

/// Who reads the result of a call.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// It is what the agent's model says.
    Model,
    /// It answers this one of the tools that the agent's last answer asked for.
    Ask(u32),
    /// Nobody.
    Outside,
}

impl Kind {
    fn of(ask: Option<u32>) -> Self {
        ask.map_or(Self::Outside, Self::Ask)
    }
}

impl Contexts {
    /// No context yet.
    #[must_use]
    pub fn new(tree: TreeId) -> Self {
        Self {
            tree,
            seq: Seq(0),
            definition: None,
            briefs: Briefs::default(),
            agents: ByName::default(),
            open: BTreeMap::new(),
            end: None,
            unborn: BTreeMap::new(),
        }
    }

    /// Takes in the next event of the tree.
    pub fn apply(&mut self, event: &Event) {
        self.seq = Seq(self.seq.0 + 1);
        match event {
            Event::TreeStarted { definition, .. } => self.definition = Some(Arc::clone(definition)),
            Event::AgentSpawned(spawned) => self.spawned(spawned),
            Event::AgentRedirected { agent, instruction, .. } => {
                self.letter(agent, Message::Heard { from: By::Person, text: instruction.clone() });
            }
            Event::MessageSent { from, to, body, envelope } => {
                let text = heard(body.clone(), envelope);
                self.letter(to, Message::Heard { from: from.clone(), text });
            }
            Event::CallAsked { call, agent, work } => self.asked(*call, agent, work),
            Event::WaitStarted { call, agent, ask, .. } | Event::QuestionAsked { call, agent, ask, .. } => {
                self.opened(*call, agent, Kind::of(*ask));
            }
            Event::ToolAnswered { agent, ask, body, is_error } => {
                self.result(agent, *ask, body.text.clone(), *is_error);
            }
            Event::CallEnded { call, outcome, .. } => self.call_ended(*call, outcome),
            Event::AgentEnded { agent, exit, result, spent, .. } => {
                self.ended(agent, exit, result.as_ref(), spent);
            }
            Event::AgentPaused { .. }
            | Event::AgentUnpaused { .. }
            | Event::AgentEnding { .. }
            | Event::CallWaiting { .. }
            | Event::CallStarted { .. }
            | Event::CallResumed { .. }
            | Event::CallSwitched { .. }
            | Event::AttemptFailed { .. }
            | Event::Charged { .. }
            | Event::TreeHalted { .. }
            | Event::TreeUnhalted
            | Event::LimitRaised { .. }
            | Event::BreakerChanged { .. }
            | Event::MessagePublished { .. }
            | Event::CheckpointMade { .. }
            | Event::TreeBranched(_)
            | Event::RateLimited { .. } => {}
        }
    }

    /// How the tree ended, if it has.
    #[must_use]
    pub const fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Where the calls of a living agent come from.
    #[must_use]
    pub fn origin(&self, agent: &AgentId) -> Option<&Arc<Origin>> {
        self.agents.get(agent).map(|context| &context.origin)
    }

    /// What the next model call of a living agent sees: all of its context.
    #[must_use]
    pub fn packet(&self, agent: &AgentId, tokens: u64) -> Option<Packet> {
        let context = self.agents.get(agent)?;
        let (messages, tools) = (Arc::clone(&context.messages), Arc::clone(&context.brief.tools));
        Some(Packet { messages, tools, tokens })
    }

    /// One of the tools that the last answer of a living agent asked for.
    #[must_use]
    pub fn ask(&self, agent: &AgentId, ask: u32) -> Option<&ToolAsk> {
        self.agents.get(agent)?.ask(ask)
    }

    fn spawned(&mut self, spawned: &Spawned) {
        let Some(definition) = &self.definition else { return };
        let above = spawned.parent.as_ref().and_then(|parent| self.agents.get(parent));
        let above = above.map_or(&[][..], |context| &context.origin.path);
        let mut path = Vec::with_capacity(above.len() + 1);
        path.extend(above.iter().chain([&spawned.agent]).cloned());
        let (role, goal): (_, Arc<str>) = (spawned.role.clone(), spawned.goal.as_str().into());
        let brief = self.briefs.of(definition, &role, &spawned.caps.tools);
        let takes_turns = definition.roles.get(&role).is_some_and(|role| role.turns.is_some());
        let first = takes_turns.then(|| Message::System(System::new(Arc::clone(&brief), Arc::clone(&goal))));
        let context = Context {
            origin: Arc::new(Origin { tree: self.tree, path, role, goal }),
            is_waited_for: matches!(spawned.attachment, Attachment::Call { .. }),
            brief,
            messages: Arc::new(first.into_iter().map(Arc::new).collect()),
            unread: self.unborn.remove(&spawned.agent).map(Unread::with),
        };
        make_room(&mut self.agents);
        self.agents.insert(spawned.agent.clone(), context);
        if let (Attachment::Call { call, ask }, Some(parent)) = (spawned.attachment, &spawned.parent) {
            self.opened(call, parent, Kind::of(ask));
        }
    }

    fn letter(&mut self, to: &AgentId, message: Message) {
        let letters = match self.agents.get_mut(to) {
            Some(context) => &mut context.unread().letters,
            None => self.unborn.entry(to.clone()).or_default(),
        };
        letters.push((self.seq, message));
    }

    fn opened(&mut self, call: CallId, agent: &AgentId, kind: Kind) {
        self.open.insert(call, Opened { agent: agent.clone(), kind });
    }

    fn asked(&mut self, call: CallId, agent: &AgentId, work: &Work) {
        let kind = match work {
            Work::Model(_) => Kind::Model,
            Work::Tool(work) => Kind::of(work.ask),
            Work::Child(_) | Work::Wait(_) | Work::Question(_) => Kind::Outside,
        };
        self.opened(call, agent, kind);
        if let (Kind::Model, Some(context)) = (kind, self.agents.get_mut(agent)) {
            context.read();
        }
    }

    fn result(&mut self, agent: &AgentId, ask: u32, text: String, is_error: bool) {
        let Some(context) = self.agents.get_mut(agent) else { return };
        let Some(ToolAsk { id, tool, .. }) = context.ask(ask) else { return };
        let (id, tool) = (id.clone(), tool.clone());
        context.unread().answers.insert(ask, Message::Result { id, tool, text, is_error });
    }

    fn call_ended(&mut self, call: CallId, outcome: &Outcome) {
        let Some(Opened { agent, kind }) = self.open.remove(&call) else { return };
        let Some(context) = self.agents.get_mut(&agent) else { return };
        if let Kind::Model = kind {
            if let Outcome::Done { body, asks, .. } = outcome {
                context.push(Message::Said { body: body.clone(), asks: asks.clone() });
            }
            return;
        }
        let (text, is_error) = if let Outcome::Message { seq } = outcome {
            (context.taken(*seq).unwrap_or_default(), false)
        } else {
            told(outcome, |end| {
                let known = || format!("{} {}, as you know", end.agent, end.state);
                context.taken(end.seq).unwrap_or_else(known)
            })
        };
        if let Kind::Ask(ask) = kind {
            self.result(&agent, ask, text, is_error);
        }
    }

    fn ended(&mut self, agent: &AgentId, exit: &Exit, result: Option<&Body>, spent: &Amounts) {
        // Swapping changes the order of the map, and nobody asks for that.
        let Some(context) = self.agents.swap_remove(agent) else { return };
        let shown = result.or_else(|| Some(context.said()?.0)).cloned().unwrap_or_default();
        let [.., parent, _] = context.origin.path.as_slice() else {
            self.end = Some(End { exit: exit.clone(), shown, spent: *spent });
            return;
        };
        let (seq, told) = (self.seq, child_told(agent.as_str(), exit, self::shown(shown)));
        let Some(parent) = self.agents.get_mut(parent) else { return };
        if context.is_waited_for {
            parent.unread().results.insert(seq, told);
        } else {
            let from = By::Agent(agent.clone());
            parent.unread().letters.push((seq, Message::Heard { from, text: told }));
        }
    }
}

impl Context {
    /// Adds a message. A packet that is still out keeps what it had.
    fn push(&mut self, message: Message) {
        let messages = Arc::make_mut(&mut self.messages);
        // Most contexts of a large tree are short, and there are many of them.
        if messages.len() == messages.capacity() {
            messages.reserve_exact(messages.len() / 2 + 1);
        }
        messages.push(Arc::new(message));
    }

    fn unread(&mut self) -> &mut Unread {
        self.unread.get_or_insert_default()
    }

    /// Makes messages of what came.
    fn read(&mut self) {
        let Some(mut unread) = self.unread.take() else { return };
        let answers = std::mem::take(&mut unread.answers).into_values();
        let letters = std::mem::take(&mut unread.letters).into_iter().map(|(_, message)| message);
        answers.chain(letters).for_each(|message| self.push(message));
        self.unread = Some(unread).filter(|unread| !unread.results.is_empty());
    }

    /// The last thing that its model said, and the tools it asked for.
    fn said(&self) -> Option<(&Body, &[ToolAsk])> {
        self.messages.iter().rev().find_map(|message| match message.as_ref() {
            Message::Said { body, asks } => Some((body, asks.as_slice())),
            Message::System(_) | Message::Heard { .. } | Message::Result { .. } => None,
        })
    }

    fn ask(&self, ask: u32) -> Option<&ToolAsk> {
        self.said()?.1.get(ask as usize)
    }

    /// What an event brought, if nobody has read it.
    fn taken(&mut self, seq: Seq) -> Option<String> {
        let unread = self.unread.as_mut()?;
        if let Some(told) = unread.results.remove(&seq) {
            return Some(told);
        }
        let place = unread.letters.iter().position(|(letter, _)| *letter == seq)?;
        match unread.letters.remove(place).1 {
            Message::Heard { text, .. } => Some(text),
            Message::System(_) | Message::Said { .. } | Message::Result { .. } => None,
        }
    }
}
