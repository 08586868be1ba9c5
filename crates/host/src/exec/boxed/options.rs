//! What a person says about the box of a program. The journal keeps it, so that a run is resumed in the same box.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use spinney_kernel::primitives::HostRule;

/// What a program in a box has beside its folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoxOptions {
    /// Absolute paths that it may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<PathBuf>,
    /// Hosts that it may connect to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostRule>,
    /// Whether it may write the repository of its folder.
    #[serde(default)]
    pub allow_git: bool,
}

/// What a command line says about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GivenBox<'a> {
    /// Whether there should be one.
    pub is_wanted: bool,
    /// Paths, relative to the current folder.
    pub read: &'a [String],
    /// Hosts beside those before.
    pub hosts: &'a [HostRule],
    /// Whether the repository may be written.
    pub allow_git: bool,
}

/// A path that a program should be able to read and that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("`{path}` cannot be read: {why}")]
pub struct UnreadablePath {
    path: String,
    why: String,
}

impl GivenBox<'_> {
    /// Whether it says something about a box and does not ask for one.
    pub(in crate::exec) fn needs_box(&self) -> bool {
        !self.is_wanted && (self.allow_git || !self.read.is_empty() || !self.hosts.is_empty())
    }
}

impl BoxOptions {
    /// These with what a command line gives; what was there before stays.
    pub(in crate::exec) fn with(mut self, given: &GivenBox<'_>) -> Result<Self, UnreadablePath> {
        for path in given.read {
            let unreadable = |why: String| UnreadablePath { path: path.clone(), why };
            let found = std::fs::canonicalize(path).map_err(|error| unreadable(error.to_string()))?;
            // The journal keeps text.
            if found.to_str().is_none() {
                return Err(unreadable("its path is not text".to_owned()));
            }
            if !self.read.contains(&found) {
                self.read.push(found);
            }
        }
        let more = given.hosts.iter().filter(|host| !self.hosts.contains(host)).cloned();
        let more: Vec<HostRule> = more.collect();
        self.hosts.extend(more);
        self.allow_git |= given.allow_git;
        Ok(self)
    }

    /// What it may do, for people.
    pub(in crate::exec) fn lines(&self) -> Vec<String> {
        let named = |what: &str, names: Vec<String>| {
            let names: Vec<String> = names.iter().map(|name| name.escape_debug().to_string()).collect();
            (!names.is_empty()).then(|| format!("let it {what} {}", names.join(", ")))
        };
        let read = named("read", self.read.iter().map(|path| path.display().to_string()).collect());
        let hosts = named("connect to", self.hosts.iter().map(ToString::to_string).collect());
        let git = self.allow_git.then(|| "let it write the repository of its folder".to_owned());
        read.into_iter().chain(hosts).chain(git).collect()
    }
}
