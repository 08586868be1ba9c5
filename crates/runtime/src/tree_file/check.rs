//! Problems that no single key shows: roles that can never start, models that no agent can use, prices that are missing.

use std::collections::BTreeSet;

use spinney_kernel::budget::Resource;
use spinney_kernel::definition::{
    Allow, BudgetSpec, Definition, FETCH, HostRequests, Refusal, Role, Unpriced,
};
use spinney_kernel::primitives::{ModelName, RoleName};

use super::error::FileError;
use super::node::Step;
use super::problem::FileProblem;
use super::reach::{Reach, downgrade, spawns, step_budgets};
use super::{ModelSource, TreeFile, nearest};

impl TreeFile {
    /// Everything that is wrong with the definition as a whole. It is this file's, possibly changed by the caller.
    #[must_use]
    pub fn check(&self, definition: &Definition) -> Vec<FileProblem> {
        let reach = Reach::new(definition);
        let mut problems: Vec<FileProblem> =
            self.unpriced(definition, &reach).into_iter().map(FileProblem::error).collect();
        let unused = self.unused_models(definition, &reach);
        let rest = [self.unpriced_later(definition, &reach), self.unreachable(definition, &reach), unused];
        problems.extend(rest.into_iter().flatten().map(FileProblem::warning));
        problems.extend(self.weaker_boxes(definition));
        problems.extend(self.folders_beyond(definition).into_iter().map(FileProblem::error));
        problems.extend(self.servers_beyond(definition).into_iter().map(FileProblem::error));
        problems.extend(self.unused_servers(definition).into_iter().map(FileProblem::warning));
        problems.extend(self.contradictions(definition, &reach).into_iter().map(FileProblem::warning));
        problems
    }

    /// Refuses models without a price that agents would use under a cost ceiling. The kernel refuses each of their
    /// calls; this reports it before anything starts. `definition` is this file's, possibly changed by the caller.
    ///
    /// # Errors
    /// Names the model, its place and what to write.
    pub fn check_prices(&self, definition: &Definition) -> Result<(), FileError> {
        self.unpriced(definition, &Reach::new(definition)).into_iter().next().map_or(Ok(()), Err)
    }

    /// The models without a price under a ceiling on cost, each once: those of roles that can start, and those that their
    /// agents may choose for others.
    fn unpriced(&self, definition: &Definition, reach: &Reach) -> Vec<FileError> {
        if definition.unpriced == Unpriced::Allow {
            return Vec::new();
        }
        let limited = startable(definition, reach).filter(|role| is_limited(definition, &role.budget));
        let chosen = reach.chosen(definition).filter(|(role, _)| is_limited(definition, &role.budget));
        let limited = limited.filter(|role| role.program.is_none());
        let models = limited.map(|role| &role.model).chain(chosen.map(|(_, model)| model));
        let models = models.filter(|model| definition.price(model).is_none());
        let mut seen = BTreeSet::new();
        let first = models.filter(|model| seen.insert((*model).clone()));
        first.map(|model| self.unpriced_at(model)).collect()
    }

    fn unpriced_at(&self, model: &ModelName) -> FileError {
        let path = [Step::Key("models"), Step::Key(model.as_str())];
        let message = format!("model `{model}` has no known price, but cost has a ceiling");
        FileError::new(&self.file, self.root.place_of(&path), message).with_help(self.price_help(model))
    }

    /// What to write for a model without a price.
    fn price_help(&self, model: &ModelName) -> String {
        let has_own_url = matches!(
            self.models.get(model),
            Some(ModelSource::Provider(source)) if source.base_url.is_some()
        );
        let rates = "`price: { input_per_mtok_usd: …, output_per_mtok_usd: … }`";
        match self.usual_prices.get(model) {
            Some(usual) => {
                format!(
                    "write `price: {usual}` if its server charges the same, otherwise {rates}, or set `unpriced: allow`"
                )
            }
            None if has_own_url => format!("write {rates}, or set `unpriced: allow`"),
            None => "give it a price, or set `unpriced: allow`".to_owned(),
        }
    }

    /// Models without a price that are only used when another one fails or the budget is low.
    fn unpriced_later(&self, definition: &Definition, reach: &Reach) -> Vec<FileError> {
        if definition.unpriced == Unpriced::Allow {
            return Vec::new();
        }
        let mut later: BTreeSet<(&ModelName, &str)> = BTreeSet::new();
        for role in startable(definition, reach).filter(|role| is_limited(definition, &role.budget)) {
            let fallback = definition.models.get(&role.model).map_or(&[][..], |model| &model.fallback);
            later.extend(fallback.iter().map(|model| (model, "a fallback")));
            later.extend(downgrade(&role.budget).map(|model| (model, "what `on_low` downgrades to")));
        }
        if is_limited(definition, &BudgetSpec::default()) {
            let low = downgrade(&definition.budget);
            later.extend(low.map(|model| (model, "what `on_low` downgrades to")));
        }
        let of_steps = step_budgets(definition).filter(|budget| is_limited(definition, budget));
        later.extend(of_steps.filter_map(downgrade).map(|model| (model, "what `on_low` downgrades to")));
        // Those are errors already.
        let is_refused = |model: &ModelName| {
            definition.roles.values().any(|role| role.model == *model)
                || reach.chosen(definition).any(|(_, chosen)| chosen == model)
        };
        let unpriced =
            later.into_iter().filter(|(model, _)| definition.price(model).is_none() && !is_refused(model));
        let error = |(model, what): (&ModelName, &str)| {
            let path = [Step::Key("models"), Step::Key(model.as_str())];
            let message = format!("model `{model}` is {what}, and without a price its calls are refused");
            let error = FileError::new(&self.file, self.root.place_of(&path), message);
            error.with_help(self.price_help(model))
        };
        unpriced.map(error).collect()
    }

    /// Roles that no agent can ever start.
    fn unreachable(&self, definition: &Definition, reach: &Reach) -> Vec<FileError> {
        let never = definition.roles.keys().filter(|role| !reach.has(role));
        never.map(|role| self.unreachable_role(definition, reach, role)).collect()
    }

    fn unreachable_role(&self, definition: &Definition, reach: &Reach, role: &RoleName) -> FileError {
        let at = |key| [Step::Key("agents"), Step::Key(role.as_str()), Step::Key(key)];
        let never = |reason: String| format!("`{role}` can never be started: {reason}");
        let met = reach.refused.get(role).and_then(|refused| refused.first());
        if let Some((parent, refusal)) = met {
            let (reason, help, key) = refused(parent, role, refusal);
            let place =
                self.root.place_of_key(&key.map_or_else(|| at("")[..2].to_vec(), |key| at(key).to_vec()));
            return FileError::new(&self.file, place, never(reason)).with_help(help);
        }
        let spawners: Vec<&str> = reach
            .spawns
            .keys()
            .filter(|name| definition.roles.get(*name).is_some_and(|role| spawns(&role.caps.tools)))
            .map(RoleName::as_str)
            .collect();
        let help = if spawners.is_empty() && definition.graph.is_some() {
            format!("name it in a step of the pipeline, or delete `{role}`")
        } else if spawners.is_empty() {
            format!("give the tool `spawn_agent` to `{}`, or delete `{role}`", definition.entry)
        } else {
            let agents = nearest::listed(spawners);
            format!("add it to the `subagents` of an agent that spawns ({agents}), or delete it")
        };
        let place = self.root.place_of_key(&at("")[..2]);
        FileError::new(&self.file, place, never("no agent may spawn it".to_owned())).with_help(help)
    }

    /// Entries of `subagents` that their agent can never spawn, although others can.
    fn contradictions(&self, definition: &Definition, reach: &Reach) -> Vec<FileError> {
        let mut errors = Vec::new();
        for (name, role) in definition.roles.iter().filter(|(_, role)| role.program.is_none()) {
            let Allow::Only(children) = &role.caps.spawn else { continue };
            let path = [Step::Key("agents"), Step::Key(name.as_str()), Step::Key("subagents")];
            if !children.is_empty() && !spawns(&role.caps.tools) {
                let message = format!("`{name}` has `subagents` but cannot spawn them");
                let error = FileError::new(&self.file, self.root.place_of_key(&path), message);
                errors.push(error.with_help("add the tool `spawn_agent`, or delete `subagents`"));
                continue;
            }
            let spawned = reach.spawns.get(name);
            for child in children.iter().filter(|child| reach.has(child) && reach.is_whole) {
                let met = reach.refused.get(child).into_iter().flatten();
                let Some((_, refusal)) = met.clone().find(|(parent, _)| parent == name) else { continue };
                if spawned.is_some_and(|spawned| spawned.contains(child)) {
                    continue;
                }
                let (reason, help, _) = refused(name, child, refusal);
                let place = self.root.place_of_item(&path, child.as_str());
                let message = format!("`{name}` can never spawn `{child}`: {reason}");
                errors.push(FileError::new(&self.file, place, message).with_help(help));
            }
        }
        errors
    }

    /// Roles with `fetch` whose calls of it can only be refused, unless a script or a program has another tool of that name.
    #[must_use]
    pub fn fetching_nothing(&self) -> Vec<FileError> {
        let has_fetch = |role: &Role| match &role.caps.tools {
            Allow::Only(tools) => tools.contains(FETCH),
            Allow::All => false,
        };
        let reaches_nothing =
            |role: &Role| role.caps.network.is_denied() && role.caps.host_requests == HostRequests::Refused;
        let error = |role: &RoleName| {
            let path = [Step::Key("agents"), Step::Key(role.as_str()), Step::Key("tools")];
            let message = format!("`{role}` has `{FETCH}` but no host to fetch from");
            let help = "list hosts in its `network`, or write `approvals: { network: ask }`";
            FileError::new(&self.file, self.root.place_of_item(&path, FETCH), message).with_help(help)
        };
        let roles = self.definition.roles.iter();
        let roles = roles.filter(|(_, role)| has_fetch(role) && reaches_nothing(role));
        roles.map(|(name, _)| error(name)).collect()
    }

    fn unused_models(&self, definition: &Definition, reach: &Reach) -> Vec<FileError> {
        let error = |model: &ModelName| {
            let path = [Step::Key("models"), Step::Key(model.as_str())];
            let error = FileError::new(
                &self.file,
                self.root.place_of_key(&path),
                format!("no agent can use model `{model}`"),
            );
            error.with_help("name it in an agent's `model`, or delete it")
        };
        reach.unused_models(definition).into_iter().map(error).collect()
    }
}

/// Why a parent cannot spawn a role, what to do, and the role's key that is in the way.
fn refused(parent: &RoleName, role: &RoleName, refusal: &Refusal) -> (String, String, Option<&'static str>) {
    match refusal {
        Refusal::ToolNotAllowed { tools, .. } => {
            let names: Vec<String> = tools.iter().map(|tool| format!("`{tool}`")).collect();
            let (names, it) = (names.join(", "), if tools.len() == 1 { "it" } else { "them" });
            let noun = if tools.len() == 1 { "tool" } else { "tools" };
            let help = format!("also give {it} to `{parent}`, or take {it} from `{role}`");
            (format!("`{parent}` lacks its {noun} {names}"), help, Some("tools"))
        }
        Refusal::ModelNotAllowed { model, .. } => {
            let reason = format!("its model `{model}` is not among those that `{parent}` allows below it");
            let help = format!(
                "add `{model}` to the `subagent_models` above `{role}`, or give `{role}` another model"
            );
            (reason, help, Some("model"))
        }
        Refusal::FolderNotAllowed { folders, .. } => {
            let key = if folders.write.is_empty() { "read" } else { "write" };
            let help = format!("also list it for `{parent}`, or take it from `{role}`");
            (format!("`{parent}` may not {folders}"), help, Some(key))
        }
        Refusal::HostNotAllowed { hosts, .. } => {
            let help = format!("also list it for `{parent}`, or take it from `{role}`");
            (format!("`{parent}` may not connect to {hosts}"), help, Some("network"))
        }
        Refusal::HostRequestsNotAllowed => {
            let help = format!(
                "also write `approvals: {{ network: ask }}` for `{parent}`, or take it from `{role}`"
            );
            (format!("`{parent}` may not ask for hosts"), help, Some("approvals"))
        }
        Refusal::DepthLimit { depth_max, .. } => {
            let reason = format!("`{parent}` is at the depth limit of {depth_max}");
            (reason, "raise `limits.depth`".to_owned(), None)
        }
        other => (other.to_string(), String::new(), None),
    }
}

fn startable<'d>(definition: &'d Definition, reach: &Reach) -> impl Iterator<Item = &'d Role> {
    definition.roles.iter().filter(|(name, _)| reach.has(name)).map(|(_, role)| role)
}

fn is_limited(definition: &Definition, budget: &BudgetSpec) -> bool {
    definition.budget.limit.get(Resource::Cost).or(budget.limit.get(Resource::Cost)).is_some()
}
