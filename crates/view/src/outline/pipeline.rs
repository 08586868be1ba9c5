//! The pipeline of a tree file for people and programs: its steps and groups, and the most that each step can spend.

use std::collections::BTreeMap;

use serde::Serialize;
use spinney::tree_file::{PipelineBound, RunFactor, StepBound, UnboundedHold};
use spinney_kernel::budget::usd;
use spinney_kernel::definition::{
    AskTimeout, Graph, GraphNode, GraphStep, NodeIx, NodeKind, OnMaxRounds, OnPartialSuccess, StepInput,
};
use spinney_kernel::primitives::{Millis, RoleName, StepId, ValueName};

use super::agent::ceilings;
use crate::wording::{counted, one_line};

/// Most steps and groups that people are shown. Programs get all.
const SHOWN_MAX: usize = 200;
/// Longest question, condition and list in a line.
const TEXT_CHARS_MAX: usize = 80;

/// The steps and groups of a pipeline.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PipelineOutline {
    /// What happens after a step failed.
    pub on_partial_success: OnPartialSuccess,
    /// Its steps and groups, each group before its members.
    pub nodes: Vec<NodeOutline>,
    /// The most that it can spend.
    pub worst_case: PipelineSpending,
    /// The same for people, who are not shown all of a long one.
    #[serde(skip)]
    pub lines: Vec<String>,
}

/// The most that a pipeline can spend.
#[derive(Clone, Copy, Debug, Serialize)]
#[non_exhaustive]
pub struct PipelineSpending {
    /// By the ceilings of its steps and groups.
    pub cost_nanos: Option<u64>,
    /// What all its calls hold if none is repeated.
    pub held_nanos: Option<u64>,
}

/// A step or a group.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct NodeOutline {
    /// Its name.
    pub id: StepId,
    /// What it is, in one word.
    pub kind: &'static str,
    /// In how many groups it is.
    pub depth: usize,
    /// The nearest of them.
    pub parent: Option<StepId>,
    /// Whether its failure is its group's failure.
    pub required: bool,
    /// How often it is tried again after a failure.
    pub retry: u32,
    /// It is skipped unless this holds.
    pub when: Option<String>,
    /// The name that its value gets.
    pub output_to: Option<ValueName>,
    /// What only its kind has.
    #[serde(flatten)]
    pub of_kind: KindOutline,
    /// How often a step runs, and what that costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst_case: Option<StepSpending>,
}

/// What only one kind of step or group has.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum KindOutline {
    /// One agent does one task.
    Step {
        /// Its role.
        agent_id: RoleName,
        /// The values that it reads; those that may be missing end in `?`.
        input_from: Vec<String>,
        /// The role that takes its effects back.
        undo: Option<RoleName>,
    },
    /// Its members run again and again.
    Loop {
        /// Until this holds.
        until: String,
        /// At most so often.
        max_rounds: u32,
    },
    /// Its members run once for each item of a list.
    Map {
        /// The list.
        over: String,
        /// The name of the item.
        #[serde(rename = "as")]
        item: ValueName,
    },
    /// One of its members runs.
    Choose {
        /// What decides which.
        on: String,
        /// The text that selects each.
        cases: Vec<String>,
    },
    /// Its members vote.
    Vote {
        /// How many votes there are.
        voters: u32,
    },
    /// A person is asked.
    Ask {
        /// The question.
        ask: String,
    },
    /// Its members run, each once.
    Group {},
}

/// The most that a step can spend.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct StepSpending {
    /// How often it runs.
    pub runs: u64,
    /// Why so often.
    pub factors: Vec<FactorOutline>,
    /// What that costs by its ceiling.
    pub cost_nanos: Option<u64>,
    /// What its calls hold if none is repeated.
    pub held_nanos: Option<u64>,
    /// Why that is unknown.
    pub not_held: Option<&'static str>,
}

/// What a step runs more than once for.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct FactorOutline {
    /// The step or group around it.
    pub of: StepId,
    /// Its attempts, rounds, voters or items.
    pub what: &'static str,
    /// How many; unknown for the items of a list.
    pub number: Option<u64>,
}

pub(super) struct Pipeline<'a> {
    graph: &'a Graph,
    bound: &'a PipelineBound,
    steps: BTreeMap<NodeIx, &'a StepBound>,
}

impl<'a> Pipeline<'a> {
    pub(super) fn new(graph: &'a Graph, bound: &'a PipelineBound) -> Self {
        Self { graph, bound, steps: bound.steps.iter().map(|step| (step.node, step)).collect() }
    }

    /// Every node with its depth, each group before its members.
    fn nodes(&self) -> impl Iterator<Item = (usize, NodeIx, &'a GraphNode)> {
        let graph = self.graph;
        let mut waiting = vec![(0, 0)];
        std::iter::from_fn(move || {
            let (depth, ix) = waiting.pop()?;
            let node = graph.node(ix);
            let members = node.members().into_iter().flat_map(|members| members.all().rev());
            waiting.extend(members.map(|member| (depth + 1, member)));
            Some((depth, ix, node))
        })
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (depth, ix, node) in self.nodes().take(SHOWN_MAX) {
            let margin = "  ".repeat(depth);
            lines.push(format!("{margin}{}{}", self.case(ix, node), self.node(node)));
            lines.extend(self.steps.get(&ix).map(|step| format!("{margin}  {}", spends(step))));
        }
        let hidden = self.graph.nodes().len().saturating_sub(SHOWN_MAX);
        if hidden > 0 {
            lines.push(format!("… and {} more", counted(hidden as u64, "step or group")));
        }
        lines.extend(self.in_all());
        lines
    }

    /// What selects the member of a choice.
    fn case(&self, ix: NodeIx, node: &GraphNode) -> String {
        let above = node.parent.map(|parent| &self.graph.node(parent).kind);
        let Some(NodeKind::Choose { members, cases, .. }) = above else { return String::new() };
        match cases.get((ix - members.first) as usize) {
            Some(case) => format!("if `{}`: ", one_line(case, TEXT_CHARS_MAX)),
            None => "else: ".to_owned(),
        }
    }

    fn node(&self, node: &GraphNode) -> String {
        let mut said = vec![format!("{}: {}", node.id, self.kind(node))];
        if node.parent.is_none() {
            said.push(partial(self.graph.on_partial_success).to_owned());
        }
        let after: Vec<String> =
            node.after.iter().map(|other| self.graph.node(*other).id.to_string()).collect();
        said.extend((!after.is_empty()).then(|| format!("after {}", after.join(", "))));
        said.extend(node.when.as_ref().map(|when| format!("when {}", short(when.source()))));
        said.extend((!node.required).then(|| "may fail".to_owned()));
        let undo = node.step().and_then(|step| step.undo.as_ref());
        said.extend(undo.map(|undo| format!("undone by {}", undo.agent_id)));
        said.extend((node.retry > 0).then(|| format!("retried {}", times(node.retry))));
        let schema = node.step().and_then(|step| step.output_schema.as_ref());
        said.extend(schema.map(|_| "answers with JSON that matches its output schema".to_owned()));
        if let Some(budget) = node.budget.as_deref() {
            said.extend(ceilings(budget).map(|most| format!("at most {most} each time")));
            said.extend(budget.timeout_ms.map(|ms| format!("within {}", Millis(ms))));
        }
        said.join(" · ")
    }

    fn kind(&self, node: &GraphNode) -> String {
        let output = node.output_to.as_ref().map(|name| format!(" → {name}")).unwrap_or_default();
        let kind = match &node.kind {
            NodeKind::Step(step) => return format!("{}{}", step.agent_id, flow(&inputs(step), &output)),
            NodeKind::Ask(ask) => {
                let time = ask.timeout_ms.map(|ms| format!(", within {}", Millis(ms))).unwrap_or_default();
                let late = match &ask.on_timeout {
                    AskTimeout::Fail => String::new(),
                    AskTimeout::Cancel => ", or the pipeline is cancelled".to_owned(),
                    AskTimeout::Default(answer) => format!(", or `{}`", short(answer)),
                };
                format!("asks a person `{}`{time}{late}", short(ask.question.source()))
            }
            NodeKind::Sequence { .. } => "one after the other".to_owned(),
            NodeKind::Parallel { max_parallel, .. } => {
                format!("at the same time{}", at_once(max_parallel.or(self.graph.max_parallel)))
            }
            NodeKind::Map { over, item, max_parallel, .. } => {
                let over = short(over.source());
                format!("for each `{item}` of {over}{}", at_once(max_parallel.or(self.graph.max_parallel)))
            }
            NodeKind::Race { .. } => "a race, the first that succeeds".to_owned(),
            NodeKind::Vote { rule, members } => {
                let voters = counted(u64::from(rule.voters) * u64::from(members.count), "voter");
                let by = rule.by.as_ref().map(|by| format!(" by `{}`", short(by))).unwrap_or_default();
                let majority = word(&rule.majority);
                format!("a vote of {voters}{by}, majority {majority}")
            }
            NodeKind::Loop { until, max_rounds, on_max_rounds, .. } => {
                let end = match on_max_rounds {
                    OnMaxRounds::Fail => "",
                    OnMaxRounds::Continue => ", then continues",
                };
                let rounds = counted(u64::from(*max_rounds), "round");
                format!("again until {}, at most {rounds}{end}", short(until.source()))
            }
            NodeKind::Choose { on, .. } => format!("one of, by {}", short(on.source())),
        };
        format!("{kind}{output}")
    }

    fn in_all(&self) -> Vec<String> {
        let PipelineBound { cost, held, steps } = self.bound;
        let open: Vec<String> = steps
            .iter()
            .filter(|step| step.ceiling.is_none())
            .take(3)
            .map(|step| format!("`{}`", step.id))
            .collect();
        let mut lines = vec![match cost {
            Some(cost) => format!("in all at most {} by the ceilings of its steps and groups", usd(*cost)),
            None if open.is_empty() => "no overall bound: no step or group has a ceiling".to_owned(),
            None => {
                format!(
                    "no overall bound: {} and the groups around {} have no ceiling",
                    open.join(", "),
                    if open.len() == 1 { "it" } else { "them" }
                )
            }
        }];
        if let Some(held) = held {
            lines.push(format!("in all its calls hold at most {} if none is repeated", usd(*held)));
        }
        lines
    }

    pub(super) fn outline(&self) -> PipelineOutline {
        PipelineOutline {
            on_partial_success: self.graph.on_partial_success,
            nodes: self.nodes().map(|(depth, ix, node)| self.node_outline(depth, ix, node)).collect(),
            worst_case: PipelineSpending { cost_nanos: self.bound.cost, held_nanos: self.bound.held },
            lines: self.lines(),
        }
    }

    fn node_outline(&self, depth: usize, ix: NodeIx, node: &GraphNode) -> NodeOutline {
        NodeOutline {
            id: node.id.clone(),
            kind: node.as_str(),
            depth,
            parent: node.parent.map(|parent| self.graph.node(parent).id.clone()),
            required: node.required,
            retry: node.retry,
            when: node.when.as_ref().map(|when| when.source().to_owned()),
            output_to: node.output_to.clone(),
            of_kind: of_kind(&node.kind),
            worst_case: self.steps.get(&ix).map(|step| StepSpending {
                runs: step.runs,
                factors: step.factors.iter().map(factor_outline).collect(),
                cost_nanos: step.cost(),
                held_nanos: step.held_in_all(),
                not_held: step.held.err().map(not_held_word),
            }),
        }
    }
}

fn of_kind(kind: &NodeKind) -> KindOutline {
    match kind {
        NodeKind::Step(step) => KindOutline::Step {
            agent_id: step.agent_id.clone(),
            input_from: inputs(step),
            undo: step.undo.as_ref().map(|undo| undo.agent_id.clone()),
        },
        NodeKind::Loop { until, max_rounds, .. } => {
            KindOutline::Loop { until: until.source().to_owned(), max_rounds: *max_rounds }
        }
        NodeKind::Map { over, item, .. } => {
            KindOutline::Map { over: over.source().to_owned(), item: item.clone() }
        }
        NodeKind::Choose { on, cases, .. } => {
            KindOutline::Choose { on: on.source().to_owned(), cases: cases.clone() }
        }
        NodeKind::Vote { rule, members } => KindOutline::Vote { voters: rule.voters * members.count },
        NodeKind::Ask(ask) => KindOutline::Ask { ask: ask.question.source().to_owned() },
        NodeKind::Sequence { .. } | NodeKind::Parallel { .. } | NodeKind::Race { .. } => {
            KindOutline::Group {}
        }
    }
}

/// How often a step runs at most, and what that costs.
fn spends(step: &StepBound) -> String {
    let factors: Vec<String> = step.factors.iter().map(factor).collect();
    let why = if factors.is_empty() { String::new() } else { format!(" ({})", factors.join(" × ")) };
    let any = step.factors.iter().any(|factor| factor.number().is_none());
    let limit = if any { ", by `limits.agents`" } else { "" };
    let runs = format!("at most {}{why}{limit}", counted(step.runs, "run"));
    match (step.ceiling, step.cost(), &step.held) {
        (Some(_), Some(all), _) if step.runs == 1 => format!("{runs}: {}, its ceiling", usd(all)),
        (Some(each), Some(all), _) => format!("{runs} of {}: {}", usd(each), usd(all)),
        (Some(each), None, _) => format!("{runs} of {}", usd(each)),
        (None, _, Ok(_)) => {
            let held = step.held_in_all().map(|held| format!("; its calls hold at most {}", usd(held)));
            format!("{runs}: no ceiling{} if none is repeated", held.unwrap_or_default())
        }
        (None, _, Err(why)) => format!("{runs}: no ceiling, {}", reason(*why)),
    }
}

const fn reason(why: UnboundedHold) -> &'static str {
    match why {
        UnboundedHold::Spawns => "and its agent may start others",
        UnboundedHold::Unpriced => "and its model has no price",
        UnboundedHold::NoContext => "and the size of its model's context is unknown",
    }
}

const fn not_held_word(why: UnboundedHold) -> &'static str {
    match why {
        UnboundedHold::Spawns => "spawns",
        UnboundedHold::Unpriced => "unpriced",
        UnboundedHold::NoContext => "no_context",
    }
}

fn factor(factor: &RunFactor) -> String {
    match factor {
        RunFactor::Attempts(id, number) => format!("{number} attempts of `{id}`"),
        RunFactor::Rounds(id, number) => format!("{} of `{id}`", counted(u64::from(*number), "round")),
        RunFactor::Voters(id, number) => format!("{} of `{id}`", counted(u64::from(*number), "voter")),
        RunFactor::Items(id, number) => format!("{} of `{id}`", counted(*number, "item")),
        RunFactor::AnyItems(id) => format!("any number of items of `{id}`"),
    }
}

fn factor_outline(factor: &RunFactor) -> FactorOutline {
    let what = match factor {
        RunFactor::Attempts(..) => "attempts",
        RunFactor::Rounds(..) => "rounds",
        RunFactor::Voters(..) => "voters",
        RunFactor::Items(..) | RunFactor::AnyItems(_) => "items",
    };
    FactorOutline { of: factor.step().clone(), what, number: factor.number() }
}

fn inputs(step: &GraphStep) -> Vec<String> {
    let name = |input: &StepInput| format!("{input}{}", if input.optional { "?" } else { "" });
    step.inputs.iter().map(name).collect()
}

fn flow(inputs: &[String], output: &str) -> String {
    match (inputs.is_empty(), output.is_empty()) {
        (true, _) => output.to_owned(),
        (false, true) => format!(", reads {}", inputs.join(", ")),
        (false, false) => format!(", {}{output}", inputs.join(", ")),
    }
}

const fn partial(policy: OnPartialSuccess) -> &'static str {
    match policy {
        OnPartialSuccess::Fail => "stops at the first failure",
        OnPartialSuccess::Continue => "continues after failures, then fails",
        OnPartialSuccess::BestEffort => "continues after failures, and completes if a step succeeds",
    }
}

fn at_once(most: Option<u32>) -> String {
    most.map(|most| format!(", at most {most}")).unwrap_or_default()
}

fn times(number: u32) -> String {
    if number == 1 { "once".to_owned() } else { counted(u64::from(number), "time") }
}

fn short(text: &str) -> String {
    one_line(text, TEXT_CHARS_MAX)
}

/// The word of an enum, as its author writes it.
fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}
