//! The three file tools, as one tool driver.

use std::future::ready;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex};

use serde::de::DeserializeOwned;
use spinney_kernel::definition::{OnLost, ToolSpec as Spec};
use spinney_kernel::port::model::Missed;
use spinney_kernel::port::tool::{Tool, ToolAnswer, ToolAttempt};
use spinney_kernel::port::{AgentFolder, Pending};
use spinney_kernel::words::ToolName;

use super::advice::Refused;
use super::{list, read, write};
use crate::workspace::{Workspace, Workspaces};

/// Locks for the agents that write at the same moment. Two of them may share one.
const LOCKS: usize = 16;

/// The file tools' driver, for the agents of every tree: each call brings the folder of its agent. Clones are the same
/// driver.
#[derive(Clone, Debug)]
pub struct Files {
    /// One write at a time for an agent: a limit that was checked still holds when the file is there.
    putting: Arc<[Arc<Mutex<()>>]>,
}

impl Default for Files {
    fn default() -> Self {
        Self { putting: (0..LOCKS).map(|_| Arc::default()).collect() }
    }
}

impl Files {
    /// One of its tools.
    #[must_use]
    pub fn tool(&self, tool: FileTool) -> Arc<dyn Tool> {
        Arc::new(Opened { tool, files: self.clone() })
    }

    fn workspace(&self, attempt: &ToolAttempt) -> Result<Workspace, Refused> {
        let folder = folder(attempt)?;
        Ok(self.workspaces(folder)?.agent(folder.origin().agent())?)
    }

    /// For writing: the folder is as durable as the files in it must be.
    fn workspace_to_write(&self, attempt: &ToolAttempt) -> Result<Workspace, Refused> {
        let folder = folder(attempt)?;
        let workspaces = self.workspaces(folder)?;
        let workspace = workspaces.agent(folder.origin().agent())?;
        workspaces.keep_names(folder.root(), attempt.durability)?;
        Ok(workspace)
    }

    fn workspaces(&self, folder: &AgentFolder) -> Result<Workspaces, Refused> {
        let mut hasher = DefaultHasher::new();
        folder.path().hash(&mut hasher);
        let lock = usize::try_from(hasher.finish() % LOCKS as u64).unwrap_or_default();
        Ok(Workspaces::below(folder.root(), folder.origin().tree)?.locked_by(&self.putting[lock]))
    }
}

fn folder(attempt: &ToolAttempt) -> Result<&AgentFolder, Refused> {
    attempt
        .workspace
        .as_ref()
        .ok_or_else(|| Refused::new(format!("`{}` has no folder to work in: do without files", attempt.tool)))
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
        let answer = match self.tool.act(&self.files, &attempt) {
            Ok(text) => ToolAnswer::said(text),
            Err(refused) => ToolAnswer::failed(refused.to_string()),
        };
        Box::pin(ready(Ok(answer)))
    }
}

fn args<T: DeserializeOwned>(attempt: &ToolAttempt) -> Result<T, Refused> {
    serde_json::from_str(&attempt.args)
        .map_err(|error| Refused::new(format!("`{}` cannot be called like this: {error}", attempt.tool)))
}

#[cfg(test)]
mod tests {
    use spinney_kernel::context::Origin;
    use spinney_kernel::words::{CallId, Durability, TreeId};

    use super::*;
    use crate::workspace::FLUSHES;

    /// How often writing a file waited for the disk.
    async fn flushes(durability: Durability) -> u32 {
        let home = tempfile::tempdir().unwrap();
        let path = vec!["lead".parse().unwrap()].into();
        let (tree, role) = (TreeId::new([7; 16]), "lead".parse().unwrap());
        let origin = Arc::new(Origin { tree, path, role, goal: "Write.".into() });
        let args = r#"{"path": "outputs/a/b.txt", "text": "kept"}"#.to_owned();
        let name = FileTool::Write.name();
        let mut attempt = ToolAttempt::new(Arc::clone(&origin), CallId(1), "k".to_owned(), name, args);
        attempt.durability = durability;
        attempt.workspace = Some(AgentFolder::new(Workspaces::root(home.path()).into(), origin));
        FLUSHES.with(|flushes| flushes.set(0));
        let answer = Files::default().tool(FileTool::Write).call(attempt).await.unwrap();
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
