//! The fold: applies events to contexts. It holds the texts of living agents; of ended ones it keeps only results
//! that their parent has not read.

mod child;
mod restore;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::agent_context::{Context, Reader};
use super::brief::{Briefs, Own, System};
use super::message::{SharedAs, Texts, task_last};
use super::program_past::ProgramPast;
use super::summary::Summarising;
use super::text::{NO_MESSAGE, clamp_text, heard, outcome_text, repeats_text};
use super::{Attachments, CallPurpose, Message, OpenCall, OpenCalls, Origin, Packet, SharedValues, offload};
use crate::budget::Amounts;
use crate::context::offload::Whole;
use crate::definition::{Builtin, Definition};
use crate::primitives::{Actor, AgentId, Body, ByName, Category, Seq, TreeId, ValueName, make_room};
use crate::record::{
    Event, Exit, Outcome, RULES, Said, Span, Spawned, Summary, ToolAsk, TurnKind, WaitFor, Work,
};
use crate::window::{KeptChildren, MessageList};

pub use restore::ContextSnapshot;
pub use restore::Places;
use restore::Recall;

/// The contexts of a tree's living agents, and how the tree ended.
#[derive(Clone, Debug)]
pub struct Contexts {
    tree: TreeId,
    seq: Seq,
    definition: Option<Arc<Definition>>,
    briefs: Briefs,
    agents: ByName<AgentId, Context>,
    open: OpenCalls,
    end: Option<End>,
    /// The root's context when it ended, for a tree that continues this one.
    ended_root: Option<(AgentId, Context)>,
    /// What children knew and answered, while their parent may need it.
    kept: KeptChildren<AgentId, Context>,
    /// Messages for agents that do not exist yet.
    unspawned: BTreeMap<AgentId, Vec<(Seq, Message)>>,
    /// The values that agents share, until the root ends.
    shared: SharedValues,
    /// Summaries that are being written, by agent.
    summaries: BTreeMap<AgentId, Summarising>,
    /// Messages of last calls that see less than the window holds.
    last_calls: BTreeMap<AgentId, Texts>,
    /// Whether every message is kept, not only those in a window.
    keeps_all: bool,
    /// What rollbacks need. Most trees have none.
    recall: Option<Box<Recall>>,
}

/// How a tree ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    pub exit: Exit,
    /// The answer, or the progress so far.
    pub shown: Body,
    /// What the whole tree used.
    pub spent: Amounts,
    /// The part of it that no provider reported.
    #[serde(default, skip_serializing_if = "Amounts::is_zero")]
    pub presumed: Amounts,
}

impl Contexts {
    #[must_use]
    pub fn new(tree: TreeId) -> Self {
        Self {
            tree,
            seq: Seq(0),
            definition: None,
            briefs: Briefs::new(RULES),
            agents: ByName::default(),
            open: OpenCalls::default(),
            end: None,
            ended_root: None,
            kept: KeptChildren::default(),
            unspawned: BTreeMap::new(),
            shared: SharedValues::default(),
            summaries: BTreeMap::new(),
            last_calls: BTreeMap::new(),
            keeps_all: false,
            recall: None,
        }
    }

    /// Empty; keeps every message, including those that no window holds.
    #[must_use]
    pub fn whole(tree: TreeId) -> Self {
        Self { keeps_all: true, ..Self::new(tree) }
    }

    pub fn apply(&mut self, event: &Event) {
        self.seq = Seq(self.seq.0 + 1);
        self.open.enter(event);
        self.take(event);
        if self.recall.is_some() {
            self.keep_known(event);
        }
    }

    fn take(&mut self, event: &Event) {
        match event {
            Event::TreeStarted { definition, rules, trace: _, sources: _ } => {
                self.definition = Some(Arc::clone(definition));
                self.briefs = Briefs::new(*rules);
            }
            Event::AgentSpawned(spawned) => self.spawned(spawned),
            Event::AgentRedirected { agent, instruction, .. } => {
                let (from, text, category) = (Actor::PERSON, instruction.clone(), Category::Dialog);
                self.letter(agent, Message::Heard { from, text, category, along: None });
            }
            Event::MessageSent { from, to, body, envelope } => {
                let text = heard(body.clone(), envelope);
                let (category, along) = (envelope.category, Attachments::boxed(None, body.parts()));
                self.letter(to, Message::Heard { from: from.clone(), text, category, along });
            }
            Event::CallAsked { agent, work, .. } => self.asked(agent, work),
            Event::SessionNamed { call, session } => {
                let agent = self.open.find(*call).and_then(|call| self.agents.get_mut(&call.agent));
                if let Some(program) = agent.and_then(|context| context.program.as_mut()) {
                    program.session = Some(session.clone());
                }
            }
            Event::ToolAnswered { agent, ask, body, is_error, value } => {
                let along = Attachments::boxed(None, body.parts());
                match value {
                    Some(read) => self.value_read(agent, *ask, &body.text, &read.name),
                    None => self.result(agent, *ask, body.text.clone(), *is_error, along),
                }
            }
            Event::ValueWritten { .. } => self.shared.apply(event),
            Event::ValuesCleared { .. } => self.shared = SharedValues::default(),
            Event::ModelAdded { model, spec } => {
                if let Some(definition) = &mut self.definition {
                    Arc::make_mut(definition).models.insert(model.clone(), spec.as_ref().clone());
                }
            }
            Event::CallEnded { outcome, .. } => {
                let ended = self.open.leave(event);
                ended.into_iter().for_each(|call| self.call_ended(call, outcome));
            }
            Event::AgentEnded { agent, exit, result, spent, presumed, .. } => {
                self.ended(agent, exit, result.as_ref(), spent, presumed);
            }
            Event::WindowSet { agent, size, clamped: Some(clamped), .. } if clamped.is_told => {
                self.clamped(agent, *size, clamped.parent_size);
            }
            Event::ContextShared { from, to, spans, as_is, replaces } => {
                let shared = |message: Arc<Message>| match *as_is {
                    true => message.without_thought(),
                    false => self.briefs.without_tools(message),
                };
                let known = self.knows(from, to).map(|context| {
                    let messages = context.list.all();
                    let known = Span::places(spans).filter_map(|place| messages.get(place).cloned());
                    known.map(shared).collect::<Vec<_>>()
                });
                let (Some(known), Some(context)) = (known, self.agents.get_mut(to)) else { return };
                context.list.remove(replaces);
                context.receive(from, known, *as_is, SharedAs::under(self.briefs.rules()));
            }
            Event::ContextCut { agent, cut, summary, shortened, .. } => {
                let summarising = self.summaries.remove(agent);
                let used = summarising.as_ref().filter(|_| matches!(summary, Some(Summary::By(_))));
                let used = used.and_then(|made| Some((&made.covers, made.body.as_ref()?)));
                if let Some(context) = self.agents.get_mut(agent) {
                    // Messages that came after the call are not in its packet, and stay unread.
                    if shortened.is_none() {
                        context.read();
                    }
                    context.cut(cut, used);
                }
            }
            Event::ContextRestored(restored) => self.restored(restored),
            Event::TreeBranched(branched) if branched.continuation.is_some() => self.continue_root(),
            Event::RepeatsNoticed { agent, tool, count, count_max } => {
                if let Some(context) = self.agents.get_mut(agent) {
                    context.list.push(Arc::new(Message::Repeated(repeats_text(
                        tool,
                        *count,
                        *count_max,
                        self.briefs.rules(),
                    ))));
                }
            }
            // The rest changes no context.
            _ => {}
        }
    }

    /// The last event that was applied.
    #[must_use]
    pub const fn seq(&self) -> Seq {
        self.seq
    }

    #[must_use]
    pub const fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Where the calls of a living agent come from.
    #[must_use]
    pub fn origin(&self, agent: &AgentId) -> Option<&Arc<Origin>> {
        self.agents.get(agent).map(|context| &context.origin)
    }

    /// All messages of a living agent if [`whole`](Self::whole); otherwise those in its window.
    #[must_use]
    pub fn messages(&self, agent: &AgentId) -> Option<&[Arc<Message>]> {
        let context = self.agents.get(agent)?;
        Some(context.all.as_ref().map_or(context.list.read_messages(), |all| &all.messages))
    }

    /// The messages in a living agent's window, in the order of its headers. A [`packet`](Self::packet) may have them in
    /// another order.
    #[must_use]
    pub fn window_messages(&self, agent: &AgentId) -> Option<&[Arc<Message>]> {
        Some(self.agents.get(agent)?.list.read_messages())
    }

    /// The messages that a living agent's model has not been shown, in the order in which it will see them.
    pub fn unread(&self, agent: &AgentId) -> impl Iterator<Item = &Message> {
        let context = self.agents.get(agent).into_iter();
        context.flat_map(|context| context.list.unread_messages()).map(AsRef::as_ref)
    }

    /// The JSON Schema of a living agent's answer, if it has one.
    #[must_use]
    pub fn output_schema(&self, agent: &AgentId) -> Option<&Arc<str>> {
        self.agents.get(agent)?.brief.schema.as_ref()
    }

    /// The packet of a living agent's next model call.
    #[must_use]
    pub fn packet(&self, agent: &AgentId, tokens: u64) -> Option<Packet> {
        let context = self.agents.get(agent)?;
        let messages = task_last(context.shown());
        Some(Packet { messages, tools: Arc::clone(&context.brief.tools), tokens })
    }

    /// The packet of a living agent's summary call.
    #[must_use]
    pub fn summary_packet(&self, agent: &AgentId, tokens: u64) -> Option<Packet> {
        self.summaries.get(agent).map(|summarising| summarising.packet(tokens))
    }

    /// The packet of a living agent's last call, which has no tools.
    #[must_use]
    pub fn last_packet(&self, agent: &AgentId, tokens: u64) -> Option<Packet> {
        let context = self.agents.get(agent)?;
        let messages = self.last_calls.get(agent).map_or_else(|| context.shown(), Arc::clone);
        Some(Packet { messages: task_last(messages), tools: Arc::default(), tokens })
    }

    /// The last text of a living agent's model.
    #[must_use]
    pub fn said(&self, agent: &AgentId) -> Option<&Body> {
        self.agents.get(agent)?.said().map(|(body, _)| body)
    }

    /// What a living agent continues that is a program with a follow-up.
    #[must_use]
    pub fn program_past(&self, agent: &AgentId) -> Option<&Arc<ProgramPast>> {
        self.agents.get(agent)?.program.as_ref()?.past.as_ref()
    }

    /// One of the tool calls in a living agent's last answer.
    #[must_use]
    pub fn ask(&self, agent: &AgentId, ask: u32) -> Option<&ToolAsk> {
        self.agents.get(agent)?.ask(ask)
    }

    fn spawned(&mut self, spawned: &Spawned) {
        let Some(definition) = &self.definition else { return };
        let above = spawned.parent.as_ref().and_then(|parent| self.agents.get(parent));
        let above = above.map_or(&[][..], |context| &context.origin.path);
        let path = above.iter().chain([&spawned.agent]).cloned().collect();
        let (role, goal): (_, Arc<str>) = (spawned.role.clone(), spawned.goal.as_str().into());
        let folders = spawned.caps.folders.as_ref();
        let (tools, network) = (&spawned.caps.tools, &spawned.caps.network);
        let requests = spawned.caps.host_requests;
        let own = Own { tools, folders, network, requests, schema: spawned.output_schema.as_deref() };
        let brief = self.briefs.for_role(definition, &role, own);
        let takes_turns = definition.roles.get(&role).is_some_and(|role| role.turns.is_some());
        let first = takes_turns.then(|| Message::System(System::new(Arc::clone(&brief), Arc::clone(&goal))));
        let mut context = Context {
            origin: Arc::new(Origin { tree: self.tree, path, role, goal }),
            reader: Reader::new(spawned.attachment),
            brief,
            all: self.keeps_all.then(Box::default),
            list: MessageList::default(),
            unread: None,
            offloads: None,
            follows_up: spawned.caps.tools.has(Builtin::FollowupTask.as_str()),
            program: None,
        };
        first.into_iter().for_each(|first| context.push(Arc::new(first)));
        for (seq, letter) in self.unspawned.remove(&spawned.agent).unwrap_or_default() {
            context.letter(seq, letter);
        }
        make_room(&mut self.agents);
        self.agents.insert(spawned.agent.clone(), context);
    }

    /// Notifies an agent that its child's window is smaller than its own.
    fn clamped(&mut self, child: &AgentId, size: u64, parent_size: u64) {
        let Some(context) = self.agents.get(child) else { return };
        let [.., parent, _] = context.origin.path.as_ref() else { return };
        let parent = parent.clone();
        let text = clamp_text(child.as_str(), size, parent_size);
        if let Some(context) = self.agents.get_mut(&parent) {
            context.list.push(Arc::new(Message::Note(text)));
        }
    }

    fn letter(&mut self, to: &AgentId, message: Message) {
        match self.agents.get_mut(to) {
            Some(context) => context.letter(self.seq, message),
            None => self.unspawned.entry(to.clone()).or_default().push((self.seq, message)),
        }
    }

    fn asked(&mut self, agent: &AgentId, work: &Work) {
        if let Work::Tool(tool) = work
            && tool.is_program
        {
            return self.program_asked(agent, &tool.args);
        }
        let (Work::Model(model), Some(context)) = (work, self.agents.get_mut(agent)) else { return };
        if model.outside.is_some() {
            return;
        }
        match &model.summary {
            Some(covers) => {
                let summarising = Summarising::new(context, model, covers);
                self.summaries.insert(agent.clone(), summarising);
            }
            None => {
                context.read();
                model.left.iter().for_each(|left| context.tell_left(left));
                self.summaries.remove(agent);
                self.last_calls.remove(agent);
                if let Some(wrap_up) = &model.wrap_up {
                    let seen = context.add_last_call_note(wrap_up.cut.as_ref());
                    self.last_calls.extend(seen.map(|seen| (agent.clone(), seen)));
                }
            }
        }
    }

    fn result(
        &mut self,
        agent: &AgentId,
        ask: u32,
        text: String,
        is_error: bool,
        along: Option<Box<Attachments>>,
    ) {
        let Some(context) = self.agents.get_mut(agent) else { return };
        let Some(ToolAsk { id, tool, .. }) = context.ask(ask) else { return };
        let (id, tool) = (id.as_str().into(), tool.as_str().into());
        context.answer(ask, Message::Result { id, tool, text, is_error, along });
    }

    /// A long value becomes a file of the agent, as any long output.
    fn value_read(&mut self, agent: &AgentId, ask: u32, before: &str, name: &ValueName) {
        let (Some(value), Some(context)) = (self.shared.find(name.as_str()), self.agents.get_mut(agent))
        else {
            return;
        };
        let (whole, file) = context.offloaded(&value.body);
        let text = format!("{before}{}", offload::shown(value.body.clone(), &whole));
        self.result(agent, ask, text, false, Attachments::boxed(file, &[]));
    }

    fn call_ended(&mut self, call: OpenCall, outcome: &Outcome) {
        let OpenCall { agent, purpose, ask, is_void: false, .. } = call else { return };
        self.last_calls.remove(&agent);
        match &purpose {
            // An outside program has its own context.
            CallPurpose::Outside(_) => return,
            CallPurpose::Turn(_) => {
                return self.take_said(&agent, outcome.said(TurnKind::Ordinary, self.briefs.rules()));
            }
            CallPurpose::LastTurn(_) => {
                return self.take_said(&agent, outcome.said(TurnKind::Last, self.briefs.rules()));
            }
            CallPurpose::Summary(_) => {
                let summarising = self.summaries.get_mut(&agent);
                if let (Some(summarising), Outcome::Done { body, .. }) = (summarising, outcome) {
                    summarising.body = Some(body.clone());
                }
                return;
            }
            CallPurpose::Tool(_) | CallPurpose::Child | CallPurpose::Wait(_) | CallPurpose::Question => {}
        }
        if let Some(program) = self.agents.get_mut(&agent).and_then(|context| context.program.as_mut()) {
            if let Outcome::Done { body, .. } = outcome {
                program.answered(body);
            }
            return;
        }
        let wait = if let CallPurpose::Wait(wait) = &purpose { Some(wait.as_ref()) } else { None };
        let returned = self.returned(&agent, wait, outcome);
        let Some(context) = self.agents.get_mut(&agent) else { return };
        let message = if let Outcome::Message { seq } = outcome { context.taken(*seq) } else { None };
        // The approved tool will answer.
        let (Some(ask), false) = (ask, *outcome == Outcome::Approved) else { return };
        if let Some((text, is_error, facts)) = returned {
            return self.result(&agent, ask, text, is_error, Attachments::telling(facts));
        }
        let (whole, along) = if let Outcome::Done { body, .. } = outcome {
            let (whole, file) = context.offloaded(body);
            (whole, Attachments::boxed(file, body.parts()))
        } else {
            (Whole::Journal, None)
        };
        let waited = matches!((wait, outcome), (Some(WaitFor::Message), Outcome::Expired { .. }));
        let (text, is_error) = match message {
            Some(message) => (message.text, false),
            None if waited && self.briefs.rules() >= 8 => (NO_MESSAGE.to_owned(), true),
            None => outcome_text(outcome, &whole, self.briefs.rules()),
        };
        self.result(&agent, ask, text, is_error, along);
    }

    fn take_said(&mut self, agent: &AgentId, said: Option<Said<'_>>) {
        let (Some(context), Some(Said { body, asks, mismatch })) = (self.agents.get_mut(agent), said) else {
            return;
        };
        context.push(Arc::new(Message::Said { body: body.clone(), asks: asks.to_vec() }));
        if let Some(mismatch) = mismatch {
            context.list.push(Arc::new(Message::Mismatch(mismatch.note())));
        }
    }
}
