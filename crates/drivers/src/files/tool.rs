//! The three file tools, as one tool driver.

use std::future::ready;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::de::DeserializeOwned;
use spinney_kernel::budget::Used;
use spinney_kernel::definition::{OnLost, ToolSpec as Spec};
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::Missed;
use spinney_kernel::port::tool::{Tool, ToolAnswer, ToolAttempt};
use spinney_kernel::words::ToolName;

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

    fn workspace(&self, attempt: &ToolAttempt) -> Result<Workspace, Refused> {
        Ok(self.workspaces(attempt)?.agent(attempt.origin.agent())?)
    }

    /// For writing: the folder is as durable as the files in it must be.
    fn workspace_to_write(&self, attempt: &ToolAttempt) -> Result<Workspace, Refused> {
        let workspaces = self.workspaces(attempt)?;
        let workspace = workspaces.agent(attempt.origin.agent())?;
        workspaces.keep_names(&self.home, attempt.durability)?;
        Ok(workspace)
    }

    fn workspaces(&self, attempt: &ToolAttempt) -> Result<Workspaces, Refused> {
        Ok(Workspaces::open(&self.home, attempt.origin.tree)?.locked_by(&self.putting))
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

    fn act(self, files: &Files, attempt: &ToolAttempt) -> Result<String, Refused> {
        match self {
            Self::Read => read::act(&args(attempt)?, &files.workspace(attempt)?),
            Self::Write => {
                let workspace = files.workspace_to_write(attempt)?;
                write::act(&args(attempt)?, &workspace, attempt.outputs, attempt.durability)
            }
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
            lost: OnLost::Repeatable,
            shown_bytes: (self.tool == FileTool::Read).then_some(read::SHOWN_BYTES),
            ..Spec::default()
        }
    }

    fn call(&self, attempt: ToolAttempt) -> Pending<Result<ToolAnswer, Missed>> {
        // Files in a workspace are small: a thread switch would take longer.
        let told = self.tool.act(&self.files, &attempt);
        let is_error = told.is_err();
        let text = told.unwrap_or_else(|refused| refused.to_string());
        Box::pin(ready(Ok(ToolAnswer { text, is_error, parts: Vec::new(), used: Used::NOTHING })))
    }
}

fn args<T: DeserializeOwned>(attempt: &ToolAttempt) -> Result<T, Refused> {
    serde_json::from_str(&attempt.args)
        .map_err(|error| Refused::new(format!("`{}` cannot be called like this: {error}", attempt.tool)))
}

#[cfg(test)]
mod tests {
    use spinney_kernel::context::Origin;
    use spinney_kernel::definition::OutputLimits;
    use spinney_kernel::words::{Durability, TreeId};

    use super::*;
    use crate::workspace::FLUSHES;

    /// How often writing a file waited for the disk.
    async fn flushes(durability: Durability) -> u32 {
        let home = tempfile::tempdir().unwrap();
        let path = vec!["lead".parse().unwrap()].into();
        let (tree, role) = (TreeId::new([7; 16]), "lead".parse().unwrap());
        let attempt = ToolAttempt {
            origin: Arc::new(Origin { tree, path, role, goal: "Write.".into() }),
            tool: FileTool::Write.name(),
            args: r#"{"path": "outputs/a/b.txt", "text": "kept"}"#.to_owned(),
            attempt: 1,
            key: "k".to_owned(),
            outputs: OutputLimits::default(),
            durability,
        };
        FLUSHES.with(|flushes| flushes.set(0));
        let answer = FileTool::Write.at(&Files::of(home.path())).call(attempt).await.unwrap();
        assert!(!answer.is_error, "{}", answer.text);
        FLUSHES.with(std::cell::Cell::get)
    }

    /// The file; then the folders that name it and each other: `a`, `outputs`, the agent's, the tree's, `workspace` and
    /// the home.
    #[tokio::test]
    async fn with_full_durability_a_file_and_its_folders_are_on_the_disk_before_it_is_written() {
        assert_eq!(flushes(Durability::Full).await, 7);
        assert_eq!(flushes(Durability::Normal).await, 0);
        assert_eq!(flushes(Durability::Off).await, 0);
    }
}
