//! The program of a run and the options that its process needs. They are kept in the home of the run, so that
//! it can be resumed as it was started. What the tree itself records, such as its ceilings, is not
//! among them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize};
use spinney_drivers::prices::PricedName;
use spinney_drivers::wire::{NotRequestName, Permitted, RequestName};
use spinney_kernel::budget::Price;
use spinney_kernel::words::BlobHash;

use super::program::shown_program;
use crate::private_files::{self, Links};
use crate::text_file::{FileAction, FileFault};
use crate::user::configuration::Configuration;

const FILE: &str = "exec.json";
/// What is written before it takes the place of the file.
const NEW_FILE: &str = "exec.json.new";
/// How long a call waits for a higher ceiling, if nothing else is said.
const HALT_WAIT_MS: u64 = 10 * 60 * 1_000;
/// More than a system takes as the arguments of a program.
const BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Why the options of a run cannot be kept or used.
#[derive(Debug, thiserror::Error)]
pub enum RunOptionsError {
    /// Their file failed.
    #[error(transparent)]
    File(#[from] FileFault),
    /// Their file is not one.
    #[error("{} is damaged", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Why it cannot be read.
        #[source]
        why: serde_json::Error,
    },
    /// A path is none.
    #[error("{} is not a path", path.display())]
    NotAPath {
        /// Which.
        path: PathBuf,
        /// Why not.
        #[source]
        why: io::Error,
    },
    /// The current folder is unknown.
    #[error("cannot find out which folder this is")]
    NoFolder(#[source] io::Error),
    /// Its program was started elsewhere: here its words may mean other files.
    #[error("the program of this run was started in {}: resume it there", folder.display())]
    OtherFolder {
        /// Where.
        folder: PathBuf,
    },
    /// Its program has a key among its words, or words that are not text.
    #[error("the program of this run was not kept")]
    NoProgram,
    /// A name that it may send is none.
    #[error(transparent)]
    Name(#[from] NotRequestName),
}

/// What is given anew for a run; the rest stays as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct GivenRunOptions<'a> {
    /// A program and its arguments; none if it is empty.
    pub program: &'a [OsString],
    /// The ceiling of each sub-agent, in nano-dollars.
    pub child_cost_nanos: Option<u64>,
    /// Models that may be called; the same as before if there are none.
    pub models: &'a [String],
    /// Prices of models, beside those before.
    pub prices: &'a [(PricedName, Price)],
    /// Providers of the price table.
    pub prices_of: &'a [String],
    /// How long a call waits for a higher ceiling.
    pub halt_wait: Option<HaltWait>,
    /// Whether the journal keeps no bodies.
    pub no_bodies: bool,
    /// The port of the gateway.
    pub listen: Option<u16>,
    /// Whether the program finds no keys of other providers.
    pub hide_keys: bool,
    /// Names that the program may send although their cost has no bound.
    pub allow_fields: &'a [RequestName],
}

/// How long a call waits for a higher ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HaltWait {
    /// Not at all.
    Never,
    /// As long as before, or as usual.
    Usual,
    /// So many milliseconds.
    Ms(u64),
}

/// What a run is continued with.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunOptions {
    /// Absent if it cannot be kept.
    program: Option<Vec<String>>,
    /// Where it was started, from the folder that its home is in: its name and its arguments may be relative paths. Older
    /// runs have none.
    #[serde(default)]
    folder: Option<PathBuf>,
    /// The ceiling of each sub-agent, in nano-dollars.
    pub child_cost_nanos: Option<u64>,
    /// Models that may be called; all if there are none.
    pub models: Vec<String>,
    /// Prices that the user gave.
    pub prices: BTreeMap<PricedName, Price>,
    /// Providers of the price table, for models at a server of the user's own.
    #[serde(deserialize_with = "several")]
    pub prices_of: Vec<String>,
    /// How long a call waits for a higher ceiling; absent if it does not.
    halt_wait_ms: Option<u64>,
    /// Whether the journal keeps no bodies.
    pub no_bodies: bool,
    /// The port of the gateway; any if absent.
    #[serde(default)]
    pub listen: Option<u16>,
    /// Whether the program finds no keys of other providers.
    #[serde(default)]
    pub hide_keys: bool,
    /// The names that the program may send although their cost has no bound.
    #[serde(default)]
    allow_fields: Vec<String>,
    /// The hash of the file that they were read from.
    #[serde(skip)]
    pub source: Option<BlobHash>,
}

/// The folder that a home is in.
fn beside(home: &Path) -> Result<PathBuf, RunOptionsError> {
    let home =
        std::path::absolute(home).map_err(|why| RunOptionsError::NotAPath { path: home.to_owned(), why })?;
    let around = home.parent().unwrap_or(&home);
    Ok(around.canonicalize().unwrap_or_else(|_| around.to_owned()))
}

/// Runs of older versions have one name, or null.
fn several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Names {
        Several(Vec<String>),
        One(Option<String>),
    }
    Ok(match Names::deserialize(deserializer)? {
        Names::Several(names) => names,
        Names::One(name) => name.into_iter().collect(),
    })
}

/// The hash of what a run is continued with. None if nothing is kept.
pub fn fingerprint(home: &Path) -> Result<Option<BlobHash>, FileFault> {
    Ok(read_file(home)?.map(|bytes| BlobHash::of(&bytes)))
}

fn read_file(home: &Path) -> Result<Option<Vec<u8>>, FileFault> {
    let path = home.join(FILE);
    let mut bytes = Vec::new();
    let read = private_files::plain(&path, Links::Refuse)
        .and_then(|file| file.take(BYTES_MAX).read_to_end(&mut bytes));
    match read {
        Ok(_) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FileFault::when(FileAction::Read, &path)(error)),
    }
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            program: None,
            folder: None,
            child_cost_nanos: None,
            models: Vec::new(),
            prices: BTreeMap::new(),
            prices_of: Vec::new(),
            halt_wait_ms: Some(HALT_WAIT_MS),
            no_bodies: false,
            listen: None,
            hide_keys: false,
            allow_fields: Vec::new(),
            source: None,
        }
    }
}

impl RunOptions {
    /// These with what a command line gives; the rest stays as it is. A program with one of these keys in its arguments is
    /// not kept: keys are stored nowhere.
    pub fn with<'k>(
        mut self,
        given: &GivenRunOptions<'_>,
        home: &Path,
        mut keys: impl Iterator<Item = &'k str>,
    ) -> Result<Self, RunOptionsError> {
        if !given.program.is_empty() {
            // What is no text cannot be kept as JSON.
            let words: Option<Vec<String>> =
                given.program.iter().map(|word| word.to_str().map(str::to_owned)).collect();
            let mut has_key = |words: &[String]| keys.any(|key| words.iter().any(|word| word.contains(key)));
            self.program = words.filter(|words| !has_key(words));
            let here = std::env::current_dir().map_err(RunOptionsError::NoFolder)?;
            let below = here.strip_prefix(beside(home)?).map(Path::to_owned);
            self.folder = Some(below.unwrap_or(here));
        }
        self.child_cost_nanos = given.child_cost_nanos.or(self.child_cost_nanos);
        if !given.models.is_empty() {
            given.models.clone_into(&mut self.models);
        }
        self.prices.extend(given.prices.iter().cloned());
        if !given.prices_of.is_empty() {
            given.prices_of.clone_into(&mut self.prices_of);
        }
        match given.halt_wait {
            Some(HaltWait::Never) => self.halt_wait_ms = None,
            Some(HaltWait::Ms(ms)) => self.halt_wait_ms = Some(ms),
            Some(HaltWait::Usual) => self.halt_wait_ms = self.halt_wait_ms.or(Some(HALT_WAIT_MS)),
            None => {}
        }
        self.no_bodies |= given.no_bodies;
        self.listen = given.listen.or(self.listen);
        self.hide_keys |= given.hide_keys;
        let more = given.allow_fields.iter().map(ToString::to_string);
        let more: Vec<String> = more.filter(|name| !self.allow_fields.contains(name)).collect();
        self.allow_fields.extend(more);
        Ok(self)
    }

    /// Keeps them in the home of their run, in place of those that are there.
    pub fn keep(&self, home: &Path) -> Result<(), FileFault> {
        let (path, new) = (home.join(FILE), home.join(NEW_FILE));
        let write = || {
            // That of a process that was killed.
            match fs::remove_file(&new) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
            private_files::write(&new, &serde_json::to_vec(self)?)?;
            fs::rename(&new, &path)
        };
        write().map_err(FileFault::when(FileAction::Write, &path))
    }

    /// Those of an earlier run. A run that kept none has the usual ones.
    pub fn read(home: &Path) -> Result<Self, RunOptionsError> {
        let Some(bytes) = read_file(home)? else { return Ok(Self::default()) };
        let read: Self = serde_json::from_slice(&bytes)
            .map_err(|why| RunOptionsError::Damaged { path: home.join(FILE), why })?;
        Ok(Self { source: Some(BlobHash::of(&bytes)), ..read })
    }

    /// Its prices, and those of the user's configuration for models that they do not name. The latter are not kept: they may
    /// be corrected.
    pub fn prices_with(&self, configuration: &Configuration) -> BTreeMap<PricedName, Price> {
        let is_other = |name: &PricedName| !self.prices.keys().any(|given| given.covers(name));
        let configured = configuration.prices().filter(|(name, _)| is_other(name));
        configured.map(|(name, price)| (name.clone(), price)).chain(self.prices.clone()).collect()
    }

    /// Fails if its program was started in another folder: here its words may mean other files.
    pub fn check_folder(&self, home: &Path) -> Result<(), RunOptionsError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let folder = beside(home)?.join(folder);
        let is_here = folder.canonicalize().ok() == std::env::current_dir().ok();
        if is_here { Ok(()) } else { Err(RunOptionsError::OtherFolder { folder }) }
    }

    /// The program of the run.
    pub fn program(&self) -> Result<Vec<OsString>, RunOptionsError> {
        let program = self.program.as_ref().ok_or(RunOptionsError::NoProgram)?;
        Ok(program.iter().map(OsString::from).collect())
    }

    /// What a run with this program would start, and what weakens its bounds, for people.
    pub fn starts(&self, program: &[OsString]) -> Vec<String> {
        let named = |what: &str, names: Vec<&str>| {
            let names: Vec<String> = names.iter().map(|name| name.escape_debug().to_string()).collect();
            (!names.is_empty()).then(|| format!("{what} {}", names.join(", ")))
        };
        let fields =
            named("let it send, without a bound,", self.allow_fields.iter().map(String::as_str).collect());
        let prices = named("take its own prices for", self.prices.keys().map(PricedName::as_str).collect());
        [format!("run {}", shown_program(program))].into_iter().chain(fields).chain(prices).collect()
    }

    /// The names that the program may send although their cost has no bound.
    pub fn allowed_fields(&self) -> Result<Permitted, NotRequestName> {
        self.allow_fields.iter().map(|name| name.parse()).collect()
    }

    /// How long a call waits for a higher ceiling, in milliseconds; none if it does not.
    pub const fn halt_wait_ms(&self) -> Option<u64> {
        self.halt_wait_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_older_versions_are_read() {
        for (written, names) in [
            ("null", &[][..]),
            ("\"anthropic\"", &["anthropic"]),
            ("[\"openrouter\",\"openai\"]", &["openrouter", "openai"]),
        ] {
            let json = format!(
                "{{\"program\":null,\"child_cost_nanos\":null,\"models\":[],\"prices\":{{}},\"prices_of\":{written},\"halt_wait_ms\":1,\"no_bodies\":false}}"
            );
            let read: RunOptions = serde_json::from_str(&json).unwrap();
            assert_eq!(read.prices_of, names, "{written}");
        }
    }
}
