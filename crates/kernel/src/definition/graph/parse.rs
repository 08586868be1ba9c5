//! From what people and models write to nodes. Every problem is noted with its place, and parsing continues.

mod fields;

use std::collections::{BTreeMap, VecDeque};

use serde::Deserialize;
use serde_json::{Map, Value};

use fields::bare;

use super::places::{GraphPath, Origin};
use super::problem::Problems;
use super::{
    AskStep, AskTimeout, Graph, GraphNode, GraphPlaces, GraphStep, GraphSurroundings, Majority, Members,
    Missing, NodeIx, NodeKind, OnMaxRounds, OnPartialSuccess, OnTie, ProblemCode, VoteRule, keys,
};
use crate::definition::{AnswerForm, Condition, Expression, Template};
use crate::primitives::{RoleName, StepId, ValueName, limit, nearest};

/// `None` if nothing of it can be used further.
pub(super) fn parse(
    written: &Value,
    around: &GraphSurroundings<'_>,
    problems: &mut Problems,
) -> Option<(Graph, GraphPlaces)> {
    let Some(keys) = written.as_object().map(Fields) else {
        let help = "write `mode` and `steps`";
        problems.add(
            ProblemCode::BadValue,
            Vec::new,
            format!("a graph cannot be {}", kind_of(written)),
            help,
        );
        return None;
    };
    let id = StepId::numbered("pipeline", 1);
    let mut reader = Reader {
        problems,
        places: GraphPlaces(vec![Origin::default()]),
        nodes: Vec::new(),
        queue: VecDeque::new(),
        unnamed: id.clone(),
        has_shared: around.shared.is_some(),
    };
    reader.unknown_keys(0, keys, &keys::GRAPH);
    let mode: Mode = reader.word(0, keys, "mode").unwrap_or_default();
    let on_partial_success: OnPartialSuccess = reader.word(0, keys, "on_partial_success").unwrap_or_default();
    let max_parallel = reader.count(0, keys, "max_parallel", 1, limit::AGENTS_CAP);
    let budget = reader.budget(0, keys);
    let members = reader.members(0, keys.get("steps"), "steps", 1);
    let kind = match mode {
        Mode::Sequential => NodeKind::Sequence { members },
        Mode::Parallel => NodeKind::Parallel { members, max_parallel },
    };
    let node = GraphNode { budget, ..reader.plain(kind, None) };
    reader.nodes.push(Draft { id: Some(id), word: "pipeline", node });
    while let Some((value, level)) = reader.queue.pop_front() {
        if reader.nodes.len() >= around.nodes_max {
            let (message, help) = (
                format!("the graph has more than {} steps and groups", around.nodes_max),
                "split it, or use `map` for steps that are alike",
            );
            reader.problems.add(ProblemCode::TooLarge, Vec::new, message, help);
            return None;
        }
        reader.node(value, level);
    }
    let Reader { places, nodes, problems, .. } = reader;
    let nodes = named(nodes, &places, problems);
    Some((Graph { on_partial_success, max_parallel, nodes }, places))
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Sequential,
    Parallel,
}

/// The keys of one node. There are few, so looking through them is faster than hashing each name.
#[derive(Clone, Copy)]
struct Fields<'v>(&'v Map<String, Value>);

impl<'v> Fields<'v> {
    fn get(self, key: &str) -> Option<&'v Value> {
        self.0.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    fn has(self, key: &str) -> bool {
        self.get(key).is_some()
    }

    fn names(self) -> impl Iterator<Item = &'v str> {
        self.0.keys().map(String::as_str)
    }
}

/// A node whose id may still have to be made up.
struct Draft {
    id: Option<StepId>,
    /// What a made-up id begins with, unless it is a step: those begin with their role.
    word: &'static str,
    node: GraphNode,
}

/// Gives every node its id: the one that was written, or a number behind what it is.
fn named(mut drafts: Vec<Draft>, places: &GraphPlaces, problems: &mut Problems) -> Vec<GraphNode> {
    let mut written: Vec<(&StepId, NodeIx)> = drafts
        .iter()
        .enumerate()
        .filter_map(|(ix, draft)| draft.id.as_ref().map(|id| (id, ix as NodeIx)))
        .collect();
    written.sort();
    let mut again: Vec<(NodeIx, NodeIx, &StepId)> = Vec::new();
    for same in written.chunk_by(|(a, _), (b, _)| a == b) {
        again.extend(same[1..].iter().map(|(id, ix)| (*ix, same[0].1, *id)));
    }
    again.sort();
    for (ix, first, id) in again {
        let message = format!("the id `{id}` is taken by {}", GraphPath(&places.path(first, "")));
        problems.add(ProblemCode::DuplicateId, || places.path(ix, "id"), message, "choose another id");
    }
    let is_written = |id: &StepId| written.binary_search_by_key(&id, |(id, _)| id).is_ok();
    // Made-up ids of different words can meet: `a-2` is the first `a-2` and the second `a`.
    let mut made_up: BTreeMap<StepId, NodeIx> = BTreeMap::new();
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    for (ix, draft) in drafts.iter().enumerate().filter(|(_, draft)| draft.id.is_none()) {
        let word = draft.node.step().map_or(draft.word, |step| step.agent_id.as_str());
        let number = numbers.entry(word).or_insert(0);
        loop {
            *number += 1;
            let id = StepId::numbered(word, *number);
            if !is_written(&id) && !made_up.contains_key(&id) {
                made_up.insert(id, ix as NodeIx);
                break;
            }
        }
    }
    for (id, ix) in made_up {
        drafts[ix as usize].id = Some(id);
    }
    let node = |Draft { id, node, .. }| match id {
        Some(id) => GraphNode { id, ..node },
        None => unreachable!("every node was given an id"),
    };
    drafts.into_iter().map(node).collect()
}

struct Reader<'v, 'p> {
    problems: &'p mut Problems,
    places: GraphPlaces,
    nodes: Vec<Draft>,
    /// What is still to be read, with its depth. Its place in the graph is behind everything read and queued before.
    queue: VecDeque<(&'v Value, usize)>,
    /// Stands for the id of every node until all are read.
    unnamed: StepId,
    /// Whether names may mean shared values.
    has_shared: bool,
}

impl<'v> Reader<'v, '_> {
    fn node(&mut self, value: &'v Value, level: usize) {
        let ix = self.nodes.len() as NodeIx;
        let parent = self.places.0[ix as usize].group;
        // The case of a `choose` is a list.
        if let Value::Array(_) = value {
            if level > limit::GRAPH_DEPTH_MAX {
                return self.too_deep(ix, parent);
            }
            let members = self.members(ix, Some(value), "", level + 1);
            let node = self.plain(NodeKind::Sequence { members }, parent);
            self.nodes.push(Draft { id: None, word: "case", node });
            return;
        }
        let Some(keys) = value.as_object().map(Fields) else {
            let message = format!("a step cannot be {}", kind_of(value));
            self.add(
                ProblemCode::BadValue,
                ix,
                "",
                message,
                "write its keys, such as `agent_id` and `task_description`",
            );
            return self.placeholder(parent);
        };
        let mut kinds = keys::KINDS.into_iter().filter(|kind| keys.has(kind));
        match (kinds.next(), kinds.next()) {
            (Some("agent_id"), None) => self.step(ix, keys, parent),
            (Some("ask"), None) => self.ask(ix, keys, parent),
            (Some(kind), None) => self.group(ix, kind, keys, parent, level),
            (None, _) => {
                self.unknown_keys(ix, keys, &keys::STEP);
                let help = format!(
                    "write `agent_id` for a step, or one of {}",
                    nearest::listed(keys::KINDS[1..].iter().copied())
                );
                self.add(ProblemCode::MissingField, ix, "", "neither a step nor a group", help);
                self.placeholder(parent);
            }
            (Some(first), Some(second)) => {
                let message = format!("`{first}` and `{second}` in one place");
                self.add(
                    ProblemCode::BadValue,
                    ix,
                    second,
                    message,
                    "write two steps, or put one into the other",
                );
                self.placeholder(parent);
            }
        }
    }

    /// Stands for what could not be read, so the numbers of all others stay right. Nothing with a problem runs.
    fn placeholder(&mut self, parent: Option<NodeIx>) {
        let question = Template::parse("").ok();
        let kind = match question {
            Some(question) => NodeKind::Ask(Box::new(AskStep {
                question,
                timeout_ms: None,
                on_timeout: AskTimeout::Fail,
                form: AnswerForm::Text,
            })),
            None => unreachable!("an empty text is a template"),
        };
        let node = self.plain(kind, parent);
        self.nodes.push(Draft { id: None, word: "step", node });
    }

    fn too_deep(&mut self, ix: NodeIx, parent: Option<NodeIx>) {
        let message = format!("groups are nested deeper than {}", limit::GRAPH_DEPTH_MAX);
        self.add(ProblemCode::TooLarge, ix, "", message, "nest fewer of them");
        self.placeholder(parent);
    }

    fn step(&mut self, ix: NodeIx, keys: Fields<'v>, parent: Option<NodeIx>) {
        self.unknown_keys(ix, keys, &keys::STEP);
        let agent_id: Option<RoleName> = self.name(ix, keys, "agent_id");
        let task = self.source(ix, keys, "task_description", Template::parse);
        let inputs = self.inputs(ix, keys);
        let on_missing = self.on_missing(ix, keys, &inputs);
        let output_schema = self.schema(ix, keys, "output_schema");
        let undo = self.undo(ix, keys, agent_id.as_ref());
        let (Some(agent_id), Some(task)) = (agent_id, task) else { return self.placeholder(parent) };
        let step = GraphStep { agent_id, task, inputs, on_missing, output_schema, undo };
        self.finish(ix, keys, parent, NodeKind::Step(Box::new(step)), "step");
    }

    fn ask(&mut self, ix: NodeIx, keys: Fields<'v>, parent: Option<NodeIx>) {
        self.unknown_keys(ix, keys, &keys::ASK);
        let question = self.source(ix, keys, "ask", Template::parse);
        let timeout_ms = self.span(ix, keys, "timeout");
        let word: Option<AskWord> = self.word(ix, keys, "on_timeout");
        let default = self.text(ix, keys, "default").map(str::to_owned);
        let on_timeout = match (word, default) {
            (None | Some(AskWord::Default), Some(answer)) => AskTimeout::Default(answer),
            (None | Some(AskWord::Fail), None) => AskTimeout::Fail,
            (Some(AskWord::Cancel), None) => AskTimeout::Cancel,
            (Some(AskWord::Default), None) => {
                self.add(
                    ProblemCode::MissingField,
                    ix,
                    "",
                    "`on_timeout: default` without `default`",
                    "write the answer that counts then",
                );
                AskTimeout::Fail
            }
            (Some(AskWord::Fail | AskWord::Cancel), Some(_)) => {
                self.add(
                    ProblemCode::BadValue,
                    ix,
                    "default",
                    "`default` is never used",
                    "write `on_timeout: default`, or leave it out",
                );
                AskTimeout::Fail
            }
        };
        let form = self.answer_form(ix, keys, &on_timeout);
        let Some(question) = question else { return self.placeholder(parent) };
        let ask = AskStep { question, timeout_ms, on_timeout, form };
        self.finish(ix, keys, parent, NodeKind::Ask(Box::new(ask)), "ask");
    }

    /// What a person may answer.
    fn answer_form(&mut self, ix: NodeIx, keys: Fields<'v>, on_timeout: &AskTimeout) -> AnswerForm {
        let choices = self.texts(ix, keys, "choices");
        let schema = self.schema(ix, keys, "answer_schema").map(|schema| *schema);
        let default = if let AskTimeout::Default(answer) = on_timeout { Some(answer.as_str()) } else { None };
        let form = AnswerForm::of(choices, schema);
        match form.and_then(|form| form.check(default).map(|()| form)) {
            Ok(form) => form,
            Err(problem) => {
                self.add(ProblemCode::BadValue, ix, "choices", problem, "");
                AnswerForm::Text
            }
        }
    }

    fn group(
        &mut self,
        ix: NodeIx,
        word: &'static str,
        keys: Fields<'v>,
        parent: Option<NodeIx>,
        level: usize,
    ) {
        let known = keys::for_kind(word);
        self.unknown_keys(ix, keys, &known);
        if level > limit::GRAPH_DEPTH_MAX {
            return self.too_deep(ix, parent);
        }
        let kind = match word {
            "choose" => self.choose(ix, keys, level),
            _ => {
                let members = self.members(ix, keys.get(word), word, level + 1);
                self.kind(ix, word, keys, members)
            }
        };
        match kind {
            Some(kind) => self.finish(ix, keys, parent, kind, word),
            // Its members are queued, so it must be a group.
            None => {
                let members = self.queued_of(ix);
                self.finish(ix, keys, parent, NodeKind::Sequence { members }, word);
            }
        }
    }

    fn kind(&mut self, ix: NodeIx, word: &str, keys: Fields<'v>, members: Members) -> Option<NodeKind> {
        let max_parallel = self.count(ix, keys, "max_parallel", 1, limit::AGENTS_CAP);
        Some(match word {
            "parallel" => NodeKind::Parallel { members, max_parallel },
            "map" => {
                let over = self.source(ix, keys, "over", bare(Expression::parse));
                let item: Option<ValueName> =
                    if keys.has("as") { self.name(ix, keys, "as") } else { "item".parse().ok() };
                NodeKind::Map { members, over: over?, item: item?, max_parallel }
            }
            "race" => NodeKind::Race { members },
            "vote" => {
                let voters = self.count(ix, keys, "voters", 1, limit::GRAPH_VOTERS_MAX);
                let rule = VoteRule {
                    voters: voters.unwrap_or(1),
                    majority: self.word::<Majority>(ix, keys, "majority").unwrap_or_default(),
                    by: self.text(ix, keys, "by").map(str::to_owned),
                    on_tie: self.word::<OnTie>(ix, keys, "on_tie").unwrap_or_default(),
                    missing: self.word::<Missing>(ix, keys, "missing").unwrap_or_default(),
                };
                if rule.voters > 1 && members.count > 1 {
                    let message = format!("`voters` with {} members", members.count);
                    self.add(
                        ProblemCode::BadValue,
                        ix,
                        "voters",
                        message,
                        "write one member that votes several times, or each voter as a member",
                    );
                }
                if rule.voters.saturating_mul(members.count) < 2 && members.count > 0 {
                    self.add(
                        ProblemCode::MissingField,
                        ix,
                        "",
                        "a vote with one voter",
                        "write `voters`, or more members",
                    );
                }
                NodeKind::Vote { members, rule }
            }
            "loop" => {
                let until = self.source(ix, keys, "until", bare(Condition::parse));
                let max_rounds = self.count(ix, keys, "max_rounds", 1, limit::GRAPH_ROUNDS_MAX);
                if max_rounds.is_none() && !keys.has("max_rounds") {
                    self.add(
                        ProblemCode::MissingField,
                        ix,
                        "",
                        "`max_rounds` is missing",
                        "write how often it may run at most",
                    );
                }
                let on_max_rounds = self.word::<OnMaxRounds>(ix, keys, "on_max_rounds").unwrap_or_default();
                NodeKind::Loop { members, until: until?, max_rounds: max_rounds.unwrap_or(1), on_max_rounds }
            }
            _ => NodeKind::Sequence { members },
        })
    }

    fn choose(&mut self, ix: NodeIx, keys: Fields<'v>, level: usize) -> Option<NodeKind> {
        let first = self.next_free();
        let mut cases = Vec::new();
        match keys.get("choose").map(|cases| (cases, cases.as_object())) {
            Some((_, Some(written))) if !written.is_empty() => {
                for (case, value) in written {
                    let origin = Origin { key: "choose", case: Some(case.clone()), ..Origin::default() };
                    self.enqueue(ix, value, origin, level + 1);
                    cases.push(case.clone());
                }
            }
            Some((_, Some(_))) => {
                self.add(
                    ProblemCode::EmptyGroup,
                    ix,
                    "choose",
                    "`choose` has no cases",
                    "write at least one",
                );
            }
            Some((other, None)) => {
                let message = format!("`choose` cannot be {}", kind_of(other));
                self.add(ProblemCode::BadValue, ix, "choose", message, "write a map from values to steps");
            }
            None => {}
        }
        if let Some(value) = keys.get("else") {
            self.enqueue(ix, value, Origin { key: "else", ..Origin::default() }, level + 1);
        }
        let members = Members { first, count: self.next_free() - first };
        let on = self.source(ix, keys, "on", bare(Expression::parse))?;
        Some(NodeKind::Choose { members, on, cases })
    }

    /// Puts the members of a group into the queue.
    fn members(&mut self, ix: NodeIx, value: Option<&'v Value>, key: &'static str, level: usize) -> Members {
        let first = self.next_free();
        let origin = |item: Option<usize>| Origin { key, item, ..Origin::default() };
        match value {
            Some(Value::Array(items)) if !items.is_empty() => {
                for (item, value) in items.iter().enumerate() {
                    self.enqueue(ix, value, origin(Some(item)), level);
                }
            }
            // One member needs no list.
            Some(value @ Value::Object(_)) => self.enqueue(ix, value, origin(None), level),
            Some(Value::Array(_) | Value::Null) | None => {
                let name = if key.is_empty() { "the case".to_owned() } else { format!("`{key}`") };
                self.add(
                    ProblemCode::EmptyGroup,
                    ix,
                    key,
                    format!("{name} has no steps"),
                    "write at least one",
                );
            }
            Some(other) => {
                let message = format!("`{key}` cannot be {}", kind_of(other));
                self.add(ProblemCode::BadValue, ix, key, message, "write a list of steps");
            }
        }
        Members { first, count: self.next_free() - first }
    }

    fn enqueue(&mut self, group: NodeIx, value: &'v Value, origin: Origin, level: usize) {
        self.places.0.push(Origin { group: Some(group), ..origin });
        self.queue.push_back((value, level));
    }

    /// The number that the next member in the queue gets.
    fn next_free(&self) -> NodeIx {
        self.places.0.len() as NodeIx
    }

    /// The members of a group that are queued already.
    fn queued_of(&self, ix: NodeIx) -> Members {
        let is_of = |origin: &&Origin| origin.group == Some(ix);
        let count = self.places.0.iter().rev().take_while(is_of).count() as u32;
        Members { first: self.next_free() - count, count }
    }

    fn finish(
        &mut self,
        ix: NodeIx,
        keys: Fields<'v>,
        parent: Option<NodeIx>,
        kind: NodeKind,
        word: &'static str,
    ) {
        let id = self.name(ix, keys, "id");
        let required = match keys.get("required") {
            None => true,
            Some(Value::Bool(required)) => *required,
            Some(other) => {
                let message = format!("`required` cannot be {}", kind_of(other));
                self.add(ProblemCode::BadValue, ix, "required", message, "write true or false");
                true
            }
        };
        let is_ask = matches!(kind, NodeKind::Ask(_));
        let node = GraphNode {
            required,
            when: if keys.has("when") { self.source(ix, keys, "when", bare(Condition::parse)) } else { None },
            retry: self.count(ix, keys, "retry", 0, limit::GRAPH_RETRIES_MAX).unwrap_or(0),
            output_to: self.name(ix, keys, "output_to"),
            budget: if is_ask { None } else { self.budget(ix, keys) },
            ..self.plain(kind, parent)
        };
        self.nodes.push(Draft { id, word, node });
    }

    fn plain(&self, kind: NodeKind, parent: Option<NodeIx>) -> GraphNode {
        GraphNode {
            id: self.unnamed.clone(),
            parent,
            kind,
            required: true,
            when: None,
            retry: 0,
            output_to: None,
            budget: None,
            after: Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AskWord {
    Fail,
    Default,
    Cancel,
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

fn shown(text: &str) -> String {
    text.chars().take(40).collect()
}
