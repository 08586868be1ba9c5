//! What a run may spend if nothing else says so: the user's configuration, and the project's file, which only lowers it.
//! Each value knows where it comes from.

use std::fmt;
use std::path::Path;

use serde::{Serialize, Serializer};
use spinney_kernel::budget::{Ceilings, Resource};
use spinney_kernel::definition::{Definition, OnLow};

use crate::project::{self, ProjectError, ProjectFile};
use crate::user::configuration::{self, Ceiling, Configuration, ConfigurationError};
use crate::user::low_policy::LowPolicy;
use crate::user::variables::VariableSource;

/// Where the value of an option comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionSource {
    /// An option that was given.
    CommandLine,
    /// A variable of it.
    Environment(String),
    /// A file, by its name or path.
    File(String),
    /// The project's file.
    Project,
    /// The user's configuration.
    Configuration,
    /// The price table of this program.
    PriceTable,
    /// Nothing says otherwise.
    Default,
}

impl OptionSource {
    /// The source of a variable's value.
    pub fn of_variable(variable: &str, source: VariableSource) -> Self {
        match source {
            VariableSource::Environment => Self::Environment(variable.to_owned()),
            VariableSource::File(file) => Self::File(file),
        }
    }
}

impl fmt::Display for OptionSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CommandLine => f.write_str("command line"),
            Self::Environment(variable) => write!(f, "environment {variable}"),
            Self::File(name) => f.write_str(name),
            Self::Project => f.write_str(project::FILE),
            Self::Configuration => f.write_str(configuration::FILE),
            Self::PriceTable => f.write_str("price table"),
            Self::Default => f.write_str("default"),
        }
    }
}

impl Serialize for OptionSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A value and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// Where it comes from.
    pub source: OptionSource,
}

impl<T> Sourced<T> {
    /// A value from there.
    pub const fn new(value: T, source: OptionSource) -> Self {
        Self { value, source }
    }
}

impl<T> Sourced<Option<T>> {
    /// A value, or none, which is the default.
    pub fn of_some(value: Option<Sourced<T>>) -> Self {
        match value {
            Some(Sourced { value, source }) => Self::new(Some(value), source),
            None => Self::new(None, OptionSource::Default),
        }
    }
}

/// Why it is unknown what a run may spend by default.
#[derive(Debug, thiserror::Error)]
pub enum DefaultsError {
    /// The user's configuration cannot be used.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// The project's file cannot be used.
    #[error(transparent)]
    Project(#[from] ProjectError),
}

/// What the user and the project say.
pub struct Defaults {
    /// The user's own.
    pub configuration: Configuration,
    /// The project's, if there is one.
    pub project: Option<ProjectFile>,
}

impl Defaults {
    /// Those of a program that is started in this folder.
    pub fn in_folder(folder: &Path) -> Result<Self, DefaultsError> {
        Ok(Self { configuration: Configuration::read()?, project: ProjectFile::find(folder)? })
    }

    /// Those of a tree file.
    pub fn of_tree_file(file: &Path) -> Result<Self, DefaultsError> {
        Ok(Self { configuration: Configuration::read()?, project: ProjectFile::of_tree_file(file)? })
    }

    /// The default of a ceiling: what the user's configuration says, or less if the project says so.
    pub fn ceiling(&self, ceiling: Ceiling) -> Option<Sourced<u64>> {
        let project = self.project.as_ref().and_then(|project| project.budget.get(ceiling));
        lower(self.configuration.budget().get(ceiling), project)
    }

    /// The default of what happens first to a call that does not fit.
    pub fn on_low(&self) -> Option<Sourced<LowPolicy>> {
        let project = self.project.as_ref().and_then(|project| project.on_low);
        let own = self.configuration.on_low();
        let project = project.map(|policy| Sourced::new(policy, OptionSource::Project));
        project.or_else(|| own.map(|policy| Sourced::new(policy, OptionSource::Configuration)))
    }

    /// Fills in what the file of a tree, and the command line before, said nothing about.
    pub fn fill(&self, definition: &mut Definition) {
        let own = definition.root_budget();
        for ceiling in Ceiling::ALL {
            let Some(Sourced { value, .. }) = self.ceiling(ceiling) else { continue };
            match resource(ceiling) {
                Some(resource) if own.limit.get(resource).is_none() => {
                    definition.budget.limit = definition.budget.limit.with(resource, value);
                }
                None if own.timeout_ms.is_none() => definition.budget.timeout_ms = Some(value),
                Some(_) | None => {}
            }
        }
        if let (None, Some(policy)) = (&own.on_low, self.on_low()) {
            let on_low = policy.value.on_low();
            definition.budget.on_low = Some(on_low.clone());
            // A role that says nothing would halt.
            for role in definition.roles.values_mut() {
                role.budget.on_low.get_or_insert_with(|| on_low.clone());
            }
        }
    }

    /// The ceilings of a program, and what happens first to a call that does not fit.
    pub fn of_exec(&self, given: &GivenCeilings) -> ExecCeilings {
        let ceiling = |ceiling, given: Option<u64>| match given {
            Some(given) => Some(Sourced::new(given, OptionSource::CommandLine)),
            None => self.ceiling(ceiling),
        };
        let on_low = given.on_low.map(|policy| Sourced::new(policy, OptionSource::CommandLine));
        ExecCeilings {
            cost_nanos: ceiling(Ceiling::Cost, given.cost_nanos),
            tokens: ceiling(Ceiling::Tokens, given.tokens),
            steps: ceiling(Ceiling::Steps, given.steps),
            timeout_ms: ceiling(Ceiling::Timeout, given.timeout_ms),
            on_low: on_low
                .or_else(|| self.on_low())
                .unwrap_or(Sourced::new(LowPolicy::Shrink, OptionSource::Default)),
        }
    }
}

/// What a command says itself about the ceilings of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GivenCeilings {
    /// In nano-dollars.
    pub cost_nanos: Option<u64>,
    /// Tokens in and out.
    pub tokens: Option<u64>,
    /// Calls of models.
    pub steps: Option<u64>,
    /// In milliseconds.
    pub timeout_ms: Option<u64>,
    /// What happens first to a call that does not fit.
    pub on_low: Option<LowPolicy>,
}

impl GivenCeilings {
    /// Those of resources.
    #[must_use]
    pub fn limit(&self) -> Ceilings {
        let given = [
            (Resource::Cost, self.cost_nanos),
            (Resource::Tokens, self.tokens),
            (Resource::Steps, self.steps),
        ];
        let given = given.into_iter().filter_map(|(resource, most)| Some((resource, most?)));
        given.fold(Ceilings::NONE, |limit, (resource, most)| limit.with(resource, most))
    }
}

/// The ceilings of a run of `exec`.
pub struct ExecCeilings {
    /// In nano-dollars.
    pub cost_nanos: Option<Sourced<u64>>,
    /// Tokens in and out.
    pub tokens: Option<Sourced<u64>>,
    /// Calls of models.
    pub steps: Option<Sourced<u64>>,
    /// In milliseconds.
    pub timeout_ms: Option<Sourced<u64>>,
    /// What happens first to a call that does not fit.
    pub on_low: Sourced<LowPolicy>,
}

/// The resource of a ceiling; time is none.
pub const fn resource(ceiling: Ceiling) -> Option<Resource> {
    match ceiling {
        Ceiling::Cost => Some(Resource::Cost),
        Ceiling::Tokens => Some(Resource::Tokens),
        Ceiling::Steps => Some(Resource::Steps),
        Ceiling::Timeout => None,
    }
}

/// The project's ceiling, unless it is above the user's.
fn lower(own: Option<u64>, project: Option<u64>) -> Option<Sourced<u64>> {
    match (own, project) {
        (Some(own), Some(project)) if project >= own => Some(Sourced::new(own, OptionSource::Configuration)),
        (_, Some(project)) => Some(Sourced::new(project, OptionSource::Project)),
        (Some(own), None) => Some(Sourced::new(own, OptionSource::Configuration)),
        (None, None) => None,
    }
}

/// What `on_low` of a definition is called.
pub fn on_low_text(on_low: &OnLow) -> String {
    match on_low {
        OnLow::Halt => LowPolicy::Halt.as_str().to_owned(),
        OnLow::Shrink => LowPolicy::Shrink.as_str().to_owned(),
        OnLow::Downgrade(model) => format!("downgrade to {model}"),
    }
}

#[cfg(test)]
mod tests {
    use spinney_kernel::budget::Ceilings;
    use spinney_kernel::definition::{BudgetSpec, Role};
    use spinney_kernel::primitives::RoleName;

    use super::*;

    /// Every amount that matters to each other, and none.
    const AMOUNTS: [Option<u64>; 5] = [None, Some(0), Some(1), Some(2), Some(3)];

    fn defaults(own: Option<u64>, project: Option<u64>) -> Defaults {
        let budget = |most: Option<u64>| {
            most.map(|most| format!("budget = {{ tokens = {most}, timeout = \"{}s\" }}", most + 1))
                .unwrap_or_default()
        };
        Defaults {
            configuration: Configuration::parse(Path::new("config.toml"), &budget(own)).unwrap(),
            project: project.map(|most| {
                let budget = budget(Some(most)).replace(" =", ":");
                ProjectFile::parse(Path::new("/spinney.yaml"), &budget).unwrap()
            }),
        }
    }

    fn tree(tree: Option<u64>, role: Option<u64>) -> Definition {
        let spec = |most: Option<u64>| BudgetSpec {
            limit: most.map_or(Ceilings::NONE, |most| Ceilings::NONE.with(Resource::Tokens, most)),
            timeout_ms: most.map(|most| (most + 1) * 1_000),
            ..BudgetSpec::default()
        };
        let lead: RoleName = "lead".parse().unwrap();
        let mut entry = Role::new("fast".parse().unwrap());
        entry.budget = spec(role);
        Definition::new("t", "Go.", lead.clone()).with_role(lead, entry).with_budget(spec(tree))
    }

    /// The ceilings of the root, with `u64::MAX` for none.
    fn ceilings(mut definition: Definition, defaults: &Defaults) -> [u64; 2] {
        defaults.fill(&mut definition);
        let root = definition.root_budget();
        [root.limit.get(Resource::Tokens), root.timeout_ms].map(|most| most.unwrap_or(u64::MAX))
    }

    /// All of them: whatever the file, its root's role and the user say, a project's file never gives more than there
    /// would be without it, and neither default gives more than a file that says something.
    #[test]
    fn the_file_of_a_project_only_lowers() {
        for (own, project) in AMOUNTS.into_iter().flat_map(|own| AMOUNTS.map(|project| (own, project))) {
            for (of_tree, of_role) in AMOUNTS.into_iter().flat_map(|tree| AMOUNTS.map(|role| (tree, role))) {
                let with = ceilings(tree(of_tree, of_role), &defaults(own, project));
                let without = ceilings(tree(of_tree, of_role), &defaults(own, None));
                let alone = ceilings(tree(of_tree, of_role), &defaults(None, None));
                let case = format!("{of_tree:?} {of_role:?} {own:?} {project:?}");
                assert!(with <= without && without <= alone, "{case}: {with:?} {without:?} {alone:?}");
                if of_tree.or(of_role).is_some() {
                    assert_eq!(with, alone, "{case}");
                } else {
                    let least = [own, project].into_iter().flatten().min();
                    assert_eq!(
                        with,
                        least.map_or([u64::MAX; 2], |least| [least, (least + 1) * 1_000]),
                        "{case}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_ceiling_names_the_file_that_it_comes_from() {
        let source = |own, project| lower(own, project).map(|most| (most.value, most.source.to_string()));
        assert_eq!(source(None, None), None);
        assert_eq!(source(Some(2), None), Some((2, "config.toml".to_owned())));
        assert_eq!(source(None, Some(2)), Some((2, "spinney.yaml".to_owned())));
        assert_eq!(source(Some(2), Some(1)), Some((1, "spinney.yaml".to_owned())));
        assert_eq!(source(Some(2), Some(2)), Some((2, "config.toml".to_owned())));
        assert_eq!(source(Some(2), Some(3)), Some((2, "config.toml".to_owned())));
    }

    #[test]
    fn a_default_for_calls_that_do_not_fit_reaches_every_role_that_says_nothing() {
        let mut shrinking = defaults(None, None);
        shrinking.configuration =
            Configuration::parse(Path::new("config.toml"), "on_low = 'shrink'").unwrap();
        let helper: RoleName = "helper".parse().unwrap();
        let low = |definition: &Definition, role: &RoleName| definition.roles[role].budget.on_low.clone();
        let mut definition = tree(None, None).with_role(helper.clone(), Role::new("fast".parse().unwrap()));
        shrinking.fill(&mut definition);
        assert_eq!(
            (definition.root_budget().on_low, low(&definition, &helper)),
            (Some(OnLow::Shrink), Some(OnLow::Shrink))
        );
        let mut definition = tree(None, None).with_role(helper.clone(), Role::new("fast".parse().unwrap()));
        definition.budget.on_low = Some(OnLow::Halt);
        shrinking.fill(&mut definition);
        assert_eq!((definition.root_budget().on_low, low(&definition, &helper)), (Some(OnLow::Halt), None));
    }
}
