//! The pipeline of a tree file. The kernel reads it; here its problems get their places in the file.

use spinney_kernel::definition::{
    AskTimeout, Builtin, Graph, GraphPlaces, GraphProblem, GraphSurroundings, NodeKind, OnLow, PathStep,
    ProblemCode, SharedSurroundings,
};
use spinney_kernel::primitives::{RoleName, ValueName, limit};

use super::definition::{Reader, SCHEMA_HELP};
use super::error::FileError;
use super::node::{Kind, Node, Step};
use crate::output_schema;

const PIPELINE: Step<'_> = Step::Key("pipeline");

impl Reader<'_> {
    /// The graph that the tree runs instead of an agent. `None` too if something is wrong with it, which is noted.
    pub(super) fn graph(&self) -> Option<Graph> {
        let written = self.keys.pipeline.as_ref()?;
        if self.keys.entry.is_some() {
            let error = self.wrong(&[Step::Key("entry")], "`entry` and `pipeline` in one file");
            self.note(error.with_help("write `pipeline` for fixed steps, or `entry` to let an agent decide"));
        }
        if let Some(role) = self.keys.agents.keys().find(|role| role.is_of_graphs()) {
            let error = self.wrong_key(
                &[Step::Key("agents"), Step::Key(role.as_str())],
                format!("no agent can be called `{role}`"),
            );
            self.note(error.with_help("the tree's own pipeline has that name; choose another one"));
        }
        self.empty_ceilings(self.root.follow(&[PIPELINE]), false);
        let access = self.shared_access();
        let writes = Builtin::WriteContext.as_str();
        let writers = self
            .keys
            .agents
            .iter()
            .filter(|(_, agent)| agent.tools.iter().any(|tool| tool.as_str() == writes));
        let has_value = |name: &ValueName| {
            // What could not be read may have been about any value.
            self.keys.inputs.contains_key(name.as_str())
                || self.is_lost(&["shared"])
                || self.is_lost(&["agents"])
        };
        let shared = SharedSurroundings {
            access: &access,
            writers: writers.map(|(role, _)| role).collect(),
            has_value: &has_value,
            help: "declare it: `shared: { NAME: {} }` lets every agent read and write it",
        };
        let around = GraphSurroundings {
            roles: &|role| self.keys.agents.contains_key(role) || self.is_lost(&["agents", role.as_str()]),
            role_names: self.keys.agents.keys().map(RoleName::as_str).collect(),
            given: self.keys.inputs.keys().map(String::as_str).collect(),
            shared: Some(shared),
            nodes_max: limit::GRAPH_NODES_MAX,
        };
        let (graph, places) = match Graph::parse_placed(&written.0, &around) {
            Ok(parsed) => parsed,
            Err(problems) => {
                problems.iter().for_each(|problem| self.note(self.problem(problem)));
                return None;
            }
        };
        self.names(&graph, &places);
        let (agents, agents_max) = (graph.agents_min() + 1, u64::from(self.agents_max()));
        if agents > agents_max {
            let message =
                format!("the pipeline needs at least {agents} agents, but `limits.agents` is {agents_max}");
            let help = format!("write `limits: {{ agents: {agents} }}` or more");
            self.note(self.wrong(&[PIPELINE], message).with_help(help));
        }
        Some(graph)
    }

    /// A key of a budget without a value would be no ceiling at all. The kernel lets it pass, because models write them.
    fn empty_ceilings(&self, node: &Node, is_budget: bool) {
        match &node.kind {
            Kind::Empty if is_budget => {
                let error = self.wrong_at(node.place, "the value is missing");
                self.note(error.with_help("write a value, or delete the key"));
            }
            Kind::Map(entries) => {
                for (key, value) in entries.iter().filter(|(key, _)| key.text != "output_schema") {
                    let is_whole = !is_budget && key.text == "budget" && matches!(value.kind, Kind::Empty);
                    if !is_whole {
                        self.empty_ceilings(value, is_budget || key.text == "budget");
                    }
                }
            }
            Kind::List(items) => items.iter().for_each(|item| self.empty_ceilings(item, is_budget)),
            Kind::Empty | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => {}
        }
    }

    fn agents_max(&self) -> u32 {
        let given = self.keys.limits.agents.and_then(|count| u32::try_from(count.count()).ok());
        given.unwrap_or(limit::AGENTS_MAX)
    }

    /// What only a tree file knows: its models, and whether a schema is one.
    fn names(&self, graph: &Graph, places: &GraphPlaces) {
        for (ix, node) in (0..).zip(graph.nodes()) {
            let budget = node.budget.as_deref();
            if let Some(OnLow::Downgrade(model)) = budget.and_then(|budget| budget.on_low.as_ref()) {
                self.noted(self.is_model(&in_pipeline(&places.path(ix, "budget")), model));
            }
            let (key, schema) = match &node.kind {
                NodeKind::Step(step) => ("output_schema", step.output_schema.as_deref()),
                NodeKind::Ask(ask) => ("answer_schema", ask.form.schema()),
                _ => continue,
            };
            if let Some(Err(wrong)) = schema.map(|schema| output_schema::check(schema.text())) {
                let whole = if wrong.path.is_empty() { String::new() } else { format!(" at {}", wrong.path) };
                let message = format!("bad `{key}`{whole}: {}", wrong.expected);
                let path = places.path(ix, key);
                let error = self.wrong(&in_pipeline(&path), message);
                self.note(error.with_help(SCHEMA_HELP));
            } else if let (NodeKind::Ask(ask), Some(schema)) = (&node.kind, schema)
                && let AskTimeout::Default(answer) = &ask.on_timeout
                && let Some(message) = output_schema::unfit_default(schema.text(), answer)
            {
                let path = places.path(ix, "default");
                let error = self.wrong(&in_pipeline(&path), message);
                self.note(error.with_help("write the JSON that counts if nobody answers, in quotes"));
            }
        }
    }

    fn problem(&self, problem: &GraphProblem) -> FileError {
        let path = in_pipeline(&problem.path);
        let place = if problem.code == ProblemCode::UnknownField {
            self.root.place_of_key(&path)
        } else {
            self.root.place_of(&path)
        };
        self.wrong_at(place, &problem.message).with_help(&problem.help)
    }
}

fn in_pipeline(path: &[PathStep]) -> Vec<Step<'_>> {
    let steps = path.iter().map(|step| match step {
        PathStep::Key(key) => Step::Key(key),
        PathStep::Item(item) => Step::Item(*item),
    });
    std::iter::once(PIPELINE).chain(steps).collect()
}
