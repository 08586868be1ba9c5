//! Variables for keys and inputs: those of the environment, and where it has none, those of the files that the user's
//! configuration names. A file's values stay in this process: no program that it starts gets them, and inside a run of
//! `exec` no file is read.

use std::collections::BTreeMap;

use super::configuration::{Configuration, EnvFilePath, NotAnEnvFile};
use super::env_file::{self, EnvFileError};
use super::trusted_file::{self, UntrustedFile};
use crate::inside::is_inside_any;

/// The largest file of variables, in bytes.
const BYTES_MAX: u64 = 64 * 1024;

/// Variables by name.
#[derive(Default)]
pub struct Variables {
    /// By name; of several files, the first that has it.
    of_files: BTreeMap<String, OfFile>,
}

/// Has no `Debug`: the value may be a key.
struct OfFile {
    value: String,
    file: EnvFilePath,
}

/// Why a file of variables cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum VariablesError {
    /// Its path cannot be used here.
    #[error(transparent)]
    Path(#[from] NotAnEnvFile),
    /// Others may have written it, or it cannot be read.
    #[error(transparent)]
    Untrusted(#[from] UntrustedFile),
    /// The configuration names it, and it is not there.
    #[error("{file} does not exist, but `env_files` of your configuration names it")]
    NoFile {
        /// As the configuration has it.
        file: EnvFilePath,
    },
    /// A line of it is wrong.
    #[error("cannot read {file}")]
    Wrong {
        /// As the configuration has it.
        file: EnvFilePath,
        /// The line.
        #[source]
        why: EnvFileError,
    },
}

/// Where the value of a variable comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VariableSource {
    /// The environment.
    Environment,
    /// A file that the user's configuration names.
    File(String),
}

impl Variables {
    /// With the files that the user's configuration names.
    pub fn read(configuration: &Configuration) -> Result<Self, VariablesError> {
        let mut of_files = BTreeMap::new();
        // A program under a budget must not get at the user's own keys by starting us.
        if !configuration.env_files().is_empty() && is_inside_any() {
            tracing::warn!("`env_files` of your configuration are not read inside a run of `exec`");
            return Ok(Self { of_files });
        }
        for file in configuration.env_files() {
            let text = trusted_file::read(&file.path()?, BYTES_MAX)?;
            let text = text.ok_or_else(|| VariablesError::NoFile { file: file.clone() })?;
            let read =
                env_file::parse(&text).map_err(|why| VariablesError::Wrong { file: file.clone(), why })?;
            for (name, value) in read {
                of_files.entry(name).or_insert_with(|| OfFile { value, file: file.clone() });
            }
        }
        Ok(Self { of_files })
    }

    /// A variable that the environment sets to nothing is set.
    pub fn get(&self, name: &str) -> Option<String> {
        match self.source(name)? {
            VariableSource::Environment => of_environment(name),
            VariableSource::File(_) => self.of_files.get(name).map(|of_file| of_file.value.clone()),
        }
    }

    /// The first of these that has a value. The environment's come first: a file only adds to it.
    pub fn first<'n>(&self, names: &[&'n str]) -> Option<(&'n str, String)> {
        let of = |name: &&'n str| Some((*name, self.get(name).filter(|value| !value.is_empty())?));
        let (environment, rest): (Vec<&str>, Vec<&str>) =
            names.iter().partition(|name| is_in_environment(name));
        environment.iter().chain(&rest).find_map(of)
    }

    /// None if it is not set anywhere.
    pub fn source(&self, name: &str) -> Option<VariableSource> {
        if is_in_environment(name) {
            return Some(VariableSource::Environment);
        }
        self.of_files.get(name).map(|of_file| VariableSource::File(of_file.file.to_string()))
    }
}

/// None if it is not set, or not UTF-8.
#[expect(clippy::disallowed_methods, reason = "keys, addresses and inputs are asked for here, by name")]
pub fn of_environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[expect(clippy::disallowed_methods, reason = "keys, addresses and inputs are asked for here, by name")]
fn is_in_environment(name: &str) -> bool {
    std::env::var_os(name).is_some()
}
