//! What the live view knows of a tree: its world, and what people want to see that the world does not keep.

use std::collections::{BTreeMap, VecDeque};

use spinney::bus::{Delta, TracedEvent};
use spinney_journal::{Journal, JournalFault};
use spinney_kernel::port::model::DeltaKind;
use spinney_kernel::primitives::{AgentId, CallId, Seq, Time, TreeId};
use spinney_kernel::record::{Attachment, Event, FrameIx, NodeEnd, NodeStart, Outcome, Spawned};
use spinney_kernel::world::{AgentIx, World};

use super::steps::GraphSteps;
use crate::each_event;
use crate::events::{EventNames, describe};
use crate::wording::one_line;

/// Notices that are kept: more than any terminal shows.
const NOTICES_MAX: usize = 64;
/// Bytes of streamed text that are kept for each call: more than any line shows.
const STREAM_BYTES_MAX: usize = 1_024;
const GOAL_CHARS_MAX: usize = 200;
const NOTICE_CHARS_MAX: usize = 240;

/// A tree as it is after the events that it has taken.
pub struct LiveTree {
    pub(super) world: World,
    pub(super) names: EventNames,
    /// The name in its file.
    pub name: String,
    /// When its first event came.
    pub started: Time,
    /// When its last event came.
    pub last: Time,
    /// Every agent, in spawn order.
    pub agents: BTreeMap<AgentIx, LiveAgent>,
    /// The open calls.
    pub calls: BTreeMap<CallId, LiveCall>,
    /// What a person should know, the newest last.
    pub notices: VecDeque<LiveNotice>,
    /// How far its graphs are, in the order in which they began.
    pub graphs: Vec<GraphSteps>,
    /// The question that is being asked, in each agent's order.
    pub questions: BTreeMap<CallId, (AgentId, String)>,
}

/// What is shown of an agent beside its state.
#[derive(Clone, Debug)]
pub struct LiveAgent {
    /// The agent that spawned it.
    pub parent: Option<AgentIx>,
    /// Below the root.
    pub depth: usize,
    /// Those that it spawned, in order.
    pub children: Vec<AgentIx>,
    /// What it should do, in one line.
    pub goal: String,
    /// The step of a pipeline that it does.
    pub step: Option<String>,
    /// The place of the graph that it belongs to.
    pub(super) graph: Option<usize>,
    /// When something happened to it last.
    pub changed: Time,
    /// What its model said last.
    pub said: String,
    /// Why it ended, if it did not complete.
    pub failure: Option<String>,
    /// How often it was refused something.
    pub refusals: u32,
}

/// What is shown of an open call.
#[derive(Clone, Debug, Default)]
pub struct LiveCall {
    /// When it entered this state.
    pub since: Time,
    /// The account that it waits for.
    pub account: Option<AgentId>,
    /// What its model streams.
    pub stream: Option<LiveStream>,
}

/// The end of what a model streams.
#[derive(Clone, Debug)]
pub struct LiveStream {
    attempt: u32,
    /// Text or thoughts.
    pub kind: DeltaKind,
    /// The end of it.
    pub text: String,
}

/// What a person should know, while other lines scroll by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveNotice {
    /// When it last happened.
    pub at: Time,
    /// The agent that it is about.
    pub who: Option<AgentId>,
    /// What happened.
    pub text: String,
    /// How important it is.
    pub urgency: NoticeUrgency,
    /// How often it happened.
    pub count: u32,
}

/// How important a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeUrgency {
    /// Something failed.
    Failure,
    /// Needs attention.
    Warning,
    /// Good to know.
    Information,
}

impl LiveTree {
    /// Before its first event.
    #[must_use]
    pub fn new(tree: TreeId) -> Self {
        Self {
            world: World::new(tree),
            names: EventNames::default(),
            name: String::new(),
            started: Time(0),
            last: Time(0),
            agents: BTreeMap::new(),
            calls: BTreeMap::new(),
            notices: VecDeque::new(),
            graphs: Vec::new(),
            questions: BTreeMap::new(),
        }
    }

    /// That of a stored tree.
    ///
    /// # Errors
    /// If the tree cannot be read.
    pub async fn read(journal: &dyn Journal, tree: TreeId) -> Result<Self, JournalFault> {
        let mut live = Self::new(tree);
        each_event(journal, tree, |traced| {
            live.event(traced);
            Ok::<(), JournalFault>(())
        })
        .await?;
        Ok(live)
    }

    /// Its whole state.
    #[must_use]
    pub const fn world(&self) -> &World {
        &self.world
    }

    /// The open question that was asked first.
    #[must_use]
    pub fn oldest_question(&self) -> Option<CallId> {
        self.questions.keys().next().copied()
    }

    /// Takes the next event of the tree.
    pub fn event(&mut self, TracedEvent { recorded, context, .. }: &TracedEvent) {
        self.take(recorded.at, &recorded.event, context.agent.as_ref());
    }

    /// Takes the next event, which is about this agent.
    pub fn take(&mut self, at: Time, event: &Event, agent: Option<&AgentId>) {
        if self.world.seq() == Seq(0) {
            self.started = at;
        }
        self.last = at;
        self.names.enter(event);
        if let Some(urgency) = urgency(event) {
            let text = one_line(&describe(&self.names, event).text, NOTICE_CHARS_MAX);
            self.notice(LiveNotice { at, who: agent.cloned(), text, urgency, count: 1 });
        }
        self.world.apply(event);
        self.note(at, event, agent);
        self.names.leave(event);
    }

    /// Many agents often report the same; it is shown once, with a count.
    fn notice(&mut self, mut notice: LiveNotice) {
        let same = self.notices.iter().rposition(|other| other.text == notice.text);
        if let Some(same) = same.and_then(|at| self.notices.remove(at)) {
            notice.count += same.count;
        } else if self.notices.len() == NOTICES_MAX {
            self.notices.pop_front();
        }
        self.notices.push_back(notice);
    }

    /// Takes a piece of text that a model streams. It says itself whose it is.
    pub fn delta(&mut self, delta: &Delta) {
        self.streamed(delta.call, delta.attempt, delta.kind, &delta.text);
    }

    /// The same from another process.
    pub fn streamed(&mut self, call: CallId, attempt: u32, kind: DeltaKind, text: &str) {
        // A call that has ended has nothing more to show.
        let Some(note) = self.calls.get_mut(&call) else { return };
        match &mut note.stream {
            Some(stream) if stream.attempt == attempt && stream.kind == kind => stream.text.push_str(text),
            Some(stream) if stream.attempt > attempt => {}
            stream => *stream = Some(LiveStream { attempt, kind, text: text.to_owned() }),
        }
        if let Some(stream) = &mut note.stream
            && stream.text.len() > 2 * STREAM_BYTES_MAX
        {
            let from = stream.text.floor_char_boundary(stream.text.len() - STREAM_BYTES_MAX);
            stream.text.drain(..from);
        }
    }

    fn note(&mut self, at: Time, event: &Event, agent: Option<&AgentId>) {
        let ix = agent.and_then(|agent| self.world.agents().find(agent));
        match event {
            Event::TreeStarted { definition, .. } => {
                self.name = one_line(&definition.name, 60);
            }
            Event::GraphStarted { agent, .. } => {
                let run = ix.and_then(|ix| self.world.graphs().run(ix));
                self.graphs.extend(run.map(|run| GraphSteps::new(agent, run.graph())));
            }
            Event::AgentSpawned(spawned) => self.spawned(at, spawned),
            Event::AgentEnded { exit, .. } if !exit.is_success() => {
                if let Some(note) = ix.and_then(|ix| self.agents.get_mut(&ix)) {
                    note.failure = Some(one_line(&exit.to_string(), NOTICE_CHARS_MAX));
                }
            }
            Event::TreeBranched(branched) if branched.continuation.is_some() => {
                let root = self.world.agents().root().and_then(|root| self.agents.get_mut(&root));
                root.into_iter().for_each(|note| note.failure = None);
            }
            Event::CallAsked { call, .. } | Event::WaitStarted { call, .. } => {
                self.calls.insert(*call, LiveCall { since: at, ..LiveCall::default() });
            }
            Event::QuestionAsked { call, agent, question, .. } => {
                self.calls.insert(*call, LiveCall { since: at, ..LiveCall::default() });
                let text = match &question.approves {
                    Some(ask) => format!("may it call `{}`?", one_line(&ask.tool, 60)),
                    None => one_line(&question.text, GOAL_CHARS_MAX),
                };
                self.questions.insert(*call, (agent.clone(), text));
            }
            Event::CallWaiting { call, account, .. } => {
                if let Some(note) = self.calls.get_mut(call) {
                    note.account.clone_from(account);
                }
            }
            Event::CallStarted { call, .. } | Event::CallResumed { call } => {
                if let Some(note) = self.calls.get_mut(call) {
                    *note = LiveCall { since: at, ..LiveCall::default() };
                }
            }
            Event::CallEnded { call, outcome, .. } => self.ended(*call, outcome, ix),
            Event::ToolAnswered { is_error: true, .. } => self.refused(ix),
            Event::NodeStarted(start) => self.step_started(start),
            Event::NodeEnded { graph, frame, end, .. } => self.step_ended(graph, *frame, end),
            _ => {}
        }
        if let Some(note) = ix.and_then(|ix| self.agents.get_mut(&ix)) {
            note.changed = at;
        }
    }

    fn spawned(&mut self, at: Time, spawned: &Spawned) {
        let Some(ix) = self.world.agents().find(&spawned.agent) else { return };
        let parent = self.world.agents().parent(ix);
        let is_step = matches!(spawned.attachment, Attachment::Step { .. });
        let graph = parent.filter(|_| is_step).and_then(|parent| self.graph_of(parent));
        let step = match spawned.attachment {
            Attachment::Step { frame } => graph.and_then(|graph| self.graphs[graph].spawned(frame)),
            Attachment::Root | Attachment::Call { .. } | Attachment::Detached | Attachment::Disowned => None,
        };
        let depth = parent.and_then(|parent| self.agents.get(&parent)).map_or(0, |above| above.depth + 1);
        let note = LiveAgent {
            parent,
            depth,
            children: Vec::new(),
            goal: one_line(&spawned.goal, GOAL_CHARS_MAX),
            step,
            graph,
            changed: at,
            said: String::new(),
            failure: None,
            refusals: 0,
        };
        // A completed child that gets another task is spawned again under its id.
        let is_new = self.agents.insert(ix, note).is_none();
        if let (true, Some(above)) = (is_new, parent.and_then(|parent| self.agents.get_mut(&parent))) {
            above.children.push(ix);
        }
        if let Attachment::Call { call, .. } = spawned.attachment {
            self.calls.insert(call, LiveCall { since: at, ..LiveCall::default() });
        }
    }

    fn ended(&mut self, call: CallId, outcome: &Outcome, ix: Option<AgentIx>) {
        self.calls.remove(&call);
        self.questions.remove(&call);
        match outcome {
            Outcome::Done { body, .. } => {
                let is_turn = self.names.calls.find(call).is_some_and(|open| open.purpose.is_turn());
                if let Some(note) = ix.and_then(|ix| self.agents.get_mut(&ix))
                    && is_turn
                    && !body.text.trim().is_empty()
                {
                    note.said = one_line(&body.text, GOAL_CHARS_MAX);
                }
            }
            Outcome::Refused { .. } => self.refused(ix),
            _ => {}
        }
    }

    fn refused(&mut self, ix: Option<AgentIx>) {
        if let Some(note) = ix.and_then(|ix| self.agents.get_mut(&ix)) {
            note.refusals += 1;
        }
    }

    fn step_started(&mut self, start: &NodeStart) {
        let run = self.world.agents().find(&start.graph).and_then(|ix| self.world.graphs().run(ix));
        let found = self.graphs.iter_mut().find(|steps| steps.graph == start.graph);
        if let (Some(steps), Some(run)) = (found, run) {
            steps.started(start, &run.graph().node(start.node).kind);
        }
    }

    fn step_ended(&mut self, graph: &AgentId, frame: FrameIx, end: &NodeEnd) {
        if let Some(steps) = self.graphs.iter_mut().find(|steps| steps.graph == *graph) {
            steps.ended(frame, end);
        }
    }

    /// The place of the graph that an agent stands for or belongs to.
    fn graph_of(&self, agent: AgentIx) -> Option<usize> {
        let of_step = self.agents.get(&agent).and_then(|note| note.graph);
        let id = self.world.agents().id(agent);
        of_step.or_else(|| self.graphs.iter().position(|steps| steps.graph == *id))
    }
}

/// How important an event is, if people should know of it while others scroll by.
fn urgency(event: &Event) -> Option<NoticeUrgency> {
    match event {
        Event::AgentEnded { exit, .. } if !exit.is_success() => Some(NoticeUrgency::Failure),
        Event::TreeHalted { .. } => Some(NoticeUrgency::Failure),
        Event::NodeEnded { end: NodeEnd::Failed { .. }, .. } => Some(NoticeUrgency::Failure),
        Event::CallEnded { outcome: Outcome::Failed { .. } | Outcome::Lost, .. } => {
            Some(NoticeUrgency::Failure)
        }
        Event::CallEnded { outcome: Outcome::Refused { .. } | Outcome::Expired { .. }, .. }
        | Event::ToolAnswered { is_error: true, .. }
        | Event::AttemptFailed { .. }
        | Event::WindowSet { clamped: Some(_), .. }
        | Event::ContextCut { .. }
        | Event::ApprovalRemembered { .. }
        | Event::RepeatsNoticed { .. }
        | Event::WrapUpStarted { .. }
        | Event::BreakerChanged { .. }
        | Event::RateLimited { .. }
        | Event::Charged { .. } => Some(NoticeUrgency::Warning),
        Event::NodeEnded { end: NodeEnd::Skipped { .. }, .. }
        | Event::AgentPaused { .. }
        | Event::AgentUnpaused { .. }
        | Event::AgentRedirected { .. }
        | Event::ContextRestored(_)
        | Event::LimitRaised { .. }
        | Event::TreeAdjusted(_)
        | Event::TreeSealed { .. }
        | Event::TreeUnsealed
        | Event::TreeUnhalted
        | Event::TreeSuspended
        | Event::TreeBranched(_) => Some(NoticeUrgency::Information),
        Event::ConnectionEnded { connection, .. } | Event::ProgramConnected { connection, .. }
            if connection.refusal().is_some() =>
        {
            Some(NoticeUrgency::Warning)
        }
        _ => None,
    }
}
