//! The options of a tree file's start.

use std::path::Path;

use spinney::tree_file::{InputError, InputSpec, ModelSource};
use spinney_kernel::budget::Resource;
use spinney_kernel::definition::{BudgetSpec, Definition};

use super::{Explanation, SET};
use crate::defaults::{Defaults, OptionSource, Sourced, on_low_text, resource};
use crate::own_drivers::OwnDrivers;
use crate::prepared::{PrepareError, StartRequest};
use crate::tree_file::overrides::fill;
use crate::tree_file::problems::{ProblemsKind, TreeFileProblems};
use crate::tree_file::providers;
use crate::tree_file::source::{self, Keys, Scripts, SourceError, TreeSource};
use crate::user::configuration::{Ceiling, written_span};
use crate::user::variables::Variables;

impl Explanation {
    /// The options of a start of a tree file in this home.
    pub fn of_tree(
        home: &Sourced<&Path>,
        request: &StartRequest<'_>,
        own: &OwnDrivers,
    ) -> Result<Self, PrepareError> {
        let StartRequest { file, given, .. } = request;
        let defaults = Defaults::of_tree_file(file)?;
        let user = Variables::read(&defaults.configuration)?;
        let examined = source::examine(file, home.value, request.scripts, Keys::Optional, &user, own)?;
        let Some(source) = examined.source else {
            let problems = TreeFileProblems::new(home.value, file, examined.problems, ProblemsKind::InFile);
            return Err(SourceError::from(problems).into());
        };
        let mut written = match given.with_inputs(&source, &user) {
            Ok(definition) => definition,
            // What a start needs and does not have yet is shown as not set.
            Err(errors) if errors.iter().all(|error| matches!(error, InputError::Missing { .. })) => {
                source.file.definition.clone()
            }
            Err(errors) => return Err(PrepareError::Inputs { file: (*file).to_owned(), errors }),
        };
        given.override_in(&mut written);
        let mut filled = written.clone();
        fill(&mut filled, &source, &defaults);
        let (source, written, filled) = (&source, &written, &filled);
        let explained =
            ExplainedTree { home, source, request, written, filled, defaults: &defaults, user: &user };
        Ok(explained.explanation())
    }
}

/// A tree file as it would be run: `written` is its definition before defaults were filled in, `filled` after.
struct ExplainedTree<'a> {
    home: &'a Sourced<&'a Path>,
    source: &'a TreeSource,
    request: &'a StartRequest<'a>,
    written: &'a Definition,
    filled: &'a Definition,
    defaults: &'a Defaults,
    user: &'a Variables,
}

impl ExplainedTree<'_> {
    fn explanation(&self) -> Explanation {
        let given = &self.request.given;
        let mut all = Explanation::default();
        let file = || OptionSource::File(self.source.text.name.clone());
        all.add("home", self.home.value.display().to_string(), self.home.source.clone());
        all.add("file", self.source.text.name.clone(), OptionSource::CommandLine);
        let goal = if given.goal.is_some() { OptionSource::CommandLine } else { file() };
        let goal = Some(self.source.shown_goal(self.filled, given))
            .filter(|text| !text.is_empty())
            .map(|text| Sourced::new(text.to_owned(), goal));
        all.add_text("goal", goal);
        for (name, spec) in &self.source.file.inputs {
            all.add_text(format!("input {name}"), self.input(name, spec));
        }
        for ceiling in Ceiling::ALL {
            all.add_some(format!("budget.{}", ceiling.key()), self.ceiling(ceiling));
        }
        for (key, resource) in [("tool_calls", Resource::ToolCalls), ("retries", Resource::Retries)] {
            let most = self.filled.root_budget().limit.get(resource);
            all.add_some(format!("budget.{key}"), most.map(|most| Sourced::new(most.to_string(), file())));
        }
        all.add("on_low", on_low_text(&self.filled.root_budget().on_low.unwrap_or_default()), self.on_low());
        for (name, value) in self.filled.tags.iter() {
            let source = if given.tags.contains_key(name) { OptionSource::CommandLine } else { file() };
            all.add("tag", format!("{name}={value}"), source);
        }
        for (name, model) in &self.filled.models {
            let answers = match self.source.file.models.get(name) {
                Some(ModelSource::Provider(source)) if self.source.called.contains(name) => {
                    format!("{} {}", source.provider.as_str(), source.model)
                }
                Some(ModelSource::Provider(source)) => {
                    format!("scripted {}, without a key", source.script.as_deref().unwrap_or_default())
                }
                Some(ModelSource::Scripted { script }) => format!("scripted {script}"),
                None => continue,
            };
            all.add(format!("model {name}"), answers, file());
            let written = self.written.models.get(name).and_then(|model| model.price.as_ref());
            let source = match (written, self.source.file.writes_price(name)) {
                (None, _) => OptionSource::Configuration,
                (Some(_), true) => file(),
                (Some(_), false) => OptionSource::PriceTable,
            };
            all.add_price(name.as_str(), model.price.as_ref(), source);
        }
        let mut variables: Vec<&str> = Vec::new();
        for source in self.source.file.models.values() {
            if let ModelSource::Provider(source) = source {
                variables.extend(providers::variables(source));
            }
        }
        variables.sort_unstable();
        variables.dedup();
        variables.into_iter().for_each(|variable| all.add_variable(variable, self.user));
        // They decide where a key may go.
        ["ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"]
            .iter()
            .for_each(|address| all.add_server(address, self.user));
        let is_outside = self.request.scripts == Scripts::Anywhere;
        let outside = is_outside.then(|| Sourced::new("yes".to_owned(), OptionSource::CommandLine));
        all.add_some("allow_outside", outside);
        for host in self.request.hosts {
            all.add("allow_hosts", host.to_string(), OptionSource::CommandLine);
        }
        for folder in &given.folders {
            all.add(folder.access.as_str(), folder.path.display().to_string(), OptionSource::CommandLine);
        }
        for (path, access) in self.written.all_folders().iter() {
            all.add(access.as_str(), path.to_string(), file());
        }
        for rule in self.written.all_hosts().rules() {
            all.add("network", rule.to_string(), file());
        }
        for what in self.request.boxes {
            all.add("allow_box", what.to_string(), OptionSource::CommandLine);
        }
        all.add_user(self.defaults);
        all
    }

    /// A value that comes from a variable may be secret.
    fn input(&self, name: &str, spec: &InputSpec) -> Option<Sourced<String>> {
        if let Some((_, text)) = self.request.given.inputs.iter().find(|(given, _)| given == name) {
            return Some(Sourced::new(text.clone(), OptionSource::CommandLine));
        }
        let variable = spec.env.as_deref().and_then(|variable| Some((variable, self.user.source(variable)?)));
        if let Some((variable, source)) = variable {
            return Some(Sourced::new(SET.to_owned(), OptionSource::of_variable(variable, source)));
        }
        let default = spec.default.as_ref()?;
        let text = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
        Some(Sourced::new(text, OptionSource::File(self.source.text.name.clone())))
    }

    fn ceiling(&self, ceiling: Ceiling) -> Option<Sourced<String>> {
        let file = || OptionSource::File(self.source.text.name.clone());
        let (written, filled) = (self.written.root_budget(), self.filled.root_budget());
        let of = |budget: &BudgetSpec| match resource(ceiling) {
            Some(resource) => budget.limit.get(resource),
            None => budget.timeout_ms,
        };
        let is_given = ceiling == Ceiling::Cost && self.request.given.cost_nanos.is_some();
        let source = match (is_given, of(&written)) {
            (true, _) => OptionSource::CommandLine,
            (false, Some(_)) => file(),
            (false, None) => self.defaults.ceiling(ceiling)?.source,
        };
        let most = of(&filled)?;
        let text = match ceiling {
            Ceiling::Timeout if filled.timeout_wall => format!("{}, also while it waits", written_span(most)),
            ceiling => ceiling.written(most),
        };
        Some(Sourced::new(text, source))
    }

    fn on_low(&self) -> OptionSource {
        match (self.written.root_budget().on_low, self.defaults.on_low()) {
            (Some(_), _) => OptionSource::File(self.source.text.name.clone()),
            (None, Some(policy)) => policy.source,
            (None, None) => OptionSource::Default,
        }
    }
}
