//! The three file tools, as one port.

use std::future::ready;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::de::DeserializeOwned;
use spinney_kernel::definition::{Lost, Tool as Spec};
use spinney_kernel::id::ToolName;
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::Missed;
use spinney_kernel::port::tool::{Answer, Attempt, Tool};
use spinney_kernel::report::Used;

use super::advice::Refused;
use super::{list, read, write};
use crate::workspace::{Workspace, Workspaces};

/// The files of a home's agents.
#[derive(Clone, Debug)]
pub struct Files {
    home: PathBuf,
    /// One write at a time: a limit that was checked still holds when the file is there.
    putting: Arc<Mutex<()>>,
}

impl Files {
    /// Those of a home.
    #[must_use]
    pub fn of(home: &Path) -> Self {
        Self { home: home.to_owned(), putting: Arc::default() }
    }

    /// The folder of whoever asks.
    fn workspace(&self, attempt: &Attempt) -> Result<Workspace, Refused> {
        let workspaces = Workspaces::open(&self.home, attempt.origin.tree)?.locked_by(&self.putting);
        Ok(workspaces.agent(attempt.origin.agent())?)
    }
}

/// One of the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileTool {
    /// `read_file`.
    Read,
    /// `write_file`.
    Write,
    /// `list_files`.
    List,
}

impl FileTool {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::List];

    /// What a model calls it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "read_file",
            Self::Write => "write_file",
            Self::List => "list_files",
        }
    }

    /// The same as a name.
    #[must_use]
    pub fn name(self) -> ToolName {
        match self.word().parse() {
            Ok(name) => name,
            Err(_) => unreachable!("the words above are names"),
        }
    }

    /// It, for the agents of a home.
    #[must_use]
    pub fn at(self, files: &Files) -> Arc<dyn Tool> {
        Arc::new(Opened { tool: self, files: files.clone() })
    }

    const fn description(self) -> &'static str {
        match self {
            Self::Read => read::DESCRIPTION,
            Self::Write => write::DESCRIPTION,
            Self::List => list::DESCRIPTION,
        }
    }

    const fn schema(self) -> &'static str {
        match self {
            Self::Read => read::SCHEMA,
            Self::Write => write::SCHEMA,
            Self::List => list::SCHEMA,
        }
    }

    fn act(self, files: &Files, attempt: &Attempt) -> Result<String, Refused> {
        match self {
            Self::Read => read::act(&args(attempt)?, &files.workspace(attempt)?),
            Self::Write => write::act(&args(attempt)?, (&files.workspace(attempt)?, attempt.outputs)),
            Self::List => list::act(&args(attempt)?, &files.workspace(attempt)?),
        }
    }
}

/// A tool that knows whose files it works on.
struct Opened {
    tool: FileTool,
    files: Files,
}

impl Tool for Opened {
    fn spec(&self) -> Spec {
        Spec {
            description: self.tool.description().to_owned(),
            schema: self.tool.schema().to_owned(),
            // What was written twice is as if it was written once.
            lost: Lost::Repeatable,
            shown_bytes: (self.tool == FileTool::Read).then_some(read::SHOWN_BYTES),
            ..Spec::default()
        }
    }

    fn call(&self, attempt: Attempt) -> Pending<Result<Answer, Missed>> {
        // A file of a workspace is small: waiting for it elsewhere would take longer than the file does.
        let told = self.tool.act(&self.files, &attempt);
        let is_error = told.is_err();
        let text = told.unwrap_or_else(|refused| refused.to_string());
        Box::pin(ready(Ok(Answer { text, is_error, parts: Vec::new(), used: Used::NOTHING })))
    }
}

fn args<T: DeserializeOwned>(attempt: &Attempt) -> Result<T, Refused> {
    serde_json::from_str(&attempt.args)
        .map_err(|error| Refused::new(format!("`{}` cannot be called like this: {error}", attempt.tool)))
}
