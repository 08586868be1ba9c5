//! Errors in the words of the command line: what the libraries say, with the options and commands that help.

use std::error::Error;
use std::path::Path;

use anyhow::anyhow;
use spinney::tree_file::{FileErrors, InputError};
use spinney_host::check::CheckError;
use spinney_host::checkpoints::{CheckpointError, CheckpointNameError, NamedCheckpoint};
use spinney_host::control::SteerError;
use spinney_host::control::steering::AddressError;
use spinney_host::defaults::DefaultsError;
use spinney_host::exec::options::RunOptionsError;
use spinney_host::exec::prepared_run::PrepareRunError;
use spinney_host::explain::ProgramExplainError;
use spinney_host::home::ids::TreeNameError;
use spinney_host::home::side_journals::SideJournalError;
use spinney_host::home::tree_copies::UnreadCopy;
use spinney_host::home::{HomeError, HomeUse};
use spinney_host::prepared::PrepareError;
use spinney_host::project::{ProjectError, RefusedKeys, UsersSetting};
use spinney_host::tree_file::problems::{ProblemsKind, TreeFileProblems};
use spinney_host::tree_file::source::SourceError;
use spinney_host::trust::TrustError;
use spinney_host::user::settings::{SettingChange, SettingError};
use spinney_host::user::variables::VariablesError;
use spinney_server::exec::RunTreeError;
use spinney_server::gateway::wire::{GatewayError, MissingPrice, NeededPrice, RefusedName};
use spinney_store::OpenHomeError;
use spinney_view::wording::short_id;

use crate::hint;

/// Most checkpoints of one name that are listed.
const LISTED_MAX: usize = 8;

/// An error with its causes, each with what helps.
pub(crate) fn in_words(error: &anyhow::Error) -> String {
    let links = error.chain().map(|link| helped(link).unwrap_or_else(|| link.to_string()));
    links.collect::<Vec<String>>().join(": ")
}

/// The same for an error of a library.
pub(crate) fn in_words_of(error: &(dyn Error + 'static)) -> String {
    let (mut words, mut next) = (Vec::new(), Some(error));
    while let Some(link) = next {
        words.push(helped(link).unwrap_or_else(|| link.to_string()));
        next = link.source();
    }
    words.join(": ")
}

/// Why a run was not started or resumed.
pub(crate) fn of_run_tree(home: &Path, error: RunTreeError) -> anyhow::Error {
    match error {
        RunTreeError::SideJournal(error) => error.into(),
        RunTreeError::Home(error) => error.into(),
        RunTreeError::Unknown(error) => error.into(),
        RunTreeError::NotARun { id } => {
            let resume = hint::command(home, &["resume", &id]);
            anyhow!("`{id}` was not started by `exec`: continue it with `{resume}`")
        }
        RunTreeError::Options(error) => error.into(),
        RunTreeError::Name(error) => error.into(),
        RunTreeError::Journal(fault) => fault.into(),
        RunTreeError::Start(error) => error.into(),
        ended @ RunTreeError::Ended { .. } => anyhow!("{ended}: start a new one"),
        RunTreeError::Resume(error) => error.into(),
        RunTreeError::Refused(refusal) => refusal.into(),
        RunTreeError::Request(error) => anyhow!("{error}"),
    }
}

/// Why a program is not ready to run.
pub(crate) fn of_prepared_run(error: PrepareRunError) -> anyhow::Error {
    match error {
        PrepareRunError::Configuration(error) => error.into(),
        PrepareRunError::Project(error) => error.into(),
        PrepareRunError::Variables(error) => error.into(),
        PrepareRunError::Options(error) => error.into(),
        PrepareRunError::Arguments(error) => error.into(),
        PrepareRunError::Variable(error) => error.into(),
        PrepareRunError::Secret(error) => anyhow!("{error}, for example with --secret NAME"),
        PrepareRunError::Key(error) => error.into(),
    }
}

/// Why a word names no checkpoint.
pub(crate) fn of_checkpoint_name(home: &Path, error: CheckpointNameError) -> anyhow::Error {
    let ls = hint::command(home, &["checkpoint", "ls"]);
    match error {
        CheckpointNameError::Home(error) => error.into(),
        CheckpointNameError::Journal(fault) => fault.into(),
        CheckpointNameError::Unknown(_) => anyhow!("{error}: `{ls}` lists all of them"),
        CheckpointNameError::Several { .. } => anyhow!("{error}; `{ls}` lists them"),
        CheckpointNameError::InSeveral { ref text, ref found } => {
            let line = |NamedCheckpoint { home, listed }: &NamedCheckpoint| {
                let in_journal = hint::command_in(home, &["checkpoint"]);
                format!("\n  `{text}` of tree {}: {in_journal} …", short_id(listed.tree))
            };
            let lines: String = found.iter().take(LISTED_MAX).map(line).collect();
            anyhow!("{error}{lines}{}", if found.len() > LISTED_MAX { "\n  …" } else { "" })
        }
    }
}

/// Why checkpoints were not branched off or removed.
pub(crate) fn of_checkpoint(error: CheckpointError) -> anyhow::Error {
    match error {
        CheckpointError::Steer(error) => error.into(),
        CheckpointError::Journal(fault) => fault.into(),
        CheckpointError::Refused(refusal) => refusal.into(),
        CheckpointError::Branch(error) => error.into(),
        CheckpointError::Owner(message) => anyhow!(message),
    }
}

/// Why a request has no addressee.
pub(crate) fn of_address(error: AddressError) -> anyhow::Error {
    match error {
        AddressError::Tree(error) => error.into(),
        AddressError::Agent(error) => error.into(),
        AddressError::NoRoot(_) => error.into(),
    }
}

/// What the gateway refused, with the option that would let it pass.
pub(crate) fn of_gateway(error: &GatewayError) -> String {
    if let Some(RefusedName { name, why }) = &error.refused {
        return format!(
            "`{name}`: {why}; --allow-field {name} allows it, but the budget does not bound its cost"
        );
    }
    let Some(MissingPrice { problem, model, needs }) = error.unpriced.as_deref() else {
        return error.message.trim_start_matches("spinney: ").to_owned();
    };
    let price = format!("--price {model}=IN,OUT in dollars per million tokens");
    match needs {
        NeededPrice::OfProvider(provider) => format!(
            "{problem}: run with --prices-of {provider} if it charges what {provider} does, or with {price}"
        ),
        NeededPrice::OfAnotherProvider(seller) => format!(
            "{problem}: add {seller} to --prices-of if its server charges the same, or run with {price}"
        ),
        NeededPrice::Own => format!("{problem}: run with {price}, or use another model"),
        NeededPrice::AsBefore => {
            format!("{problem}: resume with --price and what it cost then, or start a new run")
        }
    }
}

/// What is wrong with an input, with the option that gives it a value.
pub(crate) fn of_input(error: &InputError) -> String {
    let InputError::Missing { name, env, description } = error else { return error.to_string() };
    let variable = env.as_ref().map(|variable| format!(", or set {variable} in the environment"));
    let what = if description.is_empty() { String::new() } else { format!(" ({description})") };
    format!("input `{name}` has no value: use --set {name}=…{}{what}", variable.unwrap_or_default())
}

/// What an error says, if one of our options or commands helps with it.
fn helped(link: &(dyn Error + 'static)) -> Option<String> {
    // Libraries wrap their errors in enums that say the same.
    if let Some(error) = link.downcast_ref() {
        return of_home(error);
    }
    if let Some(error) = link.downcast_ref() {
        return of_tree_name(error);
    }
    if let Some(error) = link.downcast_ref() {
        return of_steering(error);
    }
    if let Some(error) = link.downcast_ref() {
        return of_variables(error);
    }
    if let Some(error) = link.downcast_ref::<Box<SettingError>>() {
        return of_setting(error);
    }
    if let Some(error) = link.downcast_ref() {
        return of_options(error);
    }
    if let Some(error) = link.downcast_ref() {
        return Some(of_copy(error));
    }
    if let Some(error) = link.downcast_ref() {
        return Some(of_problems(error));
    }
    if let Some(SideJournalError::Home(error)) = link.downcast_ref() {
        return of_home(error);
    }
    if let Some(error) = link.downcast_ref() {
        return of_defaults(error);
    }
    match link.downcast_ref() {
        Some(ProgramExplainError::Defaults(error)) => return of_defaults(error),
        Some(ProgramExplainError::Variables(error)) => return of_variables(error),
        Some(ProgramExplainError::Options(error)) => return of_options(error),
        Some(ProgramExplainError::Name(_)) | None => {}
    }
    if let Some(ProjectError::Refused(keys)) = link.downcast_ref() {
        return Some(of_keys(keys));
    }
    if let Some(error) = link.downcast_ref() {
        return of_preparing(error);
    }
    if let Some(CheckError::Prepare(error)) = link.downcast_ref() {
        return of_preparing(error);
    }
    if let Some(SourceError::Problems(problems)) = link.downcast_ref() {
        return Some(of_problems(problems));
    }
    if let Some(OpenHomeError::Locked { pid }) = link.downcast_ref() {
        return Some(locked(*pid));
    }
    match link.downcast_ref()? {
        TrustError::Home(error) => of_home(error),
        TrustError::Copy(error) => Some(of_copy(error)),
        TrustError::Options(error) => of_options(error),
        TrustError::Journal(_) | TrustError::State(_) | TrustError::File(_) => None,
    }
}

fn of_defaults(error: &DefaultsError) -> Option<String> {
    match error {
        DefaultsError::Project(ProjectError::Refused(keys)) => Some(of_keys(keys)),
        DefaultsError::Project(_) | DefaultsError::Configuration(_) => None,
    }
}

fn of_preparing(error: &PrepareError) -> Option<String> {
    match error {
        PrepareError::Source(SourceError::Problems(problems)) => Some(of_problems(problems)),
        PrepareError::Defaults(error) => of_defaults(error),
        PrepareError::Variables(error) => of_variables(error),
        PrepareError::NoGoal { .. } => Some(format!("{error}, or use --goal")),
        PrepareError::Inputs { file, errors } => {
            let errors: Vec<String> = errors.iter().map(of_input).collect();
            Some(format!("{}: {}", file.display(), errors.join("\n")))
        }
        PrepareError::Source(_)
        | PrepareError::Folder(_)
        | PrepareError::Secret(_)
        | PrepareError::Name(_)
        | PrepareError::Prices(_) => None,
    }
}

fn locked(pid: u32) -> String {
    format!("process {pid} has this home open: stop it, use another --home, or use a read-only command")
}

fn of_home(error: &HomeError) -> Option<String> {
    let HomeError::Unopened { home, to, error: unopened } = error else {
        return match error {
            HomeError::NotThere { .. } => {
                Some(format!("{error}: run a tree first, or set --home or SPINNEY_HOME"))
            }
            HomeError::Denied(_) | HomeError::Unopened { .. } => None,
        };
    };
    // That one names the option itself.
    let can_be_other = *to == HomeUse::Write && !matches!(unopened, OpenHomeError::Locked { .. });
    let option = if can_be_other { " (use --home for another one)" } else { "" };
    let accept = hint::accept_loss(home, unopened);
    let accept = accept.map(|accept| format!("; `{accept}` continues with what is left")).unwrap_or_default();
    Some(format!("{error}{option}{accept}"))
}

fn of_tree_name(error: &TreeNameError) -> Option<String> {
    Some(match error {
        TreeNameError::Home(error) => return of_home(error),
        TreeNameError::NoTrees { home } => {
            format!("{error}: `{}` starts one", hint::command(home, &["run", hint::YOUR_FILE]))
        }
        TreeNameError::NotAnId { home, .. } => {
            let ps = hint::command(home, &["ps"]);
            format!("{error}: use a prefix of one that `{ps}` lists, or `last`")
        }
        TreeNameError::Unknown { text, has_trees: false, .. } => {
            format!("no tree `{text}`: this home has no trees yet")
        }
        TreeNameError::Unknown { home, .. } => {
            format!("{error}: `{}` lists all trees", hint::command(home, &["ps"]))
        }
        TreeNameError::Several { .. } | TreeNameError::Journal(_) | TreeNameError::Unredacted(_) => {
            return None;
        }
    })
}

fn of_steering(error: &SteerError) -> Option<String> {
    match error {
        SteerError::Home(error) => of_home(error),
        SteerError::Unknown { home, tree: Some(tree), .. } => {
            Some(format!("{error}; find out with `{}`", hint::about(home, "events", *tree, &[])))
        }
        SteerError::Unknown { .. }
        | SteerError::Journal(_)
        | SteerError::Unreachable { .. }
        | SteerError::Busy { .. }
        | SteerError::OlderOwner { .. } => None,
    }
}

fn of_variables(error: &VariablesError) -> Option<String> {
    match error {
        VariablesError::NoFile { file } => {
            let remove = hint::config(&["remove", "env_files", &file.to_string()]);
            Some(format!("{error}: create it, or run `{remove}`"))
        }
        VariablesError::Path(_) | VariablesError::Untrusted(_) | VariablesError::Wrong { .. } => None,
    }
}

fn of_setting(error: &SettingError) -> Option<String> {
    match error {
        SettingError::IsAList => Some(format!("{error}: use `config add` and `config remove`")),
        SettingError::NotAList => Some(format!("{error}: use `config set`")),
        _ => None,
    }
}

fn of_options(error: &RunOptionsError) -> Option<String> {
    match error {
        RunOptionsError::Damaged { .. } => {
            Some(format!("{error}: remove it, and resume with the program after `--` and its options"))
        }
        RunOptionsError::OtherFolder { .. } => Some(format!("{error}, or name a program after `--`")),
        RunOptionsError::NoProgram => Some(format!("{error}: name it after `--`")),
        RunOptionsError::NoBox => Some(format!("{error}: add --box")),
        RunOptionsError::File(_)
        | RunOptionsError::Journal(_)
        | RunOptionsError::DamagedSource(_)
        | RunOptionsError::NotAPath { .. }
        | RunOptionsError::NoFolder(_)
        | RunOptionsError::Read(_)
        | RunOptionsError::Name(_) => None,
    }
}

fn of_copy(error: &UnreadCopy) -> String {
    let cancel = hint::about(&error.home, "cancel", error.tree, &[]);
    format!("{error}, or give up with `{cancel}`")
}

/// More than one error in a file has a command that shows their lines.
fn of_problems(problems: &TreeFileProblems) -> String {
    let words = problems.to_string();
    if problems.errors.len() < 2 || problems.kind == ProblemsKind::MissingKeys {
        return words;
    }
    let check = hint::command(&problems.home, &["check", &problems.file.display().to_string()]);
    let (first, rest) = words.split_once('\n').unwrap_or((words.as_str(), ""));
    format!("{first}; to see their lines: {check}\n{rest}")
}

fn of_keys(keys: &RefusedKeys) -> String {
    let errors = keys.0.iter().map(|key| match &key.settings {
        None => key.error.clone(),
        Some(settings) if settings.is_empty() => key.error.clone().with_help("delete it"),
        Some(settings) => {
            let commands: Vec<String> = settings.iter().map(setting).collect();
            let help = format!("to use it, run `{}` and delete it here", commands.join(" && "));
            key.error.clone().with_help(help)
        }
    });
    FileErrors { errors: errors.collect() }.to_string()
}

/// The command that changes a setting of the user.
pub(crate) fn setting(UsersSetting { change, name, values }: &UsersSetting) -> String {
    let verb = match change {
        SettingChange::Set => "set",
        SettingChange::Add => "add",
        SettingChange::Remove => "remove",
        SettingChange::Unset => "unset",
    };
    let words: Vec<&str> = [verb, name].into_iter().chain(values.iter().map(String::as_str)).collect();
    hint::config(&words)
}
