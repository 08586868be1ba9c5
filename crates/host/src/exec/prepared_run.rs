//! A program that is ready to be run under a budget: its options, given and kept, with what the user and the project say,
//! and its arguments as it would read them.

use std::ffi::OsString;
use std::path::Path;

use super::BadArguments;
use super::environment::{AskedProgram, BadSecretVariable, UserEnvironment};
use super::keys::{self, NoKey};
use super::options::{GivenRunOptions, RunOptions, RunOptionsError};
use super::other_keys;
use super::program::base_name;
use crate::defaults::{Defaults, ExecCeilings, GivenCeilings};
use crate::project::{ProjectError, ProjectFile};
use crate::secrets::{FoundSecret, SecretPlace, SecretScan};
use crate::user::configuration::{Configuration, ConfigurationError};
use crate::user::variables::{Variables, VariablesError, of_environment};

/// Why a program cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum PrepareRunError {
    /// The user's configuration cannot be used.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// The file of the project cannot be used.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// The user's variables cannot be read.
    #[error(transparent)]
    Variables(#[from] VariablesError),
    /// Its options cannot be used.
    #[error(transparent)]
    Options(#[from] RunOptionsError),
    /// It does not take its arguments.
    #[error(transparent)]
    Arguments(#[from] BadArguments),
    /// A variable that it is to get is not set, or never reaches it.
    #[error(transparent)]
    Variable(#[from] BadSecretVariable),
    /// The journal would keep a secret.
    #[error(transparent)]
    Secret(#[from] FoundSecret),
    /// No provider would answer it.
    #[error(transparent)]
    Key(#[from] NoKey),
}

/// What is known of a run before its tree.
pub struct PreparedRun {
    /// The program and its arguments, given or kept.
    pub program: Vec<OsString>,
    /// What the user says.
    pub configuration: Configuration,
    /// None for a run that is resumed: it has its ceilings already.
    project: Option<ProjectFile>,
    /// What the user's variables say about providers.
    pub user: UserEnvironment,
    /// What is given, with what is kept.
    pub options: RunOptions,
    /// What it would do, for people. Keys of the user are hidden.
    pub starts: Vec<String>,
    /// The program with its arguments as it reads them.
    pub asked: AskedProgram,
}

impl PreparedRun {
    /// Reads everything for a new run in a home, or for one that is resumed with what it kept. Nothing is started.
    pub fn read(
        home: &Path,
        resumed: Option<RunOptions>,
        given: &GivenRunOptions<'_>,
    ) -> Result<Self, PrepareRunError> {
        let configuration = Configuration::read()?;
        let project = if resumed.is_some() { None } else { ProjectFile::find(Path::new("."))? };
        let variables = Variables::read(&configuration)?;
        let options = resumed.unwrap_or_default().with(given, home)?;
        let user = UserEnvironment::read(&variables).with_secrets(&options.secrets, &variables)?;
        let program = match given.program {
            [] => options.program()?,
            program => program.to_vec(),
        };
        let Some((name, args)) = program.split_first() else { return Err(RunOptionsError::NoProgram.into()) };
        check_secrets(&program, given.tags, &user)?;
        let starts = options.starts(&program).iter().map(|line| user.hidden_in(line)).collect();
        let asked = AskedProgram::read(name, args)?;
        if options.boxed.is_some() {
            asked.check_boxed()?;
        }
        keys::check(&base_name(name), asked.providers(), &user)?;
        Ok(Self { program, configuration, project, user, options, starts, asked })
    }

    /// The ceilings of a new run: those that are given, and the user's and the project's for the rest.
    #[must_use]
    pub fn ceilings(&self, given: &GivenCeilings) -> ExecCeilings {
        let (configuration, project) = (self.configuration.clone(), self.project.clone());
        Defaults { configuration, project }.of_exec(given)
    }
}

/// Refuses secrets in the words of a program and in tags: the journal keeps them, and every process of the machine may see
/// them.
fn check_secrets(
    program: &[OsString],
    tags: &[(String, String)],
    user: &UserEnvironment,
) -> Result<(), FoundSecret> {
    let others = other_keys::in_environment().into_iter();
    let others = others.filter_map(|name| of_environment(&name).map(|value| (name, value)));
    let scan = SecretScan::new(user.named_secrets().chain(others));
    for (number, word) in program.iter().enumerate() {
        scan.check_given(SecretPlace::Argument(number), &word.to_string_lossy())?;
    }
    for (name, value) in tags {
        scan.check_given(SecretPlace::Tag(name.clone()), value)?;
    }
    Ok(())
}
