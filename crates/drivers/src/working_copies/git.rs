//! Git outside of boxes, in repositories of the user. Nothing that an agent can write is read by it, and it runs no hook, no
//! monitor and no program of a configuration.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

/// Where git is looked for, as in a box.
const SEARCH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// How long one command may take.
const TIMEOUT: Duration = Duration::from_secs(600);
/// How much of what git says is shown.
const SAID_CHARS_MAX: usize = 300;

/// What no command of ours may use of a configuration.
pub(super) const SETTINGS: [&str; 10] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.commitGraph=false",
    "core.multiPackIndex=false",
    "pack.useBitmaps=false",
    "pack.threads=1",
    "protocol.allow=never",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// The environment of every git, in boxes as well.
pub(super) const ENVIRONMENT: [(&str, &str); 9] = [
    ("LC_ALL", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_TEMPLATE_DIR", ""),
];

/// Who sets references, and commits what an agent did not.
pub(super) const COMMITTER: [(&str, &str); 2] =
    [("GIT_COMMITTER_NAME", "Spinney"), ("GIT_COMMITTER_EMAIL", "spinney@spinney.invalid")];

/// Why git did not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("git is not installed: install it, for example with `apt install git`")]
    Missing,
    #[error("git could not be started")]
    NotStarted(#[source] io::Error),
    #[error("`git {command}` took longer than {} s", TIMEOUT.as_secs())]
    TimedOut { command: String },
    #[error("`git {command}` failed: {said}")]
    Failed { command: String, said: String },
}

/// What git printed, and how it ended.
pub(super) struct Ran {
    status: ExitStatus,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// Git in a folder.
#[derive(Clone, Copy)]
pub(super) struct Git<'a> {
    folder: &'a Path,
    /// The index to use instead of the folder's.
    index: Option<&'a Path>,
    git_dir: Option<&'a Path>,
}

impl<'a> Git<'a> {
    /// In the repository that a folder is in.
    pub(super) const fn at(folder: &'a Path) -> Self {
        Self { folder, index: None, git_dir: None }
    }

    /// With this git directory, and the folder as its work tree.
    pub(super) const fn with_git_dir(self, git_dir: &'a Path) -> Self {
        Self { git_dir: Some(git_dir), ..self }
    }

    pub(super) const fn with_index(self, index: &'a Path) -> Self {
        Self { index: Some(index), ..self }
    }

    async fn start(&self, words: &[&str], stdin: Stdio) -> Result<Ran, GitError> {
        let mut git = Command::new("git");
        git.env_clear().env("PATH", SEARCH).env("HOME", "/nonexistent").envs(ENVIRONMENT).envs(COMMITTER);
        git.current_dir(self.folder).stdin(stdin).kill_on_drop(true);
        if let Some(git_dir) = self.git_dir {
            git.env("GIT_DIR", git_dir).env("GIT_WORK_TREE", self.folder);
        }
        if let Some(index) = self.index {
            git.env("GIT_INDEX_FILE", index);
        }
        for setting in SETTINGS {
            git.args(["-c", setting]);
        }
        git.args(words);
        let command = || words.first().copied().unwrap_or_default().to_owned();
        match timeout(TIMEOUT, git.output()).await {
            Err(_) => Err(GitError::TimedOut { command: command() }),
            Ok(Err(error)) if error.kind() == ErrorKind::NotFound && self.folder.is_dir() => {
                Err(GitError::Missing)
            }
            Ok(Err(error)) => Err(GitError::NotStarted(error)),
            Ok(Ok(output)) => Ok(Ran { status: output.status, stdout: output.stdout, stderr: output.stderr }),
        }
    }

    /// What it prints, if it succeeds.
    pub(super) async fn run(&self, words: &[&str]) -> Result<Vec<u8>, GitError> {
        self.run_with(words, Stdio::null()).await
    }

    /// The same with an input.
    pub(super) async fn run_with(&self, words: &[&str], stdin: Stdio) -> Result<Vec<u8>, GitError> {
        let ran = self.start(words, stdin).await?;
        if ran.status.success() {
            return Ok(ran.stdout);
        }
        let command = words.first().copied().unwrap_or_default().to_owned();
        Err(GitError::Failed { command, said: said(&ran.stderr) })
    }

    /// What it prints if it succeeds, nothing if it ends with code 1: how git says no.
    pub(super) async fn ask(&self, words: &[&str]) -> Result<Option<Vec<u8>>, GitError> {
        let ran = self.start(words, Stdio::null()).await?;
        match ran.status.code() {
            Some(0) => Ok(Some(ran.stdout)),
            Some(1) => Ok(None),
            _ => {
                let command = words.first().copied().unwrap_or_default().to_owned();
                Err(GitError::Failed { command, said: said(&ran.stderr) })
            }
        }
    }
}

/// Whether git is there.
///
/// # Errors
/// What is missing.
pub async fn check_git() -> Result<(), GitError> {
    Git::at(Path::new("/")).run(&["--version"]).await.map(drop)
}

/// The end of what git printed, as one short line.
pub(super) fn said(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line: String = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let skipped = line.chars().count().saturating_sub(SAID_CHARS_MAX);
    let shown: String = line.chars().skip(skipped).collect();
    if shown.is_empty() { "it said nothing".to_owned() } else { shown }
}

/// A path as text for an argument.
pub(super) fn word(path: &Path) -> Option<&str> {
    OsStr::to_str(path.as_os_str())
}
