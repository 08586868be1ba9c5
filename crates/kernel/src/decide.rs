//! The one decision: input in, events out. Pure: no clock, no randomness, no IO; the same world and input decide the
//! same events for ever.
//!
//! Deciding and applying go hand in hand: a [`Draft`] applies each event the moment it is recorded, so that the next
//! step of the same decision sees it. Nothing else changes a world, and a refusal leaves it untouched.

use std::ops::Deref;

use crate::agent::{AgentIx, ClockKind};
use crate::call::{self, Why};
use crate::checkpoint;
use crate::clock;
use crate::event::Event;
use crate::id::{AgentId, CallId, CheckpointName, TimerId};
use crate::input::{Input, What};
use crate::refusal::Refusal;
use crate::time::Time;
use crate::turn;
use crate::world::World;

/// What was decided: the events, already applied, and what to tell whoever asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The events, in order.
    pub events: Vec<Event>,
    /// The answer to the asker.
    pub reply: Reply,
}

/// What whoever asked is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It is so.
    Done,
    /// Nobody is called so yet; the message waits until somebody is.
    Queued {
        /// For whom.
        agent: AgentId,
    },
    /// These were told what somebody knows.
    Told {
        /// How many messages each of them was told, in the order in which they were named; 0 if nothing was new.
        messages: Vec<u32>,
    },
    /// This agent was spawned; the call, if any, ends with its result.
    Spawned {
        /// Who.
        agent: AgentId,
        /// The call that waits for it.
        call: Option<CallId>,
    },
    /// The call has started.
    Started {
        /// Which call.
        call: CallId,
    },
    /// The call waits.
    Waiting {
        /// Which call.
        call: CallId,
        /// For what.
        why: Why,
    },
    /// The call was recorded and refused.
    Refused {
        /// Which call.
        call: CallId,
        /// Why.
        refusal: Refusal,
    },
    /// The agent's context has this name now.
    Checkpoint {
        /// What it is called.
        name: CheckpointName,
    },
    /// The agent's context is what it was.
    RolledBack {
        /// Whose.
        agent: AgentId,
        /// How many messages it has.
        messages: u64,
        /// The children that it does not know any more; they are cancelled.
        cancelled: Vec<AgentId>,
        /// What its context as it was before is called.
        prior: CheckpointName,
    },
    /// The report concerns something that is over; nothing changed.
    Stale,
}

/// Decides one input and applies what was decided.
///
/// # Errors
/// A request may be refused; then no event was recorded and the world is as it was. A report never is.
pub fn decide(world: &mut World, input: &Input) -> Result<Decision, Refusal> {
    let mut draft = Draft {
        world,
        now: input.now,
        draw: input.draw,
        ask: None,
        events: Vec::with_capacity(4),
        moved: Vec::new(),
        stirred: false,
        due: Vec::new(),
        ran: Vec::new(),
    };
    let reply = match &input.what {
        What::Request { by, request } => request.decide(&mut draft, by).inspect_err(|_| {
            assert!(draft.events.is_empty(), "a refused request leaves no trace");
        })?,
        What::Report(report) => report.decide(&mut draft),
    };
    draft.settle();
    clock::follow(&mut draft);
    checkpoint::follow(&mut draft, &input.what);
    Ok(Decision { events: draft.events, reply })
}

/// A decision in the making: the world as it is so far, and the events that made it so.
pub(crate) struct Draft<'w> {
    world: &'w mut World,
    now: Time,
    draw: u64,
    events: Vec<Event>,
    /// Which of the tools that an answer asked for is being decided.
    ask: Option<u32>,
    /// Agents with a call that ended: it may be their turn again.
    moved: Vec<AgentIx>,
    /// Whether something happened that calls may have waited for.
    stirred: bool,
    /// Agents that are due for a checkpoint when the decision is over.
    due: Vec<AgentIx>,
    /// Agents of which an attempt started or ended: their active time may start or stop.
    ran: Vec<AgentIx>,
}

impl Draft<'_> {
    /// Records an event and applies it.
    pub(crate) fn record(&mut self, event: Event) {
        self.stirred |= stirs(&event);
        if let Event::CallEnded { call, .. } = &event {
            self.moved.extend(self.world.call(*call).map(|call| call.agent));
        }
        if let Event::CallStarted { call, .. }
        | Event::AttemptFailed { call, .. }
        | Event::CallEnded { call, .. } = &event
        {
            self.ran.extend(self.world.call(*call).map(|call| call.agent));
        }
        self.world.apply(&event);
        self.events.push(event);
    }

    /// Lets every agent take its turn whose calls have ended, and every call start that can, until nothing moves.
    fn settle(&mut self) {
        while !self.is_over() && (self.stirred || !self.moved.is_empty()) {
            for ix in std::mem::take(&mut self.moved) {
                turn::advance(self, ix);
            }
            if std::mem::take(&mut self.stirred) && !self.is_over() {
                call::pump(self);
            }
        }
    }

    /// Decides what follows as an answer to one of the tools that a model asked for.
    pub(crate) fn answering<T>(&mut self, ask: u32, decide: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.ask.replace(ask);
        let decided = decide(self);
        self.ask = before;
        decided
    }

    /// An agent is due for a checkpoint when the decision is over.
    pub(crate) fn due(&mut self, ix: AgentIx) {
        self.due.push(ix);
    }

    /// Those that are due for one.
    pub(crate) fn take_due(&mut self) -> Vec<AgentIx> {
        std::mem::take(&mut self.due)
    }

    /// Those of which an attempt started or ended.
    pub(crate) fn take_ran(&mut self) -> Vec<AgentIx> {
        std::mem::take(&mut self.ran)
    }

    /// Which of the tools that a model asked for is being decided, if that is what is going on.
    pub(crate) const fn ask(&self) -> Option<u32> {
        self.ask
    }

    /// Lets an agent take its turn before the decision is over, if nothing of it is open.
    pub(crate) fn moved(&mut self, ix: AgentIx) {
        self.moved.push(ix);
    }

    /// Has everyone who waits looked at again before the decision is over.
    pub(crate) fn stir(&mut self) {
        self.stirred = true;
    }

    /// When the input arrived.
    pub(crate) const fn now(&self) -> Time {
        self.now
    }

    /// Random bits that came with the input.
    pub(crate) const fn draw(&self) -> u64 {
        self.draw
    }

    /// An id for the next timer.
    pub(crate) fn next_timer(&self) -> TimerId {
        self.world.next_timer()
    }

    /// Refuses work for an agent whose time is up.
    pub(crate) fn check_deadline(&self, ix: AgentIx) -> Result<(), Refusal> {
        let passed = |ix: AgentIx, kind| self.world.clock(ix, kind).and_then(|clock| clock.passed(self.now));
        let (late, deadline) = if clock::are_kept(self.world.rules()) {
            let mut path = std::iter::once(ix).chain(self.world.agents().above(ix));
            let timeout = path.find_map(|ix| Some((ix, passed(ix, ClockKind::Timeout)?)));
            let active = || Some((ix, passed(ix, ClockKind::Active)?));
            match timeout.or_else(active) {
                Some(late) => late,
                None => return Ok(()),
            }
        } else {
            match self.world.agent(ix).charter.deadline.filter(|deadline| *deadline <= self.now) {
                Some(deadline) => (ix, deadline),
                None => return Ok(()),
            }
        };
        let (agent, late_ms) = (self.world.agent_id(late).clone(), self.now.0 - deadline.0);
        Err(Refusal::DeadlinePassed { agent, deadline, late_ms })
    }

    /// Until when the model takes no calls, if that is not over.
    pub(crate) fn limited_until(&self, model: &crate::id::ModelName) -> Option<Time> {
        self.world.rate_limit(model).filter(|until| *until > self.now)
    }
}

/// Whether an event may let a call start that waited, or show that it never will.
fn stirs(event: &Event) -> bool {
    match event {
        Event::AttemptFailed { .. }
        | Event::CallEnded { .. }
        | Event::AgentEnded { .. }
        | Event::AgentUnpaused { .. }
        | Event::Charged { .. }
        | Event::TreeUnhalted
        | Event::LimitRaised { .. }
        | Event::BreakerChanged { .. }
        | Event::RateLimited { .. } => true,
        // Who leaves the line lets others pass.
        Event::CallWaiting { why, .. } => *why == Why::Paused,
        Event::TreeStarted { .. }
        | Event::AgentSpawned(_)
        | Event::AgentPaused { .. }
        | Event::WindowSet { .. }
        | Event::ContextShared { .. }
        | Event::ThreadJoined { .. }
        | Event::ThreadLeft { .. }
        | Event::ContextCut { .. }
        | Event::ContextRestored(_)
        | Event::AgentRedirected { .. }
        | Event::AgentEnding { .. }
        | Event::ClockSet { .. }
        | Event::CallAsked { .. }
        | Event::CallStarted { .. }
        | Event::CallResumed { .. }
        | Event::CallSwitched { .. }
        | Event::WaitStarted { .. }
        | Event::QuestionAsked { .. }
        | Event::ToolAnswered { .. }
        | Event::WrapUpStarted { .. }
        | Event::MessageSent { .. }
        | Event::MessagePublished { .. }
        | Event::CheckpointMade { .. }
        | Event::TreeBranched(_)
        | Event::TreeHalted { .. } => false,
    }
}

impl Deref for Draft<'_> {
    type Target = World;
    fn deref(&self) -> &World {
        self.world
    }
}
