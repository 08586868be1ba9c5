//! The program of a run and the options that its process needs. They are kept in the home of the run, so that
//! `spinney exec --resume ID` continues it as it was started. What the tree itself records, such as its ceilings, is not
//! among them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{ErrorKind, Read as _};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use spinney_kernel::budget::Price;
use spinney_server::gateway::OnLimit;

use crate::args::{self, LimitPolicy};
use crate::home::private_files::{self, Links};

const FILE: &str = "exec.json";
/// More than a system takes as the arguments of a program.
const BYTES_MAX: u64 = 4 * 1024 * 1024;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunOptions {
    /// Absent if it cannot be kept.
    program: Option<Vec<String>>,
    pub(crate) child_cost_nanos: Option<u64>,
    pub(crate) models: Vec<String>,
    pub(crate) prices: BTreeMap<String, Price>,
    pub(crate) prices_of: Option<String>,
    /// How long a call waits for a higher ceiling; absent if it does not.
    halt_wait_ms: Option<u64>,
    pub(crate) no_bodies: bool,
}

impl RunOptions {
    /// Those of a command line. A program with one of these keys in its arguments is not kept: keys are stored nowhere.
    pub(crate) fn of<'k>(args: &args::Exec, mut keys: impl Iterator<Item = &'k str>) -> Self {
        // What is no text cannot be kept as JSON.
        let words: Option<Vec<String>> =
            args.program.iter().map(|word| word.to_str().map(str::to_owned)).collect();
        let mut has_key = |words: &[String]| keys.any(|key| words.iter().any(|word| word.contains(key)));
        Self {
            program: words.filter(|words| !has_key(words)),
            child_cost_nanos: args.child_budget_usd.map(|usd| usd.nanos()),
            models: args.models.clone(),
            prices: args.price.iter().cloned().collect(),
            prices_of: args.prices_of.clone(),
            halt_wait_ms: (args.on_limit == LimitPolicy::Wait).then(|| args.halt_wait.ms()),
            no_bodies: args.no_bodies,
        }
    }

    pub(crate) fn keep(&self, home: &Path) -> Result<()> {
        let path = home.join(FILE);
        let kept = private_files::write(&path, &serde_json::to_vec(self)?);
        kept.with_context(|| format!("cannot write {}", path.display()))
    }

    /// Those of an earlier run, with its program.
    pub(crate) fn read(home: &Path) -> Result<(Self, Vec<OsString>)> {
        const NOT_KEPT: &str = "the program of this run was not kept: name it after `--`, with its options";
        let path = home.join(FILE);
        let file = match private_files::plain(&path, Links::Refuse) {
            Err(error) if error.kind() == ErrorKind::NotFound => bail!(NOT_KEPT),
            opened => opened.with_context(|| format!("cannot read {}", path.display()))?,
        };
        let mut bytes = Vec::new();
        file.take(BYTES_MAX).read_to_end(&mut bytes)?;
        let mut read: Self = serde_json::from_slice(&bytes)
            .with_context(|| format!("{} is damaged: name a program after `--`", path.display()))?;
        let Some(program) = read.program.take() else { bail!(NOT_KEPT) };
        Ok((read, program.into_iter().map(OsString::from).collect()))
    }

    pub(crate) fn on_limit(&self) -> OnLimit {
        self.halt_wait_ms.map_or(OnLimit::Stop, |ms| OnLimit::Wait(Duration::from_millis(ms)))
    }
}
