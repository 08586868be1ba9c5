//! `spinney check`: everything that is wrong with a tree file, what the tree looks like, and the most it can spend.
//! Starts nothing and needs no home.

mod pipeline;

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};
use spinney::clock::{Clock, SystemClock};
use spinney::tree_file::{
    CallBound, FileProblem, InputError, InputSpec, ModelSource, Reach, Severity, SpendBound, TreeFile,
    WorstCase,
};
use spinney::{Drivers, FirstCall};
use spinney_kernel::budget::{Price, usd};
use spinney_kernel::definition::{Allow, Definition};
use spinney_kernel::words::{ModelName, RoleName, Time, grouped};

use self::pipeline::Pipeline;
use crate::args;
use crate::exit::Exit;
use crate::terminal::out;
use crate::terminal::wording::{counted, one_line};
use crate::tree_file::problems;
use crate::tree_file::source::{self, Examined, Keys, Scripts, Source};

/// Longest goal in the picture of a tree.
const GOAL_CHARS_MAX: usize = 80;

pub(super) fn check(home: &Path, args: &args::Check) -> Result<Exit> {
    let Some(file) = args.file.as_deref().filter(|_| !args.schema) else {
        out::verbatim(super::init::schema_text()?.trim_end())?;
        return Ok(Exit::Completed);
    };
    let scripts = if args.given.allow_outside { Scripts::Anywhere } else { Scripts::Below };
    let Examined { mut problems, texts, source, can_start } =
        source::examine(file, home, scripts, Keys::Optional)?;
    let now = Time(SystemClock::new().now_ms());
    let picture = match &source {
        None => None,
        Some(source) => {
            let (definition, found) = definition(source, &args.given);
            problems.extend(found);
            problems.extend(source.file.check(&definition));
            if definition.goal.trim().is_empty() {
                let message = "`goal` is missing, so `run` needs --goal";
                problems.push(FileProblem::note(source.file.bad_key("goal", message)));
            } else if can_start {
                problems.extend(first_call(&source.file, &source.drivers, &definition, now));
            }
            Some(Picture::of(source, definition, now))
        }
    };
    problems::sort(&mut problems);
    let is_wrong = problems.iter().any(|problem| problem.severity == Severity::Error);
    let name = file.display().to_string();
    if args.json {
        let mut line = json!({
            "type": "check",
            "file": name,
            "ok": !is_wrong,
            "problems": problems.iter().map(|problem| problems::json(problem, &texts)).collect::<Vec<_>>(),
        });
        if let (Some(object), Some(picture)) = (line.as_object_mut(), picture.as_ref().filter(|_| !is_wrong))
        {
            object.extend(picture.json());
        }
        out::json(&line.to_string())?;
    } else {
        for problem in &problems {
            out::line(&format!("{}\n", problems::shown(problem, &texts)))?;
        }
        out::line(&format!("{name}: {}", summed(&problems)))?;
        if let Some(picture) = picture.filter(|_| !is_wrong) {
            out::line(&format!("\n{}", picture.text()))?;
        }
    }
    Ok(if is_wrong { Exit::Usage } else { Exit::Completed })
}

/// The definition as a run would have it. An input without a value is only worth a note: `run` may get it.
fn definition(source: &Source, given: &args::Given) -> (Definition, Vec<FileProblem>) {
    match super::run::adjusted(source, given) {
        Ok(definition) => (definition, Vec::new()),
        Err(errors) => {
            let problem = |error: InputError| {
                let what = source.file.bad_key("inputs", &error);
                match error {
                    InputError::Missing { .. } => FileProblem::note(what),
                    _ => FileProblem::error(what),
                }
            };
            let mut definition = source.file.definition.clone();
            super::run::override_with(&mut definition, given);
            (definition, errors.into_iter().map(problem).collect())
        }
    }
}

fn summed(problems: &[FileProblem]) -> String {
    let of = |severity| problems.iter().filter(|problem| problem.severity == severity).count() as u64;
    let counts =
        [Severity::Error, Severity::Warning, Severity::Note].map(|severity| (of(severity), severity));
    let said: Vec<String> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, severity)| counted(count, severity.word()))
        .collect();
    if said.is_empty() { "no problems".to_owned() } else { said.join(", ") }
}

/// Warns of a root that could not make its first call, by deciding the start as a run would.
fn first_call(file: &TreeFile, drivers: &Drivers, definition: &Definition, now: Time) -> Option<FileProblem> {
    let entry = &definition.entry;
    match drivers.first_call(definition.clone(), now) {
        Err(error) => Some(FileProblem::error(file.bad_key("agents", error))),
        Ok(FirstCall::Never(short)) => {
            let show = |amount| format!("{:#}", short.resource.amount(amount));
            let (limit, asked) = (show(short.limit), show(short.asked));
            let message = format!("the first call of `{entry}` may need {asked}, and its budget is {limit}");
            let error = file.bad_key("budget", message);
            Some(FileProblem::warning(
                error.with_help("raise the budget, or lower `limits.max_tokens_per_step`"),
            ))
        }
        Ok(FirstCall::OnlyLast) => {
            let message = format!("the budget of `{entry}` allows one call without tools and nothing more");
            Some(FileProblem::warning(file.bad_key("budget", message).with_help("raise the budget")))
        }
        Ok(_) => None,
    }
}

/// What a tree looks like.
struct Picture<'a> {
    source: &'a Source,
    definition: Definition,
    reach: Reach,
    worst: WorstCase,
    now: Time,
}

impl<'a> Picture<'a> {
    fn of(source: &'a Source, definition: Definition, now: Time) -> Self {
        let (reach, worst) = (Reach::of(&definition), WorstCase::of(&definition, now));
        Self { source, definition, reach, worst, now }
    }

    fn text(&self) -> String {
        let Self { definition, .. } = self;
        let mut rows: Vec<(&str, String)> = vec![("tree", one_line(&definition.name, GOAL_CHARS_MAX))];
        if !definition.goal.trim().is_empty() {
            rows.push(("goal", one_line(&definition.goal, GOAL_CHARS_MAX)));
        }
        let mut title = "inputs";
        for (name, input) in &self.source.file.inputs {
            rows.push((title, format!("{name}: {}", described(input))));
            title = "";
        }
        let mut title = "steps";
        for line in self.pipeline().iter().flat_map(Pipeline::lines) {
            rows.push((title, line));
            title = "";
        }
        let width = |names: &mut dyn Iterator<Item = &str>| {
            names.map(|name| name.chars().count()).max().unwrap_or_default()
        };
        let wide = width(&mut definition.roles.keys().map(RoleName::as_str));
        let mut title = "agents";
        for name in self.roles() {
            let lines = self.role(name);
            let mut lines = lines.iter();
            rows.push((
                title,
                format!("{:<wide$}  {}", name.as_str(), lines.next().map_or("", String::as_str)),
            ));
            rows.extend(lines.map(|line| ("", format!("{:<wide$}  {line}", ""))));
            title = "";
        }
        let wide = width(&mut definition.models.keys().map(ModelName::as_str));
        title = "models";
        for name in definition.models.keys() {
            rows.push((title, format!("{:<wide$}  {}", name.as_str(), self.model(name))));
            title = "";
        }
        let mut title = "spends";
        for line in self.spends() {
            rows.push((title, line));
            title = "";
        }
        let lines: Vec<String> = rows
            .into_iter()
            .map(|(title, text)| format!("  {title:<6}  {text}").trim_end().to_owned())
            .collect();
        lines.join("\n")
    }

    fn pipeline(&self) -> Option<Pipeline<'_>> {
        let graph = self.definition.graph.as_deref()?;
        Some(Pipeline::new(graph, self.worst.pipeline.as_ref()?))
    }

    /// The root first, unless it is a pipeline.
    fn roles(&self) -> impl Iterator<Item = &RoleName> {
        let entry = &self.definition.entry;
        let others = self.definition.roles.keys().filter(move |role| *role != entry);
        let root = self.definition.roles.get_key_value(entry).map(|(name, _)| name);
        root.into_iter().chain(others)
    }

    fn role(&self, name: &RoleName) -> Vec<String> {
        let Some(role) = self.definition.roles.get(name) else { return Vec::new() };
        let mut lines = Vec::new();
        let root = if *name == self.definition.entry { ", the root" } else { "" };
        lines.push(format!("on {}{root}", role.model));
        if let Allow::Only(tools) = &role.caps.tools
            && !tools.is_empty()
        {
            lines.push(format!("tools: {}", listed(tools.iter())));
        }
        if let Some(children) = self.reach.spawns.get(name).filter(|children| !children.is_empty()) {
            lines.push(format!("may spawn: {}", listed(children.iter())));
        }
        if let Some(call) = self.worst.calls.iter().find(|call| call.role == *name) {
            lines.push(one_call(call));
        }
        lines
    }

    fn model(&self, name: &ModelName) -> String {
        let mut said = vec![match self.source.file.models.get(name) {
            Some(ModelSource::Scripted { script }) => format!("scripted, {script}"),
            Some(ModelSource::Provider(source)) => format!("{} {}", source.provider.word(), source.model),
            None => "unknown".to_owned(),
        }];
        if let Some(model) = self.definition.models.get(name) {
            said.extend(model.context.map(|context| format!("context of {}", counted(context, "token"))));
            said.push(match &model.price {
                Some(price) => self.price(price),
                None => "no price".to_owned(),
            });
            if !model.fallback.is_empty() {
                said.push(format!("fallback: {}", listed(model.fallback.iter())));
            }
        }
        said.join(" · ")
    }

    fn price(&self, price: &Price) -> String {
        let rates = price.rates_at(self.now, 0);
        let (input, output) = (usd(rates.input_per_mtok), usd(rates.output_per_mtok));
        format!("{input} in and {output} out per million tokens")
    }

    fn spends(&self) -> Vec<String> {
        let WorstCase { cost, tokens, free, .. } = &self.worst;
        let amount = |tokens: u64| counted(tokens, "token");
        let mut lines = Vec::new();
        lines.push(match cost {
            SpendBound::Ceiling(most) => format!("at most {}, its ceiling", usd(*most)),
            SpendBound::AtRate(most) => {
                format!("at most {}: its tokens at the dearest rate of its models", usd(*most))
            }
            SpendBound::Steps(most) => format!("at most {}, the ceilings of its steps", usd(*most)),
            SpendBound::None => {
                "any amount of money: no ceiling holds it back; set `budget: { cost_usd: … }`".to_owned()
            }
        });
        match tokens {
            SpendBound::Ceiling(most) => lines.push(format!("at most {}, its ceiling", amount(*most))),
            SpendBound::AtRate(most) => {
                lines
                    .push(format!("at most {}: its money at the cheapest rate of its models", amount(*most)));
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
                "more only if a provider bills more than was held for a call, or a person raises it"
                    .to_owned(),
            );
        }
        lines
    }

    fn json(&self) -> Vec<(String, Value)> {
        let Self { definition, .. } = self;
        let agents: Vec<Value> = self.roles().filter_map(|name| self.role_json(name)).collect();
        let models: Vec<Value> = definition
            .models
            .iter()
            .map(|(name, model)| {
                json!({ "name": name, "context": model.context, "priced": model.price.is_some(), "fallback": model.fallback })
            })
            .collect();
        let because = |bound: &SpendBound| match bound {
            SpendBound::Ceiling(_) => "ceiling",
            SpendBound::AtRate(_) => "rate",
            SpendBound::Steps(_) => "steps",
            SpendBound::None => "none",
        };
        let WorstCase { cost, tokens, free, .. } = &self.worst;
        let worst = json!({
            "cost_nanos": cost.most(),
            "cost_usd": cost.most().map(|nanos| usd(nanos).trim_start_matches('$').to_owned()),
            "cost_because": because(cost),
            "tokens": tokens.most(),
            "tokens_because": because(tokens),
            "free": free,
        });
        let fields = [
            ("name", json!(definition.name)),
            ("goal", json!(definition.goal)),
            ("inputs", json!(self.source.file.inputs.keys().collect::<Vec<_>>())),
            ("entry", json!(definition.entry)),
            ("agents", json!(agents)),
            ("models", json!(models)),
            ("worst_case", worst),
            ("pipeline", json!(self.pipeline().map(|pipeline| pipeline.json()))),
        ];
        fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    fn role_json(&self, name: &RoleName) -> Option<Value> {
        let role = self.definition.roles.get(name)?;
        let tools: Vec<&str> = match &role.caps.tools {
            Allow::Only(tools) => tools.iter().map(|tool| tool.as_str()).collect(),
            Allow::All => Vec::new(),
        };
        let call = self.worst.calls.iter().find(|call| call.role == *name);
        Some(json!({
            "name": name,
            "model": role.model,
            "tools": tools,
            "spawns": self.reach.spawns.get(name),
            "can_start": self.reach.has(name),
            "call": call.map(|call| json!({
                "input_tokens": call.input,
                "output_tokens": call.output,
                "cost_nanos": call.cost,
            })),
            "turns": call.and_then(|call| call.turns),
        }))
    }
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

fn one_call(call: &CallBound) -> String {
    let (output, turns) = (grouped(call.output), call.turns.map(|turns| counted(u64::from(turns), "turn")));
    let turns = turns.map(|turns| format!("; at most {turns}")).unwrap_or_default();
    match (call.input, call.cost) {
        (Some(input), Some(cost)) => {
            let (input, cost) = (grouped(input), usd(cost));
            format!("one call: {cost} with a full window, {input} tokens in and {output} out{turns}")
        }
        (Some(input), None) => format!("one call: {} tokens in and {output} out{turns}", grouped(input)),
        (None, _) => format!("one call: at most {output} tokens out{turns}"),
    }
}

fn listed<'t, T: ToString + 't>(names: impl Iterator<Item = &'t T>) -> String {
    names.map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
