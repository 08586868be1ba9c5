//! Events: every fact that a journal can hold, in the past tense. `docs/journal.md` describes each field. Old
//! journals must stay readable, so follow `style.md` before changing one.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::budget::{Amounts, Shortfall};
use crate::definition::{ApprovalScope, Definition, Graph, ModelSpec, SubjectPattern};
use crate::primitives::{
    Actor, AgentId, BlobRef, Body, CallId, Category, CheckpointKind, CheckpointName, Connection,
    ConnectionTotals, Envelope, Fault, ModelName, OutputPath, Running, SealKind, Seq, SessionId, SourceFile,
    SourceFiles, StoredFile, Time, TimerId, TokenCount, ToolName, TraceParent, ValueName,
};
use crate::record::{
    Adjusted, Branched, BreakerState, ClockKind, Cut, Exit, FollowupStart, FrameIx, HeldBy, LeftOut, NodeEnd,
    NodeStart, OnTimeout, Outcome, PlanChange, Question, Restored, Shortened, Span, Spawned, Summary,
    ValueForm, WaitFor, WaitReason, Work,
};

/// One fact about a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// Always the first event.
    TreeStarted {
        /// The version of the rules that decide it.
        rules: u32,
        definition: Arc<Definition>,
        /// The trace of its starter, if one was sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trace: Option<TraceParent>,
        /// What it is resumed from. The journal has the bytes.
        #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
        sources: SourceFiles,
    },
    /// An agent exists; also emitted for the root.
    AgentSpawned(Box<Spawned>),
    /// The agent and everything below it start no new effects.
    AgentPaused {
        agent: AgentId,
    },
    AgentUnpaused {
        agent: AgentId,
    },
    /// A person gave a running agent a new instruction.
    AgentRedirected {
        agent: AgentId,
        instruction: String,
        /// Its tokens, if counted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens: Option<TokenCount>,
        /// What happens to running calls.
        running: Running,
    },
    /// The size of the agent's window.
    WindowSet {
        agent: AgentId,
        size: u64,
        /// The tokens of its first message and its tools.
        first: TokenCount,
        /// Set if its parent's window is larger.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        clamped: Option<Clamped>,
    },
    /// An agent was given another agent's messages, by reference.
    ContextShared {
        from: AgentId,
        to: AgentId,
        /// The positions in the source's window.
        spans: Vec<Span>,
        /// Whether they become the recipient's own conversation, rather than shared context.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        as_is: bool,
        /// The positions in the recipient's window that they replace.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        replaces: Vec<Span>,
    },
    /// From now on the agent receives another's context messages as they arrive.
    ThreadJoined {
        agent: AgentId,
        of: AgentId,
        /// The most tokens of them in any reader's packet, if bounded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bound: Option<u64>,
    },
    /// An agent that received another's context messages is about to end.
    ThreadLeft {
        agent: AgentId,
        of: AgentId,
        /// The most tokens of them in any remaining reader's packet, if bounded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bound: Option<u64>,
    },
    /// An agent's window was full: from now on its packets leave something out. Its context loses nothing.
    ContextCut {
        agent: AgentId,
        cut: Cut,
        /// How much, by category.
        left_out: Vec<(Category, LeftOut)>,
        /// Whether a summary was written, if one was requested.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<Summary>,
        /// The open call whose packet was too long for its model, if that is the reason. It is tried again with less.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shortened: Option<Shortened>,
    },
    /// An agent's context was reset to a checkpoint. What came since stays in the journal.
    ContextRestored(Box<Restored>),
    /// The agent's exit is decided; its calls and children are being stopped.
    AgentEnding {
        agent: AgentId,
        exit: Exit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Body>,
    },
    /// An agent has ended: nothing of it runs, and nothing below it lives.
    AgentEnded {
        agent: AgentId,
        exit: Exit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Body>,
        /// If there is no result: the event with its model's last text. For a completed agent, that is the answer;
        /// otherwise, its progress.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said: Option<Seq>,
        /// What it and everything below it used.
        spent: Amounts,
        /// The part of it that no provider reported. Never set under rules 5.
        #[serde(default, skip_serializing_if = "Amounts::is_zero")]
        presumed: Amounts,
    },
    /// A clock of an agent started, stopped or got more time.
    ClockSet {
        agent: AgentId,
        clock: ClockKind,
        left_ms: u64,
        /// How long before the end the alarm fires, so the agent can wrap up.
        #[serde(default, skip_serializing_if = "is_zero_ms")]
        early_ms: u64,
        /// The alarm while the clock runs; `None` if it is stopped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        alarm: Option<Alarm>,
    },
    /// An agent requested a model or tool call.
    CallAsked {
        call: CallId,
        agent: AgentId,
        work: Work,
    },
    /// A call has to wait.
    CallWaiting {
        call: CallId,
        why: WaitReason,
        /// The account that blocks it, if it waits for budget.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        account: Option<AgentId>,
        /// When to check again, if it waits for time to pass.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        alarm: Option<Alarm>,
    },
    /// An attempt started; its worst case is held at every account up the chain.
    CallStarted {
        call: CallId,
        /// The first is 1.
        attempt: u32,
        held: Amounts,
        /// When it started, if its price depends on that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Time>,
        /// When it started, if calls with the same prompt prefix wait until the provider has cached it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        leads: Option<Time>,
    },
    /// The model's answer began to arrive, so its prompt is cached and the calls that waited for that may start.
    /// Recorded only if a call waited.
    FirstToken {
        call: CallId,
    },
    /// A connection of a running tool ended, or was refused.
    ConnectionEnded {
        call: CallId,
        connection: Connection,
    },
    /// A call had more connections than are recorded one by one.
    ConnectionsOmitted {
        call: CallId,
        totals: ConnectionTotals,
    },
    /// A connection of a program that the tree did not start ended, or its box refused it.
    ProgramConnected {
        agent: AgentId,
        connection: Connection,
    },
    /// Such programs had more connections than are recorded one by one.
    ProgramConnectionsOmitted {
        agent: AgentId,
        totals: ConnectionTotals,
    },
    /// A program that is an agent named the session that it is continued by. The last one counts.
    SessionNamed {
        call: CallId,
        session: SessionId,
    },
    /// A program that is an agent begins with a follow-up of the agent `of`.
    FollowupStarted {
        call: CallId,
        of: AgentId,
        start: FollowupStart,
    },
    /// After a restart, the same attempt was started again under the same key and hold. A program continues in its session.
    CallResumed {
        call: CallId,
    },
    /// A model call continues with another model or a smaller output cap.
    CallSwitched {
        call: CallId,
        model: ModelName,
        output_cap: u64,
    },
    /// An attempt failed and was settled; the call continues.
    AttemptFailed {
        call: CallId,
        /// `None` if unknown because the process died.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<Fault>,
        spent: Amounts,
        /// The part beyond the hold.
        #[serde(default, skip_serializing_if = "Amounts::is_zero")]
        overrun: Amounts,
        /// The part that no provider reported: the full hold, because it may be billed. Never set under rules 5.
        #[serde(default, skip_serializing_if = "Amounts::is_zero")]
        presumed: Amounts,
    },
    /// A call has ended; if it was running, its hold is settled.
    CallEnded {
        call: CallId,
        outcome: Outcome,
        #[serde(default, skip_serializing_if = "Amounts::is_zero")]
        spent: Amounts,
        /// The part beyond the hold.
        #[serde(default, skip_serializing_if = "Amounts::is_zero")]
        overrun: Amounts,
        /// The part that no provider reported: the full hold, because it may be billed. Never set under rules 5.
        #[serde(default, skip_serializing_if = "Amounts::is_zero")]
        presumed: Amounts,
        /// The input tokens that a model's provider reported. Rules 4 never set it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input_tokens: Option<u64>,
    },
    /// An agent waits for children or messages.
    WaitStarted {
        call: CallId,
        agent: AgentId,
        /// The index of the tool call in its last answer, from 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ask: Option<u32>,
        wait: WaitFor,
        alarm: Alarm,
    },
    /// An agent asked a person and waits.
    QuestionAsked {
        call: CallId,
        agent: AgentId,
        /// The index of the tool call in its last answer, from 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ask: Option<u32>,
        question: Question,
        alarm: Alarm,
    },
    /// A tool call of a turn was answered at once: it was refused, or needed no effect.
    ToolAnswered {
        agent: AgentId,
        /// The index of the tool call in its last answer, from 0.
        ask: u32,
        /// What the model reads.
        body: Body,
        #[serde(default)]
        is_error: bool,
        /// The shared value that the model reads after the text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<Box<ValueRead>>,
    },
    /// A shared value was written; it replaces what was there.
    ValueWritten {
        name: ValueName,
        /// Its JSON; a long one is a blob.
        value: Body,
        /// Whether the blob is a text, and the value a JSON string with it.
        #[serde(default = "ValueForm::json", skip_serializing_if = "ValueForm::is_json")]
        form: ValueForm,
        by: Actor,
        /// The first is 1.
        version: u64,
        at: Time,
    },
    /// The root is about to end: no agent can read the shared values any more.
    ValuesCleared {
        /// How many there were.
        count: u32,
    },
    /// Spending outside the tree was booked manually.
    Charged {
        /// Booked at this agent's account and every one above.
        agent: AgentId,
        amounts: Amounts,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        note: String,
    },
    /// A message waits for an agent, which may not exist yet.
    MessageSent {
        from: Actor,
        to: AgentId,
        body: Body,
        #[serde(default, skip_serializing_if = "Envelope::is_plain")]
        envelope: Envelope,
    },
    /// A message was published to the watchers of its topic.
    MessagePublished {
        from: Actor,
        body: Body,
        /// Has at least a topic.
        envelope: Envelope,
    },
    /// An agent's context, as it is after this decision, got a name.
    CheckpointMade {
        agent: AgentId,
        /// Unique in the home.
        name: CheckpointName,
        kind: CheckpointKind,
        /// The index among its agent's automatic checkpoints, if it is one.
        #[serde(default, skip_serializing_if = "is_zero")]
        number: u32,
    },
    /// An agent's time is nearly over: its next call is its last.
    WrapUpStarted {
        agent: AgentId,
        /// Whether its tools and children are stopped for it. Not while its model is answering.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        stops: bool,
    },
    /// A person approved a tool call, and others like it from now on.
    ApprovalRemembered {
        /// Whose call it was about.
        agent: AgentId,
        tool: ToolName,
        scope: ApprovalScope,
        pattern: SubjectPattern,
    },
    /// An agent repeated a tool call with the same result, and is warned.
    RepeatsNoticed {
        agent: AgentId,
        /// As its model wrote it.
        tool: String,
        /// Equal calls in a row so far.
        count: u32,
        /// How many end it; 0 is never.
        #[serde(default, skip_serializing_if = "is_zero")]
        count_max: u32,
    },
    /// A graph began. Its steps run below this agent, which has no model.
    GraphStarted {
        agent: AgentId,
        /// The definition's if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        graph: Option<Arc<Graph>>,
    },
    /// A person changed what a graph does from now on.
    GraphReplanned {
        /// The agent that stands for the graph.
        agent: AgentId,
        change: PlanChange,
        /// What happens to the steps that it is about and that run.
        running: Running,
    },
    /// A step or a group of a graph began.
    NodeStarted(Box<NodeStart>),
    /// A step or a group of a graph ended, or was skipped.
    NodeEnded {
        /// The agent that stands for the graph.
        graph: AgentId,
        frame: FrameIx,
        name: String,
        end: NodeEnd,
    },
    /// The root's ceiling was reached: nothing new starts until the ceiling is raised.
    TreeHalted {
        agent: AgentId,
        /// The call that needed more. It waits; if it is given up, the tree continues.
        call: CallId,
        account: AgentId,
        short: Shortfall,
        /// What else it lacks, at this ceiling or others: raising only one of them would not be enough.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        also: Vec<AccountShortfall>,
    },
    TreeUnhalted,
    /// The process that runs the tree is stopping: nothing new starts until the tree is resumed.
    TreeSuspended,
    /// A process runs the tree again.
    TreeContinued,
    /// From here on, nothing but this can be done with it: read it, and branch it.
    TreeSealed {
        kind: SealKind,
        /// From when on no time passes for its agents.
        at: Time,
    },
    /// It arrived where it continues, or was taken back.
    TreeUnsealed,
    /// From here on this is another tree, which shares all earlier events with its origin.
    TreeBranched(Box<Branched>),
    LimitRaised {
        /// The agent. Ceilings below that mirror its own also rise.
        agent: AgentId,
        add: Amounts,
        /// Time added to each of its clocks; the following events set them.
        #[serde(default, skip_serializing_if = "is_zero_ms")]
        add_ms: u64,
    },
    /// A person changed what holds for the whole tree.
    TreeAdjusted(Box<Adjusted>),
    /// A model call was not sent: a limit of this process does not allow it before `until`. Its hold returns, and its
    /// attempt does not count.
    CallHeldBack {
        call: CallId,
        by: HeldBy,
        until: Time,
    },
    /// A model was added to the definition of a running tree.
    ModelAdded {
        model: ModelName,
        spec: Box<ModelSpec>,
    },
    BreakerChanged {
        model: ModelName,
        breaker: BreakerState,
    },
    /// The model takes no calls until then.
    RateLimited {
        model: ModelName,
        until: Time,
    },
}

impl Event {
    /// Its type, as the journal spells it.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::TreeStarted { .. } => "tree_started",
            Self::AgentSpawned(_) => "agent_spawned",
            Self::AgentPaused { .. } => "agent_paused",
            Self::AgentUnpaused { .. } => "agent_unpaused",
            Self::AgentRedirected { .. } => "agent_redirected",
            Self::WindowSet { .. } => "window_set",
            Self::ContextShared { .. } => "context_shared",
            Self::ThreadJoined { .. } => "thread_joined",
            Self::ThreadLeft { .. } => "thread_left",
            Self::ContextCut { .. } => "context_cut",
            Self::ContextRestored(_) => "context_restored",
            Self::AgentEnding { .. } => "agent_ending",
            Self::AgentEnded { .. } => "agent_ended",
            Self::ClockSet { .. } => "clock_set",
            Self::CallAsked { .. } => "call_asked",
            Self::CallWaiting { .. } => "call_waiting",
            Self::CallStarted { .. } => "call_started",
            Self::FirstToken { .. } => "first_token",
            Self::ConnectionEnded { .. } => "connection_ended",
            Self::ConnectionsOmitted { .. } => "connections_omitted",
            Self::ProgramConnected { .. } => "program_connected",
            Self::ProgramConnectionsOmitted { .. } => "program_connections_omitted",
            Self::SessionNamed { .. } => "session_named",
            Self::FollowupStarted { .. } => "followup_started",
            Self::CallResumed { .. } => "call_resumed",
            Self::CallSwitched { .. } => "call_switched",
            Self::AttemptFailed { .. } => "attempt_failed",
            Self::CallHeldBack { .. } => "call_held_back",
            Self::CallEnded { .. } => "call_ended",
            Self::WaitStarted { .. } => "wait_started",
            Self::QuestionAsked { .. } => "question_asked",
            Self::ToolAnswered { .. } => "tool_answered",
            Self::ValueWritten { .. } => "value_written",
            Self::ValuesCleared { .. } => "values_cleared",
            Self::Charged { .. } => "charged",
            Self::MessageSent { .. } => "message_sent",
            Self::MessagePublished { .. } => "message_published",
            Self::CheckpointMade { .. } => "checkpoint_made",
            Self::WrapUpStarted { .. } => "wrap_up_started",
            Self::ApprovalRemembered { .. } => "approval_remembered",
            Self::RepeatsNoticed { .. } => "repeats_noticed",
            Self::GraphStarted { .. } => "graph_started",
            Self::GraphReplanned { .. } => "graph_replanned",
            Self::NodeStarted(_) => "node_started",
            Self::NodeEnded { .. } => "node_ended",
            Self::TreeHalted { .. } => "tree_halted",
            Self::TreeUnhalted => "tree_unhalted",
            Self::TreeSuspended => "tree_suspended",
            Self::TreeContinued => "tree_continued",
            Self::TreeBranched(_) => "tree_branched",
            Self::LimitRaised { .. } => "limit_raised",
            Self::TreeAdjusted(_) => "tree_adjusted",
            Self::TreeSealed { .. } => "tree_sealed",
            Self::TreeUnsealed => "tree_unsealed",
            Self::ModelAdded { .. } => "model_added",
            Self::BreakerChanged { .. } => "breaker_changed",
            Self::RateLimited { .. } => "rate_limited",
        }
    }

    /// The agent that it is about: for a message, the recipient or the publisher. `None` if it is about the whole
    /// tree, or names only a call whose first event named the agent.
    #[must_use]
    pub fn agent(&self) -> Option<&AgentId> {
        match self {
            Self::AgentSpawned(spawned) => Some(&spawned.agent),
            Self::ContextRestored(restored) => Some(&restored.agent),
            Self::ContextShared { to, .. } | Self::MessageSent { to, .. } => Some(to),
            Self::NodeStarted(start) => Some(&start.graph),
            Self::NodeEnded { graph, .. } => Some(graph),
            Self::MessagePublished { from, .. } | Self::ValueWritten { by: from, .. } => from.agent(),
            Self::AgentPaused { agent }
            | Self::AgentUnpaused { agent }
            | Self::AgentRedirected { agent, .. }
            | Self::WindowSet { agent, .. }
            | Self::ThreadJoined { agent, .. }
            | Self::ThreadLeft { agent, .. }
            | Self::ContextCut { agent, .. }
            | Self::AgentEnding { agent, .. }
            | Self::AgentEnded { agent, .. }
            | Self::ClockSet { agent, .. }
            | Self::CallAsked { agent, .. }
            | Self::WaitStarted { agent, .. }
            | Self::QuestionAsked { agent, .. }
            | Self::ToolAnswered { agent, .. }
            | Self::Charged { agent, .. }
            | Self::ProgramConnected { agent, .. }
            | Self::ProgramConnectionsOmitted { agent, .. }
            | Self::CheckpointMade { agent, .. }
            | Self::WrapUpStarted { agent, .. }
            | Self::ApprovalRemembered { agent, .. }
            | Self::RepeatsNoticed { agent, .. }
            | Self::GraphStarted { agent, .. }
            | Self::GraphReplanned { agent, .. }
            | Self::TreeHalted { agent, .. }
            | Self::LimitRaised { agent, .. } => Some(agent),
            Self::TreeAdjusted(adjusted) => Some(&adjusted.agent),
            Self::TreeStarted { .. }
            | Self::CallWaiting { .. }
            | Self::CallStarted { .. }
            | Self::FirstToken { .. }
            | Self::ConnectionEnded { .. }
            | Self::ConnectionsOmitted { .. }
            | Self::SessionNamed { .. }
            | Self::FollowupStarted { .. }
            | Self::CallResumed { .. }
            | Self::CallSwitched { .. }
            | Self::AttemptFailed { .. }
            | Self::CallHeldBack { .. }
            | Self::CallEnded { .. }
            | Self::ValuesCleared { .. }
            | Self::TreeUnhalted
            | Self::TreeSuspended
            | Self::TreeContinued
            | Self::TreeSealed { .. }
            | Self::TreeUnsealed
            | Self::TreeBranched(_)
            | Self::ModelAdded { .. }
            | Self::BreakerChanged { .. }
            | Self::RateLimited { .. } => None,
        }
    }

    /// The call that it opens, changes or ends. The spawn of a child whose parent waits also opens a call, which is
    /// in its attachment.
    #[must_use]
    pub const fn call(&self) -> Option<CallId> {
        match self {
            Self::CallAsked { call, .. }
            | Self::CallWaiting { call, .. }
            | Self::CallStarted { call, .. }
            | Self::FirstToken { call }
            | Self::ConnectionEnded { call, .. }
            | Self::ConnectionsOmitted { call, .. }
            | Self::SessionNamed { call, .. }
            | Self::FollowupStarted { call, .. }
            | Self::CallResumed { call }
            | Self::CallSwitched { call, .. }
            | Self::AttemptFailed { call, .. }
            | Self::CallHeldBack { call, .. }
            | Self::CallEnded { call, .. }
            | Self::WaitStarted { call, .. }
            | Self::QuestionAsked { call, .. } => Some(*call),
            _ => None,
        }
    }

    /// The topic that watchers filter by; none for events of a call, which have the topic of what the call is for.
    pub(crate) const fn topic(&self) -> Option<&'static str> {
        Some(match self {
            Self::AgentEnding { .. } => "agent.ending",
            Self::WindowSet { .. } => "context.window",
            Self::ContextShared { .. } => "context.share",
            Self::ThreadJoined { .. } => "thread.join",
            Self::ThreadLeft { .. } => "thread.leave",
            Self::ContextCut { .. } => "context.cut",
            Self::ContextRestored(_) => "context.restore",
            Self::AgentPaused { .. } => "agent.pause",
            Self::AgentUnpaused { .. } => "agent.unpause",
            Self::AgentRedirected { .. } => "agent.redirect",
            Self::ToolAnswered { .. } => "tool.answer",
            Self::ValueWritten { .. } => "context.write",
            Self::ValuesCleared { .. } => "context.clear",
            Self::Charged { .. } => "budget.charge",
            Self::ProgramConnected { .. } | Self::ProgramConnectionsOmitted { .. } => "agent.connection",
            Self::WrapUpStarted { .. } => "agent.wrap_up",
            Self::ApprovalRemembered { .. } => "agent.approval",
            Self::RepeatsNoticed { .. } => "agent.repeats",
            Self::LimitRaised { .. } => "budget.raise",
            Self::TreeAdjusted(_) => "tree.adjust",
            Self::TreeSealed { .. } => "tree.seal",
            Self::TreeUnsealed => "tree.unseal",
            Self::ClockSet { .. } => "agent.clock",
            Self::CheckpointMade { .. } => "agent.checkpoint",
            Self::MessageSent { .. } | Self::MessagePublished { .. } => "agent.message",
            Self::GraphStarted { .. } => "tree.graph",
            Self::GraphReplanned { .. } => "tree.replan",
            Self::NodeStarted(_) => "tree.node_start",
            Self::NodeEnded { .. } => "tree.node_end",
            Self::TreeHalted { .. } => "tree.halt",
            Self::TreeStarted { .. } => "tree.start",
            Self::TreeBranched(_) => "tree.branch",
            Self::TreeUnhalted => "tree.unhalt",
            Self::TreeSuspended => "tree.suspend",
            Self::TreeContinued => "tree.continue",
            Self::ModelAdded { .. } => "model.add",
            Self::BreakerChanged { .. } => "model.breaker",
            Self::RateLimited { .. } => "model.rate",
            Self::AgentSpawned(_) => "agent.spawn",
            Self::AgentEnded { .. } => "agent.result",
            Self::CallAsked { .. }
            | Self::CallWaiting { .. }
            | Self::CallStarted { .. }
            | Self::FirstToken { .. }
            | Self::ConnectionEnded { .. }
            | Self::ConnectionsOmitted { .. }
            | Self::SessionNamed { .. }
            | Self::FollowupStarted { .. }
            | Self::CallResumed { .. }
            | Self::CallSwitched { .. }
            | Self::AttemptFailed { .. }
            | Self::CallHeldBack { .. }
            | Self::WaitStarted { .. }
            | Self::QuestionAsked { .. }
            | Self::CallEnded { .. } => return None,
        })
    }

    /// The files in it that its tree is resumed from.
    #[must_use]
    pub fn sources(&self) -> &[SourceFile] {
        match self {
            Self::TreeStarted { sources, .. } => sources,
            Self::TreeAdjusted(adjusted) => &adjusted.sources,
            _ => &[],
        }
    }

    /// The files in it that an agent wrote.
    #[must_use]
    pub fn files(&self) -> &[StoredFile] {
        if let Self::CallEnded { outcome, .. } = self { outcome.files() } else { &[] }
    }

    /// The files of an agent that a tool removed with it.
    #[must_use]
    pub fn removed_files(&self) -> &[OutputPath] {
        if let Self::CallEnded { outcome, .. } = self { outcome.removed() } else { &[] }
    }

    /// Every body in it. The blobs of a body live as long as the event, so a missing one here loses data.
    #[must_use]
    pub fn bodies(&self) -> Vec<&Body> {
        match self {
            Self::AgentEnding { result, .. } | Self::AgentEnded { result, .. } => result.iter().collect(),
            Self::ToolAnswered { body, .. }
            | Self::ValueWritten { value: body, .. }
            | Self::MessageSent { body, .. }
            | Self::MessagePublished { body, .. } => vec![body],
            Self::CallEnded { outcome, .. } => outcome.body().into_iter().collect(),
            Self::CallAsked { work, .. } => {
                work.outside().map(|outside| &outside.request).into_iter().collect()
            }
            Self::QuestionAsked { question, .. } => match &question.on_timeout {
                OnTimeout::Default(answer) => vec![answer],
                OnTimeout::Fail | OnTimeout::Cancel => Vec::new(),
            },
            Self::TreeStarted { definition, .. } => {
                let turns = definition.roles.values().filter_map(|role| role.turns.as_ref());
                turns.map(|turns| &turns.prompt).collect()
            }
            Self::AgentSpawned(_)
            | Self::WindowSet { .. }
            | Self::ContextShared { .. }
            | Self::ThreadJoined { .. }
            | Self::ThreadLeft { .. }
            | Self::ContextCut { .. }
            | Self::ContextRestored(_)
            | Self::AgentPaused { .. }
            | Self::AgentUnpaused { .. }
            | Self::AgentRedirected { .. }
            | Self::CallWaiting { .. }
            | Self::CallStarted { .. }
            | Self::FirstToken { .. }
            | Self::ConnectionEnded { .. }
            | Self::ConnectionsOmitted { .. }
            | Self::ProgramConnected { .. }
            | Self::ProgramConnectionsOmitted { .. }
            | Self::SessionNamed { .. }
            | Self::FollowupStarted { .. }
            | Self::CallResumed { .. }
            | Self::CallSwitched { .. }
            | Self::AttemptFailed { .. }
            | Self::CallHeldBack { .. }
            | Self::WaitStarted { .. }
            | Self::ValuesCleared { .. }
            | Self::Charged { .. }
            | Self::GraphStarted { .. }
            | Self::GraphReplanned { .. }
            | Self::NodeStarted(_)
            | Self::NodeEnded { .. }
            | Self::TreeHalted { .. }
            | Self::TreeUnhalted
            | Self::TreeSuspended
            | Self::TreeContinued
            | Self::WrapUpStarted { .. }
            | Self::ApprovalRemembered { .. }
            | Self::RepeatsNoticed { .. }
            | Self::LimitRaised { .. }
            | Self::TreeAdjusted(_)
            | Self::TreeSealed { .. }
            | Self::TreeUnsealed
            | Self::ClockSet { .. }
            | Self::ModelAdded { .. }
            | Self::BreakerChanged { .. }
            | Self::CheckpointMade { .. }
            | Self::TreeBranched(_)
            | Self::RateLimited { .. } => Vec::new(),
        }
    }
}

/// A shared value that an agent read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueRead {
    pub name: ValueName,
    pub version: u64,
    /// The whole of it, if the agent is shown head and tail only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<BlobRef>,
}

/// A child's window is smaller than its parent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clamped {
    pub parent_size: u64,
    /// Whether the parent is notified.
    pub is_told: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
pub(crate) const fn is_zero_ms(ms: &u64) -> bool {
    *ms == 0
}

/// What a call lacks at the ceiling of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountShortfall {
    pub account: AgentId,
    pub short: Shortfall,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alarm {
    pub timer: TimerId,
    pub at: Time,
}
