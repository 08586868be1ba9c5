//! Events: every fact that a journal can hold, in the past tense. `docs/journal.md` describes each field; changing
//! one is the one dangerous edit, and `style.md` says how it is done.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::budget::{Amounts, Shortfall, Terms};
use crate::definition::Definition;
use crate::record::{
    ClockKind, Cut, Exit, LeftOut, OnTimeout, Outcome, Question, Span, Spawned, Standing, Summary, WaitFor,
    Why, Work,
};
use crate::words::{
    AgentId, Body, By, CallId, Category, CheckpointKind, CheckpointName, Envelope, Fault, ModelName, Running,
    Seq, Time, TimerId, TreeId,
};

/// The version of the rules under which new trees start. A journal names the one it was written under, and its tree
/// goes on under it.
pub const RULES: u32 = 4;

/// Whether this kernel still decides by a version of the rules. Journals of the others can be read and continued, but
/// their decisions cannot be made again.
#[must_use]
pub const fn are_decided(rules: u32) -> bool {
    matches!(rules, 2..=RULES)
}

/// One fact about a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The tree exists; always the first event.
    TreeStarted {
        /// The rules it is decided by.
        rules: u32,
        /// What it is made of.
        definition: Arc<Definition>,
    },
    /// An agent exists, the root included.
    AgentSpawned(Box<Spawned>),
    /// An agent and everything below it start no further effect.
    AgentPaused { agent: AgentId },
    /// The pause is over.
    AgentUnpaused { agent: AgentId },
    /// A person gave an agent a new instruction while it ran.
    AgentRedirected {
        agent: AgentId,
        /// What to do from here on.
        instruction: String,
        /// How many tokens that has at most, if somebody counted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens: Option<u64>,
        /// What becomes of what runs.
        running: Running,
    },
    /// A packet of this agent has at most so many tokens.
    WindowSet {
        agent: AgentId,
        size: u64,
        /// The most tokens that its first message has, and the tools that are told beside it.
        first: u64,
        /// If that is less than its parent's: how many those are, and whether the parent is told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        clamped: Option<Clamped>,
    },
    /// An agent was told what another knows, by reference.
    ContextShared {
        from: AgentId,
        to: AgentId,
        /// Which messages of the one's window.
        spans: Vec<Span>,
        /// Whether they are the other's own conversation from here on, and not what somebody told it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        as_is: bool,
        /// Which messages of the other's window go for it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        replaces: Vec<Span>,
    },
    /// An agent reads the context messages of another one from here on, as they come.
    ThreadJoined {
        agent: AgentId,
        of: AgentId,
        /// The most tokens of them in the packet of anybody who knows them, if there is a bound.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bound: Option<u64>,
    },
    /// An agent that read the context messages of another one is about to end.
    ThreadLeft {
        agent: AgentId,
        of: AgentId,
        /// The most tokens of them in the packet of anybody who still reads them, if there is a bound.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bound: Option<u64>,
    },
    /// An agent's window was full: from here on its packets leave something out. Nothing of its context is lost.
    ContextCut {
        agent: AgentId,
        cut: Cut,
        /// How much that is, by category.
        left_out: Vec<(Category, LeftOut)>,
        /// Where a model was to write a summary of it: whether it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<Summary>,
    },
    /// An agent's context is what one was at a checkpoint. What it had since stays in the journal.
    ContextRestored(Box<Restored>),
    /// It is decided how an agent ends; its calls and children are being stopped.
    AgentEnding {
        agent: AgentId,
        exit: Exit,
        /// What it has to show.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Body>,
    },
    /// An agent has ended; nothing of it runs, nothing below it lives.
    AgentEnded {
        agent: AgentId,
        exit: Exit,
        /// What it has to show.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Body>,
        /// Where it has no result: the event with the last thing its model said. The answer of an agent that
        /// completed, and otherwise as far as it got.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said: Option<Seq>,
        /// What it and everything below it used.
        spent: Amounts,
    },
    /// A clock of an agent started or stopped, or got more time.
    ClockSet {
        agent: AgentId,
        clock: ClockKind,
        /// What is left on it.
        left_ms: u64,
        /// How long before that is over its alarm comes, so that the agent can wrap up.
        #[serde(default, skip_serializing_if = "is_zero_ms")]
        early_ms: u64,
        /// The alarm, if the clock runs from here on; none if it stands still.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        alarm: Option<Alarm>,
    },
    /// An agent asked for a model or tool call.
    CallAsked { call: CallId, agent: AgentId, work: Work },
    /// A call cannot go on yet.
    CallWaiting {
        call: CallId,
        why: Why,
        /// Whose account blocks it, if it waits for budget.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        account: Option<AgentId>,
        /// When to look again, if time is what it waits for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        alarm: Option<Alarm>,
    },
    /// An attempt started; its worst case is held at every account up the chain.
    CallStarted {
        call: CallId,
        /// Which attempt; the first is 1.
        attempt: u32,
        held: Amounts,
        /// When it started, if what its model costs depends on that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Time>,
    },
    /// After a restart, the same attempt was started again under the same key and hold.
    CallResumed { call: CallId },
    /// A model call goes on with other terms: another model, or a smaller output cap.
    CallSwitched {
        call: CallId,
        /// The model from here on.
        model: ModelName,
        /// The output cap from here on.
        output_cap: u64,
    },
    /// An attempt failed and was settled; the call goes on.
    AttemptFailed {
        call: CallId,
        /// What went wrong; none if nobody knows because the process died.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<Fault>,
        spent: Amounts,
        /// Of it, beyond the hold.
        #[serde(default, skip_serializing_if = "Amounts::is_zero")]
        overrun: Amounts,
    },
    /// A call has ended; if it was running, its hold is settled.
    CallEnded {
        call: CallId,
        outcome: Outcome,
        /// What its last attempt used.
        #[serde(default, skip_serializing_if = "Amounts::is_zero")]
        spent: Amounts,
        /// Of it, beyond the hold.
        #[serde(default, skip_serializing_if = "Amounts::is_zero")]
        overrun: Amounts,
    },
    /// An agent waits for children or messages.
    WaitStarted {
        /// The call that waits.
        call: CallId,
        agent: AgentId,
        /// Which of the tools that its last answer asked for, counted from 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ask: Option<u32>,
        wait: WaitFor,
        /// When it gives up.
        alarm: Alarm,
    },
    /// An agent asks a person and waits.
    QuestionAsked {
        /// The call that waits.
        call: CallId,
        agent: AgentId,
        /// Which of the tools that its last answer asked for, counted from 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ask: Option<u32>,
        question: Question,
        /// When it gives up.
        alarm: Alarm,
    },
    /// A tool call of an agent's turn was answered at once: it was refused, or needed nobody outside.
    ToolAnswered {
        agent: AgentId,
        /// Which of the tools that its last answer asked for, counted from 0.
        ask: u32,
        /// What the model reads.
        body: Body,
        /// Whether it could not be done.
        #[serde(default)]
        is_error: bool,
    },
    /// Outside spending was booked by hand.
    Charged {
        /// At whose account, and every one above.
        agent: AgentId,
        amounts: Amounts,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        note: String,
    },
    /// A message waits for an agent, which may not be there yet.
    MessageSent {
        from: By,
        to: AgentId,
        body: Body,
        /// What stands on it.
        #[serde(default, skip_serializing_if = "Envelope::is_plain")]
        envelope: Envelope,
    },
    /// A message is there for whoever watches its topic.
    MessagePublished {
        from: By,
        body: Body,
        /// What stands on it: its topic, at least.
        envelope: Envelope,
    },
    /// An agent's context has a name, as it is when this decision is over.
    CheckpointMade {
        agent: AgentId,
        /// What it is called, in the whole home.
        name: CheckpointName,
        kind: CheckpointKind,
        /// The how-manieth of its agent it is, if it is an automatic one.
        #[serde(default, skip_serializing_if = "is_zero")]
        number: u32,
    },
    /// An agent's time is nearly up: its next call is its last.
    WrapUpStarted {
        agent: AgentId,
        /// Whether its tools and children are stopped for that. They are not while its model answers.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        stops: bool,
    },
    /// The root's ceiling was reached: nothing new starts until somebody raises it.
    TreeHalted {
        /// Who asked for more.
        agent: AgentId,
        /// With which call; it waits, and if it is given up the tree goes on.
        call: CallId,
        account: AgentId,
        short: Shortfall,
    },
    /// The tree goes on.
    TreeUnhalted,
    /// Whoever runs the tree is stopping: nothing new starts until somebody runs it again.
    TreeSuspended,
    /// Somebody runs the tree again.
    TreeContinued,
    /// From here on it is another tree, which shares everything before with its origin.
    TreeBranched(Box<Branched>),
    /// A person raised ceilings.
    LimitRaised {
        /// Whose; ceilings below that only mirrored these rise too.
        agent: AgentId,
        add: Amounts,
        /// How much more time each of its clocks has; the events after this one say how they stand.
        #[serde(default, skip_serializing_if = "is_zero_ms")]
        add_ms: u64,
    },
    /// A model's breaker opened or closed.
    BreakerChanged {
        model: ModelName,
        /// Its state from here on.
        breaker: BreakerState,
    },
    /// A model takes no calls until then.
    RateLimited { model: ModelName, until: Time },
}

impl Event {
    /// Its type as one word, the same that stands in the journal.
    #[must_use]
    pub const fn word(&self) -> &'static str {
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
            Self::CallResumed { .. } => "call_resumed",
            Self::CallSwitched { .. } => "call_switched",
            Self::AttemptFailed { .. } => "attempt_failed",
            Self::CallEnded { .. } => "call_ended",
            Self::WaitStarted { .. } => "wait_started",
            Self::QuestionAsked { .. } => "question_asked",
            Self::ToolAnswered { .. } => "tool_answered",
            Self::Charged { .. } => "charged",
            Self::MessageSent { .. } => "message_sent",
            Self::MessagePublished { .. } => "message_published",
            Self::CheckpointMade { .. } => "checkpoint_made",
            Self::WrapUpStarted { .. } => "wrap_up_started",
            Self::TreeHalted { .. } => "tree_halted",
            Self::TreeUnhalted => "tree_unhalted",
            Self::TreeSuspended => "tree_suspended",
            Self::TreeContinued => "tree_continued",
            Self::TreeBranched(_) => "tree_branched",
            Self::LimitRaised { .. } => "limit_raised",
            Self::BreakerChanged { .. } => "breaker_changed",
            Self::RateLimited { .. } => "rate_limited",
        }
    }

    /// The agent that it is about: for a message whoever gets it, or who published it. None if it is about the whole tree, or
    /// names only a call whose first event named the agent.
    #[must_use]
    pub fn agent(&self) -> Option<&AgentId> {
        match self {
            Self::AgentSpawned(spawned) => Some(&spawned.agent),
            Self::ContextRestored(restored) => Some(&restored.agent),
            Self::ContextShared { to, .. } | Self::MessageSent { to, .. } => Some(to),
            Self::MessagePublished { from, .. } => match from {
                By::Agent(agent) => Some(agent),
                By::Person => None,
            },
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
            | Self::CheckpointMade { agent, .. }
            | Self::WrapUpStarted { agent, .. }
            | Self::TreeHalted { agent, .. }
            | Self::LimitRaised { agent, .. } => Some(agent),
            Self::TreeStarted { .. }
            | Self::CallWaiting { .. }
            | Self::CallStarted { .. }
            | Self::CallResumed { .. }
            | Self::CallSwitched { .. }
            | Self::AttemptFailed { .. }
            | Self::CallEnded { .. }
            | Self::TreeUnhalted
            | Self::TreeSuspended
            | Self::TreeContinued
            | Self::TreeBranched(_)
            | Self::BreakerChanged { .. }
            | Self::RateLimited { .. } => None,
        }
    }

    /// The call that it opens, moves or ends. The spawn of a child that its parent waits for opens one too; that one stands in
    /// its attachment.
    #[must_use]
    pub const fn call(&self) -> Option<CallId> {
        match self {
            Self::CallAsked { call, .. }
            | Self::CallWaiting { call, .. }
            | Self::CallStarted { call, .. }
            | Self::CallResumed { call }
            | Self::CallSwitched { call, .. }
            | Self::AttemptFailed { call, .. }
            | Self::CallEnded { call, .. }
            | Self::WaitStarted { call, .. }
            | Self::QuestionAsked { call, .. } => Some(*call),
            _ => None,
        }
    }

    /// Every body in it. What a body refers to must be kept as long as the event, so that forgetting one loses data.
    #[must_use]
    pub fn bodies(&self) -> Vec<&Body> {
        match self {
            Self::AgentEnding { result, .. } | Self::AgentEnded { result, .. } => result.iter().collect(),
            Self::ToolAnswered { body, .. }
            | Self::MessageSent { body, .. }
            | Self::MessagePublished { body, .. } => vec![body],
            Self::CallEnded { outcome, .. } => outcome.body().into_iter().collect(),
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
            | Self::CallAsked { .. }
            | Self::CallWaiting { .. }
            | Self::CallStarted { .. }
            | Self::CallResumed { .. }
            | Self::CallSwitched { .. }
            | Self::AttemptFailed { .. }
            | Self::WaitStarted { .. }
            | Self::Charged { .. }
            | Self::TreeHalted { .. }
            | Self::TreeUnhalted
            | Self::TreeSuspended
            | Self::TreeContinued
            | Self::WrapUpStarted { .. }
            | Self::LimitRaised { .. }
            | Self::ClockSet { .. }
            | Self::BreakerChanged { .. }
            | Self::CheckpointMade { .. }
            | Self::TreeBranched(_)
            | Self::RateLimited { .. } => Vec::new(),
        }
    }
}

/// A child's window is smaller than its parent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clamped {
    /// The tokens of the parent's window.
    pub parent_size: u64,
    /// Whether the parent is told.
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

/// A context that is what it was at a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restored {
    /// Whose context it is from here on.
    pub agent: AgentId,
    pub from: AgentId,
    /// The event of the checkpoint.
    pub at: Seq,
    /// The checkpoint of what was before.
    pub prior: CheckpointName,
    /// How the one whose it was stood there.
    pub standing: Standing,
    /// Tools that the last answer asked for and that had not answered there, counted from 0: they never will.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unanswered: Vec<u32>,
    /// Calls that stay open, for children that were there. What any other open call brings nobody reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stays: Vec<CallId>,
    /// Children that were not there. They are stopped, and nobody hears of their end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cancelled: Vec<AgentId>,
}

/// How a branch begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branched {
    pub tree: TreeId,
    pub from: TreeId,
    /// The last event that both share.
    pub at: Seq,
    /// What it is called, as its origin is.
    pub name: String,
    /// The terms of its root's account from here on. Every account begins anew: what was spent in the origin is not
    /// spent here.
    pub terms: Terms,
    /// How much later it is here: so much later everything is due that waits for a moment.
    #[serde(default)]
    pub later_ms: u64,
}

/// A timer and when it fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alarm {
    pub timer: TimerId,
    pub at: Time,
}

/// Whether calls to a model make sense right now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    #[default]
    Closed,
    /// It failed too often; calls go elsewhere or are refused.
    Open,
}
