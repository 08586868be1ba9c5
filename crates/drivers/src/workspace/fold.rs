//! The fold: events in, steps out. A step is one ended tool call, one spawned child, one answer, or one summary; an
//! answer that only asks for tools is not a step, because its tools are. It keeps only what is open, so a
//! journal of any length folds in little memory.

use std::collections::BTreeMap;
use std::mem::take;

use serde_json::{Map, Value, json};
use spinney_kernel::budget::Amounts;
use spinney_kernel::context::offload::{Offloads, Whole};
use spinney_kernel::context::{EventContext, OpenCall, OpenCalls, Trace};
use spinney_kernel::definition::Builtin;
use spinney_kernel::primitives::{
    AgentId, BlobRef, CallId, Durability, OutputPath, Seq, StoredFile, Time, TreeId,
};
use spinney_kernel::record::{Attachment, Event, Outcome, Spawned, ToolAsk, WaitFor, Work};

use super::name::step_id;
use super::observation::Observation;
use super::short::{args, remark};
use super::step::{Metadata, Step};

/// What an agent's answer is called among its steps.
const ANSWER: &str = "agent:answer";
/// What its model wrote about what left its window.
const SUMMARY: &str = "agent:summary";
/// A child that an agent has.
const SPAWN: &str = "agent:spawn";
/// A wait, and a question, that no model asked for.
const WAIT: &str = "agent:wait";
const ASK: &str = "agent:ask";
/// How much of a goal the step of a spawn shows, in characters.
const GOAL_CHARS: usize = 50;

/// What an event means for the workspaces of its tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepChange {
    /// An agent exists; it has no steps.
    Born { agent: AgentId },
    /// A tool's output was too long for the context: the whole becomes a file in the workspace.
    Offloaded {
        agent: AgentId,
        /// Where the bytes are.
        blob: BlobRef,
    },
    /// A tool wrote files for the agent. The tool that did has put them into its workspace.
    Wrote {
        agent: AgentId,
        /// Where the bytes are.
        files: Vec<StoredFile>,
    },
    /// A tool removed files of the agent, and took them out of its workspace.
    Removed { agent: AgentId, files: Vec<OutputPath> },
    /// An agent's next step ended.
    Did {
        agent: AgentId,
        /// Its number; the first is 1.
        number: u32,
        step: Box<Step>,
    },
    /// An agent has ended and takes no further step.
    Gone {
        agent: AgentId,
        /// How many steps it took.
        steps: u32,
        /// The long outputs that are files of its workspace.
        offloads: Offloads,
    },
}

/// The steps of a tree's agents, according to the events so far.
#[derive(Clone, Debug)]
pub struct Steps {
    tree: TreeId,
    durability: Durability,
    /// Whom each event is about, and since when.
    trace: Trace,
    living: BTreeMap<AgentId, Life>,
    open: OpenCalls<Option<OpenStep>>,
    /// The root when it has ended: another tree may continue this one.
    root: Option<(AgentId, Life)>,
}

/// What is known of a living agent beside its trace.
#[derive(Clone, Debug, Default)]
struct Life {
    steps: u32,
    offloads: Offloads,
    /// The tools that its model's last answer asked for.
    asks: Vec<ToolCallStep>,
    /// What its model said with that, until a step shows it.
    said: Option<String>,
}

#[derive(Clone, Debug, Default)]
struct ToolCallStep {
    tool: String,
    args: Map<String, Value>,
}

/// The step that an open call will be.
#[derive(Clone, Debug)]
struct OpenStep {
    asked: ToolCallStep,
    said: Option<String>,
}

/// When and how a step ended.
#[derive(Clone, Copy)]
struct Ended<'h> {
    seq: Seq,
    at: Time,
    /// The event's context.
    context: &'h EventContext,
    call: Option<CallId>,
    since: Option<Time>,
    spent: Amounts,
    presumed: Amounts,
}

impl Steps {
    /// Before a tree's first event.
    #[must_use]
    pub fn new(tree: TreeId) -> Self {
        Self {
            tree,
            durability: Durability::default(),
            trace: Trace::default(),
            living: BTreeMap::new(),
            open: OpenCalls::default(),
            root: None,
        }
    }

    /// What the tree's events survive, as its definition says.
    #[must_use]
    pub const fn durability(&self) -> Durability {
        self.durability
    }

    /// Who lives, how many steps they took, and which long outputs are files of their workspaces.
    pub fn living(&self) -> impl Iterator<Item = (&AgentId, u32, &Offloads)> {
        self.living.iter().map(|(agent, life)| (agent, life.steps, &life.offloads))
    }

    /// Takes in the next event of the tree and says what it means.
    pub fn take(&mut self, seq: Seq, at: Time, event: &Event) -> Vec<StepChange> {
        self.open(event);
        let context = &self.trace.take(at, event);
        let (spent, presumed) = (Amounts::ZERO, Amounts::ZERO);
        let now = Ended { seq, at, context, call: None, since: None, spent, presumed };
        match event {
            Event::TreeStarted { definition, .. } => {
                self.durability = definition.durability;
                Vec::new()
            }
            Event::AgentSpawned(spawned) => self.spawned(spawned, now),
            Event::ToolAnswered { agent, ask, body, is_error, value } => {
                let asked = self.living.get_mut(agent).and_then(|life| life.ask(*ask));
                let Some((asked, said)) = asked else { return Vec::new() };
                // A successful spawn already has its step.
                if asked.tool == Builtin::SpawnAgent.as_str() && !is_error {
                    return Vec::new();
                }
                let rest = value.as_ref().and_then(|read| read.rest.as_ref());
                let (_, mut changes) = self.long_output(agent, rest);
                let observed = Observation::answer(body, *is_error, &Whole::Journal, seq);
                changes.extend(self.did(agent, asked, said, observed, now));
                changes
            }
            Event::CallEnded { call, outcome, spent, presumed, .. } => {
                let Some(open) = self.open.leave(event) else { return Vec::new() };
                let (spent, presumed) = (*spent, *presumed);
                let now = Ended { call: Some(*call), since: context.since, spent, presumed, ..now };
                self.ended(open, outcome, now)
            }
            Event::AgentEnded { agent, exit, result, .. } => {
                let observed = result.as_ref().map(|result| Observation::exit(result, exit, seq));
                self.gone(agent, observed, now)
            }
            Event::TreeBranched(branched) if branched.continuation.is_some() => {
                self.living.extend(self.root.take());
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// An agent's own result is its last step.
    fn gone(&mut self, agent: &AgentId, observed: Option<Observation>, now: Ended<'_>) -> Vec<StepChange> {
        let asked = ToolCallStep { tool: ANSWER.to_owned(), args: Map::new() };
        let mut changes =
            observed.map_or_else(Vec::new, |observed| self.did(agent, asked, None, observed, now));
        let life = self.living.remove(agent);
        // The last to end is the root.
        self.root = life.clone().map(|life| (agent.clone(), life)).filter(|_| self.living.is_empty());
        let gone = |Life { steps, offloads, .. }| StepChange::Gone { agent: agent.clone(), steps, offloads };
        changes.extend(life.map(gone));
        changes
    }

    /// A child is a step of its parent and starts without steps.
    fn spawned(&mut self, spawned: &Spawned, now: Ended<'_>) -> Vec<StepChange> {
        let (agent, parent) = (&spawned.agent, spawned.parent.as_ref());
        self.living.insert(agent.clone(), Life::default());
        let mut changes = vec![StepChange::Born { agent: agent.clone() }];
        let Some(parent) = parent else { return changes };
        let call = if let Attachment::Call { call, .. } = spawned.attachment { Some(call) } else { None };
        let asked = ToolCallStep { tool: SPAWN.to_owned(), args: map(json!({ "child_id": agent })) };
        let said = self.living.get_mut(parent).and_then(|life| life.said.take());
        let goal: String = spawned.goal.chars().take(GOAL_CHARS).collect();
        let observed = Observation::well(format!("Spawned {agent} with goal: {goal}..."));
        changes.extend(self.did(parent, asked, said, observed, Ended { call, ..now }));
        changes
    }

    /// Takes in the call that an event opens. It will be the step of one of the tools that the agent's last answer asked
    /// for, or of what the event says itself. The step of a spawn is there already, and what the child has to show is its own.
    fn open(&mut self, event: &Event) {
        let Some(call) = self.open.enter(event) else { return };
        let tool = |tool: &str, args| ToolCallStep { tool: tool.to_owned(), args };
        let other = match event {
            // An outside program has its own files.
            Event::CallAsked { work: Work::Model(model), .. } if model.outside.is_some() => return,
            Event::CallAsked { work: Work::Model(model), .. } => {
                let name = if call.purpose.is_turn() { ANSWER } else { SUMMARY };
                tool(name, map(json!({ "model": model.model })))
            }
            Event::CallAsked { work: Work::Tool(work), .. } => tool(work.tool.as_str(), args(&work.args)),
            Event::WaitStarted { wait, .. } => waits(wait),
            Event::QuestionAsked { question, .. } => asks(&question.text),
            _ => return,
        };
        let life = self.living.get_mut(&call.agent);
        let asked = call.ask.and_then(|ask| life?.ask(ask));
        let (asked, said) = asked.unwrap_or((other, None));
        call.note = Some(OpenStep { asked, said });
    }

    fn ended(
        &mut self,
        open: OpenCall<Option<OpenStep>>,
        outcome: &Outcome,
        now: Ended<'_>,
    ) -> Vec<StepChange> {
        let OpenCall { agent, purpose, note: Some(OpenStep { mut asked, said }), .. } = open else {
            return Vec::new();
        };
        let agent = &agent;
        // What it was switched to, if it was.
        if let Some(model) = purpose.model() {
            asked.args = map(json!({ "model": model }));
        }
        // The tool that was approved is the step.
        if *outcome == Outcome::Approved {
            return Vec::new();
        }
        if let (true, Outcome::Done { body, asks, .. }) = (purpose.is_turn(), outcome) {
            let Some(life) = self.living.get_mut(agent) else { return Vec::new() };
            life.asks = asks.iter().map(ToolCallStep::from).collect();
            life.said = (!body.text.trim().is_empty() && !asks.is_empty()).then(|| remark(&body.text));
            if !asks.is_empty() {
                return Vec::new();
            }
        }
        let (whole, mut changes) =
            if purpose.is_turn() { (Whole::Journal, Vec::new()) } else { self.offloaded(agent, outcome) };
        if !outcome.removed().is_empty() {
            changes.push(StepChange::Removed { agent: agent.clone(), files: outcome.removed().to_vec() });
        }
        if !outcome.files().is_empty() {
            changes.push(StepChange::Wrote { agent: agent.clone(), files: outcome.files().to_vec() });
        }
        changes.extend(self.did(agent, asked, said, Observation::outcome(outcome, &whole, now.seq), now));
        changes
    }

    /// Where the whole of a tool's output is, and what that asks for.
    fn offloaded(&mut self, agent: &AgentId, outcome: &Outcome) -> (Whole, Vec<StepChange>) {
        let Outcome::Done { body, .. } = outcome else { return (Whole::Journal, Vec::new()) };
        self.long_output(agent, body.ends().and_then(|_| body.rest()))
    }

    /// An output of which the agent is shown head and tail becomes a file, if there is room.
    fn long_output(&mut self, agent: &AgentId, rest: Option<&BlobRef>) -> (Whole, Vec<StepChange>) {
        let (Some(rest), Some(life)) = (rest, self.living.get_mut(agent)) else {
            return (Whole::Journal, Vec::new());
        };
        let whole = life.offloads.take(rest);
        let change = || StepChange::Offloaded { agent: agent.clone(), blob: rest.clone() };
        let changes = matches!(whole, Whole::File(_)).then(change).into_iter().collect();
        (whole, changes)
    }

    /// An agent's next step.
    fn did(
        &mut self,
        agent: &AgentId,
        asked: ToolCallStep,
        said: Option<String>,
        observed: Observation,
        ended: Ended<'_>,
    ) -> Vec<StepChange> {
        let Ended { seq, at, context, call, since, spent, presumed } = ended;
        let (Some(life), Some(thread)) = (self.living.get_mut(agent), context.thread()) else {
            return Vec::new();
        };
        life.steps += 1;
        // An event about a child is a step of its parent.
        let above = context.path().iter().take_while(|id| *id != agent).chain([agent]);
        let metadata = Metadata {
            tree: self.tree,
            path: above.map(AgentId::as_str).collect::<Vec<_>>().join("/"),
            thread: thread.clone(),
            seq,
            call,
            took_ms: since.map(|since| at.0.saturating_sub(since.0)),
            spent,
            presumed,
            said,
        };
        let step = Step {
            id: step_id(life.steps),
            tool_name: asked.tool,
            minimal_args: asked.args,
            observation: observed.observation,
            success: observed.error.is_none(),
            timestamp_ms: at.0,
            outcome_ref: observed.outcome_ref,
            error: observed.error,
            metadata,
        };
        vec![StepChange::Did { agent: agent.clone(), number: life.steps, step: Box::new(step) }]
    }
}

impl Life {
    /// One of the tools that the last answer asked for. Each is asked for once.
    fn ask(&mut self, ask: u32) -> Option<(ToolCallStep, Option<String>)> {
        let asked = self.asks.get_mut(ask as usize)?;
        Some((take(asked), self.said.take()))
    }
}

impl From<&ToolAsk> for ToolCallStep {
    fn from(ask: &ToolAsk) -> Self {
        Self { tool: ask.tool.clone(), args: args(&ask.args) }
    }
}

fn waits(wait: &WaitFor) -> ToolCallStep {
    let args = match wait {
        WaitFor::Children { agents, .. } => {
            let names: Vec<&str> = agents.iter().map(AgentId::as_str).collect();
            json!({ "agents": remark(&names.join(", ")) })
        }
        WaitFor::Message => json!({ "for": "message" }),
    };
    ToolCallStep { tool: WAIT.to_owned(), args: map(args) }
}

fn asks(question: &str) -> ToolCallStep {
    ToolCallStep { tool: ASK.to_owned(), args: map(json!({ "question": remark(question) })) }
}

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}
