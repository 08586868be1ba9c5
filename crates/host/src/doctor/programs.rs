//! Which programs that are known here are installed, and with which version each was tried.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::Serialize;
use spinney_kernel::definition::KnownProgram;
use spinney_view::wording::one_line;
use tokio::process::Command;
use tokio::time::timeout;

/// How long a program may take to say its version.
const VERSION_TIME: Duration = Duration::from_secs(5);
const VERSION_CHARS_MAX: usize = 60;

/// A program that an agent can be.
#[derive(Serialize)]
#[non_exhaustive]
pub struct ProgramFinding {
    /// Its name in tree files.
    pub program: &'static str,
    /// Where it is, if it is installed.
    pub path: Option<String>,
    /// What it says its version is.
    pub version: Option<String>,
    /// The version with which this release was tried, if it was.
    pub tried: Option<&'static str>,
}

impl ProgramFinding {
    /// Looks for every known program in `PATH` and asks those that are there for their version.
    pub async fn look_for_all() -> Vec<Self> {
        let mut all = Vec::new();
        for program in KnownProgram::ALL {
            let path = installed(program.as_str());
            let version = match &path {
                Some(path) => version(path).await,
                None => None,
            };
            let path = path.map(|path| path.display().to_string());
            all.push(Self { program: program.as_str(), path, version, tried: tried_version(program) });
        }
        all
    }

    pub(super) fn words(&self) -> (&'static str, String) {
        let tried = match self.tried {
            Some(version) => format!("tried with {version}"),
            None => "not tried yet".to_owned(),
        };
        match (&self.path, &self.version) {
            (None, _) => ("none", format!("not installed ({tried})")),
            (Some(_), Some(version)) => ("ok", format!("{version} ({tried})")),
            (Some(path), None) => ("FAILED", format!("{path} does not say its version ({tried})")),
        }
    }
}

/// The version with which this release was tried.
#[must_use]
pub const fn tried_version(program: KnownProgram) -> Option<&'static str> {
    match program {
        KnownProgram::Claude => Some("2.1.325"),
        KnownProgram::Codex => Some("0.166.0"),
        KnownProgram::Opencode => Some("1.18.18"),
    }
}

#[expect(clippy::disallowed_methods, reason = "the variable says where a user's own programs are")]
fn installed(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    // A relative folder is whatever folder this runs in.
    let mut folders = env::split_paths(&path).filter(|folder| folder.is_absolute());
    folders.find_map(|folder| Some(folder.join(program)).filter(|file| file.is_file()))
}

async fn version(program: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = timeout(VERSION_TIME, command.output()).await.ok()?.ok()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let line = said.lines().find(|line| !line.trim().is_empty()).filter(|_| output.status.success())?;
    Some(one_line(line.trim(), VERSION_CHARS_MAX))
}
