//! The people around a tree. Their requests follow from the durable events alone, so after a crash they want
//! exactly what is still to be done.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use spinney::Tree;
use spinney::clock::Clock;
use spinney::tree::RequestError;
use spinney_kernel::budget::{Amounts, Resource};
use spinney_kernel::definition::{Graph, Refusal};
use spinney_kernel::primitives::{Actor, AgentId, Body, CallId, Running, Seq, StepId};
use spinney_kernel::record::{Event, Outcome, PlanChange, Work};
use spinney_kernel::rules::request::{
    Answer, Cancel, Charge, Checkpoint, Pause, Raise, Redirect, Replan, Request, Rollback, Send, Unpause,
};

use super::record::Record;
use super::sim_tree::{Mode, SimTree};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wish {
    Answer(CallId),
    /// After an answer that is not one of the choices.
    Choose(CallId),
    Raise,
    Redirect(AgentId),
    /// Change the pipeline that this agent stands for.
    Replan(AgentId),
    Send(AgentId),
    Pause(AgentId),
    Unpause(AgentId),
    Cancel(AgentId),
    Charge(AgentId),
    Checkpoint(AgentId),
    /// Roll back to this agent's state at this event.
    Rollback(AgentId, Seq),
}

/// The people around one tree.
pub(super) struct People {
    plot: Arc<SimTree>,
    clock: Arc<dyn Clock>,
    seen: Seq,
    /// How often each agent's model was called.
    asked: BTreeMap<AgentId, u32>,
    /// Planned requests, and from when on.
    wishes: BTreeMap<Wish, u64>,
    halts: u64,
    /// The steps of each pipeline that runs.
    pipelines: BTreeMap<AgentId, Vec<StepId>>,
    /// Named contexts, and their positions.
    checkpoints: Vec<(AgentId, Seq)>,
}

impl People {
    pub(super) fn new(plot: Arc<SimTree>, clock: Arc<dyn Clock>) -> Self {
        let (asked, wishes, pipelines) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { plot, clock, seen: Seq(0), asked, wishes, halts: 0, pipelines, checkpoints: Vec::new() }
    }

    /// Follows the tree and sends the planned requests, for as long as it runs.
    pub(super) async fn attend(&mut self, tree: &Tree, record: &Record) {
        let mut durable = record.watch();
        let known = *durable.borrow_and_update();
        loop {
            let until = *durable.borrow_and_update();
            for event in record.events(self.seen, until) {
                self.seen = Seq(self.seen.0 + 1);
                self.see(&event);
                if self.seen > known {
                    self.whim();
                }
            }
            let now = self.clock.now_ms();
            let due = self.wishes.iter().find(|(_, from)| **from <= now).map(|(wish, _)| wish.clone());
            if let Some(wish) = due {
                self.wishes.remove(&wish);
                // A refusal is also an answer.
                let asked = tree.request(Actor::PERSON, self.request(&wish)).await;
                match (&wish, &asked) {
                    (Wish::Answer(call), Err(RequestError::Refused(Refusal::NotAChoice { .. }))) => {
                        record.saw("an answer that is not a choice was refused");
                        self.want(Wish::Choose(*call));
                    }
                    (Wish::Answer(_), Err(RequestError::Refused(_))) => {
                        record.saw("a late answer was refused");
                    }
                    _ => {}
                }
                continue;
            }
            let next = self.wishes.values().min().map_or(u64::MAX / 2, |from| from - now);
            tokio::select! {
                biased;
                _ = durable.changed() => {}
                () = tokio::time::sleep(Duration::from_millis(next.min(1 << 32))) => {}
            }
        }
    }

    fn see(&mut self, event: &Event) {
        match event {
            Event::QuestionAsked { call, .. } => {
                let ignored = self.plot.mode == Mode::Wild && self.plot.dice(&format!("{call}")).once_in(3);
                if !ignored {
                    self.want(Wish::Answer(*call));
                }
            }
            // Some answer although it is too late.
            Event::CallEnded {
                call, outcome: Outcome::Expired { .. } | Outcome::Answered { .. }, ..
            } if self.plot.mode == Mode::Wild && self.plot.dice(&format!("late/{call}")).once_in(2) => {}
            Event::CallEnded { call, .. } => {
                self.granted(&Wish::Answer(*call));
                self.granted(&Wish::Choose(*call));
            }
            Event::TreeHalted { .. } => {
                self.halts += 1;
                let enough = self.plot.dice(&format!("halts/{}", self.halts)).once_in(4);
                let gives_up = self.plot.mode == Mode::Wild && enough;
                self.want(if gives_up { Wish::Cancel(self.plot.root()) } else { Wish::Raise });
            }
            Event::TreeUnhalted => self.granted(&Wish::Raise),
            Event::CallAsked { agent, work: Work::Model(_), .. } => self.asked(agent),
            Event::AgentRedirected { agent, .. } => self.granted(&Wish::Redirect(agent.clone())),
            Event::MessageSent { from: Actor::PERSON, to, .. } => self.granted(&Wish::Send(to.clone())),
            Event::AgentPaused { agent } if *agent != self.plot.root() => {
                self.granted(&Wish::Pause(agent.clone()));
                self.want(Wish::Unpause(agent.clone()));
            }
            Event::AgentUnpaused { agent } => self.granted(&Wish::Unpause(agent.clone())),
            Event::AgentEnding { agent, .. } | Event::AgentEnded { agent, .. } => self.gone(agent),
            Event::AgentSpawned(spawned) => {
                self.asked.insert(spawned.agent.clone(), 0);
            }
            Event::CheckpointMade { agent, .. } => {
                self.granted(&Wish::Checkpoint(agent.clone()));
                self.checkpoints.push((agent.clone(), self.seen));
            }
            Event::ContextRestored(restored) => {
                self.granted(&Wish::Rollback(restored.from.clone(), restored.at));
            }
            Event::GraphStarted { agent, graph } => self.pipeline_started(agent, graph.as_ref()),
            Event::GraphReplanned { agent, .. } => self.granted(&Wish::Replan(agent.clone())),
            Event::TreeStarted { .. }
            | Event::NodeStarted(_)
            | Event::NodeEnded { .. }
            | Event::WindowSet { .. }
            | Event::ContextShared { .. }
            | Event::ThreadJoined { .. }
            | Event::ThreadLeft { .. }
            | Event::ContextCut { .. }
            | Event::AgentPaused { .. }
            | Event::TreeSuspended
            | Event::TreeContinued
            | Event::CallAsked { .. }
            | Event::CallWaiting { .. }
            | Event::CallStarted { .. }
            | Event::FirstToken { .. }
            | Event::ConnectionEnded { .. }
            | Event::ConnectionsOmitted { .. }
            | Event::ProgramConnected { .. }
            | Event::ProgramConnectionsOmitted { .. }
            | Event::SessionNamed { .. }
            | Event::FollowupStarted { .. }
            | Event::CallResumed { .. }
            | Event::CallSwitched { .. }
            | Event::AttemptFailed { .. }
            | Event::CallHeldBack { .. }
            | Event::WaitStarted { .. }
            | Event::ToolAnswered { .. }
            | Event::ValueWritten { .. }
            | Event::ValuesCleared { .. }
            | Event::Charged { .. }
            | Event::MessageSent { .. }
            | Event::MessagePublished { .. }
            | Event::WrapUpStarted { .. }
            | Event::ApprovalRemembered { .. }
            | Event::RepeatsNoticed { .. }
            | Event::LimitRaised { .. }
            | Event::TreeAdjusted(_)
            | Event::TreeSealed { .. }
            | Event::TreeUnsealed
            | Event::ClockSet { .. }
            | Event::ModelAdded { .. }
            | Event::BreakerChanged { .. }
            | Event::TreeBranched(_)
            | Event::RateLimited { .. } => {}
        }
    }

    fn pipeline_started(&mut self, agent: &AgentId, graph: Option<&Arc<Graph>>) {
        let of_tree = self.plot.definition().graph;
        if let Some(graph) = graph.or(of_tree.as_ref()) {
            let steps = graph.nodes().iter().skip(1).map(|node| node.id.clone()).collect();
            self.pipelines.insert(agent.clone(), steps);
        }
    }

    /// A person may send a message at an agent's second turn.
    fn asked(&mut self, agent: &AgentId) {
        let asked = self.asked.entry(agent.clone()).or_default();
        *asked += 1;
        if *asked != 2 || !self.plot.meddling {
            return;
        }
        let root = *agent == self.plot.root();
        match self.plot.dice(&format!("person/{agent}")).below(12) {
            0 | 1 => self.want(Wish::Redirect(agent.clone())),
            2 => self.want(Wish::Send(agent.clone())),
            3 | 4 if !root => self.want(Wish::Pause(agent.clone())),
            5 if !root && self.plot.stops => self.want(Wish::Cancel(agent.clone())),
            _ => {}
        }
    }

    /// In wild mode people do things for no reason.
    fn whim(&mut self) {
        let mut dice = self.plot.dice(&format!("whim/{}", self.seen.0));
        if self.plot.mode != Mode::Wild || !dice.once_in(15) {
            return;
        }
        let agents: Vec<AgentId> = self.asked.keys().cloned().collect();
        let pipelines: Vec<AgentId> = self.pipelines.keys().cloned().collect();
        if let (true, Some(agent)) = (dice.once_in(4), dice.pick(&pipelines)) {
            return self.want(Wish::Replan(agent));
        }
        let Some(agent) = dice.pick(&agents) else { return };
        let root = agent == self.plot.root();
        let whim = dice.below(12);
        if let (4..11, Some((agent, at))) = (whim, dice.pick(&self.checkpoints)) {
            return self.want(Wish::Rollback(agent, at));
        }
        self.want(match whim {
            0 if !root => Wish::Pause(agent),
            1 if !root => Wish::Cancel(agent),
            2 => Wish::Charge(agent),
            3 | 4 => Wish::Redirect(agent),
            5 => Wish::Raise,
            6 | 7 => Wish::Checkpoint(agent),
            _ => Wish::Send(agent),
        });
    }

    fn want(&mut self, wish: Wish) {
        let mut dice = self.plot.dice(&format!("delay/{wish:?}"));
        let delay = if self.plot.mode == Mode::Wild { dice.below(3_000) } else { 0 };
        self.wishes.entry(wish).or_insert(self.clock.now_ms() + delay);
    }

    fn granted(&mut self, wish: &Wish) {
        self.wishes.remove(wish);
    }

    fn gone(&mut self, gone: &AgentId) {
        self.asked.remove(gone);
        self.pipelines.remove(gone);
        self.wishes.retain(|wish, _| match wish {
            Wish::Redirect(agent)
            | Wish::Replan(agent)
            | Wish::Send(agent)
            | Wish::Pause(agent)
            | Wish::Unpause(agent)
            | Wish::Cancel(agent)
            | Wish::Checkpoint(agent)
            | Wish::Rollback(agent, _)
            | Wish::Charge(agent) => agent != gone,
            Wish::Answer(_) | Wish::Choose(_) | Wish::Raise => true,
        });
    }

    fn request(&self, wish: &Wish) -> Request {
        match wish.clone() {
            Wish::Answer(question) => {
                let refuses =
                    self.plot.mode == Mode::Wild && self.plot.dice(&format!("no/{question}")).once_in(3);
                Request::Answer(Answer::new(question, if refuses { "not that" } else { "yes" }))
            }
            Wish::Choose(question) => Request::Answer(Answer::new(question, "blue")),
            Wish::Raise => {
                let add = Amounts::cost(12_000_000).with(Resource::Tokens, 12_000);
                Request::Raise(Raise {
                    agent: self.plot.root(),
                    add: add.with(Resource::ToolCalls, 4),
                    add_ms: 0,
                })
            }
            Wish::Redirect(agent) => {
                let stops = self.plot.stops && self.plot.dice(&format!("running/{agent}")).once_in(2);
                let running = if stops { Running::Stops } else { Running::Finishes };
                Request::Redirect(Redirect {
                    instruction: format!("{agent}, go elsewhere"),
                    agent,
                    tokens: None,
                    running,
                })
            }
            Wish::Replan(agent) => {
                let mut dice = self.plot.dice(&format!("replan/{agent}/{}", self.seen.0));
                let step = dice.pick(self.pipelines.get(&agent).map_or(&[][..], Vec::as_slice));
                let steps: Vec<StepId> = step.into_iter().collect();
                let change = match dice.below(6) {
                    0 => PlanChange::End,
                    1 | 2 => PlanChange::Skip { steps },
                    3 | 4 => PlanChange::Instruct { text: format!("{agent}, be short"), steps },
                    _ => PlanChange::Instruct { text: format!("{agent}, all of you"), steps: Vec::new() },
                };
                let running = if dice.once_in(2) { Running::Stops } else { Running::Finishes };
                Request::Replan(Replan { agent, change, running })
            }
            Wish::Send(to) => {
                let body = Body::text(format!("hello {to}"));
                Request::Send(Send::plain(to, body))
            }
            Wish::Pause(agent) => Request::Pause(Pause { agent }),
            Wish::Unpause(agent) => Request::Unpause(Unpause::now(agent)),
            Wish::Cancel(agent) => Request::Cancel(Cancel { agent, reason: "enough".to_owned() }),
            Wish::Checkpoint(agent) => Request::Checkpoint(Checkpoint::manual(agent, None)),
            Wish::Rollback(agent, at) => Request::Rollback(Rollback::to(agent, at, None)),
            Wish::Charge(agent) => {
                Request::Charge(Charge { agent, amounts: Amounts::cost(70_000), note: "bill".to_owned() })
            }
        }
    }
}
