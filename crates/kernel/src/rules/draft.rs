//! A decision in progress: the world so far, and the events recorded. Every rule works on one.

use std::collections::VecDeque;
use std::ops::Deref;

use crate::primitives::{ModelName, Time, TimerId, UNANSWERED};
use crate::record::{Event, Exit, FailureCode, FrameIx, Outcome, WaitReason};
use crate::world::{AgentIx, World};

pub(crate) struct Draft<'w> {
    world: &'w mut World,
    now: Time,
    draw: u64,
    events: Vec<Event>,
    /// The index of the tool call that is being decided.
    ask: Option<u32>,
    /// Agents with a call that ended: they may take another turn.
    moved: Vec<AgentIx>,
    /// Whether something happened that waiting calls may depend on.
    calls_reconsidered: bool,
    /// Agents that get a checkpoint at the end of the decision.
    due: Vec<AgentIx>,
    /// Agents with an attempt that started or ended: their active time may start or stop.
    ran: Vec<AgentIx>,
    /// Steps of graphs whose agent or question ended.
    steps: VecDeque<StepOver>,
    /// Whether a shared value was written that a step may wait for.
    values_written: bool,
}

/// A step or group of a graph whose agent or question ended.
pub(crate) struct StepOver {
    /// The agent that stands for the graph.
    pub(crate) graph: AgentIx,
    pub(crate) frame: FrameIx,
    pub(crate) exit: Exit,
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
            calls_reconsidered: false,
            due: Vec::new(),
            ran: Vec::new(),
            steps: VecDeque::new(),
            values_written: false,
        }
    }

    pub(crate) fn events(&self) -> &[Event] {
        &self.events
    }

    pub(crate) fn into_events(self) -> Vec<Event> {
        self.events
    }

    pub(crate) fn take_moved(&mut self) -> Vec<AgentIx> {
        std::mem::take(&mut self.moved)
    }

    pub(crate) fn take_stirred(&mut self) -> bool {
        std::mem::take(&mut self.calls_reconsidered)
    }

    /// Whether nothing is left to do in this decision.
    pub(crate) fn is_settled(&self) -> bool {
        !self.calls_reconsidered && self.moved.is_empty() && self.steps.is_empty() && !self.values_written
    }

    pub(crate) fn take_values_written(&mut self) -> bool {
        std::mem::take(&mut self.values_written)
    }

    /// Ends a step of a graph that has no agent and no question.
    pub(crate) fn step_is_over(&mut self, over: StepOver) {
        self.steps.push_back(over);
    }

    pub(crate) fn take_step(&mut self) -> Option<StepOver> {
        self.steps.pop_front()
    }

    /// Notes what a graph has to know about an event, before it is applied.
    fn note_step(&mut self, event: &Event) {
        let over = match event {
            Event::AgentEnded { agent, exit, .. } => {
                let ix = self.world.agents().find(agent);
                ix.and_then(|ix| self.world.graphs().member(ix)).map(|of| (of, exit.clone()))
            }
            Event::CallEnded { call, outcome, .. } => self
                .world
                .graphs()
                .frame_of_question(*call)
                .map(|of| (of, question_exit(self.rules(), outcome))),
            _ => None,
        };
        if let Some(((graph, frame), exit)) = over {
            self.steps.push_back(StepOver { graph, frame, exit });
        }
    }

    pub(crate) fn record(&mut self, event: Event) {
        self.calls_reconsidered |= stirs(&event);
        self.values_written |= matches!(event, Event::ValueWritten { .. });
        self.note_step(&event);
        if let Event::CallEnded { call, .. } = &event {
            self.moved.extend(self.world.call(*call).map(|call| call.agent));
        }
        if let Event::CallStarted { call, .. }
        | Event::AttemptFailed { call, .. }
        | Event::CallHeldBack { call, .. }
        | Event::CallEnded { call, .. } = &event
        {
            self.ran.extend(self.world.call(*call).map(|call| call.agent));
        }
        self.world.apply(&event);
        self.events.push(event);
    }

    /// Runs `decide` as the answer to one tool call of a model.
    pub(crate) fn answering<T>(&mut self, ask: u32, decide: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.ask.replace(ask);
        let decided = decide(self);
        self.ask = before;
        decided
    }

    /// Requests a checkpoint at the end of the decision.
    pub(crate) fn due(&mut self, ix: AgentIx) {
        self.due.push(ix);
    }

    pub(crate) fn take_due(&mut self) -> Vec<AgentIx> {
        std::mem::take(&mut self.due)
    }

    pub(crate) fn take_ran(&mut self) -> Vec<AgentIx> {
        std::mem::take(&mut self.ran)
    }

    /// The index of the tool call that is being decided, if any.
    pub(crate) const fn ask(&self) -> Option<u32> {
        self.ask
    }

    /// Lets an agent take its turn before the decision ends, if it has no open calls.
    pub(crate) fn moved(&mut self, ix: AgentIx) {
        self.moved.push(ix);
    }

    /// Reconsiders all waiting calls before the decision ends.
    pub(crate) fn reconsider_calls(&mut self) {
        self.calls_reconsidered = true;
    }

    pub(crate) const fn now(&self) -> Time {
        self.now
    }

    pub(crate) const fn draw(&self) -> u64 {
        self.draw
    }

    pub(crate) fn next_timer(&self) -> TimerId {
        self.world.next_timer()
    }

    /// Until when the model takes no calls, if that is in the future.
    pub(crate) fn limited_until(&self, model: &ModelName) -> Option<Time> {
        self.world.rate_limit(model).filter(|until| *until > self.now)
    }
}

/// A question as a step of a graph: an answer is a success.
fn question_exit(rules: u32, outcome: &Outcome) -> Exit {
    match outcome {
        Outcome::Answered { .. } => Exit::Completed,
        Outcome::Expired { .. } => Exit::failed(FailureCode::QuestionExpired, UNANSWERED.under(rules)),
        _ => Exit::Cancelled { reason: "the question was dropped".to_owned() },
    }
}

/// Whether an event may let a waiting call start, or show that it never will.
fn stirs(event: &Event) -> bool {
    match event {
        Event::AttemptFailed { .. }
        | Event::CallHeldBack { .. }
        | Event::CallEnded { .. }
        | Event::AgentEnded { .. }
        | Event::AgentUnpaused { .. }
        | Event::Charged { .. }
        | Event::TreeUnhalted
        | Event::TreeContinued
        | Event::LimitRaised { .. }
        | Event::TreeAdjusted(_)
        | Event::TreeSealed { .. }
        | Event::TreeUnsealed
        | Event::BreakerChanged { .. }
        | Event::RateLimited { .. }
        | Event::FirstToken { .. } => true,
        // A call that leaves the line lets others pass.
        Event::CallWaiting { why, .. } => matches!(why, WaitReason::Paused | WaitReason::Suspended),
        _ => false,
    }
}

impl Deref for Draft<'_> {
    type Target = World;
    fn deref(&self) -> &World {
        self.world
    }
}
