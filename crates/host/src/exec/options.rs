//! The program of a run and the options that its process needs. They are a source file of its journal, so it can be
//! resumed as it was started; older releases kept them in a file of its home. What the tree itself records, such as its ceilings, is not
//! among them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize};
use spinney_drivers::prices::PricedName;
use spinney_drivers::wire::{NotRequestName, Permitted, RequestName};
use spinney_journal::{Journal, JournalFault, newest_sources, source_bytes};
use spinney_kernel::budget::Price;
use spinney_kernel::primitives::{BlobHash, SourceName, TreeId};

use super::boxed::{BoxOptions, GivenBox, UnreadablePath};
use super::program::shown_program;
use crate::system::private_files::{self, Links};
use crate::text_file::{FileAction, FileFault};
use crate::user::configuration::Configuration;

/// The source file, and the file of older releases.
const FILE: &str = "exec.json";
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
    /// Their journal failed.
    #[error(transparent)]
    Journal(#[from] JournalFault),
    /// Those of its journal cannot be read.
    #[error("the options of this run cannot be read from its journal")]
    DamagedSource(#[source] serde_json::Error),
    /// Their file is not one.
    #[error("{} is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Why it cannot be read.
        #[source]
        why: serde_json::Error,
    },
    /// A path is none.
    #[error("{} is not a path", path.display())]
    NotAPath {
        /// The path.
        path: PathBuf,
        /// The cause.
        #[source]
        why: io::Error,
    },
    /// The current folder is unknown.
    #[error("cannot determine the current folder")]
    NoFolder(#[source] io::Error),
    /// Its program was started elsewhere: here its words may mean other files.
    #[error("the program of this run was started in {}: resume it there", folder.display())]
    OtherFolder {
        /// The folder.
        folder: PathBuf,
    },
    /// Its program has words that are not text; older releases kept none with a key in it.
    #[error("the program of this run was not recorded")]
    NoProgram,
    /// A name that it may send is none.
    #[error(transparent)]
    Name(#[from] NotRequestName),
    /// What is said about its box needs one.
    #[error("paths to read, hosts and the repository are those of a box, and this run has none")]
    NoBox,
    /// A path that its box should have.
    #[error(transparent)]
    Read(#[from] UnreadablePath),
}

/// New options for a run; the rest stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GivenRunOptions<'a> {
    /// A program and its arguments; none if it is empty.
    pub program: &'a [OsString],
    /// The ceiling of each sub-agent, in nano-dollars.
    pub child_cost_nanos: Option<u64>,
    /// Most agents, the program itself among them.
    pub agents_max: Option<u32>,
    /// Whether its agents are told what is left of the budget.
    pub tells_remaining: bool,
    /// Tags of a new run: its tree has them, and no run that is continued gets others.
    pub tags: &'a [(String, String)],
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
    /// Variables that only the program sees.
    pub secrets: &'a [String],
    /// Its box.
    pub boxed: GivenBox<'a>,
}

/// How long a call waits for a higher ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HaltWait {
    /// Not at all.
    Never,
    /// As long as before, or as usual.
    Usual,
    /// Milliseconds.
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
    /// Most agents, the program itself among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents_max: Option<u32>,
    /// Whether its agents are told what is left of the budget.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tells_remaining: bool,
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
    /// The names of variables that only the program sees.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// Its box, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boxed: Option<BoxOptions>,
    /// The hash of what they were read from.
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
pub async fn fingerprint(
    home: &Path,
    journal: &dyn Journal,
    tree: TreeId,
) -> Result<Option<BlobHash>, RunOptionsError> {
    let kept = match read_source(journal, tree).await? {
        Some(bytes) => Some(bytes),
        None => read_file(home)?,
    };
    Ok(kept.map(|bytes| BlobHash::digest(&bytes)))
}

async fn read_source(journal: &dyn Journal, tree: TreeId) -> Result<Option<Vec<u8>>, JournalFault> {
    let sources = newest_sources(journal, tree).await?;
    match sources.iter().find(|file| file.name.as_str() == FILE) {
        Some(file) => Ok(Some(source_bytes(journal, tree, file).await?)),
        None => Ok(None),
    }
}

/// Those of an older release.
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
            agents_max: None,
            tells_remaining: false,
            models: Vec::new(),
            prices: BTreeMap::new(),
            prices_of: Vec::new(),
            halt_wait_ms: Some(HALT_WAIT_MS),
            no_bodies: false,
            listen: None,
            hide_keys: false,
            allow_fields: Vec::new(),
            secrets: Vec::new(),
            boxed: None,
            source: None,
        }
    }
}

impl RunOptions {
    /// These with what a command line gives; the rest stays as it is.
    pub fn with(mut self, given: &GivenRunOptions<'_>, home: &Path) -> Result<Self, RunOptionsError> {
        if !given.program.is_empty() {
            // Only text can be kept as JSON.
            self.program = given.program.iter().map(|word| word.to_str().map(str::to_owned)).collect();
            let here = std::env::current_dir().map_err(RunOptionsError::NoFolder)?;
            let below = here.strip_prefix(beside(home)?).map(Path::to_owned);
            self.folder = Some(below.unwrap_or(here));
        }
        self.child_cost_nanos = given.child_cost_nanos.or(self.child_cost_nanos);
        self.agents_max = given.agents_max.or(self.agents_max);
        self.tells_remaining |= given.tells_remaining;
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
        let more: Vec<String> =
            given.secrets.iter().filter(|name| !self.secrets.contains(name)).cloned().collect();
        self.secrets.extend(more);
        if self.boxed.is_none() && given.boxed.needs_box() {
            return Err(RunOptionsError::NoBox);
        }
        // A box that a run has stays: nothing takes it away.
        if given.boxed.is_wanted || self.boxed.is_some() {
            self.boxed = Some(self.boxed.take().unwrap_or_default().with(&given.boxed)?);
        }
        Ok(self)
    }

    /// They as a source file of their run's journal.
    #[must_use]
    pub fn source_file(&self) -> (SourceName, Vec<u8>) {
        let name = FILE.parse().unwrap_or_else(|_| unreachable!("it is a plain name"));
        let bytes = serde_json::to_vec(self);
        (name, bytes.unwrap_or_else(|_| unreachable!("options can be written")))
    }

    /// Those of an earlier run. A run that kept none has the usual ones.
    pub async fn read(home: &Path, journal: &dyn Journal, tree: TreeId) -> Result<Self, RunOptionsError> {
        let (bytes, read) = match read_source(journal, tree).await? {
            Some(bytes) => {
                let read: Self = serde_json::from_slice(&bytes).map_err(RunOptionsError::DamagedSource)?;
                (bytes, read)
            }
            None => {
                let Some(bytes) = read_file(home)? else { return Ok(Self::default()) };
                let read = serde_json::from_slice(&bytes)
                    .map_err(|why| RunOptionsError::Damaged { path: home.join(FILE), why })?;
                (bytes, read)
            }
        };
        Ok(Self { source: Some(BlobHash::digest(&bytes)), ..read })
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
        let prices = named("use its own prices for", self.prices.keys().map(PricedName::as_str).collect());
        let in_box = if self.boxed.is_some() { " in a box" } else { "" };
        let boxed = self.boxed.iter().flat_map(BoxOptions::lines);
        let run = format!("run {}{in_box}", shown_program(program));
        [run].into_iter().chain(fields).chain(prices).chain(boxed).collect()
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
