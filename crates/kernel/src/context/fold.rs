//! The fold: events in, contexts out. It holds the texts of living agents and nothing of those that ended, but for
//! results that their parent has not read.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::told::{child_told, shown, system, told};
use super::{Message, Origin, Packet, ToolAsk};
use crate::agent::{Attachment, Exit, Spawned};
use crate::body::Body;
use crate::budget::Amounts;
use crate::call::{Outcome, Work};
use crate::definition::Definition;
use crate::event::Event;
use crate::hash::ByName;
use crate::id::{AgentId, CallId, Seq, ToolName, TreeId};
use crate::input::By;

/// The contexts of a tree's living agents, and how the tree ended.
#[derive(Clone, Debug)]
pub struct Contexts {
    tree: TreeId,
    seq: Seq,
    definition: Option<Arc<Definition>>,
    agents: ByName<AgentId, Context>,
    open: BTreeMap<CallId, Opened>,
    end: Option<End>,
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
    attachment: Attachment,
    tools: Arc<[ToolName]>,
    messages: Arc<Vec<Arc<Message>>>,
    /// What the tools of the last answer returned, in the order they were asked for: what a model reads does not
    /// depend on which was faster.
    answers: BTreeMap<u32, Message>,
    /// What came and is not read yet, by the event that brought it.
    letters: Vec<(Seq, Message)>,
    /// Results of attached children that no call has taken yet.
    results: BTreeMap<Seq, String>,
    said: Body,
}

/// A call that has not ended, as far as its result will be read.
#[derive(Clone, Debug)]
struct Opened {
    agent: AgentId,
    ask: Option<u32>,
    is_model: bool,
}

impl Contexts {
    /// No context yet.
    #[must_use]
    pub fn new(tree: TreeId) -> Self {
        let (seq, definition, end) = (Seq(0), None, None);
        Self { tree, seq, definition, agents: ByName::default(), open: BTreeMap::new(), end }
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
            Event::MessageSent { from, to, body } => {
                self.letter(to, Message::Heard { from: from.clone(), text: shown(body) });
            }
            Event::CallAsked { call, agent, work } => self.asked(*call, agent, work),
            Event::WaitStarted { call, agent, ask, .. } | Event::QuestionAsked { call, agent, ask, .. } => {
                self.opened(*call, agent, *ask);
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
        let (messages, tools) = (Arc::clone(&context.messages), Arc::clone(&context.tools));
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
        let mut path = above.map_or_else(Vec::new, |context| context.origin.path.clone());
        path.push(spawned.agent.clone());
        let (role, goal) = (spawned.role.clone(), spawned.goal.clone());
        let turns = definition.roles.get(&role).and_then(|role| role.turns.as_ref());
        let first = turns.map(|turns| system(definition, &spawned.caps, turns, &goal));
        let tools = definition.tool_names().filter(|name| spawned.caps.tools.has(name)).collect();
        let context = Context {
            origin: Arc::new(Origin { tree: self.tree, path, role, goal }),
            attachment: spawned.attachment,
            tools,
            messages: Arc::new(first.map(|text| Arc::new(Message::System(text))).into_iter().collect()),
            answers: BTreeMap::new(),
            letters: Vec::new(),
            results: BTreeMap::new(),
            said: Body::default(),
        };
        self.agents.insert(spawned.agent.clone(), context);
        if let (Attachment::Call { call, ask }, Some(parent)) = (spawned.attachment, &spawned.parent) {
            self.opened(call, parent, ask);
        }
    }

    fn letter(&mut self, to: &AgentId, message: Message) {
        let seq = self.seq;
        if let Some(context) = self.agents.get_mut(to) {
            context.letters.push((seq, message));
        }
    }

    fn opened(&mut self, call: CallId, agent: &AgentId, ask: Option<u32>) {
        self.open.insert(call, Opened { agent: agent.clone(), ask, is_model: false });
    }

    fn asked(&mut self, call: CallId, agent: &AgentId, work: &Work) {
        let ask = if let Work::Tool(work) = work { work.ask } else { None };
        let is_model = matches!(work, Work::Model(_));
        self.open.insert(call, Opened { agent: agent.clone(), ask, is_model });
        if let Some(context) = self.agents.get_mut(agent).filter(|_| is_model) {
            let answers = std::mem::take(&mut context.answers).into_values();
            let letters = std::mem::take(&mut context.letters).into_iter().map(|(_, message)| message);
            answers.chain(letters).for_each(|message| context.push(message));
        }
    }

    fn result(&mut self, agent: &AgentId, ask: u32, text: String, is_error: bool) {
        let Some(context) = self.agents.get_mut(agent) else { return };
        let Some(ToolAsk { id, tool, .. }) = context.ask(ask).cloned() else { return };
        context.answers.insert(ask, Message::Result { id, tool, text, is_error });
    }

    fn call_ended(&mut self, call: CallId, outcome: &Outcome) {
        let Some(Opened { agent, ask, is_model }) = self.open.remove(&call) else { return };
        let Some(context) = self.agents.get_mut(&agent) else { return };
        if is_model {
            if let Outcome::Done { body, asks, .. } = outcome {
                context.said = body.clone();
                context.push(Message::Said { text: body.text.clone(), asks: asks.clone() });
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
        if let Some(ask) = ask {
            self.result(&agent, ask, text, is_error);
        }
    }

    fn ended(&mut self, agent: &AgentId, exit: &Exit, result: Option<&Body>, spent: &Amounts) {
        // Swapping changes the order of the map, and nobody asks for that.
        let Some(context) = self.agents.swap_remove(agent) else { return };
        let shown = result.cloned().unwrap_or(context.said);
        let [.., parent, _] = context.origin.path.as_slice() else {
            self.end = Some(End { exit: exit.clone(), shown, spent: *spent });
            return;
        };
        let (seq, told) = (self.seq, child_told(agent.as_str(), exit, &self::shown(&shown)));
        let Some(parent) = self.agents.get_mut(parent) else { return };
        match context.attachment {
            Attachment::Call { .. } => drop(parent.results.insert(seq, told)),
            Attachment::Detached | Attachment::Root => {
                parent.letters.push((seq, Message::Heard { from: By::Agent(agent.clone()), text: told }));
            }
        }
    }
}

impl Context {
    /// Adds a message. A packet that is still out keeps what it had.
    fn push(&mut self, message: Message) {
        Arc::make_mut(&mut self.messages).push(Arc::new(message));
    }

    fn ask(&self, ask: u32) -> Option<&ToolAsk> {
        let said = self.messages.iter().rev().find_map(|message| match message.as_ref() {
            Message::Said { asks, .. } => Some(asks),
            Message::System(_) | Message::Heard { .. } | Message::Result { .. } => None,
        });
        said?.get(ask as usize)
    }

    /// What an event brought, if nobody has read it.
    fn taken(&mut self, seq: Seq) -> Option<String> {
        if let Some(told) = self.results.remove(&seq) {
            return Some(told);
        }
        let place = self.letters.iter().position(|(letter, _)| *letter == seq)?;
        match self.letters.remove(place).1 {
            Message::Heard { text, .. } => Some(text),
            Message::System(_) | Message::Said { .. } | Message::Result { .. } => None,
        }
    }
}
