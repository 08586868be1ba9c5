//! The file tools, as one tool driver.

use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use spinney_kernel::definition::{OnLost, ToolSpec as Spec, ToolSubject};
use spinney_kernel::port::model::AttemptError;
use spinney_kernel::port::tool::{Tool, ToolAnswer, ToolAttempt};
use spinney_kernel::port::{AgentFolder, FolderFiller, Pending};
use spinney_kernel::primitives::{Durability, OutputPath, ToolName, WrittenFile};

use super::advice::Refused;
use super::path::Top;
use super::place::Reach;
use super::{delete, edit, list, read, search, write};
use crate::folders::HiddenFolders;
use crate::off_worker::off_worker;
#[cfg(all(feature = "processes", target_os = "linux"))]
use crate::working_copies::{CopyLock, OpenCopy};
use crate::workspace::{AgentLocks, Workspace, WorkspaceFault, Workspaces};

/// The file tools' driver, for the agents of every tree: each call brings the folder of its agent. Clones are the same
/// driver.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// One call at a time for an agent, in the order they came: a limit that was checked still holds when the file is
    /// there.
    agents: Arc<AgentLocks>,
    hidden: HiddenFolders,
}

impl Files {
    /// Keeps these folders from every agent, whatever is granted around them.
    #[must_use]
    pub fn hiding(mut self, hidden: HiddenFolders) -> Self {
        self.hidden = hidden;
        self
    }

    /// One of its tools.
    #[must_use]
    pub fn tool(&self, tool: FileTool) -> Arc<dyn Tool> {
        Arc::new(Opened { tool, files: self.clone() })
    }
}

impl FolderFiller for Files {
    fn fill(&self, folder: AgentFolder, file: WrittenFile) -> Pending<Result<(), String>> {
        Box::pin(off_worker(move || {
            let filled = workspace(&folder).and_then(|workspace| workspace.fill(&file.path, &file.bytes));
            filled.map_err(|fault| fault.to_string())
        }))
    }

    fn remove(&self, folder: AgentFolder, file: OutputPath) -> Pending<Result<(), String>> {
        Box::pin(off_worker(move || {
            let cleared = workspace(&folder).and_then(|workspace| workspace.clear(&file));
            cleared.map_err(|fault| fault.to_string())
        }))
    }
}

fn workspace(folder: &AgentFolder) -> Result<Workspace, WorkspaceFault> {
    Workspaces::below(folder.root(), folder.origin().tree)?.agent(folder.origin().agent())
}

/// For writing: the folder is as durable as the files in it must be.
fn workspace_to_write(folder: &AgentFolder, durability: Durability) -> Result<Workspace, WorkspaceFault> {
    let workspaces = Workspaces::below(folder.root(), folder.origin().tree)?;
    let workspace = workspaces.agent(folder.origin().agent())?;
    workspaces.keep_names(folder.root(), durability)?;
    Ok(workspace)
}

fn folder(attempt: &ToolAttempt) -> Result<&AgentFolder, Refused> {
    attempt
        .workspace
        .as_ref()
        .ok_or_else(|| Refused::new(format!("`{}` has no folder: work without files", attempt.tool)))
}

/// One of the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileTool {
    /// `read_file`.
    Read,
    /// `write_file`.
    Write,
    /// `edit_file`.
    Edit,
    /// `delete_file`.
    Delete,
    /// `list_files`.
    List,
    /// `search_files`.
    Search,
}

impl FileTool {
    pub const ALL: [Self; 6] = [Self::Read, Self::Write, Self::Edit, Self::Delete, Self::List, Self::Search];

    /// What a model calls it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read_file",
            Self::Write => "write_file",
            Self::Edit => "edit_file",
            Self::Delete => "delete_file",
            Self::List => "list_files",
            Self::Search => "search_files",
        }
    }

    /// The same as a name.
    #[must_use]
    pub fn name(self) -> ToolName {
        match self.as_str().parse() {
            Ok(name) => name,
            Err(_) => unreachable!("the words above are names"),
        }
    }

    const fn description(self) -> &'static str {
        match self {
            Self::Read => read::DESCRIPTION,
            Self::Write => write::DESCRIPTION,
            Self::Edit => edit::DESCRIPTION,
            Self::Delete => delete::DESCRIPTION,
            Self::List => list::DESCRIPTION,
            Self::Search => search::DESCRIPTION,
        }
    }

    const fn schema(self) -> &'static str {
        match self {
            Self::Read => read::SCHEMA,
            Self::Write => write::SCHEMA,
            Self::Edit => edit::SCHEMA,
            Self::Delete => delete::SCHEMA,
            Self::List => list::SCHEMA,
            Self::Search => search::SCHEMA,
        }
    }

    /// How much of its answer the model sees whole, if more than by default.
    fn shown_bytes(self) -> Option<u32> {
        match self {
            Self::Read => Some(read::SHOWN_BYTES),
            Self::Search => Some(search::SHOWN_BYTES),
            Self::Write | Self::Edit | Self::Delete | Self::List => None,
        }
    }

    const fn changes_files(self) -> bool {
        match self {
            Self::Write | Self::Edit | Self::Delete => true,
            Self::Read | Self::List | Self::Search => false,
        }
    }

    /// How long a call may take before it ends with what it has.
    const fn ms_max(self) -> Option<u64> {
        match self {
            Self::Search => Some(search::MS_MAX),
            Self::Read | Self::Write | Self::Edit | Self::Delete | Self::List => None,
        }
    }

    fn act(
        self,
        attempt: &ToolAttempt,
        folder: &AgentFolder,
        hidden: &HiddenFolders,
        stop: &AtomicBool,
    ) -> Result<ToolAnswer, Refused> {
        let workspace = match self {
            Self::Write | Self::Edit => workspace_to_write(folder, attempt.durability)?,
            Self::Read | Self::Delete | Self::List | Self::Search => workspace(folder)?,
        };
        let reach = Reach { workspace: &workspace, rights: &attempt.rights, hidden };
        let (outputs, durability) = (attempt.outputs, attempt.durability);
        match self {
            Self::Read => read::act(&args(attempt)?, &reach).map(ToolAnswer::text),
            Self::Write => {
                let (said, file) = write::act(args(attempt)?, &reach, outputs, durability)?;
                Ok(ToolAnswer::text(said).with_files(file.into_iter().collect()))
            }
            Self::Edit => {
                let (said, file) = edit::act(&args(attempt)?, &reach, outputs, durability)?;
                Ok(ToolAnswer::text(said).with_files(file.into_iter().collect()))
            }
            Self::Delete => {
                let (said, path) = delete::act(&args(attempt)?, &reach, durability)?;
                Ok(ToolAnswer::text(said).with_removed(path.into_iter().collect()))
            }
            Self::List => list::act(&args(attempt)?, &reach).map(ToolAnswer::text),
            Self::Search => search::act(&args(attempt)?, &reach, stop).map(ToolAnswer::text),
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
            // What is done twice is as if it was done once: before a tree continues, its outputs are what the journal has.
            // Files of the user and of working copies are not in it.
            lost: OnLost::Repeatable,
            repeatable_below: self.tool.changes_files().then(|| format!("{}/", Top::Outputs.as_str())),
            shown_bytes: self.tool.shown_bytes(),
            subject: Some(ToolSubject::path("path")),
            ..Spec::default()
        }
    }

    fn call(&self, attempt: ToolAttempt) -> Pending<Result<ToolAnswer, AttemptError>> {
        let (tool, hidden) = (self.tool, self.files.hidden.clone());
        let lock = attempt.workspace.as_ref().map(|folder| self.files.agents.get(folder));
        Box::pin(async move {
            let held = match lock {
                Some(lock) => Some(lock.lock_owned().await),
                None => None,
            };
            let copy = match opened_copy(&attempt).await {
                Ok(copy) => copy,
                Err(refused) => return Ok(ToolAnswer::failed(refused.to_string())),
            };
            let (note, copy) = copy.unzip();
            let stop = Stop::default();
            let stopping = Arc::clone(&stop.0);
            let answer = pin!(off_worker(move || {
                let acted =
                    folder(&attempt).and_then(|folder| tool.act(&attempt, folder, &hidden, &stopping));
                // A call that was given up still has it until its file is there.
                drop((held, copy));
                acted
            }));
            let acted = stop.after(tool.ms_max(), answer).await;
            let mut answer = acted.unwrap_or_else(|refused| ToolAnswer::failed(refused.to_string()));
            if let Some(note) = note.flatten() {
                answer.text = format!("{note}\n{}", answer.text);
            }
            Ok(answer)
        })
    }
}

/// The path that a call names.
#[derive(Deserialize)]
struct NamedPath {
    path: Option<String>,
}

/// Makes the working copy of the agent if the call is about it. It stays locked as long as what is returned.
#[cfg(all(feature = "processes", target_os = "linux"))]
async fn opened_copy(attempt: &ToolAttempt) -> Result<Option<(Option<String>, CopyLock)>, Refused> {
    let (Some(repository), Some(folder)) = (&attempt.working_copy, &attempt.workspace) else {
        return Ok(None);
    };
    // What is wrong with it is said by the tool.
    let Ok(NamedPath { path: Some(path) }) = serde_json::from_str(&attempt.args) else { return Ok(None) };
    if path.split('/').next() != Some(Top::Copy.as_str()) {
        return Ok(None);
    }
    let made = folder.clone();
    off_worker(move || workspace(&made).map(drop)).await?;
    let opened = OpenCopy::open(folder, Path::new(repository.as_str())).await;
    let opened =
        opened.map_err(|error| Refused::new(format!("there is no working copy: {}", error.in_words())))?;
    Ok(Some((opened.note, opened.lock)))
}

/// Without processes there are no working copies.
#[cfg(not(all(feature = "processes", target_os = "linux")))]
#[expect(clippy::unused_async, reason = "it is awaited where there are copies")]
async fn opened_copy(_: &ToolAttempt) -> Result<Option<(Option<String>, ())>, Refused> {
    Ok(None)
}

/// Tells work on another thread to end, also when nothing waits for it any more.
#[derive(Default)]
struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Waits for work, which ends with what it has when its time is over.
    async fn after<T>(&self, ms_max: Option<u64>, mut work: Pin<&mut impl Future<Output = T>>) -> T {
        if let Some(ms_max) = ms_max {
            let timed = tokio::time::timeout(Duration::from_millis(ms_max), work.as_mut());
            if let Ok(done) = timed.await {
                return done;
            }
            self.0.store(true, Ordering::Relaxed);
        }
        work.await
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn args<T: DeserializeOwned>(attempt: &ToolAttempt) -> Result<T, Refused> {
    serde_json::from_str(&attempt.args)
        .map_err(|error| Refused::new(format!("bad arguments for `{}`: {error}", attempt.tool)))
}

#[cfg(test)]
mod tests {
    use spinney_kernel::context::Origin;
    use spinney_kernel::primitives::{CallId, TreeId};

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
