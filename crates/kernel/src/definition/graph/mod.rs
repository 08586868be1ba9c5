//! Graphs: steps whose outputs feed other steps, and the groups that order them. A graph is data: it is parsed from
//! what people and models write ([`Graph::parse`]), and everything about it is checked before anything runs.
//!
//! The nodes are in one list, each group before its members and the members of a group side by side. So no walk over a
//! graph recurses, and any member of a group is found at once.

pub(crate) mod flow;
mod keys;
mod parse;
mod places;
mod problem;
mod shape;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definition::{
    AnswerForm, BudgetSpec, Condition, Expression, OutputSchema, SharedAccess, Template,
};
use crate::primitives::{RoleName, StepId, ValueName};

pub use places::GraphPlaces;
pub use problem::{GraphProblem, PathStep, ProblemCode};

/// Everything about a graph that does not change while it runs. Its first node is the group of everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "shape::WrittenGraph")]
pub struct Graph {
    #[serde(default, skip_serializing_if = "OnPartialSuccess::is_fail")]
    pub on_partial_success: OnPartialSuccess,
    /// How many members of a parallel group run at the same time if the group does not say so itself; the tree's
    /// limit on children if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
    nodes: Vec<GraphNode>,
}

/// What happens when a required step fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnPartialSuccess {
    /// The graph stops and fails.
    #[default]
    Fail,
    /// Every step whose inputs exist still runs; then the graph fails.
    Continue,
    /// The same, but the graph completes if at least one step succeeded.
    BestEffort,
}

impl OnPartialSuccess {
    pub(crate) const fn is_fail(&self) -> bool {
        matches!(self, Self::Fail)
    }
}

/// The index of a node in its graph.
pub type NodeIx = u32;

/// A step or a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphNode {
    pub id: StepId,
    /// The group that it is a member of; the first node has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<NodeIx>,
    pub kind: NodeKind,
    /// Whether its failure is its group's failure.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub required: bool,
    /// It is skipped unless this holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Condition>,
    /// How often it is tried again after a failure.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retry: u32,
    /// The name that its value gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_to: Option<ValueName>,
    /// Its own ceilings and timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Box<BudgetSpec>>,
    /// Members of the same parallel group that write what this one reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<NodeIx>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// One agent does one task.
    Step(Box<GraphStep>),
    /// A person is asked.
    Ask(Box<AskStep>),
    /// The members run one after the other.
    Sequence { members: Members },
    /// The members run at the same time.
    Parallel {
        members: Members,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_parallel: Option<u32>,
    },
    /// The members run one after the other, once for each item of a list; the items at the same time.
    Map {
        members: Members,
        over: Expression,
        /// The name of the item for the members.
        item: ValueName,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_parallel: Option<u32>,
    },
    /// The members run at the same time until one succeeds; the others are cancelled.
    Race { members: Members },
    /// The members run at the same time, and what most of them answer is the value.
    Vote { members: Members, rule: VoteRule },
    /// The members run one after the other, again and again.
    Loop {
        members: Members,
        until: Condition,
        max_rounds: u32,
        #[serde(default)]
        on_max_rounds: OnMaxRounds,
    },
    /// One of the members runs.
    Choose {
        members: Members,
        on: Expression,
        /// The text that selects each member. A member beyond the last case is for everything else.
        cases: Vec<String>,
    },
}

/// The members of a group: a range of the graph's nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Members {
    pub first: NodeIx,
    pub count: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphStep {
    /// The role of its agent.
    pub agent_id: RoleName,
    pub task: Template,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<StepInput>,
    /// What happens if a shared value among the inputs is not written yet.
    #[serde(default, skip_serializing_if = "OnMissing::is_wait")]
    pub on_missing: OnMissing,
    /// The schema of its answer; the role's applies if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Box<OutputSchema>>,
    /// What takes its effects back if the graph fails after it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Box<Undo>>,
}

/// A value that a step's agent is given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepInput {
    pub name: ValueName,
    /// Whether the step also runs without it.
    #[serde(default, skip_serializing_if = "crate::primitives::is_false")]
    pub optional: bool,
    #[serde(default, skip_serializing_if = "InputSource::is_output")]
    pub source: InputSource,
}

/// Who writes a value that a step's agent is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputSource {
    /// A step of the same graph, or whoever started the tree.
    #[default]
    Output,
    /// Any agent, with `write_context`.
    Shared,
}

/// What happens when a step begins and a shared value that it is given is not written yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnMissing {
    /// The step waits for it, as long as an agent is left that could write it.
    #[default]
    Wait,
    /// As if the step that writes an output did not succeed.
    Fail,
}

impl InputSource {
    const fn is_output(&self) -> bool {
        matches!(self, Self::Output)
    }
}

impl OnMissing {
    const fn is_wait(&self) -> bool {
        matches!(self, Self::Wait)
    }
}

impl StepInput {
    /// What a name begins with that means a shared value.
    pub const SHARED_PREFIX: &str = "shared.";
}

impl fmt::Display for StepInput {
    /// As its author writes it, without the mark of an optional one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.source == InputSource::Shared {
            f.write_str(Self::SHARED_PREFIX)?;
        }
        self.name.fmt(f)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Undo {
    pub agent_id: RoleName,
    pub task: Template,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskStep {
    pub question: Template,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default)]
    pub on_timeout: AskTimeout,
    /// What may be answered.
    #[serde(default, skip_serializing_if = "AnswerForm::is_text")]
    pub form: AnswerForm,
}

/// What happens if there is no answer in time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskTimeout {
    /// The step fails.
    #[default]
    Fail,
    /// This counts as the answer.
    Default(String),
    /// The graph is cancelled.
    Cancel,
}

/// How votes are counted. Votes are equal if their values are; a text counts without white space around it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VoteRule {
    /// How often the only member runs, if there is one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub voters: u32,
    #[serde(default)]
    pub majority: Majority,
    /// The key of each answer that is the vote; the whole answer if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(default)]
    pub on_tie: OnTie,
    /// Whether a voter that failed counts as a vote against everything.
    #[serde(default)]
    pub missing: Missing,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Majority {
    /// More than half.
    #[default]
    Half,
    /// At least two thirds.
    TwoThirds,
    All,
    /// More than any other.
    Most,
}

/// What happens if two values have the most votes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTie {
    #[default]
    Fail,
    /// The one that a voter named first, in the order of the members.
    First,
}

/// What a voter without a vote means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// It counts as one of the votes, for nothing.
    #[default]
    Against,
    /// It does not count.
    Ignored,
}

/// What happens if a loop's condition does not hold after its last round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnMaxRounds {
    #[default]
    Fail,
    /// The graph continues with what the last round left.
    Continue,
}

/// What a graph is checked against.
pub struct GraphSurroundings<'a> {
    /// The roles that its steps may use.
    pub roles: &'a dyn Fn(&RoleName) -> bool,
    /// All of them, for suggestions.
    pub role_names: Vec<&'a str>,
    /// The names that have a value before it starts.
    pub given: Vec<&'a str>,
    /// The values that agents write with `write_context`; absent if no name means one, as before rules 8.
    pub shared: Option<SharedSurroundings<'a>>,
    /// The most steps and groups.
    pub nodes_max: usize,
}

/// What a graph's shared inputs are checked against.
pub struct SharedSurroundings<'a> {
    /// The rules of the tree, which also declare its values.
    pub access: &'a SharedAccess,
    /// The roles whose agents can write values at all.
    pub writers: Vec<&'a RoleName>,
    /// Whether a value exists before the graph starts.
    pub has_value: &'a dyn Fn(&ValueName) -> bool,
    /// What the author of the graph can do about a value that is not declared.
    pub help: &'a str,
}

impl<'a> SharedSurroundings<'a> {
    /// Whether the tree declares the value, or it exists already.
    fn is_known(&self, name: &ValueName) -> bool {
        (self.has_value)(name) || self.access.rule(name).is_some()
    }

    /// Whether it exists already, or an agent of any role can write it.
    fn can_exist(&self, name: &ValueName) -> bool {
        (self.has_value)(name) || self.writers.iter().any(|role| self.access.may_write(role, name))
    }

    /// The values that are declared by their whole names.
    fn declared(&self) -> Vec<&'a str> {
        let patterns = self.access.rules().map(|(pattern, _)| pattern.as_str());
        patterns.filter(|pattern| !pattern.ends_with('*')).collect()
    }
}

impl Graph {
    /// Parses a graph as people and models write it, and checks all of it.
    ///
    /// # Errors
    /// Every problem, each with its place and what to write instead; at most [`GRAPH_PROBLEMS_MAX`](crate::primitives::limit::GRAPH_PROBLEMS_MAX).
    pub fn parse(written: &Value, around: &GraphSurroundings<'_>) -> Result<Self, Vec<GraphProblem>> {
        Self::parse_placed(written, around).map(|(graph, _)| graph)
    }

    /// The same, with the places of its nodes in what was written.
    ///
    /// # Errors
    /// As above.
    pub fn parse_placed(
        written: &Value,
        around: &GraphSurroundings<'_>,
    ) -> Result<(Self, GraphPlaces), Vec<GraphProblem>> {
        let mut problems = problem::Problems::default();
        let parsed = parse::parse(written, around, &mut problems);
        let Some((mut graph, places)) = parsed else { return Err(problems.into_all()) };
        flow::check(&mut graph, &places, around, &mut problems);
        if problems.is_empty() { Ok((graph, places)) } else { Err(problems.into_all()) }
    }

    /// The keys of a whole graph, as it is written.
    pub const KEYS: &[&str] = &keys::GRAPH;
    /// The keys that say what a node is. Each node has exactly one of them.
    pub const KIND_KEYS: &[&str] = &keys::KINDS;
    /// The keys of the `undo` of a step.
    pub const UNDO_KEYS: &[&str] = &keys::UNDO;

    /// The keys of a node that has this one of [`Self::KIND_KEYS`].
    #[must_use]
    pub fn keys_of(kind: &str) -> Vec<&'static str> {
        keys::for_kind(kind)
    }

    /// Whether expressions know this name although nothing writes it.
    #[must_use]
    pub fn is_builtin(name: &str) -> bool {
        flow::is_builtin(name)
    }

    #[must_use]
    pub fn nodes(&self) -> &[GraphNode] {
        &self.nodes
    }

    /// The step or group with this id.
    #[must_use]
    pub fn find(&self, id: &StepId) -> Option<NodeIx> {
        let place = self.nodes.iter().position(|node| node.id == *id)?;
        NodeIx::try_from(place).ok()
    }

    /// Whether a node runs more than once: in a map, a loop or a vote.
    #[must_use]
    pub fn repeats(&self, ix: NodeIx) -> bool {
        let is_repeated = |kind: &NodeKind| {
            matches!(kind, NodeKind::Map { .. } | NodeKind::Loop { .. } | NodeKind::Vote { .. })
        };
        self.up(ix).skip(1).any(|above| is_repeated(&self.node(above).kind))
    }

    /// Panics if there is no such node: an index is only handed out for one that exists.
    #[must_use]
    pub fn node(&self, ix: NodeIx) -> &GraphNode {
        match self.nodes.get(ix as usize) {
            Some(node) => node,
            None => unreachable!("a graph has the nodes that its groups name"),
        }
    }

    /// `ix` and the groups around it, the nearest first.
    pub fn up(&self, ix: NodeIx) -> impl Iterator<Item = NodeIx> {
        std::iter::successors(Some(ix), |ix| self.node(*ix).parent)
    }

    /// Every step, in the order of the file as far as groups allow.
    pub fn steps(&self) -> impl Iterator<Item = (NodeIx, &GraphNode, &GraphStep)> {
        self.nodes.iter().enumerate().filter_map(|(ix, node)| match &node.kind {
            NodeKind::Step(step) => Some((ix as NodeIx, node, step.as_ref())),
            _ => None,
        })
    }

    /// The fewest agents that a successful run needs, beside the graph's own.
    #[must_use]
    pub fn agents_min(&self) -> u64 {
        let mut least = vec![0_u64; self.nodes.len()];
        for (ix, node) in self.nodes.iter().enumerate().rev() {
            let is_certain = node.required && node.when.is_none();
            let own = u64::from(node.is_agent());
            let of = |members: &Members| members.all().map(|member| least[member as usize]);
            let inner = match &node.kind {
                NodeKind::Step(_) | NodeKind::Ask(_) | NodeKind::Map { .. } => 0,
                NodeKind::Sequence { members }
                | NodeKind::Parallel { members, .. }
                | NodeKind::Race { members }
                | NodeKind::Loop { members, .. } => of(members).fold(0, u64::saturating_add),
                NodeKind::Vote { members, rule } => {
                    of(members).fold(0, u64::saturating_add).saturating_mul(u64::from(rule.voters))
                }
                NodeKind::Choose { members, cases, .. } => {
                    if members.count as usize > cases.len() {
                        of(members).min().unwrap_or(0)
                    } else {
                        0
                    }
                }
            };
            if is_certain {
                least[ix] = own.saturating_add(inner);
            }
        }
        // The first node's agent is the graph's own.
        least.first().map_or(0, |least| least.saturating_sub(u64::from(self.nodes[0].is_agent())))
    }
}

impl GraphNode {
    #[must_use]
    pub const fn members(&self) -> Option<&Members> {
        match &self.kind {
            NodeKind::Step(_) | NodeKind::Ask(_) => None,
            NodeKind::Sequence { members }
            | NodeKind::Parallel { members, .. }
            | NodeKind::Map { members, .. }
            | NodeKind::Race { members }
            | NodeKind::Vote { members, .. }
            | NodeKind::Loop { members, .. }
            | NodeKind::Choose { members, .. } => Some(members),
        }
    }

    #[must_use]
    pub const fn step(&self) -> Option<&GraphStep> {
        if let NodeKind::Step(step) = &self.kind { Some(step) } else { None }
    }

    /// Whether its own agent stands for it: a step's does its task, a group's holds its budget.
    #[must_use]
    pub fn is_agent(&self) -> bool {
        match &self.kind {
            NodeKind::Step(_) => true,
            NodeKind::Ask(_) => false,
            _ => self.budget.is_some(),
        }
    }

    /// The word for what it is, as its author writes it.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match &self.kind {
            NodeKind::Step(_) => "step",
            NodeKind::Ask(_) => "ask",
            NodeKind::Sequence { .. } => "sequence",
            NodeKind::Parallel { .. } => "parallel",
            NodeKind::Map { .. } => "map",
            NodeKind::Race { .. } => "race",
            NodeKind::Vote { .. } => "vote",
            NodeKind::Loop { .. } => "loop",
            NodeKind::Choose { .. } => "choose",
        }
    }
}

impl Members {
    pub fn all(&self) -> impl DoubleEndedIterator<Item = NodeIx> + use<> {
        self.first..self.first + self.count
    }

    #[must_use]
    pub const fn at(&self, place: u32) -> Option<NodeIx> {
        if place < self.count { Some(self.first + place) } else { None }
    }
}

const fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_yes(flag: &bool) -> bool {
    *flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

const fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_one(number: &u32) -> bool {
    *number == 1
}

#[cfg(test)]
mod tests;
