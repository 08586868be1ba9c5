//! What a tree file describes: its agents, models, steps and shared values, what it sends where, and the most it can
//! spend. Each part serialises for programs and has lines for people.

mod agent;
mod pipeline;

use std::collections::BTreeSet;

use serde::{Serialize, Serializer};
use serde_json::Value;
use spinney::tree_file::{InputSpec, ModelSource, Reach, SpendBound, TreeFile, WorstCase};
use spinney_kernel::budget::usd;
use spinney_kernel::definition::{Definition, ModelSpec, SharedAccess, ValueAccess};
use spinney_kernel::primitives::{ModelName, RoleName, Time, ValuePattern};

use self::agent::OutlinedRole;
pub use self::agent::{AgentOutline, BudgetOutline, CallOutline};
use self::pipeline::Pipeline;
pub use self::pipeline::{
    FactorOutline, KindOutline, NodeOutline, PipelineOutline, PipelineSpending, StepSpending,
};
use crate::wording::{counted, one_line};

/// Longest goal that people see.
const GOAL_CHARS_MAX: usize = 80;

/// What a tree file describes.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct TreeOutline {
    /// The tree's name.
    pub name: String,
    /// Its goal, as it may be shown.
    pub goal: String,
    /// What a start may give it.
    pub inputs: Vec<InputOutline>,
    /// The role of the root.
    pub entry: RoleName,
    /// The root first, unless it is a pipeline.
    pub agents: Vec<AgentOutline>,
    /// The models that agents use.
    pub models: Vec<ModelOutline>,
    /// Who may read and write shared values.
    pub shared: SharedAccess,
    /// What goes to which hosts.
    pub sends: Vec<EgressOutline>,
    /// The most that it can spend.
    pub worst_case: TreeSpending,
    /// Its steps, if it has a pipeline.
    pub pipeline: Option<PipelineOutline>,
}

/// An input. Programs get its name.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InputOutline {
    /// Its name.
    pub name: String,
    /// Its default and where its value comes from, for people.
    pub line: String,
}

/// A model.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ModelOutline {
    /// Its name in the file.
    pub name: ModelName,
    /// The tokens of its context, if that is known.
    pub context: Option<u64>,
    /// Whether it has a price.
    pub priced: bool,
    /// The models that are used when it fails.
    pub fallback: Vec<ModelName>,
    /// What it is and costs, for people.
    #[serde(skip)]
    pub line: String,
}

/// The variables that go to a host with the calls of a model.
#[derive(Clone, Debug, Serialize)]
pub struct EgressOutline {
    /// The host.
    pub host: String,
    /// The model.
    pub model: ModelName,
    /// What is sent beside prompts. No value is in here.
    pub variables: Vec<VariableOutline>,
    /// Whether the user allows it.
    pub allowed: bool,
    /// What goes where, for people.
    #[serde(skip)]
    pub line: String,
}

/// A variable that is sent.
#[derive(Clone, Debug, Serialize)]
pub struct VariableOutline {
    /// Its name.
    pub name: String,
    /// In which ways: as a key, a header or a part of a text.
    #[serde(rename = "as")]
    pub sent_as: Vec<&'static str>,
}

/// The most that a tree can spend.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct TreeSpending {
    /// Nano-dollars, if they have a bound.
    pub cost_nanos: Option<u64>,
    /// The same in dollars.
    pub cost_usd: Option<String>,
    /// What bounds it.
    pub cost_because: &'static str,
    /// Tokens, if they have a bound.
    pub tokens: Option<u64>,
    /// What bounds them.
    pub tokens_because: &'static str,
    /// The models without a price, which cost nothing here.
    pub free: Vec<ModelName>,
    /// The same for people.
    #[serde(skip)]
    pub lines: Vec<String>,
}

/// A title and what is below it.
type Section = (&'static str, Vec<String>);

impl TreeOutline {
    /// The outline of a file whose values are filled in. The goal is given as it may be shown: a file may read variables.
    #[must_use]
    pub fn new(
        file: &TreeFile,
        definition: &Definition,
        goal: &str,
        sends: Vec<EgressOutline>,
        now: Time,
    ) -> Self {
        let reach = Reach::new(definition);
        let worst = WorstCase::new(&reach.pruned(definition.clone()), now);
        let pipeline = definition.graph.as_deref().zip(worst.pipeline.as_ref());
        let inputs = file.inputs.iter();
        let inputs = inputs.map(|(name, input)| InputOutline { name: name.clone(), line: described(input) });
        let models = definition.models.iter();
        Self {
            name: definition.name.clone(),
            goal: goal.to_owned(),
            inputs: inputs.collect(),
            entry: definition.entry.clone(),
            agents: agents(definition, &reach, &worst),
            models: models
                .map(|(name, spec)| ModelOutline::new(file.models.get(name), name, spec, now))
                .collect(),
            shared: definition.shared.clone(),
            sends,
            worst_case: TreeSpending::new(&worst),
            pipeline: pipeline.map(|(graph, bound)| Pipeline::new(graph, bound).outline()),
        }
    }

    /// All of it for people.
    #[must_use]
    pub fn text(&self) -> String {
        let rows = self.sections().into_iter().flat_map(|(title, lines)| {
            let titles = std::iter::once(title).chain(std::iter::repeat(""));
            titles.zip(lines).collect::<Vec<_>>()
        });
        let lines: Vec<String> =
            rows.map(|(title, text)| format!("  {title:<6}  {text}").trim_end().to_owned()).collect();
        lines.join("\n")
    }

    fn sections(&self) -> Vec<Section> {
        let goal = Some(self.goal.as_str()).filter(|goal| !goal.trim().is_empty());
        let inputs = self.inputs.iter().map(|InputOutline { name, line }| format!("{name}: {line}"));
        let pipeline = self.pipeline.iter().flat_map(|pipeline| pipeline.lines.clone());
        let agents = self.agents.iter().map(|agent| (agent.name.as_str(), agent.lines.as_slice()));
        let models = self.models.iter().map(|model| (model.name.as_str(), std::slice::from_ref(&model.line)));
        let sends = self.sends.iter().map(|EgressOutline { line, allowed, .. }| {
            format!("{line}{}", if *allowed { "" } else { " (not allowed)" })
        });
        vec![
            ("tree", vec![one_line(&self.name, GOAL_CHARS_MAX)]),
            ("goal", goal.map(|goal| one_line(goal, GOAL_CHARS_MAX)).into_iter().collect()),
            ("inputs", inputs.collect()),
            ("steps", pipeline.collect()),
            ("agents", beside_names(agents.collect())),
            ("models", beside_names(models.collect())),
            ("shared", self.shared.rules().map(shared_line).collect()),
            ("sends", sends.collect()),
            ("spends", self.worst_case.lines.clone()),
        ]
    }
}

/// Lines beside the names that they are about.
fn beside_names(named: Vec<(&str, &[String])>) -> Vec<String> {
    let wide = named.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    let mut all = Vec::new();
    for (name, lines) in named {
        let names = std::iter::once(name).chain(std::iter::repeat(""));
        all.extend(names.zip(lines).map(|(name, line)| format!("{name:<wide$}  {line}")));
    }
    all
}

fn agents(definition: &Definition, reach: &Reach, worst: &WorstCase) -> Vec<AgentOutline> {
    let entry = &definition.entry;
    let others = definition.roles.iter().filter(|(name, _)| *name != entry);
    let all = definition.roles.get_key_value(entry).into_iter().chain(others);
    let outlined = all.map(|(name, role)| OutlinedRole {
        name,
        role,
        is_root: name == entry,
        can_start: reach.has(name),
        spawns: reach.spawns.get(name),
        call: worst.calls.iter().find(|call| call.role == *name),
        folders: match &definition.graph {
            _ if name == entry => definition.root_folders(),
            // A step has those of the tree.
            Some(_) => role.caps.folders.as_ref().or(definition.folders.as_ref()),
            None => role.caps.folders.as_ref(),
        },
    });
    outlined.map(|role| role.outline()).collect()
}

impl Serialize for InputOutline {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name)
    }
}

impl ModelOutline {
    fn new(source: Option<&ModelSource>, name: &ModelName, spec: &ModelSpec, now: Time) -> Self {
        let mut said = vec![match source {
            Some(ModelSource::Scripted { script }) => format!("scripted, {script}"),
            Some(ModelSource::Provider(source)) => format!("{} {}", source.provider.as_str(), source.model),
            None => "unknown".to_owned(),
        }];
        said.extend(spec.context.map(|context| format!("context of {}", counted(context, "token"))));
        said.push(match &spec.price {
            Some(price) => {
                let rates = price.rates_at(now, 0);
                let (input, output) = (usd(rates.input_per_mtok), usd(rates.output_per_mtok));
                format!("{input} in and {output} out per million tokens")
            }
            None => "no price".to_owned(),
        });
        if !spec.fallback.is_empty() {
            said.push(format!("fallback: {}", listed(spec.fallback.iter())));
        }
        Self {
            name: name.clone(),
            context: spec.context,
            priced: spec.price.is_some(),
            fallback: spec.fallback.clone(),
            line: said.join(" · "),
        }
    }
}

impl TreeSpending {
    fn new(worst: &WorstCase) -> Self {
        let because = |bound: &SpendBound| match bound {
            SpendBound::Ceiling(_) => "ceiling",
            SpendBound::AtRate(_) => "rate",
            SpendBound::Steps(_) => "steps",
            SpendBound::None => "none",
        };
        let WorstCase { cost, tokens, free, .. } = worst;
        Self {
            cost_nanos: cost.most(),
            cost_usd: cost.most().map(|nanos| usd(nanos).trim_start_matches('$').to_owned()),
            cost_because: because(cost),
            tokens: tokens.most(),
            tokens_because: because(tokens),
            free: free.clone(),
            lines: spends(worst),
        }
    }
}

fn spends(worst: &WorstCase) -> Vec<String> {
    let WorstCase { cost, tokens, free, .. } = worst;
    let amount = |tokens: u64| counted(tokens, "token");
    let mut lines = Vec::new();
    lines.push(match cost {
        SpendBound::Ceiling(most) => format!("at most {}, its ceiling", usd(*most)),
        SpendBound::AtRate(most) => {
            format!("at most {}: its tokens at the highest rate of its models", usd(*most))
        }
        SpendBound::Steps(most) => format!("at most {}, the ceilings of its steps", usd(*most)),
        SpendBound::None => "any amount of money: it has no ceiling; set `budget.cost_usd`".to_owned(),
    });
    match tokens {
        SpendBound::Ceiling(most) => lines.push(format!("at most {}, its ceiling", amount(*most))),
        SpendBound::AtRate(most) => {
            lines.push(format!(
                "at most {}: what its budget buys at the lowest rate of its models",
                amount(*most)
            ));
        }
        SpendBound::Steps(most) => {
            lines.push(format!("at most {}, the ceilings of its steps", amount(*most)));
        }
        SpendBound::None => lines.push("any number of tokens".to_owned()),
    }
    if cost.most().is_some() && !free.is_empty() {
        lines.push(format!("not counted, because they have no price: {}", listed(free.iter())));
    }
    if cost.most().is_some() {
        lines.push(
            "more only if a provider bills more than was held for a call, or a person raises it".to_owned(),
        );
    }
    lines
}

/// Who may read and write a shared value.
fn shared_line((name, access): (&ValuePattern, &ValueAccess)) -> String {
    let who = |roles: &Option<BTreeSet<RoleName>>| match roles {
        None => "every agent".to_owned(),
        Some(roles) if roles.is_empty() => "no agent".to_owned(),
        Some(roles) => listed(roles.iter()),
    };
    format!("{name}: read by {} · written by {}", who(&access.read), who(&access.write))
}

fn described(input: &InputSpec) -> String {
    let default = match &input.default {
        Some(Value::String(text)) => format!("default {}", one_line(text, GOAL_CHARS_MAX)),
        Some(value) => format!("default {}", one_line(&value.to_string(), GOAL_CHARS_MAX)),
        None => "required".to_owned(),
    };
    let env = input.env.as_ref().map(|variable| format!("from {variable}"));
    let said = [Some(default), env, Some(input.description.clone()).filter(|text| !text.is_empty())];
    said.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

fn listed<'t, T: ToString + 't>(names: impl Iterator<Item = &'t T>) -> String {
    names.map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
