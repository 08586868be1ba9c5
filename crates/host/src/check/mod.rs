//! Everything that is wrong with a tree file, and what it describes. Nothing is started, written or sent, and no home is
//! needed.

mod egress_check;
mod problem;

use std::path::Path;

use serde::Serialize;
use spinney::tree_file::{FileProblem, InputError, Reach, Severity, TreeFile};
use spinney::{Drivers, FirstCall};
use spinney_drivers::http::HostName;
use spinney_drivers::prices::PriceTableError;
use spinney_kernel::definition::{Allow, Definition};
use spinney_kernel::primitives::Time;
use spinney_view::outline::TreeOutline;
use spinney_view::wording::counted;

use self::egress_check::EgressCheck;
pub use self::problem::CheckedProblem;
use crate::defaults::Defaults;
use crate::own_drivers::OwnDrivers;
use crate::prepared::{PrepareError, StartRequest};
use crate::server_packages;
use crate::tree_file::folders::{given_grants, grant};
use crate::tree_file::overrides::GivenValues;
use crate::tree_file::source::{self, ExaminedFile, Keys, TreeSource};
use crate::tree_file::{low_prices, problems};
use crate::trust::allowed_hosts::AllowedHosts;
use crate::trust::boxes::{AllowedBoxes, BoxNeeds};
use crate::user::box_allowance::BoxAllowance;
use crate::user::state_files::StateFileError;
use crate::user::variables::Variables;

/// A tree file that was checked.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename = "check")]
#[non_exhaustive]
pub struct CheckedFile {
    /// The file.
    pub file: String,
    /// Whether it can be started.
    pub ok: bool,
    /// What is wrong or worth knowing, by place.
    pub problems: Vec<CheckedProblem>,
    /// What it describes, if nothing is wrong.
    #[serde(flatten)]
    pub outline: Option<TreeOutline>,
}

/// How the user of a face gives what a file needs.
#[derive(Clone, Copy)]
pub struct CheckWords {
    /// What to do about a file without a goal.
    pub no_goal: &'static str,
    /// How to allow a host, at the end of a sentence.
    pub allow_host: fn(&HostName) -> String,
    /// How to allow what a box is without, at the end of a sentence.
    pub allow_box: fn(&BoxAllowance) -> String,
    /// What is wrong with an input.
    pub input: fn(&InputError) -> String,
    /// How the packages of its servers are installed.
    pub install: fn(&Path) -> String,
}

/// Why a file cannot be checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// It or the user's settings cannot be read.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// What the user allowed cannot be read.
    #[error(transparent)]
    Answers(#[from] StateFileError),
}

impl From<PriceTableError> for CheckError {
    fn from(error: PriceTableError) -> Self {
        PrepareError::from(error).into()
    }
}

impl CheckedFile {
    /// Checks a file as it would be started, on a machine that may not be the one that runs it: keys are optional.
    pub fn read(
        home: &Path,
        request: &StartRequest<'_>,
        words: CheckWords,
        own: &OwnDrivers,
        now: Time,
    ) -> Result<Self, CheckError> {
        let StartRequest { file, given, .. } = request;
        let defaults = Defaults::of_tree_file(file).map_err(PrepareError::from)?;
        let user = Variables::read(&defaults.configuration).map_err(PrepareError::from)?;
        let examined = source::examine(file, home, request.scripts, Keys::Optional, &user, own);
        let ExaminedFile { mut problems, texts, source, can_start, .. } =
            examined.map_err(PrepareError::from)?;
        let granted = given_grants(&given.folders, home).map_err(PrepareError::from)?;
        let mut outline = None;
        if let Some(source) = &source {
            let (mut definition, found) = definition(source, given, &defaults, &user, words.input);
            grant(&mut definition, &granted);
            problems.extend(found);
            problems.extend(source.file.check(&definition));
            let low = low_prices::find(source, &defaults.configuration, now)?;
            problems.extend(low.into_iter().map(|low| FileProblem::error(low.with_help(request.setting))));
            if definition.goal.trim().is_empty() {
                problems.push(FileProblem::note(source.file.bad_key("goal", words.no_goal)));
            } else if can_start {
                let started = Reach::new(&definition).pruned(definition.clone());
                problems.extend(first_call(&source.file, &source.drivers, &started, now));
            }
            for (server, why) in server_packages::missing(&definition) {
                let error = source.file.bad_server(&server, "command", format!("server `{server}`: {why}"));
                problems.push(FileProblem::warning(error.with_help((words.install)(file))));
            }
            let egress = EgressCheck::new(source, request, &defaults.configuration, &user)?;
            problems.extend(egress.problems(&source.file, words.allow_host));
            let needs = BoxNeeds::from_definition(&Reach::new(&definition).pruned(definition.clone()));
            let hosts = AllowedHosts::new(request.hosts, &defaults.configuration, &user);
            let allowed = AllowedBoxes::new(request.boxes, &defaults.configuration)
                .with_folders(&granted)
                .with_hosts(&hosts);
            for (need, role, line) in needs.open(&source.text, &allowed)? {
                let message = format!("would {line}, and you have not allowed that");
                let of_role = definition.roles.get(role).and_then(|role| role.caps.folders.as_ref());
                let error = match (need, of_role) {
                    (BoxAllowance::Folder { .. }, None) => source.file.bad_key(need.key(), message),
                    _ => source.file.bad_agent(role, need.key(), message),
                };
                let help = format!("if you trust this file, {}", (words.allow_box)(need));
                problems.push(FileProblem::warning(error.with_help(help)));
            }
            let goal = source.shown_goal(&definition, given);
            outline = Some(TreeOutline::new(&source.file, &definition, goal, egress.outline(), now));
        }
        problems::sort(&mut problems);
        let ok = problems.iter().all(|problem| problem.severity != Severity::Error);
        Ok(Self {
            file: file.display().to_string(),
            ok,
            problems: problems.iter().map(|problem| CheckedProblem::new(problem, &texts)).collect(),
            outline: outline.filter(|_| ok),
        })
    }

    /// A file that cannot be read at all.
    #[must_use]
    pub fn unread(file: &Path, message: String) -> Self {
        Self {
            file: file.display().to_string(),
            ok: false,
            problems: vec![CheckedProblem::unread(file, message)],
            outline: None,
        }
    }

    /// How many problems there are of each kind.
    #[must_use]
    pub fn counts(&self) -> String {
        let of = |severity: Severity| {
            self.problems.iter().filter(|problem| problem.severity == severity.as_str()).count() as u64
        };
        let counts =
            [Severity::Error, Severity::Warning, Severity::Note].map(|severity| (of(severity), severity));
        let said: Vec<String> = counts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, severity)| counted(count, severity.as_str()))
            .collect();
        if said.is_empty() { "no problems".to_owned() } else { said.join(", ") }
    }
}

/// The definition as a start would have it. An input without a value is only worth a note: the start may get it.
fn definition(
    source: &TreeSource,
    given: &GivenValues,
    defaults: &Defaults,
    user: &Variables,
    words: fn(&InputError) -> String,
) -> (Definition, Vec<FileProblem>) {
    match given.adjusted(source, defaults, user) {
        Ok(definition) => (definition, Vec::new()),
        Err(errors) => {
            let problem = |error: InputError| {
                let what = source.file.bad_key("inputs", words(&error));
                match error {
                    InputError::Missing { .. } => FileProblem::note(what),
                    _ => FileProblem::error(what),
                }
            };
            let mut definition = source.file.definition.clone();
            given.complete(&mut definition, source, defaults);
            (definition, errors.into_iter().map(problem).collect())
        }
    }
}

/// Warns of a root that could not make its first call, by deciding the start as a run would.
/// Without tools of servers: what they are is known when the servers run, and checking starts none.
fn without_served_tools(definition: &Definition) -> Definition {
    let mut without = definition.clone();
    for role in without.roles.values_mut() {
        if let Allow::Only(tools) = &mut role.caps.tools {
            tools.retain(|tool| definition.server_of(tool).is_none());
        }
    }
    without
}

fn first_call(file: &TreeFile, drivers: &Drivers, definition: &Definition, now: Time) -> Option<FileProblem> {
    let entry = &definition.entry;
    match drivers.first_call(without_served_tools(definition), now) {
        Err(error) => Some(FileProblem::error(file.bad_key("agents", error))),
        Ok(FirstCall::Never(short)) => {
            let show = |amount| format!("{:#}", short.resource.amount(amount));
            let (limit, asked) = (show(short.limit), show(short.asked));
            let message = format!("the first call of `{entry}` may need {asked}, but its budget is {limit}");
            let error = file.bad_key("budget", message);
            Some(FileProblem::warning(
                error.with_help("raise the budget, or lower `limits.max_tokens_per_step`"),
            ))
        }
        Ok(FirstCall::OnlyLast) => {
            let message = format!("the budget of `{entry}` allows only one call without tools");
            Some(FileProblem::warning(file.bad_key("budget", message).with_help("raise the budget")))
        }
        Ok(_) => None,
    }
}
