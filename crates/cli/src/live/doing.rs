//! What an agent is doing now, in a few words.

use spinney_kernel::budget::Resource;
use spinney_kernel::port::model::DeltaKind;
use spinney_kernel::record::{ExitKind, WaitFor, Why, Work};
use spinney_kernel::words::{AgentId, CallId, Millis, Time};
use spinney_kernel::world::{Agent, AgentIx, AgentState, Call, CallStage};

use super::state::LiveTree;
use crate::terminal::paint::{Ink, Row, tail};
use crate::terminal::wording::one_line;

/// Calls and waits below this age do not show it.
const AGE_SHOWN_MS: u64 = 2_000;

/// The state of an agent, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    Asking,
    Halted,
    Failed,
    Running,
    WaitingForBudget,
    Paused,
    Ending,
    Waiting,
    Idle,
    Cancelled,
    Completed,
}

impl Mark {
    pub(super) const fn sign(self) -> (&'static str, Ink) {
        match self {
            Self::Asking => ("?", Ink::Warn),
            Self::Halted => ("■", Ink::Bad),
            Self::Failed => ("✗", Ink::Bad),
            Self::Running => ("●", Ink::Good),
            Self::WaitingForBudget => ("$", Ink::Warn),
            Self::Paused => ("‖", Ink::Warn),
            Self::Ending => ("◑", Ink::Dim),
            Self::Waiting => ("◌", Ink::Dim),
            Self::Idle => ("◦", Ink::Dim),
            Self::Cancelled => ("–", Ink::Dim),
            Self::Completed => ("✓", Ink::Good),
        }
    }

    /// Its word in a count of agents that are not shown.
    pub(super) const fn word(self) -> &'static str {
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
    pub(super) fn mark(&self, ix: AgentIx) -> Mark {
        let agents = self.world.agents();
        if let Some(ended) = agents.ended(ix) {
            return match ended.exit {
                ExitKind::Completed => Mark::Completed,
                ExitKind::Cancelled => Mark::Cancelled,
                ExitKind::Failed | ExitKind::Exhausted => Mark::Failed,
            };
        }
        let Some(agent) = agents.living(ix) else { return Mark::Idle };
        if !matches!(agent.state, AgentState::Live) {
            return Mark::Ending;
        }
        if agent.running > 0 {
            return Mark::Running;
        }
        if self.world.halted().is_some() {
            return Mark::Halted;
        }
        let waits = |wanted: fn(Why) -> bool| {
            self.open(agent).any(|(_, call)| matches!(call.stage, CallStage::Waiting(why) if wanted(why)))
        };
        if waits(|why| why == Why::Person) {
            Mark::Asking
        } else if agent.paused || waits(|why| why == Why::Paused) {
            Mark::Paused
        } else if waits(|why| matches!(why, Why::Budget { .. })) {
            Mark::WaitingForBudget
        } else if agent.open.is_empty() {
            Mark::Idle
        } else {
            Mark::Waiting
        }
    }

    fn open<'a>(&'a self, agent: &'a Agent) -> impl Iterator<Item = (CallId, &'a Call)> {
        agent.open.iter().filter_map(|id| Some((*id, self.world.call(*id)?)))
    }

    /// What it does now, or how it ended, in at most this many columns.
    pub(super) fn doing(&self, ix: AgentIx, now: Time, width: usize) -> Row {
        let Some(note) = self.agents.get(&ix) else { return Row::new() };
        let agents = self.world.agents();
        let Some(agent) = agents.living(ix) else {
            return match (&note.failure, note.said.is_empty()) {
                (Some(failure), _) => Row::of(Ink::Bad, failure).cut(width),
                (None, false) => Row::of(Ink::Dim, &note.said).cut(width),
                (None, true) => Row::of(Ink::Dim, "completed").cut(width),
            };
        };
        if !matches!(agent.state, AgentState::Live) {
            return Row::of(Ink::Dim, "ends: what it started is being stopped").cut(width);
        }
        let mut open: Vec<(CallId, &Call)> = self.open(agent).collect();
        // What runs says more than what waits, and the newest most.
        open.sort_by_key(|(id, call)| (!call.is_running(), std::cmp::Reverse(*id)));
        match open.first() {
            Some((id, call)) => self.call(agents.id(ix), *id, call, now, width, open.len() - 1),
            None if agent.paused => Row::of(Ink::Warn, "paused").cut(width),
            None => Row::of(Ink::Dim, if note.said.is_empty() { &note.goal } else { &note.said }).cut(width),
        }
    }

    fn call(&self, agent: &AgentId, id: CallId, call: &Call, now: Time, width: usize, others: usize) -> Row {
        let note = self.calls.get(&id);
        let age = note.map_or(0, |note| now.0.saturating_sub(note.since.0));
        // Children that it waits for are all named.
        let is_counted = others > 0 && !matches!(call.work, Work::Child(_));
        let mut after = if is_counted { format!(" +{others}") } else { String::new() };
        if age >= AGE_SHOWN_MS {
            after += &format!(" {}", seconds(age));
        }
        let room = width.saturating_sub(after.chars().count());
        let row = match (&call.work, call.stage) {
            (_, CallStage::Waiting(why)) if !is_own_wait(why) => {
                let account = note.and_then(|note| note.account.as_ref());
                Row::of(Ink::Warn, &waiting(why, account))
            }
            (Work::Model(model), _) => match note.and_then(|note| note.stream.as_ref()) {
                Some(stream) if !stream.text.trim().is_empty() => {
                    let text: String = stream.text.split_whitespace().collect::<Vec<_>>().join(" ");
                    let (ink, before) = match stream.kind {
                        DeltaKind::Text => (Ink::Plain, "“"),
                        DeltaKind::Reasoning => (Ink::Dim, "thinks: "),
                    };
                    let shown = crate::terminal::out::inert(&text).into_owned();
                    Row::of(
                        ink,
                        &format!("{before}{}", tail(&shown, room.saturating_sub(before.chars().count()))),
                    )
                }
                Some(_) | None => {
                    let asks = |name: &str| Row::of(Ink::Dim, "asks model ").with(Ink::Plain, name);
                    let (whole, name) = (asks(model.model.as_str()), model.model.as_str().rsplit('/').next());
                    // Its end says more than its provider.
                    if whole.width() <= room { whole } else { name.map_or(whole, asks) }
                }
            },
            (Work::Tool(tool), _) => {
                let asked = tool.ask.and_then(|ask| self.names.ask(agent, ask));
                let args = asked.map_or(tool.args.as_str(), |ask| ask.args.as_str());
                Row::of(Ink::Strong, tool.tool.as_str()).with(Ink::Dim, &format!(" {}", one_line(args, 200)))
            }
            (Work::Child(_), _) => {
                let agent = self.world.agents().find(agent).and_then(|ix| self.world.agents().living(ix));
                let children = agent.into_iter().flat_map(|agent| self.open(agent));
                let children = children.filter_map(|(_, call)| match &call.work {
                    Work::Child(child) => Some(child.agent.as_str()),
                    Work::Model(_) | Work::Tool(_) | Work::Wait(_) | Work::Question(_) => None,
                });
                let names: Vec<&str> = children.collect();
                Row::of(Ink::Dim, &format!("waits for {}", one_line(&names.join(", "), 200)))
            }
            (Work::Wait(WaitFor::Message), _) => Row::of(Ink::Dim, "waits for a message"),
            (Work::Wait(WaitFor::Children { agents, .. }), _) => {
                let living = agents.iter().filter(|agent| {
                    let ix = self.world.agents().find(agent);
                    ix.is_some_and(|ix| self.world.agents().living(ix).is_some())
                });
                let names: Vec<&str> = living.map(AgentId::as_str).collect();
                Row::of(Ink::Dim, &format!("waits for {}", one_line(&names.join(", "), 200)))
            }
            (Work::Question(question), _) => {
                Row::of(Ink::Warn, &format!("asks a person: {}", one_line(&question.text, 200)))
            }
        };
        row.cut(room).with(Ink::Dim, &after)
    }
}

/// Whether the call itself is a wait, so that its own words say more.
const fn is_own_wait(why: Why) -> bool {
    matches!(why, Why::Children | Why::Message | Why::Person)
}

fn waiting(why: Why, account: Option<&AgentId>) -> String {
    match why {
        Why::Budget { ask } => {
            let most = Resource::ALL.into_iter().find(|resource| ask.of(*resource) > 0);
            let most = most.map(|resource| format!("{:#} of ", resource.amount(ask.of(resource))));
            let whose = account.map(|account| format!(" of {account}")).unwrap_or_default();
            format!("waits for {}the budget{whose}", most.unwrap_or_default())
        }
        Why::Slot => "waits for a free slot".to_owned(),
        Why::Rate => "waits for the rate limit".to_owned(),
        Why::Breaker => "waits for the provider to work again".to_owned(),
        Why::Cache => "waits for a cached prompt".to_owned(),
        Why::Backoff => "waits to retry".to_owned(),
        Why::Paused => "paused".to_owned(),
        Why::Suspended => "stopped".to_owned(),
        Why::Halted => "halted: needs more budget".to_owned(),
        Why::Children => "waits for its agents".to_owned(),
        Why::Message => "waits for a message".to_owned(),
        Why::Person => "waits for a person".to_owned(),
    }
}

/// A duration in whole units: `12s`, `3m 05s`.
pub(super) fn seconds(ms: u64) -> String {
    if ms < 60_000 { format!("{}s", ms / 1_000) } else { format!("{:#}", Millis(ms)) }
}
