//! The laws of loops: an agent is warned when it has made as many identical tool calls in a row as its notice says, and ends
//! when it continues; no other agent is warned or ended for that. Calls and results are compared as whole texts here.

use std::collections::BTreeMap;

use spinney_kernel::definition::{Builtin, Repeats};
use spinney_kernel::primitives::{AgentId, Body, CallId};
use spinney_kernel::record::{Attachment, Event, Exit, ExitKind, Outcome, StopReason, Work};
use spinney_kernel::world::World;

use super::law::{Law, hold};

#[derive(Clone, Debug, Default)]
pub(super) struct Loops {
    lives: BTreeMap<AgentId, Life>,
    /// The calls that end with a result for a tool of a model's answer.
    calls: BTreeMap<CallId, (AgentId, u32)>,
    /// The turns, and whether each is an agent's last call.
    turns: BTreeMap<CallId, (AgentId, bool)>,
}

#[derive(Clone, Debug, Default)]
struct Life {
    /// The tools of its last answer, and what came of them.
    asks: Vec<(String, Option<String>)>,
    /// Every call with its result; nothing for one that does not count.
    history: Vec<Option<String>>,
    /// How many calls there were when it was last warned.
    noticed_at: Option<usize>,
    /// What it answered.
    answers: String,
}

impl Life {
    /// Identical calls at the end, and whether the agent was warned about them.
    fn row(&self) -> (u32, bool) {
        let Some(Some(last)) = self.history.last() else { return (0, false) };
        let row = self.history.iter().rev().take_while(|call| call.as_ref() == Some(last)).count();
        (row as u32, self.noticed_at.is_some_and(|at| at > self.history.len() - row))
    }

    /// Whether there was anything to count.
    fn count(&mut self) -> bool {
        let asks = std::mem::take(&mut self.asks);
        let has_asked = !asks.is_empty();
        let call = |(ask, result): (String, Option<String>)| result.map(|result| format!("{ask}\n{result}"));
        self.history.extend(asks.into_iter().map(call));
        has_asked
    }

    fn forget(&mut self) {
        (self.asks, self.history, self.noticed_at) = (Vec::new(), Vec::new(), None);
    }
}

impl Loops {
    /// Reads one event; `before` is the world without it.
    pub(super) fn see(&mut self, before: &World, event: &Event) -> Law {
        match event {
            Event::AgentSpawned(spawned) => {
                self.lives.insert(spawned.agent.clone(), Life::default());
                if let (Some(parent), Attachment::Call { call, ask: Some(ask) }) =
                    (&spawned.parent, spawned.attachment)
                {
                    self.calls.insert(call, (parent.clone(), ask));
                }
            }
            Event::WaitStarted { call, agent, ask: Some(ask), .. }
            | Event::QuestionAsked { call, agent, ask: Some(ask), .. } => {
                self.calls.insert(*call, (agent.clone(), *ask));
            }
            Event::CallAsked { call, agent, work } => return self.asked(before, *call, agent, work),
            Event::ToolAnswered { agent, ask, body, .. } => self.result(agent, *ask, Some(whole(body))),
            Event::CallEnded { call, outcome, .. } => self.ended(before, *call, outcome),
            Event::ContextRestored(restored) => {
                self.life(&restored.agent).forget();
                self.calls.retain(|_, (agent, _)| *agent != restored.agent);
                self.turns.retain(|_, (agent, _)| *agent != restored.agent);
            }
            Event::RepeatsNoticed { agent, count, .. } => return self.noticed(before, agent, *count),
            Event::AgentEnding { agent, exit, result, .. }
            | Event::AgentEnded { agent, exit, result, .. } => {
                result.iter().for_each(|result| self.life(agent).answers.push_str(&whole(result)));
                return self.gone(before, agent, exit);
            }
            _ => {}
        }
        Ok(())
    }

    fn life(&mut self, agent: &AgentId) -> &mut Life {
        self.lives.entry(agent.clone()).or_default()
    }

    fn asked(&mut self, before: &World, call: CallId, agent: &AgentId, work: &Work) -> Law {
        match work {
            Work::Tool(tool) => {
                tool.ask.into_iter().for_each(|ask| drop(self.calls.insert(call, (agent.clone(), ask))));
                Ok(())
            }
            Work::Model(model) if model.summary.is_none() && model.outside.is_none() => {
                self.turns.insert(call, (agent.clone(), model.wrap_up.is_some()));
                let Repeats { notice, end } = repeats(before, agent);
                let has_news = before
                    .agents()
                    .find(agent)
                    .and_then(|ix| before.agents().living(ix))
                    .is_some_and(|agent| !agent.inbox.is_empty());
                let life = self.life(agent);
                let has_asked = life.count();
                let (row, is_noticed) = life.row();
                if has_news {
                    life.forget();
                } else if has_asked {
                    hold(is_noticed || notice == 0 || row < notice, || {
                        format!("{agent} was not told that it repeats itself")
                    })?;
                    hold(end == 0 || row < end, || format!("{agent} did not end in its loop"))?;
                }
                Ok(())
            }
            Work::Model(_) | Work::Child(_) | Work::Wait(_) | Work::Question(_) => Ok(()),
        }
    }

    fn ended(&mut self, before: &World, call: CallId, outcome: &Outcome) {
        if let Some((agent, is_last)) = self.turns.remove(&call) {
            return self.said(&agent, is_last, outcome);
        }
        // A yes lets the tool answer.
        if *outcome == Outcome::Approved {
            self.calls.remove(&call);
            return;
        }
        let Some((agent, ask)) = self.calls.remove(&call) else { return };
        let child = before.call(call).and_then(|call| match &call.work {
            Work::Child(child) => Some(child.agent.clone()),
            _ => None,
        });
        let result = match (outcome, child) {
            (Outcome::Done { body, .. }, _) => Some(whole(body)),
            (Outcome::Failed { fault }, _) => Some(format!("{} {}", fault.kind.as_str(), fault.message)),
            (Outcome::Refused { refusal }, _) => Some(refusal.to_string()),
            (Outcome::NobodyLeft, _) => Some("nobody left".to_owned()),
            (Outcome::Children { ended }, Some(child)) => {
                let is_completed = ended.iter().all(|end| end.state == ExitKind::Completed);
                is_completed.then(|| self.life(&child).answers.clone())
            }
            _ => None,
        };
        self.result(&agent, ask, result);
    }

    fn said(&mut self, agent: &AgentId, is_last: bool, outcome: &Outcome) {
        let Outcome::Done { body, asks, mismatch, stop, .. } = outcome else { return };
        let is_empty = asks.is_empty() && body.text.trim().is_empty();
        if is_empty && (is_last || *stop == StopReason::OutputCap) {
            return;
        }
        let life = self.life(agent);
        if asks.is_empty() {
            life.forget();
            if mismatch.is_none() {
                life.answers.push_str(&whole(body));
            }
        }
        life.asks = asks.iter().map(|ask| (format!("{}\n{}", ask.tool, ask.args), None)).collect();
    }

    fn result(&mut self, agent: &AgentId, ask: u32, result: Option<String>) {
        if let Some((call, at)) = self.life(agent).asks.get_mut(ask as usize) {
            let apart = [
                Builtin::WaitAgent,
                Builtin::ListAgents,
                Builtin::AskHuman,
                Builtin::ReadContext,
                Builtin::ListContext,
            ];
            let tool = call.lines().next().unwrap_or_default();
            *at = result.filter(|_| apart.iter().all(|builtin| builtin.as_str() != tool));
        }
    }

    fn noticed(&mut self, before: &World, agent: &AgentId, count: u32) -> Law {
        let Repeats { notice, .. } = repeats(before, agent);
        let life = self.life(agent);
        life.count();
        let (row, is_noticed) = life.row();
        life.noticed_at = Some(life.history.len());
        hold(!is_noticed && row == count && notice > 0 && row >= notice, || {
            format!("{agent} was told of {count} equal calls, there were {row}")
        })
    }

    fn gone(&mut self, before: &World, agent: &AgentId, exit: &Exit) -> Law {
        let Exit::Failed { error } = exit else { return Ok(()) };
        // A graph and its groups fail with the error of a step.
        let takes_turns = before.agents().find(agent).is_some_and(|ix| {
            let role = before.agents().living(ix).map(|agent| &agent.terms.role);
            let role = role.and_then(|role| before.definition().roles.get(role));
            role.is_some_and(|role| role.turns.is_some())
        });
        if error.code != "loop_detected" || !takes_turns {
            return Ok(());
        }
        let Repeats { notice, end } = repeats(before, agent);
        let life = self.life(agent);
        let noticed_at = life.noticed_at;
        life.count();
        let (row, is_noticed) = life.row();
        let could_act = notice == 0 || is_noticed && noticed_at.is_some_and(|at| at < life.history.len());
        hold(could_act && end > 0 && row >= end, || format!("{agent} ended after {row} equal calls"))
    }
}

fn repeats(world: &World, agent: &AgentId) -> Repeats {
    let ix = world.agents().find(agent);
    ix.and_then(|ix| world.agents().living(ix)).map_or(Repeats::OFF, |agent| agent.terms.repeats)
}

fn whole(body: &Body) -> String {
    let text = body.rest().map_or(body.text.as_str(), |rest| rest.hash.as_str());
    body.parts().iter().fold(text.to_owned(), |text, part| text + "\n" + part.blob().hash.as_str())
}
