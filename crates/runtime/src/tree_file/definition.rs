//! From keys to a definition: looks up every name and checks every number, with the place of an error.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use serde_json::Value;
use spinney_kernel::budget::{AMOUNT_MAX, Price};
use spinney_kernel::definition::{
    Allow, Approval, AskTimeout, BudgetKeys, BudgetSpec, Caps, Count, Definition, FieldMismatch,
    HostRequests, ModelSpec, Network, OnLost, OnLow, OutputLimits, OutputSchema, QuestionPolicy, RateLimit,
    Recursion, Repeats, Role, Share, SharedAccess, SpanOrOff, Tags, TimeSpan, TokenCounter, TreeLimits,
    Turns, ValueAccess, WindowSpec,
};
use spinney_kernel::primitives::{
    AgentId, Body, ByName, HostRule, ModelName, RESERVED_IDS, RoleName, ToolName, ValuePattern, limit,
};

use super::error::{FileError, TextPosition};
use super::inputs::InputSpecs;
use super::keys::{
    AgentKeys, AgentLimitKeys, ModelKeys, QuestionKeys, RateKeys, Switch, TreeKeys, TreeLimitKeys,
    Unanswered, ValueAccessKeys, WindowKeys, WrittenPrice,
};
use super::node::{Kind, Node, Step};
use super::recover::{self, Lost};
use super::value_error::cut;
use super::{ERRORS_MAX, ModelCatalog, ModelSource, TreeFile, nearest, working_copies};
use crate::output_schema;

/// The entry of `approvals` that is about hosts.
const NETWORK: &str = "network";
/// How often a call may be restarted because its process died.
const LOSSES: RangeInclusive<u64> = 0..=1_000;
/// Tokens of a window, or of what a model takes, that make sense.
const CONTEXT_TOKENS: RangeInclusive<u64> = limit::WINDOW_TOKENS_MIN..=u32::MAX as u64;

pub(super) const SCHEMA_HELP: &str = "write a JSON Schema; `docs/tree-file.md` says what is supported";

/// What can be read, and everything that is wrong, in the order in which it was found.
pub(super) fn read(
    file: &str,
    mut root: Node,
    catalog: &dyn ModelCatalog,
) -> (Option<TreeFile>, Vec<FileError>) {
    if matches!(root.kind, Kind::Empty) {
        return (None, vec![FileError::empty(file, root.place)]);
    }
    let recovered = recover::read(&root, catalog);
    let mut errors: Vec<FileError> = recovered.wrong.into_iter().map(|wrong| wrong.in_file(file)).collect();
    let Some(keys) = recovered.keys else { return (None, errors) };
    for (place, name) in &recovered.renamed {
        root.rename(*place, name);
    }
    let reader =
        Reader { file, root: &root, keys: &keys, catalog, lost: &recovered.lost, errors: RefCell::default() };
    let (read, folders, working_copies) = (reader.tree(), reader.folders(), reader.working_copies());
    let command_tools = reader.command_tools();
    errors.extend(reader.errors.into_inner());
    let tree_file = read.map(|(definition, models, inputs)| {
        let usual =
            |(name, source): (&ModelName, &ModelSource)| Some((name.clone(), source.usual_price(catalog)?));
        let usual_prices = models.iter().filter_map(usual).collect();
        let file = file.to_owned();
        let file = TreeFile {
            definition,
            models,
            inputs,
            command_tools,
            folders,
            working_copies,
            file,
            root,
            usual_prices,
        };
        file.without_folders()
    });
    (tree_file, errors)
}

pub(super) type Path<'a> = &'a [Step<'a>];

pub(super) struct Reader<'a> {
    file: &'a str,
    pub(super) root: &'a Node,
    pub(super) keys: &'a TreeKeys,
    catalog: &'a dyn ModelCatalog,
    /// What of the file is wrong and not among the keys.
    lost: &'a Lost,
    errors: RefCell<Vec<FileError>>,
}

impl Reader<'_> {
    /// Records an error and continues with a default: a file with errors has no definition.
    pub(super) fn noted<T: Default>(&self, read: Result<T, FileError>) -> T {
        read.unwrap_or_else(|error| {
            self.note(error);
            T::default()
        })
    }

    pub(super) fn note(&self, error: FileError) {
        let mut errors = self.errors.borrow_mut();
        if errors.len() < ERRORS_MAX {
            errors.push(error);
        }
    }

    /// `None` if the root's role is not known.
    fn tree(&self) -> Option<(Definition, ByName<ModelName, ModelSource>, InputSpecs)> {
        let keys = self.keys;
        self.noted(self.said(&[Step::Key("name")], &keys.name, limit::NOTE_BYTES_MAX));
        if let Some(goal) = &keys.goal {
            self.noted(self.said(&[Step::Key("goal")], goal, limit::TEXT_BYTES_MAX));
            self.noted(self.template(&[Step::Key("goal")], goal));
        }
        let calls_models = keys.agents.values().any(|agent| agent.program.is_none());
        if calls_models {
            self.noted(self.some("models", keys.models.len()));
        }
        self.noted(self.some("agents", keys.agents.len()));
        let limits = self.limits(&keys.limits);
        let mut models = ByName::default();
        let mut sources = ByName::default();
        for (name, model) in &keys.models {
            let source = self.source(name, model);
            models.insert(name.clone(), self.model(name, model, source.as_ref()));
            if let Some(source) = source {
                sources.insert(name.clone(), source);
            }
        }
        let mut roles = ByName::default();
        for (name, agent) in &keys.agents {
            self.noted(self.names_an_agent(name));
            roles.insert(name.clone(), self.role(name, agent, limits.depth_max));
        }
        self.check_box();
        self.check_programs();
        let budget = self.noted(self.root_budget(&keys.budget));
        let tags = self.tags();
        let inputs = self.inputs(&keys.inputs);
        let graph = self.graph();
        let definition = Definition {
            is_kept: false,
            name: keys.name.clone(),
            goal: keys.goal.clone().unwrap_or_default(),
            entry: if keys.pipeline.is_some() { RoleName::of_graphs() } else { self.entry()? },
            thread: keys.thread.clone(),
            budget,
            limits,
            models,
            roles,
            tools: ByName::default(),
            shared: self.shared(),
            unpriced: keys.unpriced,
            durability: keys.durability,
            graph: graph.map(Arc::new),
            inputs: BTreeMap::new(),
            folders: None,
            command_tools: keys.tools.keys().cloned().collect(),
            servers: self.servers(),
            tags,
            visibility: self.visibility(),
            redact: self.redaction(),
        };
        Some((definition, sources, inputs))
    }

    fn entry(&self) -> Option<RoleName> {
        let agents = &self.keys.agents;
        let written = self.root.len_at(&[Step::Key("agents")]);
        let is_lost = ["entry", "pipeline", "agents"].iter().any(|key| self.lost.has(&[key]));
        match (&self.keys.entry, agents.keys().next()) {
            (Some(entry), _) => {
                self.noted(self.is_agent(&[Step::Key("entry")], entry));
                Some(entry.clone())
            }
            (None, Some(only)) if written == 1 => Some(only.clone()),
            (None, first) if is_lost => first.cloned(),
            (None, None) => None,
            (None, Some(_)) => {
                let names = nearest::listed(agents.keys().map(RoleName::as_str));
                let help = format!("say which agent is the root, one of {names}");
                self.note(self.wrong(&[], "`entry` is missing").with_help(help));
                None
            }
        }
    }

    fn shared(&self) -> SharedAccess {
        let (rules, at) = (&self.keys.shared, Step::Key("shared"));
        self.noted(self.few(&[at], rules.len()));
        for (pattern, keys) in rules.iter() {
            for (key, roles) in [("read", &keys.read), ("write", &keys.write)] {
                for (place, role) in roles.iter().flatten().enumerate() {
                    let path = [at, Step::Key(pattern.as_str()), Step::Key(key), Step::Item(place)];
                    self.noted(self.is_agent(&path, role));
                }
            }
        }
        self.shared_access()
    }

    /// The rules as they are written, unchecked.
    pub(super) fn shared_access(&self) -> SharedAccess {
        let roles = |roles: &Option<Vec<RoleName>>| Some(roles.as_ref()?.iter().cloned().collect());
        let rule = |(pattern, keys): (&ValuePattern, &ValueAccessKeys)| {
            (pattern.clone(), ValueAccess { read: roles(&keys.read), write: roles(&keys.write) })
        };
        self.keys.shared.iter().map(rule).collect()
    }

    fn tags(&self) -> Arc<Tags> {
        let (tags, at) = (&self.keys.tags, Step::Key("tags"));
        if tags.len() > limit::TAGS_MAX {
            let message = format!("`tags` has {} entries, more than {}", tags.len(), limit::TAGS_MAX);
            self.note(self.wrong(&[at], message));
        }
        for (name, value) in tags {
            let path = [at, Step::Key(name)];
            if name.trim().is_empty() {
                self.note(self.wrong(&path, "a tag has no name").with_help("write one"));
            }
            if name.len() > limit::TAG_NAME_BYTES_MAX {
                let (bytes, most) = (name.len(), limit::TAG_NAME_BYTES_MAX);
                let message = format!("the name of tag `{}` has {bytes} bytes, more than {most}", cut(name));
                self.note(self.wrong(&path, message));
            }
            self.noted(self.short(&path, value, limit::TAG_BYTES_MAX));
        }
        Arc::new(tags.clone())
    }

    fn limits(&self, keys: &TreeLimitKeys) -> TreeLimits {
        let default = TreeLimits::default();
        let bounded = |key: &str, count, range, default| {
            let count = self.noted(self.bounded(&[Step::Key("limits"), Step::Key(key)], count, range));
            count.map_or(default, narrow)
        };
        let agents_cap = u64::from(limit::AGENTS_CAP);
        let depth_cap = u64::from(limit::DEPTH_CAP);
        TreeLimits {
            depth_max: bounded("depth", keys.depth, 0..=depth_cap, default.depth_max),
            children_max: bounded("children", keys.children, 0..=agents_cap, default.children_max),
            agents_max: bounded("agents", keys.agents, 1..=agents_cap, default.agents_max),
            parallel_max: bounded("parallel", keys.parallel, 1..=agents_cap, default.parallel_max),
            rate: self.rate(&[Step::Key("limits"), Step::Key("rate")], &keys.rate),
        }
    }

    fn model(&self, name: &ModelName, keys: &ModelKeys, source: Option<&ModelSource>) -> ModelSpec {
        let at = |key| [Step::Key("models"), Step::Key(name.as_str()), Step::Key(key)];
        self.noted(self.few(&at("fallback"), keys.fallback.len()));
        for (index, other) in keys.fallback.iter().enumerate() {
            let [models, model, fallback] = at("fallback");
            let path = [models, model, fallback, Step::Item(index)];
            self.noted(self.is_model(&path, other));
            if other == name {
                let error = self.wrong(&path, format!("`{name}` is its own fallback"));
                self.note(error.with_help("name another model"));
            }
        }
        let known = source.and_then(ModelSource::in_catalog);
        let context = self.noted(self.bounded(&at("context"), keys.context, CONTEXT_TOKENS));
        let known_context = || {
            let context = known.and_then(|(provider, model)| self.catalog.context(provider, model));
            context.filter(|context| CONTEXT_TOKENS.contains(context))
        };
        let losses = self.bounded(&at("attempts_lost_max"), keys.attempts_lost_max, LOSSES);
        ModelSpec {
            price: match &keys.price {
                Some(written) => self.noted(self.price(&at("price"), written).map(Some)),
                // Without one the kernel refuses its calls under a ceiling on cost.
                None => known.and_then(|(provider, model)| self.catalog.price(provider, model).ok()),
            },
            output_max: self.noted(self.bounded(&at("max_output"), keys.max_output, 1..=AMOUNT_MAX)),
            context: context.or_else(known_context),
            fallback: keys.fallback.clone(),
            // Nothing is filled that a call could wait for.
            cache_wait_ms: match keys.cache_wait {
                Some(SpanOrOff(wait)) => Some(wait.map_or(0, TimeSpan::ms)),
                None => source.is_some_and(ModelSource::is_uncached).then_some(0),
            },
            rate: self.rate(&at("rate"), &keys.rate),
            lost: OnLost::default(),
            // Its driver says.
            counter: TokenCounter::default(),
            losses_max: self.noted(losses).and_then(|count| u32::try_from(count).ok()),
        }
    }

    fn price(&self, path: Path<'_>, written: &WrittenPrice) -> Result<Price, FileError> {
        match written {
            WrittenPrice::Keys(keys) => Ok(keys.price()),
            WrittenPrice::SameAs(name) => {
                let help = "write `provider/model` as the price table has it, or the keys of a price";
                let Some((provider, model)) = name.split_once('/') else {
                    let message = format!("`{}` is not a provider and model", cut(name));
                    return Err(self.wrong(path, message).with_help(help));
                };
                let found = self.catalog.price(provider, model);
                found.map_err(|reason| self.wrong(path, reason).with_help(help))
            }
        }
    }

    fn role(&self, name: &RoleName, keys: &AgentKeys, depth_max: u32) -> Role {
        if let Some(program) = &keys.program {
            return self.program_role(name, keys, program, depth_max);
        }
        let agent = [Step::Key("agents"), Step::Key(name.as_str())];
        let at = |key| [agent[0], agent[1], Step::Key(key)];
        let item = |key, index| [agent[0], agent[1], Step::Key(key), Step::Item(index)];
        let bounded = |key, count, range| {
            self.noted(self.bounded(&[agent[0], agent[1], Step::Key("limits"), Step::Key(key)], count, range))
        };
        if let Some(model) = &keys.model
            && !self.is_lost(&["agents", name.as_str(), "model"])
        {
            self.noted(self.is_model(&at("model"), model));
        }
        self.noted(self.short(&at("prompt"), &keys.prompt, limit::TEXT_BYTES_MAX));
        self.noted(self.template(&at("prompt"), &keys.prompt));
        self.noted(self.few(&at("tools"), keys.tools.len()));
        let subagents = keys.subagents.as_deref();
        self.noted(self.few(&at("subagents"), subagents.map_or(0, <[_]>::len)));
        for (index, role) in subagents.into_iter().flatten().enumerate() {
            self.noted(self.is_agent(&item("subagents", index), role));
        }
        let limits = &keys.limits.0;
        let turns_cap = u64::from(limit::TURNS_CAP);
        let depth_cap = u64::from(limit::DEPTH_CAP);
        let turns = bounded("max_steps", limits.max_steps, 1..=turns_cap);
        let cap = bounded("max_tokens_per_step", limits.max_tokens_per_step, 1..=AMOUNT_MAX);
        let depth = bounded("depth", limits.depth, 0..=depth_cap);
        let agents_cap = u64::from(limit::AGENTS_CAP);
        let children = bounded("children", limits.children, 0..=agents_cap);
        self.noted(self.few(&at("subagent_models"), keys.subagent_models.len()));
        for (index, model) in keys.subagent_models.iter().enumerate() {
            self.noted(self.is_model(&item("subagent_models", index), model));
        }
        self.noted(self.few(&at("approvals"), keys.approvals.len()));
        let (approvals, host_requests) = self.approvals(&at("approvals"), &keys.approvals);
        let default = Turns::default();
        Role {
            // Without one the file has an error.
            model: keys.model.clone().unwrap_or_else(ModelName::of_none),
            caps: Caps {
                models: Allow::All,
                below: Allow::list(keys.subagent_models.iter().cloned()),
                tools: Allow::only(keys.tools.iter().cloned()),
                spawn: subagents.map_or(Allow::All, |roles| Allow::only(roles.iter().cloned())),
                network: self.network(&at("network"), &keys.network),
                host_requests,
                folders: None,
                depth_max: depth.map_or(depth_max, narrow),
            },
            budget: self.noted(self.budget(&at("budget"), &keys.budget.keys())),
            rate: self.rate(&at("rate"), &keys.rate),
            recursive: if keys.recursive { Recursion::Allowed } else { Recursion::Refused },
            program: None,
            turns: Some(Turns {
                prompt: Body::text(working_copies::prompt(keys)),
                turns_max: turns.map_or(default.turns_max, narrow),
                output_cap: cap,
                approvals,
                outputs: self.outputs(&agent, limits),
                sandbox: self.sandbox(keys.sandbox.as_ref()),
                active_ms: limits.timeout.map(TimeSpan::ms),
                children_max: children.map(narrow),
                window: keys.window.as_ref().map(|window| self.window(&at("window"), window)),
                share: self.noted(self.share(&at("share"), keys.share)),
                output_schema: self
                    .noted(self.output_schema(&at("output_schema"), keys.output_schema.as_ref())),
                questions: keys
                    .questions
                    .as_ref()
                    .map(|keys| Box::new(self.questions(&at("questions"), keys))),
                ..default
            }),
        }
    }

    /// What applies to questions that say nothing else.
    fn questions(&self, path: Path<'_>, keys: &QuestionKeys) -> QuestionPolicy {
        let at: Vec<Step<'_>> = path.iter().copied().chain([Step::Key("default")]).collect();
        let default = keys.default.clone();
        self.noted(self.short(&at, default.as_deref().unwrap_or_default(), limit::TEXT_BYTES_MAX));
        let on_timeout = match (keys.on_timeout, default) {
            (None | Some(Unanswered::Default), Some(answer)) => AskTimeout::Default(answer),
            (None | Some(Unanswered::Fail), None) => AskTimeout::Fail,
            (Some(Unanswered::Cancel), None) => AskTimeout::Cancel,
            (Some(Unanswered::Default), None) => {
                let error = self.wrong(path, "`on_timeout: default` needs `default`");
                self.note(error.with_help("write the answer that counts then"));
                AskTimeout::Fail
            }
            (Some(Unanswered::Fail | Unanswered::Cancel), Some(_)) => {
                let error = self.wrong(&at, "`default` is never used");
                self.note(error.with_help("write `on_timeout: default`, or leave it out"));
                AskTimeout::Fail
            }
        };
        QuestionPolicy { timeout_ms: keys.timeout.map(TimeSpan::ms), on_timeout }
    }

    /// The tools that need approval; and whether it may ask for hosts, which is among them in a file.
    fn approvals(
        &self,
        path: Path<'_>,
        written: &ByName<ToolName, Approval>,
    ) -> (ByName<ToolName, Approval>, HostRequests) {
        let is_hosts = |tool: &ToolName| tool.as_str() == NETWORK;
        let tools = written.iter().filter(|(tool, _)| !is_hosts(tool));
        let tools = tools.map(|(tool, approval)| (tool.clone(), *approval)).collect();
        let Some((_, approval)) = written.iter().find(|(tool, _)| is_hosts(tool)) else {
            return (tools, HostRequests::Refused);
        };
        let at: Vec<Step<'_>> = path.iter().copied().chain([Step::Key(NETWORK)]).collect();
        if self.keys.agents.values().any(|agent| agent.tools.iter().any(is_hosts)) {
            let message = format!("`{NETWORK}` is about hosts here, and there is a tool of that name");
            self.note(self.wrong(&at, message).with_help("rename the tool"));
        }
        let requests = match approval {
            Approval::Ask => HostRequests::Ask,
            Approval::Deny => HostRequests::Refused,
            Approval::Allow => {
                let error = self.wrong(&at, "hosts are not allowed without a question here");
                self.note(error.with_help("list them in the agent's `network`, or write `ask`"));
                HostRequests::Refused
            }
        };
        (tools, requests)
    }

    pub(super) fn network(&self, path: Path<'_>, rules: &[HostRule]) -> Network {
        if rules.len() > limit::HOST_RULES_MAX {
            let message = format!("{} hosts are more than {}", rules.len(), limit::HOST_RULES_MAX);
            self.note(self.wrong(path, message));
        }
        for (index, rule) in rules.iter().enumerate() {
            if let Some(first) = rules[..index].iter().find(|first| first.covers(rule)) {
                let at: Vec<Step<'_>> = path.iter().copied().chain([Step::Item(index)]).collect();
                let message = if first == rule {
                    format!("`{rule}` is listed twice")
                } else {
                    format!("`{rule}` is already covered by `{first}`")
                };
                self.note(self.wrong(&at, message).with_help("delete it"));
            }
        }
        Network::hosts(rules.iter().cloned())
    }

    fn rate(&self, path: Path<'_>, keys: &RateKeys) -> RateLimit {
        let rate = |key, count| {
            let at: Vec<Step<'_>> = path.iter().copied().chain([Step::Key(key)]).collect();
            self.noted(self.bounded(&at, count, 1..=limit::RATE_MAX))
        };
        RateLimit {
            requests_per_min: rate("requests_per_min", keys.requests_per_min),
            tokens_per_min: rate("tokens_per_min", keys.tokens_per_min),
        }
    }

    pub(super) fn outputs(&self, agent: Path<'_>, keys: &AgentLimitKeys) -> OutputLimits {
        let at = |key| agent.iter().copied().chain([Step::Key("limits"), Step::Key(key)]).collect::<Vec<_>>();
        let default = OutputLimits::default();
        let most = |key, count, default| {
            self.noted(self.bounded(&at(key), count, 0..=AMOUNT_MAX)).unwrap_or(default)
        };
        OutputLimits {
            files_max: most("max_output_files", keys.max_output_files, default.files_max),
            bytes_max: most("max_output_size_bytes", keys.max_output_size_bytes, default.bytes_max),
        }
    }

    fn window(&self, path: Path<'_>, keys: &WindowKeys) -> WindowSpec {
        let at = |key| path.iter().copied().chain([Step::Key(key)]).collect::<Vec<_>>();
        let images = self.noted(self.bounded(&at("images"), keys.images, 0..=u64::from(u8::MAX)));
        let default = WindowSpec::default();
        WindowSpec {
            size: self.noted(self.bounded(&at("size"), keys.size, CONTEXT_TOKENS)),
            preset: keys.preset.unwrap_or(default.preset),
            images: images.map_or(default.images, narrow),
            compact: keys.compact.unwrap_or(default.compact),
            clamp_note: keys.clamp_note.is_none_or(|note| note == Switch::On),
        }
    }

    fn share(&self, path: Path<'_>, share: Option<Share>) -> Result<Share, FileError> {
        match share {
            Some(Share::Fork(turns)) if turns == 0 || turns > limit::FORK_TURNS_MAX => {
                let error = self.wrong(path, format!("`fork` of {turns} turns is out of bounds"));
                Err(error.with_help(format!("write a number from 1 to {}", limit::FORK_TURNS_MAX)))
            }
            Some(share) => Ok(share),
            None => Ok(Share::default()),
        }
    }

    /// A schema as a map, or as JSON in a text. An error in a map has its own place.
    pub(super) fn output_schema(
        &self,
        path: Path<'_>,
        written: Option<&Value>,
    ) -> Result<Option<Box<OutputSchema>>, FileError> {
        let Some(written) = written else { return Ok(None) };
        let read = match written {
            Value::String(text) => OutputSchema::read(text),
            Value::Object(_) | Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {
                OutputSchema::from_value(written)
            }
        };
        let schema = read.map_err(|refusal| self.wrong(path, refusal.to_string()))?;
        let key = last(path);
        output_schema::check(schema.text()).map_err(|FieldMismatch { path: at, expected }| {
            let names: Vec<String> =
                at.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
            let inner = names.iter().map(|name| name.parse().map_or(Step::Key(name), Step::Item));
            let path: Vec<Step<'_>> = path.iter().copied().chain(inner).collect();
            let whole = if at.is_empty() { String::new() } else { format!(" at {at}") };
            let error = self.wrong(&path, format!("bad `{key}`{whole}: {expected}"));
            error.with_help(SCHEMA_HELP)
        })?;
        Ok(Some(Box::new(schema)))
    }

    fn root_budget(&self, keys: &BudgetKeys) -> Result<BudgetSpec, FileError> {
        if keys.lend.is_some() {
            let path = [Step::Key("budget"), Step::Key("lend")];
            let error = self.wrong(&path, "a tree has no parent to lend it anything");
            return Err(error.with_help("write `lend` in the budget of an agent"));
        }
        self.budget(&[Step::Key("budget")], keys)
    }

    pub(super) fn budget(&self, path: Path<'_>, keys: &BudgetKeys) -> Result<BudgetSpec, FileError> {
        let spec = keys.spec();
        if let Some(OnLow::Downgrade(model)) = &spec.on_low {
            let path: Vec<_> =
                path.iter().copied().chain([Step::Key("on_low"), Step::Key("downgrade")]).collect();
            self.is_model(&path, model)?;
        }
        if let Some(Err(refusal)) = spec.repeats.as_ref().map(Repeats::check) {
            let path: Vec<_> = path.iter().copied().chain([Step::Key("repeats")]).collect();
            return Err(self.wrong(&path, refusal.to_string()));
        }
        Ok(spec)
    }

    pub(super) fn is_model(&self, path: Path<'_>, name: &ModelName) -> Result<(), FileError> {
        if self.keys.models.contains_key(name) || self.is_lost(&["models", name.as_str()]) {
            return Ok(());
        }
        let help = nearest::help(name.as_str(), self.keys.models.keys().map(ModelName::as_str), "models");
        Err(self.wrong(path, format!("unknown model `{name}`")).with_help(help))
    }

    /// The root's id is its role's name, so a role's name must be a valid agent id.
    fn names_an_agent(&self, name: &RoleName) -> Result<(), FileError> {
        if !AgentId::of_role(name).is_reserved() {
            return Ok(());
        }
        let message = format!("an agent cannot be called `{name}`, which is reserved");
        let help = format!("choose a name other than {}", nearest::listed(RESERVED_IDS));
        Err(self.wrong(&[Step::Key("agents"), Step::Key(name.as_str())], message).with_help(help))
    }

    fn is_agent(&self, path: Path<'_>, name: &RoleName) -> Result<(), FileError> {
        if self.keys.agents.contains_key(name) || self.is_lost(&["agents", name.as_str()]) {
            return Ok(());
        }
        let help = nearest::help(name.as_str(), self.keys.agents.keys().map(RoleName::as_str), "agents");
        Err(self.wrong(path, format!("unknown agent `{name}`")).with_help(help))
    }

    pub(super) fn bounded(
        &self,
        path: Path<'_>,
        count: Option<Count>,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, FileError> {
        let Some(count) = count.map(Count::count) else { return Ok(None) };
        if range.contains(&count) {
            return Ok(Some(count));
        }
        let error = self.wrong(path, format!("`{}` of {count} is out of bounds", last(path)));
        Err(error.with_help(format!("write a number from {} to {}", range.start(), range.end())))
    }

    fn some(&self, key: &str, count: usize) -> Result<(), FileError> {
        let path = [Step::Key(key)];
        if count == 0 && !self.lost.has_in(key) {
            let error = self.wrong(&path, format!("`{key}` is empty"));
            return Err(error.with_help("write at least one"));
        }
        self.few(&path, count)
    }

    /// Whether the value of these keys, or the whole map around it, is wrong and reported.
    pub(super) fn is_lost(&self, keys: &[&str]) -> bool {
        (1..=keys.len()).any(|end| self.lost.has(&keys[..end]))
    }

    pub(super) fn few(&self, path: Path<'_>, count: usize) -> Result<(), FileError> {
        if count <= limit::NAMES_MAX {
            return Ok(());
        }
        let message = format!("`{}` has {count} entries, more than {}", last(path), limit::NAMES_MAX);
        Err(self.wrong(path, message))
    }

    pub(super) fn said(&self, path: Path<'_>, text: &str, bytes_max: usize) -> Result<(), FileError> {
        if text.trim().is_empty() {
            return Err(self.wrong(path, format!("`{}` is empty", last(path))).with_help("write something"));
        }
        self.short(path, text, bytes_max)
    }

    pub(super) fn short(&self, path: Path<'_>, text: &str, bytes_max: usize) -> Result<(), FileError> {
        if text.len() <= bytes_max {
            return Ok(());
        }
        let message = format!("`{}` has {} bytes, more than {bytes_max}", last(path), text.len());
        Err(self.wrong(path, message))
    }

    pub(super) fn wrong_at(&self, place: TextPosition, message: &str) -> FileError {
        FileError::new(self.file, place, message)
    }

    /// The same at the last key of the path.
    pub(super) fn wrong_key(&self, path: Path<'_>, message: impl Into<String>) -> FileError {
        FileError::new(self.file, self.root.place_of_key(path), message)
    }

    pub(super) fn wrong(&self, path: Path<'_>, message: impl Into<String>) -> FileError {
        FileError::new(self.file, self.root.place_of(path), message)
    }
}

/// The value's limit is far below `u32::MAX`.
fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn last<'a>(path: &[Step<'a>]) -> &'a str {
    let key = |step: &Step<'a>| match step {
        Step::Key(key) => Some(*key),
        Step::Item(_) => None,
    };
    path.iter().rev().find_map(key).unwrap_or_default()
}
