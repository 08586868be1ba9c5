//! A tree file that is ready to start: read with its scripts and the user's settings, filled in, and checked.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use spinney::tree_file::{FileProblem, InputError, ModelSource, Reach, Severity};
use spinney_drivers::prices::PriceTableError;
use spinney_kernel::definition::{Allow, Caps, Definition, FolderGrants, Network};
use spinney_kernel::primitives::{IdError, Time, TraceParent};

use crate::defaults::{Defaults, DefaultsError};
use crate::exec::agent::check_key;
use crate::exec::environment::UserEnvironment;
use crate::exec::keys::NoKey;
use crate::home::tree_copies::TreeSources;
use crate::own_drivers::OwnDrivers;
use crate::project::UsersSetting;
use crate::redaction::warn_of_short;
use crate::secrets::{FoundSecret, SecretKind, SecretPlace, SecretScan};
use crate::tree_file::boxed_tools::BoxedPermissions;
use crate::tree_file::folders::{GivenFolderError, given_grants, grant};
use crate::tree_file::overrides::GivenValues;
use crate::tree_file::problems::{ProblemsKind, TreeFileProblems};
use crate::tree_file::source::{self, Scripts, SourceError, Text, TreeSource};
use crate::tree_file::{low_prices, providers};
use crate::trust::allowed_hosts::AllowedHosts;
use crate::trust::boxes::{AllowedBoxes, BoxNeeds};
use crate::trust::egress::{self, Egress, InputValues};
use crate::user::allowed_host::AllowedHost;
use crate::user::box_allowance::BoxAllowance;
use crate::user::variables::{Variables, VariablesError};

/// What to start, and what a face says about it.
pub struct StartRequest<'a> {
    /// The tree file.
    pub file: &'a Path,
    /// Values in place of the file's.
    pub given: GivenValues,
    /// Where its scripts may be.
    pub scripts: Scripts,
    /// Hosts that the user allows for this tree.
    pub hosts: &'a [AllowedHost],
    /// What the user allows the boxes of this tree's commands to be without.
    pub boxes: &'a [BoxAllowance],
    /// The trace that its caller belongs to.
    pub trace: Option<TraceParent>,
    /// How the user changes a setting, in the words of the face.
    pub setting: fn(&UsersSetting) -> String,
}

impl<'a> StartRequest<'a> {
    /// A file as it is, with scripts in its own folder only.
    #[must_use]
    pub fn new(file: &'a Path) -> Self {
        let in_configuration =
            |change: &UsersSetting| format!("set `{}` to {}", change.name, change.values.join(", "));
        Self {
            file,
            given: GivenValues::default(),
            scripts: Scripts::Below { allow: "allow other folders" },
            hosts: &[],
            boxes: &[],
            trace: None,
            setting: in_configuration,
        }
    }
}

/// Why a tree file cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The defaults cannot be read.
    #[error(transparent)]
    Defaults(#[from] DefaultsError),
    /// The user's variables cannot be read.
    #[error(transparent)]
    Variables(#[from] VariablesError),
    /// The file or its scripts cannot be read, or are wrong.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A folder that was given cannot be granted.
    #[error(transparent)]
    Folder(#[from] GivenFolderError),
    /// An input is missing or of another type.
    #[error("{}: {}", file.display(), .errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Inputs {
        /// The file.
        file: PathBuf,
        /// Which inputs, and why.
        errors: Vec<InputError>,
    },
    /// There is nothing to do.
    #[error("{} has no goal: add a `goal`", file.display())]
    NoGoal {
        /// The file.
        file: PathBuf,
    },
    /// The journal would keep a secret.
    #[error(transparent)]
    Secret(#[from] FoundSecret),
    /// Its name has an extension that no format has.
    #[error(transparent)]
    Name(#[from] IdError),
    /// The price table of this program cannot be read.
    #[error(transparent)]
    Prices(#[from] PriceTableError),
}

/// A tree file that is ready to start.
pub struct PreparedTree {
    /// The file with its scripts and drivers.
    pub source: TreeSource,
    /// What its tree is started with: values filled in, and without what no agent can reach.
    pub definition: Definition,
    /// What the user and the project say.
    pub defaults: Defaults,
    /// What it would send where.
    pub egress: Vec<Egress>,
    /// Where it may send it.
    pub allowed: AllowedHosts,
    /// What the boxes of its commands are without.
    pub box_needs: BoxNeeds,
    /// What of that the user allows.
    pub allowed_boxes: AllowedBoxes,
    /// What its tree is resumed from.
    pub sources: TreeSources,
    user: Variables,
    permissions: BoxedPermissions,
}

/// A tree without a root that answers cannot be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("only a tree whose entry is an agent with a model waits for messages after its answers, and this one runs {}", if *.is_graph { "steps" } else { "a program" })]
pub struct NotKept {
    is_graph: bool,
}

impl PreparedTree {
    /// Lets the root wait for a person after each answer.
    ///
    /// # Errors
    /// If the root does not answer as an agent.
    pub fn keep(&mut self) -> Result<(), NotKept> {
        let is_graph = self.definition.graph.is_some();
        let entry = self.definition.roles.get(&self.definition.entry);
        if is_graph || entry.is_none_or(|role| role.turns.is_none()) {
            return Err(NotKept { is_graph });
        }
        self.definition.is_kept = true;
        Ok(())
    }

    /// Reads the file for a home. Nothing is written or sent.
    pub fn read(
        home: &Path,
        request: &StartRequest<'_>,
        own: &OwnDrivers,
        now: Time,
    ) -> Result<Self, PrepareError> {
        let StartRequest { file, given, .. } = request;
        let defaults = Defaults::of_tree_file(file)?;
        let user = Variables::read(&defaults.configuration)?;
        let granted = given_grants(&given.folders, home)?;
        let source = source::read(file, home, request.scripts, &user, own)?;
        let definition = given.adjusted(&source, &defaults, &user);
        let mut definition =
            definition.map_err(|errors| PrepareError::Inputs { file: (*file).to_owned(), errors })?;
        grant(&mut definition, &granted);
        if definition.goal.trim().is_empty() {
            return Err(PrepareError::NoGoal { file: (*file).to_owned() });
        }
        let mut problems = source.file.check(&definition);
        for low in low_prices::find(&source, &defaults.configuration, now)? {
            problems.push(FileProblem::error(low.with_help(request.setting)));
        }
        if problems.iter().any(|problem| problem.severity == Severity::Error) {
            let problems = TreeFileProblems::new(home, file, problems, ProblemsKind::InFile);
            return Err(SourceError::from(problems).into());
        }
        let mut definition = Reach::new(&definition).pruned(definition);
        warn_of_short(definition.redact.variables.iter().map(String::as_str), &user);
        definition.redact.variables = secret_variables(&source);
        let egress = Egress::all(&source.file, &source.called, InputValues::Given(&given.inputs));
        let allowed = AllowedHosts::new(request.hosts, &defaults.configuration, &user);
        check_secrets(&source, given, &user)?;
        let sources = TreeSources::new(&source)?;
        let box_needs = BoxNeeds::from_definition(&definition);
        let allowed_boxes = AllowedBoxes::new(request.boxes, &defaults.configuration)
            .with_folders(&granted)
            .with_hosts(&allowed);
        let permissions = BoxedPermissions::default();
        Ok(Self {
            source,
            definition,
            defaults,
            egress,
            allowed,
            box_needs,
            allowed_boxes,
            sources,
            user,
            permissions,
        })
    }

    /// What would be started or sent that a stranger's home or file may not decide alone.
    #[must_use]
    pub fn does(&self) -> Vec<String> {
        egress::sent(&self.egress).into_iter().chain(self.box_needs.lines()).collect()
    }

    /// Refuses programs that would get no answer when they are started.
    ///
    /// # Errors
    /// Which key is missing.
    pub fn check_program_keys(&self) -> Result<(), NoKey> {
        let user = UserEnvironment::read(&self.user);
        let programs = self.definition.roles.values().filter_map(|role| role.program.as_ref());
        programs.into_iter().try_for_each(|program| check_key(&program.command, &user))
    }

    /// Keeps only its servers of tools, with one agent that may use all of them: to look at them without a tree.
    pub fn keep_servers(&mut self) {
        let servers = self.source.file.definition.servers.clone();
        let mut folders = FolderGrants::default();
        for (path, access) in servers.values().flat_map(|server| server.folders.iter()) {
            folders.add(path.clone(), access);
        }
        let hosts = servers.values().flat_map(|server| server.network.rules().cloned());
        let network = Network::hosts(hosts);
        let definition = &mut self.definition;
        definition.servers = servers;
        definition.folders = None;
        let Some((name, role)) = definition.roles.iter().next() else { return };
        let mut role = role.clone();
        role.caps = Caps { tools: Allow::All, network, folders: Some(folders), ..role.caps };
        definition.roles = [(name.clone(), role)].into_iter().collect();
        self.box_needs = BoxNeeds::of_servers(&self.definition);
    }

    /// Gives its commands what they need, because the user has allowed all of it. Without this, a tree that needs anything
    /// does not start.
    pub fn permit_boxes(&mut self) {
        self.permissions = self.box_needs.permissions(&self.user, &self.allowed_boxes);
    }

    /// What was given.
    pub(crate) fn permissions(&self) -> &BoxedPermissions {
        &self.permissions
    }
}

/// The variables that the file names for keys and headers, and those whose values it calls secret.
fn secret_variables(TreeSource { file, .. }: &TreeSource) -> BTreeSet<String> {
    let of_model = |model: &ModelSource| match model {
        ModelSource::Provider(source) => providers::variables(source).map(str::to_owned).collect(),
        ModelSource::Scripted { .. } => Vec::new(),
    };
    let of_servers = file.definition.servers.values().flat_map(|server| server.variables().cloned());
    let named = file.definition.redact.variables.iter().cloned();
    file.models.values().flat_map(of_model).chain(of_servers).chain(named).collect()
}

/// Refuses secrets in everything that the journal keeps of a start: keys, and the values of the variables that the file
/// names for keys and headers.
fn check_secrets(source: &TreeSource, given: &GivenValues, user: &Variables) -> Result<(), FoundSecret> {
    let TreeSource { file, text, scripts, .. } = source;
    let variables = secret_variables(source);
    let values = variables.iter().filter_map(|name| Some((name.clone(), user.get(name)?)));
    let scan = SecretScan::new(values);
    for Text { name, text } in scripts.iter().chain([text]) {
        scan.check_file(name, text)?;
    }
    if let Some(goal) = &given.goal {
        scan.check_given(SecretPlace::Goal, goal)?;
    }
    for (name, value) in &given.inputs {
        scan.check_given(SecretPlace::Input(name.clone()), value)?;
    }
    for (name, value) in &given.tags {
        scan.check_given(SecretPlace::Tag(name.clone()), value)?;
    }
    // An input may be read from a variable, but not from one that has a key.
    let read = file.inputs.iter().filter(|(name, _)| !given.has_input(name));
    let mut read = read.filter_map(|(name, input)| Some((name, input.env.as_ref()?)));
    match read.find(|(_, variable)| variables.contains(*variable)) {
        Some((name, variable)) => {
            let (place, what) = (SecretPlace::Input(name.to_string()), SecretKind::Value(variable.clone()));
            Err(FoundSecret { place, what })
        }
        None => Ok(()),
    }
}
