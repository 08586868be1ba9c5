//! The pipeline of a tree file for people and programs: its steps and groups, and the most that each step can spend.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use spinney::tree_file::{NotHeld, PipelineBound, RunFactor, StepBound};
use spinney_kernel::budget::usd;
use spinney_kernel::definition::{
    AskTimeout, Graph, GraphNode, GraphStep, NodeIx, NodeKind, OnMaxRounds, OnPartialSuccess, StepInput,
};
use spinney_kernel::words::Millis;

use crate::terminal::wording::{counted, one_line};

/// Most steps and groups that people are shown. Programs get all.
const SHOWN_MAX: usize = 200;
/// Longest question, condition and list in a line.
const TEXT_CHARS_MAX: usize = 80;

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

    pub(super) fn lines(&self) -> Vec<String> {
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
        if let Some(budget) = node.budget.as_deref() {
            let limits: Vec<String> = budget
                .limit
                .bounded()
                .iter()
                .filter_map(|resource| Some(format!("{:#}", resource.amount(budget.limit.of(resource)?))))
                .collect();
            said.extend((!limits.is_empty()).then(|| format!("at most {} each time", limits.join(", "))));
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
                    OnMaxRounds::Continue => ", then goes on",
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
            None if open.is_empty() => "in all no bound by ceilings of steps and groups".to_owned(),
            None => {
                format!(
                    "in all no bound by ceilings of steps and groups: {} and what is around have none",
                    open.join(", ")
                )
            }
        }];
        if let Some(held) = held {
            lines.push(format!("in all its calls hold at most {} if none is repeated", usd(*held)));
        }
        lines
    }

    pub(super) fn json(&self) -> Value {
        let nodes: Vec<Value> =
            self.nodes().map(|(depth, ix, node)| self.node_json(depth, ix, node)).collect();
        json!({
            "on_partial_success": word(&self.graph.on_partial_success),
            "nodes": nodes,
            "worst_case": { "cost_nanos": self.bound.cost, "held_nanos": self.bound.held },
        })
    }

    fn node_json(&self, depth: usize, ix: NodeIx, node: &GraphNode) -> Value {
        let mut fields = Map::new();
        let mut put = |key: &str, value: Value| drop(fields.insert(key.to_owned(), value));
        put("id", json!(node.id));
        put("kind", json!(node.word()));
        put("depth", json!(depth));
        put("parent", json!(node.parent.map(|parent| &self.graph.node(parent).id)));
        put("required", json!(node.required));
        put("retry", json!(node.retry));
        put("when", json!(node.when.as_ref().map(|when| when.source())));
        put("output_to", json!(node.output_to));
        match &node.kind {
            NodeKind::Step(step) => {
                put("agent_id", json!(step.agent_id));
                put("input_from", json!(inputs(step)));
                put("undo", json!(step.undo.as_ref().map(|undo| &undo.agent_id)));
            }
            NodeKind::Loop { until, max_rounds, .. } => {
                put("until", json!(until.source()));
                put("max_rounds", json!(max_rounds));
            }
            NodeKind::Map { over, item, .. } => {
                put("over", json!(over.source()));
                put("as", json!(item));
            }
            NodeKind::Choose { on, cases, .. } => {
                put("on", json!(on.source()));
                put("cases", json!(cases));
            }
            NodeKind::Vote { rule, members } => put("voters", json!(rule.voters * members.count)),
            NodeKind::Ask(ask) => put("ask", json!(ask.question.source())),
            NodeKind::Sequence { .. } | NodeKind::Parallel { .. } | NodeKind::Race { .. } => {}
        }
        if let Some(step) = self.steps.get(&ix) {
            put(
                "worst_case",
                json!({
                    "runs": step.runs,
                    "factors": step.factors.iter().map(factor_json).collect::<Vec<_>>(),
                    "cost_nanos": step.cost(),
                    "held_nanos": step.held_in_all(),
                    "not_held": step.held.err().map(not_held_word),
                }),
            );
        }
        Value::Object(fields)
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

const fn reason(why: NotHeld) -> &'static str {
    match why {
        NotHeld::Spawns => "and its agent may start others",
        NotHeld::Unpriced => "and its model has no price",
        NotHeld::NoContext => "and the size of its model's context is unknown",
    }
}

const fn not_held_word(why: NotHeld) -> &'static str {
    match why {
        NotHeld::Spawns => "spawns",
        NotHeld::Unpriced => "unpriced",
        NotHeld::NoContext => "no_context",
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

fn factor_json(factor: &RunFactor) -> Value {
    let word = match factor {
        RunFactor::Attempts(..) => "attempts",
        RunFactor::Rounds(..) => "rounds",
        RunFactor::Voters(..) => "voters",
        RunFactor::Items(..) | RunFactor::AnyItems(_) => "items",
    };
    json!({ "of": factor.of(), "what": word, "number": factor.number() })
}

fn inputs(step: &GraphStep) -> Vec<String> {
    let name = |input: &StepInput| format!("{}{}", input.name, if input.optional { "?" } else { "" });
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
        OnPartialSuccess::Continue => "goes on after failures, then fails",
        OnPartialSuccess::BestEffort => "goes on after failures, and completes if a step succeeds",
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
fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}
