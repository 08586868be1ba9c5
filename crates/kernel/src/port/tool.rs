//! The tool port: a driver describes a tool and calls it once. The kernel decides what may be called, and whether to
//! retry.

use std::fmt;
use std::sync::Arc;

use crate::budget::Used;
use crate::context::Origin;
use crate::definition;
use crate::definition::{BoxSpec, OutputLimits};
use crate::port::model::AttemptError;
use crate::port::{AgentFolder, ConnectionLog, ModelHandle, Pending, PersonHandle, Rights};
use crate::primitives::{
    CallId, CommandExit, Durability, Enclosure, FolderPath, OutputPath, ToolName, WrittenFile,
};

pub trait Tool: Send + Sync {
    fn spec(&self) -> definition::ToolSpec;

    /// Calls it once. Dropping the future stops the call and everything it started.
    fn call(&self, attempt: ToolAttempt) -> Pending<Result<ToolAnswer, AttemptError>>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolAttempt {
    pub origin: Arc<Origin>,
    /// The call that this is an attempt at.
    pub call: CallId,
    pub tool: ToolName,
    /// A JSON object, as text.
    pub args: String,
    /// The first is 1.
    pub attempt: u32,
    /// Idempotency key: the same for every start of the same call.
    pub key: String,
    /// How much the agent may write into its folder.
    pub outputs: OutputLimits,
    /// The tree's durability: with `full`, the tool's changes are on disk before it answers.
    pub durability: Durability,
    pub rights: Rights,
    /// The agent's folder, if its tree has workspaces.
    pub workspace: Option<AgentFolder>,
    /// What surrounds the commands of the agent.
    pub sandbox: BoxSpec,
    /// The repository that the agent has a copy of.
    pub working_copy: Option<FolderPath>,
    /// Watchers of the call.
    pub watchers: OutputWatchers,
    /// What the tool connects to, for the journal.
    pub connections: ConnectionLog,
    /// Whom the tool may ask while it runs.
    pub person: PersonHandle,
    /// The agent's model, which the tool may ask while it runs.
    pub model: ModelHandle,
}

/// Receives what a tool prints while it runs, for watchers. The result has all of it.
#[derive(Clone, Default)]
pub struct OutputWatchers(Option<Arc<Show>>);

type Show = dyn Fn(&str) + Send + Sync;

impl OutputWatchers {
    /// Those that this function shows a piece to.
    pub fn new(show: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(show)))
    }

    /// Shows them a piece.
    pub fn show(&self, text: &str) {
        if let Some(show) = &self.0 {
            show(text);
        }
    }
}

impl PartialEq for OutputWatchers {
    /// Always equal: what is watched does not depend on it.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for OutputWatchers {}

impl fmt::Debug for OutputWatchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OutputWatchers")
    }
}

impl ToolAttempt {
    /// The first attempt at a call, without rights and folder, under default limits. The fields are public: set those that
    /// differ.
    #[must_use]
    pub fn new(origin: Arc<Origin>, call: CallId, key: String, tool: ToolName, args: String) -> Self {
        Self {
            origin,
            call,
            tool,
            args,
            attempt: 1,
            key,
            outputs: OutputLimits::default(),
            durability: Durability::default(),
            rights: Rights::none(),
            workspace: None,
            sandbox: BoxSpec::default(),
            working_copy: None,
            watchers: OutputWatchers::default(),
            connections: ConnectionLog::default(),
            person: PersonHandle::default(),
            model: ModelHandle::default(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolAnswer {
    pub text: String,
    /// Whether the tool reports an error. The model sees it and decides what to do.
    pub is_error: bool,
    /// Images and files. Empty, oversized or excess ones are left out, and the model is notified.
    pub parts: Vec<Enclosure>,
    /// The files below `outputs/` of the agent's folder that it wrote, whole. The tree's journal keeps them: a file that is
    /// missing here is missing where the tree is resumed on another machine.
    pub files: Vec<WrittenFile>,
    /// The files below `outputs/` that it removed. The tree's journal keeps that as well.
    pub removed: Vec<OutputPath>,
    /// How the command ended, if the tool ran one.
    pub exit: Option<CommandExit>,
    pub used: Used,
}

impl ToolAnswer {
    /// A result that cost nothing beside its call.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_error: false,
            parts: Vec::new(),
            files: Vec::new(),
            removed: Vec::new(),
            exit: None,
            used: Used::NOTHING,
        }
    }

    /// An error that the model reads.
    #[must_use]
    pub fn failed(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    #[must_use]
    pub fn with_parts(mut self, parts: Vec<Enclosure>) -> Self {
        self.parts = parts;
        self
    }

    #[must_use]
    pub fn with_files(mut self, files: Vec<WrittenFile>) -> Self {
        self.files = files;
        self
    }

    #[must_use]
    pub fn with_removed(mut self, removed: Vec<OutputPath>) -> Self {
        self.removed = removed;
        self
    }

    /// Sets how the command ended. It is an error unless that was a success.
    #[must_use]
    pub fn with_exit(mut self, exit: CommandExit) -> Self {
        self.is_error |= !exit.is_success();
        self.exit = Some(exit);
        self
    }

    /// Sets what it used beside the call itself.
    #[must_use]
    pub fn with_used(mut self, used: Used) -> Self {
        self.used = used;
        self
    }
}
