//! The fold: events in, contexts out. It holds the texts of living agents and nothing of those that ended, but for
//! results that their parent has not read.

mod child;
mod open;
mod restore;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::brief::{Briefs, Own, System};
use super::known::{Context, Reader, Unread};
use super::summary::Summarising;
use super::text::{clamp_text, heard, outcome_text};
use super::{Along, Message, Origin, Packet};
use crate::budget::Amounts;
use crate::context::offload::Whole;
use crate::definition::Definition;
use crate::record::{Attachment, Event, Exit, Outcome, RULES, Span, Spawned, Summary, ToolAsk, Work};
use crate::words::{AgentId, AnswerDigest, Body, By, ByName, CallId, Category, Seq, TreeId, make_room};

use open::Kind;
use open::Open;
use open::Opened;
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
    open: Open,
    end: Option<End>,
    /// By parent: what children knew that it may give another task, in the order in which they ended.
    finished: BTreeMap<AgentId, Vec<(AgentId, Context)>>,
    /// By parent: what children that completed answered, if it may compare that in a wait.
    answers: BTreeMap<AgentId, BTreeMap<AgentId, AnswerDigest>>,
    /// Letters for agents that are not there yet.
    unborn: BTreeMap<AgentId, Vec<(Seq, Message)>>,
    /// Summaries in the making, by whose.
    summaries: BTreeMap<AgentId, Summarising>,
    /// What those see whose last call sees less than their window holds.
    last_calls: BTreeMap<AgentId, Arc<Vec<Arc<Message>>>>,
    /// Whether every message is kept, and not only what a window holds.
    keeps_all: bool,
    /// What is needed to go back. Most trees never do.
    recall: Option<Box<Recall>>,
}

/// How a tree ended, in full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    pub exit: Exit,
    /// What there is to show: the answer, or as far as it got.
    pub shown: Body,
    /// What all of it used.
    pub spent: Amounts,
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
            open: Open::default(),
            end: None,
            finished: BTreeMap::new(),
            answers: BTreeMap::new(),
            unborn: BTreeMap::new(),
            summaries: BTreeMap::new(),
            last_calls: BTreeMap::new(),
            keeps_all: false,
            recall: None,
        }
    }

    /// No context yet; every message will be kept, also what no window holds any more.
    #[must_use]
    pub fn whole(tree: TreeId) -> Self {
        Self { keeps_all: true, ..Self::new(tree) }
    }

    /// Takes in the next event of the tree.
    pub fn apply(&mut self, event: &Event) {
        self.seq = Seq(self.seq.0 + 1);
        self.take(event);
        if self.recall.is_some() {
            self.keep_known(event);
        }
    }

    fn take(&mut self, event: &Event) {
        match event {
            Event::TreeStarted { definition, rules } => {
                self.definition = Some(Arc::clone(definition));
                self.briefs = Briefs::new(*rules);
            }
            Event::AgentSpawned(spawned) => self.spawned(spawned),
            Event::AgentRedirected { agent, instruction, .. } => {
                let (from, text, category) = (By::Person, instruction.clone(), Category::Dialog);
                self.letter(agent, Message::Heard { from, text, category, along: None });
            }
            Event::MessageSent { from, to, body, envelope } => {
                let text = heard(body.clone(), envelope);
                let (category, along) = (envelope.category, Along::boxed(None, body.parts()));
                self.letter(to, Message::Heard { from: from.clone(), text, category, along });
            }
            Event::CallAsked { call, agent, work } => self.asked(*call, agent, work),
            Event::WaitStarted { call, agent, ask, wait, .. } => {
                self.open.insert(*call, agent, Kind::of(*ask));
                self.open.waits(*call, wait);
            }
            Event::QuestionAsked { call, agent, ask, .. } => self.open.insert(*call, agent, Kind::of(*ask)),
            Event::ToolAnswered { agent, ask, body, is_error } => {
                let along = Along::boxed(None, body.parts());
                self.result(agent, *ask, body.text.clone(), *is_error, along);
            }
            Event::CallEnded { call, outcome, .. } => self.call_ended(*call, outcome),
            Event::AgentEnded { agent, exit, result, spent, .. } => {
                self.ended(agent, exit, result.as_ref(), spent);
            }
            Event::WindowSet { agent, size, clamped: Some(clamped), .. } if clamped.is_told => {
                self.clamped(agent, *size, clamped.parent_size);
            }
            Event::ContextShared { from, to, spans, as_is, replaces } => {
                let shared = |message| if *as_is { message } else { self.briefs.without_tools(message) };
                let known = self.knows(from).map(|context| {
                    Span::places(spans).filter_map(|place| context.at(place)).map(shared).collect::<Vec<_>>()
                });
                let (Some(known), Some(context)) = (known, self.agents.get_mut(to)) else { return };
                context.forget(replaces);
                context.receive(from, self.seq, known, *as_is);
            }
            Event::ContextCut { agent, cut, summary, .. } => {
                let summarising = self.summaries.remove(agent);
                let used = summarising.as_ref().filter(|_| matches!(summary, Some(Summary::By(_))));
                let used = used.and_then(|made| Some((&made.covers, made.body.as_ref()?)));
                if let Some(context) = self.agents.get_mut(agent) {
                    context.cut(cut, used);
                }
            }
            Event::ContextRestored(restored) => self.restored(restored),
            Event::WindowSet { .. }
            | Event::CheckpointMade { .. }
            | Event::ThreadJoined { .. }
            | Event::ThreadLeft { .. }
            | Event::AgentPaused { .. }
            | Event::AgentUnpaused { .. }
            | Event::AgentEnding { .. }
            | Event::CallWaiting { .. }
            | Event::CallStarted { .. }
            | Event::CallResumed { .. }
            | Event::CallSwitched { .. }
            | Event::AttemptFailed { .. }
            | Event::Charged { .. }
            | Event::WrapUpStarted { .. }
            | Event::TreeHalted { .. }
            | Event::TreeUnhalted
            | Event::LimitRaised { .. }
            | Event::ClockSet { .. }
            | Event::BreakerChanged { .. }
            | Event::MessagePublished { .. }
            | Event::TreeBranched(_)
            | Event::RateLimited { .. } => {}
        }
    }

    /// The last event that was taken in.
    #[must_use]
    pub const fn seq(&self) -> Seq {
        self.seq
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

    /// Everything that a living agent was told or said, if all of it is kept; otherwise what its window holds.
    #[must_use]
    pub fn messages(&self, agent: &AgentId) -> Option<&[Arc<Message>]> {
        let context = self.agents.get(agent)?;
        Some(context.all.as_ref().map_or(context.messages.as_slice(), |all| &all.messages))
    }

    /// What came to a living agent and its model has not been shown, in the order in which it will be.
    pub fn unread(&self, agent: &AgentId) -> impl Iterator<Item = &Message> {
        self.agents.get(agent).into_iter().flat_map(Context::unread_messages)
    }

    /// What the window of a living agent holds, read or not.
    pub fn window(&self, agent: &AgentId) -> impl Iterator<Item = &Message> {
        self.agents.get(agent).into_iter().flat_map(Context::window)
    }

    /// What the answer of a living agent must look like, if that is settled: a JSON Schema.
    #[must_use]
    pub fn output_schema(&self, agent: &AgentId) -> Option<&Arc<str>> {
        self.agents.get(agent)?.brief.schema.as_ref()
    }

    /// What the next model call of a living agent sees.
    #[must_use]
    pub fn packet(&self, agent: &AgentId, tokens: u64) -> Option<Packet> {
        let context = self.agents.get(agent)?;
        let (messages, tools) = (Arc::clone(&context.messages), Arc::clone(&context.brief.tools));
        Some(Packet { messages, tools, tokens })
    }

    /// What the model of a living agent sees that is to write a summary.
    #[must_use]
    pub fn summary_packet(&self, agent: &AgentId, tokens: u64) -> Option<Packet> {
        self.summaries.get(agent).map(|summarising| summarising.packet(tokens))
    }

    /// What the model of a living agent sees that is asked for the last time. It may call no tool.
    #[must_use]
    pub fn last_packet(&self, agent: &AgentId, tokens: u64) -> Option<Packet> {
        let context = self.agents.get(agent)?;
        let messages = Arc::clone(self.last_calls.get(agent).unwrap_or(&context.messages));
        Some(Packet { messages, tools: Arc::default(), tokens })
    }

    /// The last thing that the model of a living agent said.
    #[must_use]
    pub fn said(&self, agent: &AgentId) -> Option<&Body> {
        self.agents.get(agent)?.said().map(|(body, _)| body)
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
        let path = above.iter().chain([&spawned.agent]).cloned().collect();
        let (role, goal): (_, Arc<str>) = (spawned.role.clone(), spawned.goal.as_str().into());
        let own = Own { tools: &spawned.caps.tools, schema: spawned.output_schema.as_deref() };
        let brief = self.briefs.of(definition, &role, own);
        let takes_turns = definition.roles.get(&role).is_some_and(|role| role.turns.is_some());
        let first = takes_turns.then(|| Message::System(System::new(Arc::clone(&brief), Arc::clone(&goal))));
        let mut context = Context {
            origin: Arc::new(Origin { tree: self.tree, path, role, goal }),
            reader: Reader::of(spawned.attachment),
            brief,
            all: self.keeps_all.then(Box::default),
            messages: Arc::default(),
            unread: self.unborn.remove(&spawned.agent).map(Unread::with),
            offloads: None,
        };
        first.into_iter().for_each(|first| context.push(Arc::new(first)));
        make_room(&mut self.agents);
        self.agents.insert(spawned.agent.clone(), context);
        if let (Attachment::Call { call, ask }, Some(parent)) = (spawned.attachment, &spawned.parent) {
            self.open.insert(call, parent, Kind::of(ask));
        }
    }

    /// An agent is told that the window of its child is smaller than its own.
    fn clamped(&mut self, child: &AgentId, size: u64, parent_size: u64) {
        let Some(context) = self.agents.get(child) else { return };
        let [.., parent, _] = context.origin.path.as_ref() else { return };
        let (parent, seq) = (parent.clone(), self.seq);
        let text = clamp_text(child.as_str(), size, parent_size);
        if let Some(context) = self.agents.get_mut(&parent) {
            context.unread().letters.push((seq, Message::Note(text)));
        }
    }

    fn letter(&mut self, to: &AgentId, message: Message) {
        let letters = match self.agents.get_mut(to) {
            Some(context) => &mut context.unread().letters,
            None => self.unborn.entry(to.clone()).or_default(),
        };
        letters.push((self.seq, message));
    }

    fn asked(&mut self, call: CallId, agent: &AgentId, work: &Work) {
        let kind = match work {
            Work::Model(model) if model.summary.is_some() => Kind::Summary,
            Work::Model(model) if model.wrap_up.is_some() => Kind::LastCall,
            Work::Model(_) => Kind::Model,
            Work::Tool(work) => Kind::of(work.ask),
            Work::Child(_) | Work::Wait(_) | Work::Question(_) => Kind::Outside,
        };
        self.open.insert(call, agent, kind);
        let (Work::Model(model), Some(context)) = (work, self.agents.get_mut(agent)) else { return };
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

    fn result(&mut self, agent: &AgentId, ask: u32, text: String, is_error: bool, along: Option<Box<Along>>) {
        let Some(context) = self.agents.get_mut(agent) else { return };
        let Some(ToolAsk { id, tool, .. }) = context.ask(ask) else { return };
        let (id, tool) = (id.as_str().into(), tool.as_str().into());
        context.unread().answers.insert(ask, Message::Result { id, tool, text, is_error, along });
    }

    fn call_ended(&mut self, call: CallId, outcome: &Outcome) {
        let Some((Opened { agent, kind }, wait)) = self.open.remove(call) else { return };
        let returned = self.returned(&agent, wait.as_ref(), outcome);
        let Some(context) = self.agents.get_mut(&agent) else { return };
        self.last_calls.remove(&agent);
        let is_said = match (kind, outcome) {
            (Kind::Model, _) => true,
            (Kind::LastCall, Outcome::Done { body, .. }) => !body.text.trim().is_empty(),
            (Kind::LastCall | Kind::Summary | Kind::Ask(_) | Kind::Outside, _) => false,
        };
        if let (true, Outcome::Done { body, asks, mismatch, .. }) = (is_said, outcome) {
            context.push(Arc::new(Message::Said { body: body.clone(), asks: asks.clone() }));
            if let Some(mismatch) = mismatch {
                context.unread().letters.push((self.seq, Message::Mismatch(mismatch.note())));
            }
        }
        if let (Kind::Summary, Outcome::Done { body, .. }) = (kind, outcome)
            && let Some(summarising) = self.summaries.get_mut(&agent)
        {
            summarising.body = Some(body.clone());
        }
        if let Kind::Model | Kind::LastCall | Kind::Summary = kind {
            return;
        }
        let message = if let Outcome::Message { seq } = outcome { context.taken(*seq) } else { None };
        // The tool that was approved will answer.
        let (Kind::Ask(ask), false) = (kind, *outcome == Outcome::Approved) else { return };
        if let Some((text, is_error, facts)) = returned {
            return self.result(&agent, ask, text, is_error, Along::telling(facts));
        }
        let (whole, along) = if let Outcome::Done { body, .. } = outcome {
            let (whole, file) = context.offloaded(body);
            (whole, Along::boxed(file, body.parts()))
        } else {
            (Whole::Journal, None)
        };
        let (text, is_error) =
            message.map_or_else(|| outcome_text(outcome, &whole), |message| (message.text, false));
        self.result(&agent, ask, text, is_error, along);
    }
}
