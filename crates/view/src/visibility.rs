//! Which events and texts a watcher is shown, by its right and by what the tree's definition says about roles and tools. What
//! is not known to be harmless is not in a summary.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use spinney::bus::TracedEvent;
use spinney_kernel::definition::{Builtin, Definition, RoleVisibility, Visibility};
use spinney_kernel::primitives::{Actor, AgentId, CallId, RoleName, TreeId};
use spinney_kernel::record::{Event, Outcome, ToolAsk, Work};

use crate::events::event_json;

/// What a watcher may see and do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchRight {
    /// The user whose home it is.
    #[default]
    Owner,
    /// Who steers a tree sees all of it.
    Steer,
    /// Sees what roles and tools show.
    Read,
}

impl WatchRight {
    /// Whether visibility says nothing about what it sees.
    #[must_use]
    pub const fn sees_everything(self) -> bool {
        match self {
            Self::Owner | Self::Steer => true,
            Self::Read => false,
        }
    }

    /// Whether it is the default.
    #[must_use]
    pub fn is_owner(&self) -> bool {
        *self == Self::Owner
    }
}

/// The texts under these names are ids, and words of ours.
const PLAIN_KEYS: [&str; 22] = [
    "type",
    "tree",
    "path",
    "topic",
    "thread",
    "caller",
    "recipient",
    "agent",
    "parent",
    "role",
    "model",
    "tool",
    "to",
    "of",
    "account",
    "graph",
    "clock",
    "kind",
    "end",
    "exit",
    "code",
    "resource",
];
/// Models choose the topics of their messages.
const MESSAGES: [&str; 2] = ["message_sent", "message_published"];
/// The texts under these names are what models chose where they are below a list with this name.
const CHOSEN: [(&str, &str); 2] = [("asks", "tool"), ("files", "path")];

/// The events of a tree as a watcher sees them. It needs every event from the first on.
#[derive(Default)]
pub struct VisibleEvents {
    right: WatchRight,
    definition: Option<Arc<Definition>>,
    agents: BTreeMap<AgentId, SeenAgent>,
    calls: BTreeMap<CallId, (AgentId, Visibility)>,
}

/// What is known of an agent.
#[derive(Default)]
struct SeenAgent {
    visibility: Visibility,
    /// Whether an agent above it is hidden.
    is_inside: bool,
    /// Whether it stands for steps, and passes on what they say.
    is_graph: bool,
    rule: RoleVisibility,
    /// The tools that its model asked for last.
    asked: Vec<String>,
}

impl VisibleEvents {
    /// What a watcher with this right sees.
    #[must_use]
    pub fn new(right: WatchRight) -> Self {
        Self { right, ..Self::default() }
    }

    /// Whose events these are.
    #[must_use]
    pub const fn right(&self) -> WatchRight {
        self.right
    }

    /// Takes the next event, and returns it as it is shown; none if it is hidden.
    pub fn event(&mut self, tree: TreeId, traced: &TracedEvent) -> Option<Value> {
        if self.right.sees_everything() {
            return Some(event_json(tree, traced));
        }
        let shown = self.shown(tree, traced);
        if let Event::CallEnded { call, .. } = &traced.recorded.event {
            self.calls.remove(call);
        }
        shown
    }

    /// Whether the text that a call streams is shown. Of a call that is not known, nothing is.
    #[must_use]
    pub fn shows_text(&self, call: CallId) -> bool {
        let is_full = || self.calls.get(&call).is_some_and(|(_, visibility)| *visibility == Visibility::Full);
        self.right.sees_everything() || is_full()
    }

    fn shown(&mut self, tree: TreeId, traced: &TracedEvent) -> Option<Value> {
        let event = &traced.recorded.event;
        self.enter(event);
        let visibility = self.of_event(traced);
        let is_hidden = |agent| self.agents.get(agent).is_some_and(|seen: &SeenAgent| seen.is_inside);
        let agent = match event {
            Event::AgentSpawned(spawned) => Some(&spawned.agent),
            Event::AgentEnded { agent, .. } => Some(agent),
            _ => None,
        };
        match (visibility, agent) {
            (Visibility::Full, _) => Some(event_json(tree, traced)),
            (Visibility::Summary, _) => Some(summary(event_json(tree, traced))),
            // That it was there and what it cost belongs to those above it.
            (Visibility::Hidden, Some(agent)) if !is_hidden(agent) => Some(summary(event_json(tree, traced))),
            (Visibility::Hidden, _) => None,
        }
    }

    fn enter(&mut self, event: &Event) {
        match event {
            Event::TreeStarted { definition, .. } => self.definition = Some(Arc::clone(definition)),
            Event::AgentSpawned(spawned) => {
                let above = spawned.parent.as_ref().and_then(|parent| self.agents.get(parent));
                let is_inside = above.is_some_and(|above| above.visibility == Visibility::Hidden);
                let rules = self.definition.as_ref().map(|definition| &definition.visibility);
                let rule = rules.and_then(|rules| rules.get(&spawned.role)).cloned().unwrap_or_default();
                let visibility = if is_inside { Visibility::Hidden } else { rule.agent };
                let is_graph = spawned.role == RoleName::of_graphs();
                let seen = SeenAgent { visibility, is_inside, is_graph, rule, asked: Vec::new() };
                self.agents.insert(spawned.agent.clone(), seen);
            }
            Event::CallAsked { call, agent, work } => {
                let visibility = match work {
                    Work::Tool(tool) => self.of_tool(agent, tool.tool.as_str()),
                    Work::Model(_) | Work::Child(_) | Work::Wait(_) | Work::Question(_) => {
                        self.of_agent(agent)
                    }
                };
                self.calls.insert(*call, (agent.clone(), visibility));
            }
            Event::WaitStarted { call, agent, .. } => {
                self.calls.insert(*call, (agent.clone(), self.of_agent(agent)));
            }
            Event::QuestionAsked { call, agent, question, .. } => {
                let approves = question.approves.as_ref().map(|ask| self.of_tool(agent, &ask.tool));
                let visibility = approves.unwrap_or_default().max(self.of_agent(agent));
                self.calls.insert(*call, (agent.clone(), visibility));
            }
            Event::CallEnded { call, outcome: Outcome::Done { asks, .. }, .. } => {
                if let Some(seen) = self.calls.get(call).and_then(|(agent, _)| self.agents.get_mut(agent))
                    && !asks.is_empty()
                {
                    seen.asked = asks.iter().map(|ask| ask.tool.clone()).collect();
                }
            }
            _ => {}
        }
    }

    /// The least that anything in the event is shown.
    fn of_event(&self, TracedEvent { recorded, context, .. }: &TracedEvent) -> Visibility {
        let event = &recorded.event;
        let parties = [&context.agent, &context.recipient].into_iter().flatten();
        let mut visibility = parties.map(|agent| self.of_agent(agent)).max().unwrap_or_default();
        if let Some((_, of_call)) = event.call().and_then(|call| self.calls.get(&call)) {
            visibility = visibility.max(*of_call);
        }
        visibility.max(match event {
            // These have the texts of many roles.
            Event::TreeStarted { .. } | Event::TreeBranched(_) | Event::TreeAdjusted(_) => self.of_tree(),
            Event::GraphStarted { .. } | Event::NodeStarted(_) | Event::NodeEnded { .. } => self.of_tree(),
            Event::AgentSpawned(spawned) => spawned
                .parent
                .as_ref()
                .map(|above| self.of_agent(above).max(self.of_steps(above)))
                .unwrap_or_default()
                .min(Visibility::Summary),
            Event::MessageSent { from: Actor::Agent(from), .. }
            | Event::MessagePublished { from: Actor::Agent(from), .. }
            | Event::ValueWritten { by: Actor::Agent(from), .. } => {
                self.of_agent(from).max(self.of_steps(from))
            }
            Event::AgentEnding { agent, .. } | Event::AgentEnded { agent, .. } => self.of_steps(agent),
            Event::ContextShared { from, .. } => self.of_agent(from),
            Event::ToolAnswered { agent, ask, .. } => {
                let asked = self.agents.get(agent).map(|seen| &seen.asked);
                let tool = asked.and_then(|asked| asked.get(*ask as usize));
                tool.map(|tool| self.of_tool(agent, tool)).unwrap_or_default()
            }
            Event::ApprovalRemembered { agent, tool, .. } => self.of_tool(agent, tool.as_str()),
            // Arguments are texts of the tool.
            Event::CallEnded { call, outcome: Outcome::Done { asks, .. }, .. } => {
                let agent = self.calls.get(call).map(|(agent, _)| agent);
                let of_ask = |ask: &ToolAsk| {
                    let own = agent.map(|agent| self.of_tool(agent, &ask.tool)).unwrap_or_default();
                    own.max(self.of_addressee(ask))
                };
                asks.iter().map(of_ask).max().unwrap_or_default().min(Visibility::Summary)
            }
            _ => Visibility::Full,
        })
    }

    fn of_tree(&self) -> Visibility {
        let restricts = self.definition.as_ref().is_none_or(|definition| !definition.visibility.is_empty());
        if restricts { Visibility::Summary } else { Visibility::Full }
    }

    /// What an agent that stands for steps passes on is of all of them.
    fn of_steps(&self, agent: &AgentId) -> Visibility {
        let is_graph = self.agents.get(agent).is_some_and(|seen| seen.is_graph);
        if is_graph { self.of_tree() } else { Visibility::Full }
    }

    /// What a request says to an agent is the text of both. Of one that cannot be told, it is of any.
    fn of_addressee(&self, ask: &ToolAsk) -> Visibility {
        if !ADDRESSING.contains(&ask.tool.as_str()) {
            return Visibility::Full;
        }
        let of = |word: &str| {
            let known = word.parse().ok().and_then(|agent: AgentId| self.agents.get(&agent));
            let role = word.parse().ok().and_then(|role: RoleName| {
                let definition = self.definition.as_ref()?;
                definition.roles.contains_key(&role).then(|| definition.visibility.get(&role))
            });
            match (known, role) {
                (None, None) => None,
                (known, role) => {
                    let of_role = role.flatten().map(|rule| rule.agent).unwrap_or_default();
                    Some(known.map(|seen| seen.visibility).unwrap_or_default().max(of_role))
                }
            }
        };
        let args: Option<Map<String, Value>> = serde_json::from_str(&ask.args).ok();
        let named = |key| args.as_ref()?.get(key)?.as_str();
        named("agent").or_else(|| named("to")).and_then(of).unwrap_or_else(|| self.of_tree())
    }

    fn of_agent(&self, agent: &AgentId) -> Visibility {
        self.agents.get(agent).map(|seen| seen.visibility).unwrap_or_default()
    }

    fn of_tool(&self, agent: &AgentId, tool: &str) -> Visibility {
        let Some(seen) = self.agents.get(agent) else { return Visibility::Full };
        seen.rule.of_tool(tool).max(seen.visibility)
    }
}

/// The tools whose arguments are for other agents.
const ADDRESSING: [&str; 5] = [
    Builtin::SpawnAgent.as_str(),
    Builtin::DelegateToAgent.as_str(),
    Builtin::FollowupTask.as_str(),
    Builtin::SendMessage.as_str(),
    Builtin::RunPipeline.as_str(),
];

/// Who, what kind, when, and amounts.
fn summary(event: Value) -> Value {
    let mut summary = match of_value(event, "") {
        Some(Value::Object(fields)) => fields,
        Some(_) | None => Map::new(),
    };
    if summary.get("type").and_then(Value::as_str).is_some_and(|kind| MESSAGES.contains(&kind)) {
        summary.shift_remove("topic");
    }
    summary.insert("visibility".to_owned(), "summary".into());
    Value::Object(summary)
}

/// What is left of a value that is, or is in, the list with this name.
fn of_value(value: Value, list: &str) -> Option<Value> {
    match value {
        Value::Null | Value::String(_) => None,
        Value::Bool(_) | Value::Number(_) => Some(value),
        Value::Array(values) => {
            let values: Vec<Value> = values.into_iter().filter_map(|value| of_value(value, list)).collect();
            (!values.is_empty()).then_some(Value::Array(values))
        }
        Value::Object(fields) => {
            let kept: Map<String, Value> = fields
                .into_iter()
                .filter_map(|(name, value)| {
                    let is_plain = value.is_string()
                        && PLAIN_KEYS.contains(&name.as_str())
                        && !CHOSEN.contains(&(list, name.as_str()));
                    let value = if is_plain { Some(value) } else { of_value(value, &name) };
                    value.map(|value| (name, value))
                })
                .collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
    }
}
