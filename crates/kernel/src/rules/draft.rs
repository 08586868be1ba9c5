//! A decision in the making: the world as it is so far, and the events that made it so. Every rule works on one.

use std::ops::Deref;

use crate::record::{Event, Why};
use crate::words::{ModelName, Time, TimerId};
use crate::world::{AgentIx, World};

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

impl<'w> Draft<'w> {
    pub(crate) fn new(world: &'w mut World, now: Time, draw: u64) -> Self {
        Self {
            world,
            now,
            draw,
            ask: None,
            events: Vec::with_capacity(4),
            moved: Vec::new(),
            stirred: false,
            due: Vec::new(),
            ran: Vec::new(),
        }
    }

    /// What was recorded so far.
    pub(crate) fn events(&self) -> &[Event] {
        &self.events
    }

    pub(crate) fn into_events(self) -> Vec<Event> {
        self.events
    }

    /// Agents with a call that ended: it may be their turn again.
    pub(crate) fn take_moved(&mut self) -> Vec<AgentIx> {
        std::mem::take(&mut self.moved)
    }

    /// Whether something happened that calls may have waited for.
    pub(crate) fn take_stirred(&mut self) -> bool {
        std::mem::take(&mut self.stirred)
    }

    /// Whether somebody may have something to do before the decision is over.
    pub(crate) fn is_settled(&self) -> bool {
        !self.stirred && self.moved.is_empty()
    }

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

    /// Until when the model takes no calls, if that is not over.
    pub(crate) fn limited_until(&self, model: &ModelName) -> Option<Time> {
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
        | Event::TreeContinued
        | Event::LimitRaised { .. }
        | Event::BreakerChanged { .. }
        | Event::RateLimited { .. } => true,
        // Who leaves the line lets others pass.
        Event::CallWaiting { why, .. } => matches!(why, Why::Paused | Why::Suspended),
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
        | Event::TreeSuspended
        | Event::TreeHalted { .. } => false,
    }
}

impl Deref for Draft<'_> {
    type Target = World;
    fn deref(&self) -> &World {
        self.world
    }
}
