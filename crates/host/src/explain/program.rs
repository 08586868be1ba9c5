//! The options of a program's run.

use std::path::Path;

use spinney_drivers::wire::{NotRequestName, RequestName};

use super::Explanation;
use crate::defaults::{Defaults, DefaultsError, GivenCeilings, OptionSource, Sourced};
use crate::exec::options::{GivenRunOptions, HaltWait, RunOptions, RunOptionsError};
use crate::exec::program::known_as;
use crate::user::configuration::{Ceiling, written_span, written_usd};
use crate::user::variables::{Variables, VariablesError};

/// The variables of each provider's keys and address.
const PROVIDERS: [([&str; 2], &str); 3] = [
    (["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"], "ANTHROPIC_BASE_URL"),
    (["OPENAI_API_KEY", "CODEX_API_KEY"], "OPENAI_BASE_URL"),
    (["GEMINI_API_KEY", "GOOGLE_API_KEY"], "GOOGLE_GEMINI_BASE_URL"),
];

/// A program to run under a budget, as a face is asked for it.
pub struct ProgramRequest<'a> {
    /// The options of its run.
    pub run: GivenRunOptions<'a>,
    /// Its ceilings.
    pub ceilings: GivenCeilings,
    /// Most model calls at the same time.
    pub max_parallel: Option<u32>,
    /// Who said what happens to a call that does not fit.
    pub on_limit: OptionSource,
}

/// Why the options of a program's run are unknown.
#[derive(Debug, thiserror::Error)]
pub enum ProgramExplainError {
    /// The defaults cannot be read.
    #[error(transparent)]
    Defaults(#[from] DefaultsError),
    /// The user's variables cannot be read.
    #[error(transparent)]
    Variables(#[from] VariablesError),
    /// An option is wrong.
    #[error(transparent)]
    Options(#[from] RunOptionsError),
    /// A name that it may send is not one.
    #[error(transparent)]
    Name(#[from] NotRequestName),
}

impl Explanation {
    /// The options of a program that is run in the current folder.
    pub fn of_program(
        home: &Sourced<&Path>,
        request: &ProgramRequest<'_>,
    ) -> Result<Self, ProgramExplainError> {
        let defaults = Defaults::in_folder(Path::new("."))?;
        let user = Variables::read(&defaults.configuration)?;
        let options = RunOptions::default().with(&request.run, home.value)?;
        let explained =
            ExplainedProgram { home, request, options: &options, defaults: &defaults, user: &user };
        Ok(explained.explanation()?)
    }
}

/// A program as it would be started.
struct ExplainedProgram<'a> {
    home: &'a Sourced<&'a Path>,
    request: &'a ProgramRequest<'a>,
    /// With what the configuration adds.
    options: &'a RunOptions,
    defaults: &'a Defaults,
    user: &'a Variables,
}

impl ExplainedProgram<'_> {
    fn explanation(&self) -> Result<Explanation, NotRequestName> {
        let Self { options, defaults, .. } = self;
        let given_options = &self.request.run;
        let mut all = Explanation::default();
        let given = |value: Option<String>| value.map(|value| Sourced::new(value, OptionSource::CommandLine));
        all.add("home", self.home.value.display().to_string(), self.home.source.clone());
        let program = given_options.program.first().map(|program| known_as(program)).unwrap_or_default();
        all.add("program", program.clone(), OptionSource::CommandLine);
        let ceilings = defaults.of_exec(&self.request.ceilings);
        let of = |ceiling: Ceiling, most: Option<Sourced<u64>>| {
            most.map(|most| Sourced::new(ceiling.written(most.value), most.source))
        };
        all.add_some("budget.cost_usd", of(Ceiling::Cost, ceilings.cost_nanos));
        all.add_some("child_budget_usd", given(given_options.child_cost_nanos.map(written_usd)));
        all.add_some("max_agents", given(given_options.agents_max.map(|most| most.to_string())));
        all.add_some("budget.tokens", of(Ceiling::Tokens, ceilings.tokens));
        all.add_some("budget.steps", of(Ceiling::Steps, ceilings.steps));
        all.add_some("budget.timeout", of(Ceiling::Timeout, ceilings.timeout_ms));
        all.add_some("max_parallel", given(self.request.max_parallel.map(|most| most.to_string())));
        all.add("on_low", ceilings.on_low.value.as_str(), ceilings.on_low.source);
        let on_limit = if self.options.halt_wait_ms().is_some() { "wait" } else { "stop" };
        all.add("on_limit", on_limit, self.request.on_limit.clone());
        let halt_wait = self.options.halt_wait_ms();
        let is_given = matches!(given_options.halt_wait, Some(HaltWait::Ms(_)));
        let halt_wait = halt_wait.map(|ms| Sourced::new(written_span(ms), of_given(is_given)));
        all.add_some("halt_wait", halt_wait);
        let told = if given_options.tells_remaining { "yes" } else { "no" };
        all.add("tell_remaining", told, of_given(given_options.tells_remaining));
        for (name, value) in given_options.tags {
            all.add("tag", format!("{name}={value}"), OptionSource::CommandLine);
        }
        let models =
            if given_options.models.is_empty() { "all".to_owned() } else { given_options.models.join(", ") };
        all.add("models", models, of_given(!given_options.models.is_empty()));
        for (model, price) in &options.prices_with(&self.defaults.configuration) {
            let is_given = given_options.prices.iter().any(|(name, _)| name == model);
            let source = if is_given { OptionSource::CommandLine } else { OptionSource::Configuration };
            all.add_price(model.as_str(), Some(price), source);
        }
        let prices_of = Some(given_options.prices_of.join(", ")).filter(|names| !names.is_empty());
        all.add_some("prices_of", given(prices_of));
        self.add_fields(&mut all, &program)?;
        let bodies = if given_options.no_bodies { "dropped" } else { "kept" };
        all.add("bodies", bodies, of_given(given_options.no_bodies));
        all.add_some("listen", given(given_options.listen.map(|port| format!("127.0.0.1:{port}"))));
        let other_keys = if given_options.hide_keys { "hidden" } else { "visible" };
        all.add("other_keys", other_keys, of_given(given_options.hide_keys));
        self.add_box(&mut all);
        given_options.secrets.iter().for_each(|name| all.add_variable(name, self.user));
        for (keys, address) in PROVIDERS {
            keys.into_iter().for_each(|key| all.add_variable(key, self.user));
            all.add_server(address, self.user);
        }
        all.add_user(defaults);
        Ok(all)
    }

    /// What the program has in its box, if it has one.
    fn add_box(&self, all: &mut Explanation) {
        let Some(boxed) = &self.options.boxed else {
            all.add_some("box", None);
            return;
        };
        all.add("box", "yes", OptionSource::CommandLine);
        boxed
            .read
            .iter()
            .for_each(|path| all.add("read", path.display().to_string(), OptionSource::CommandLine));
        boxed
            .hosts
            .iter()
            .for_each(|host| all.add("allow_host", host.to_string(), OptionSource::CommandLine));
        let repository = if boxed.allow_git { "written" } else { "read" };
        all.add("repository", repository, of_given(boxed.allow_git));
    }

    /// The names that the program may send although their cost has no bound.
    fn add_fields(&self, all: &mut Explanation, program: &str) -> Result<(), NotRequestName> {
        let own = self.defaults.configuration.allowed_fields(program);
        let given = self.options.allowed_fields()?;
        let mut names: Vec<(&RequestName, OptionSource)> =
            given.iter().map(|name| (name, OptionSource::CommandLine)).collect();
        let more = own.iter().filter(|name| !given.contains(*name));
        names.extend(more.map(|name| (name, OptionSource::Configuration)));
        if names.is_empty() {
            all.add_some("allow_field", None);
        }
        names.into_iter().for_each(|(name, source)| all.add("allow_field", name.to_string(), source));
        Ok(())
    }
}

const fn of_given(is_given: bool) -> OptionSource {
    if is_given { OptionSource::CommandLine } else { OptionSource::Default }
}
