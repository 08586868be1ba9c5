//! What an agent is doing now.

use std::cmp::Reverse;

use spinney_kernel::budget::Resource;
use spinney_kernel::port::model::DeltaKind;
use spinney_kernel::primitives::{AgentId, CallId, ModelName, Time, ToolName};
use spinney_kernel::record::{ExitKind, WaitFor, WaitReason, Work};
use spinney_kernel::world::{Agent, AgentIx, AgentState, Call, CallStage};

use super::state::LiveTree;

/// What an agent does now, or how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentDoing<'a> {
    /// It failed, and why.
    Failed(&'a str),
    /// What it said last.
    Said(&'a str),
    /// It completed and said nothing.
    Completed,
    /// What it started is being stopped.
    Ending,
    /// It is paused and has no open call.
    Paused,
    /// It has said nothing yet: what it should do.
    Begins(&'a str),
    /// Its most telling open call.
    Calls(DoingCall<'a>),
}

/// An open call of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoingCall<'a> {
    /// What it is.
    pub what: CallDoing<'a>,
    /// How many other open calls the agent has that are not named.
    pub others: usize,
    /// When it entered this state.
    pub age_ms: u64,
}

/// What an open call does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallDoing<'a> {
    /// It has not started.
    Waits {
        /// What it waits for.
        why: WaitReason,
        /// The account that has no room, if that is why.
        account: Option<&'a AgentId>,
        /// Until when its model takes no calls, if that is why.
        until: Option<Time>,
    },
    /// A model answers, or a tool prints.
    Streams {
        /// Text, thoughts or output.
        kind: DeltaKind,
        /// The end of it.
        text: &'a str,
    },
    /// A model was asked.
    AsksModel(&'a ModelName),
    /// A tool runs.
    CallsTool {
        /// The tool.
        tool: &'a ToolName,
        /// Its arguments, as the model wrote them.
        args: &'a str,
    },
    /// It waits for these agents.
    WaitsForAgents(Vec<&'a AgentId>),
    /// It waits for a message.
    WaitsForMessage,
    /// It asks a person this.
    AsksPerson(&'a str),
}

/// The state of an agent, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AgentMark {
    /// It asks a person.
    Asking,
    /// Its tree is halted.
    Halted,
    /// It failed.
    Failed,
    /// A call of it runs.
    Running,
    /// A call of it waits for budget.
    WaitingForBudget,
    /// It is paused.
    Paused,
    /// What it started is being stopped.
    Ending,
    /// A call of it waits for something else.
    Waiting,
    /// It has no open call.
    Idle,
    /// It was cancelled.
    Cancelled,
    /// It completed.
    Completed,
}

impl AgentMark {
    /// Its word in a count of agents that are not shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Asking => "asking",
            Self::Halted => "halted",
            Self::Failed => "failed",
            Self::Running => "running",
            Self::WaitingForBudget => "waiting for budget",
            Self::Paused => "paused",
            Self::Ending => "ending",
            Self::Waiting => "waiting",
            Self::Idle => "idle",
            Self::Cancelled => "cancelled",
            Self::Completed => "completed",
        }
    }
}

impl LiveTree {
    /// How an agent is.
    #[must_use]
    pub fn mark(&self, ix: AgentIx) -> AgentMark {
        let agents = self.world.agents();
        if let Some(ended) = agents.ended(ix) {
            return match ended.exit {
                ExitKind::Completed => AgentMark::Completed,
                ExitKind::Cancelled => AgentMark::Cancelled,
                ExitKind::Failed | ExitKind::Exhausted => AgentMark::Failed,
            };
        }
        let Some(agent) = agents.living(ix) else { return AgentMark::Idle };
        if !matches!(agent.state, AgentState::Live) {
            return AgentMark::Ending;
        }
        if agent.running > 0 {
            return AgentMark::Running;
        }
        if self.world.halted().is_some() {
            return AgentMark::Halted;
        }
        let waits = |wanted: fn(WaitReason) -> bool| {
            self.open(agent).any(|(_, call)| matches!(call.stage, CallStage::Waiting(why) if wanted(why)))
        };
        if waits(|why| why == WaitReason::Person) {
            AgentMark::Asking
        } else if agent.paused || waits(|why| why == WaitReason::Paused) {
            AgentMark::Paused
        } else if waits(|why| matches!(why, WaitReason::Budget { .. } | WaitReason::Ceiling)) {
            AgentMark::WaitingForBudget
        } else if agent.open.is_empty() {
            AgentMark::Idle
        } else {
            AgentMark::Waiting
        }
    }

    fn open<'a>(&'a self, agent: &'a Agent) -> impl Iterator<Item = (CallId, &'a Call)> {
        agent.open.iter().filter_map(|id| Some((*id, self.world.call(*id)?)))
    }

    /// What an agent does now, or how it ended; `None` if there is no such agent.
    #[must_use]
    pub fn doing(&self, ix: AgentIx, now: Time) -> Option<AgentDoing<'_>> {
        let note = self.agents.get(&ix)?;
        let agents = self.world.agents();
        let Some(agent) = agents.living(ix) else {
            return Some(match (&note.failure, note.said.is_empty()) {
                (Some(failure), _) => AgentDoing::Failed(failure),
                (None, false) => AgentDoing::Said(&note.said),
                (None, true) => AgentDoing::Completed,
            });
        };
        if !matches!(agent.state, AgentState::Live) {
            return Some(AgentDoing::Ending);
        }
        let mut open: Vec<(CallId, &Call)> = self.open(agent).collect();
        // What runs says more than what waits, and the newest most.
        open.sort_by_key(|(id, call)| (!call.is_running(), Reverse(*id)));
        Some(match open.first() {
            Some((id, call)) => {
                let since = self.calls.get(id).map_or(now, |note| note.since);
                // Children that it waits for are all named.
                let others = if let Work::Child(_) = call.work { 0 } else { open.len() - 1 };
                let what = self.call(agents.id(ix), agent, *id, call);
                AgentDoing::Calls(DoingCall { what, others, age_ms: now.0.saturating_sub(since.0) })
            }
            None if agent.paused => AgentDoing::Paused,
            None if note.said.is_empty() => AgentDoing::Begins(&note.goal),
            None => AgentDoing::Said(&note.said),
        })
    }

    fn call<'a>(&'a self, id: &AgentId, agent: &'a Agent, number: CallId, call: &'a Call) -> CallDoing<'a> {
        let note = self.calls.get(&number);
        match (&call.work, call.stage) {
            (_, CallStage::Waiting(why)) if !is_own_wait(why) => {
                let until = match (&call.work, why) {
                    (Work::Model(work), WaitReason::Rate) => self.world.rate_limit(&work.model),
                    _ => None,
                };
                CallDoing::Waits { why, account: note.and_then(|note| note.account.as_ref()), until }
            }
            (Work::Model(model), _) => match note.and_then(|note| note.stream.as_ref()) {
                Some(stream) if !stream.text.trim().is_empty() => {
                    CallDoing::Streams { kind: stream.kind, text: &stream.text }
                }
                Some(_) | None => CallDoing::AsksModel(&model.model),
            },
            (Work::Tool(tool), _) => {
                if let Some(stream) = note.and_then(|note| note.stream.as_ref())
                    && !stream.text.trim().is_empty()
                {
                    return CallDoing::Streams { kind: stream.kind, text: &stream.text };
                }
                let asked = tool.ask.and_then(|ask| self.names.ask(id, ask));
                let args = asked.map_or(tool.args.as_str(), |ask| ask.args.as_str());
                CallDoing::CallsTool { tool: &tool.tool, args }
            }
            (Work::Child(_), _) => {
                let children = self.open(agent).filter_map(|(_, call)| match &call.work {
                    Work::Child(child) => Some(&child.agent),
                    Work::Model(_) | Work::Tool(_) | Work::Wait(_) | Work::Question(_) => None,
                });
                CallDoing::WaitsForAgents(children.collect())
            }
            (Work::Wait(WaitFor::Message), _) => CallDoing::WaitsForMessage,
            (Work::Wait(WaitFor::Children { agents, .. }), _) => {
                let living = agents.iter().filter(|agent| {
                    let ix = self.world.agents().find(agent);
                    ix.is_some_and(|ix| self.world.agents().living(ix).is_some())
                });
                CallDoing::WaitsForAgents(living.collect())
            }
            (Work::Question(question), _) => CallDoing::AsksPerson(&question.text),
        }
    }
}

/// Whether the call itself is a wait, so its own words say more.
const fn is_own_wait(why: WaitReason) -> bool {
    matches!(why, WaitReason::Children | WaitReason::Message | WaitReason::Person)
}

/// What a call waits for, in words.
#[must_use]
pub fn waiting_words(why: WaitReason, account: Option<&AgentId>) -> String {
    match why {
        WaitReason::Budget { ask } => {
            let most = Resource::ALL.into_iter().find(|resource| ask.get(*resource) > 0);
            let most = most.map(|resource| format!("{:#} of ", resource.amount(ask.get(resource))));
            let whose = account.map(|account| format!(" of {account}")).unwrap_or_default();
            format!("waits for {}the budget{whose}", most.unwrap_or_default())
        }
        WaitReason::Ceiling => "waits for budget: at its ceiling".to_owned(),
        WaitReason::Slot => "waits for a free slot".to_owned(),
        WaitReason::Rate => "waits for the rate limit".to_owned(),
        WaitReason::Breaker => "waits for the provider to work again".to_owned(),
        WaitReason::Cache => "waits for a cached prompt".to_owned(),
        WaitReason::Backoff => "waits to retry".to_owned(),
        WaitReason::Paused => "paused".to_owned(),
        WaitReason::Suspended => "stopped".to_owned(),
        WaitReason::Halted => "halted: needs more budget".to_owned(),
        WaitReason::Children => "waits for its agents".to_owned(),
        WaitReason::Message => "waits for a message".to_owned(),
        WaitReason::Person => "waits for a person".to_owned(),
    }
}
