//! The wire form for processes outside: a child is asked for and answered for in protobuf. `wire.proto` beside this file
//! is the same for other languages; a test compares the two.

use std::time::Duration;

use prost::Message;
use spinney_journal::JournalFault;
use spinney_kernel::context::Frame;
use spinney_kernel::definition::BudgetSpec;
use spinney_kernel::record::{Event, Exit, Outcome};
use spinney_kernel::rules::request::{Collect, Request, Spawn};
use spinney_kernel::words::{AgentId, By, Correlation, IdError, RoleName, Seq, ToolName, Topic, limit};

use crate::bus::Waited;
use crate::tree::{RequestError, Tree};

/// Longest message that is read.
const BYTES_MAX: usize = 1024 * 1024;

/// Asks for a child.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct SpawnRequest {
    /// Under whom.
    #[prost(string, tag = "1")]
    pub parent_id: String,
    /// Its id.
    #[prost(string, tag = "2")]
    pub child_id: String,
    /// What it is to do.
    #[prost(string, tag = "3")]
    pub goal: String,
    /// Fewer tools than its role has; all of those if empty.
    #[prost(string, repeated, tag = "4")]
    pub tools: Vec<String>,
    /// When it is given up; never if 0.
    #[prost(int64, tag = "5")]
    pub timeout_ms: i64,
    /// Its role; the child's id names it if empty.
    #[prost(string, tag = "6")]
    pub role: String,
}

/// Answers for a child.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct SpawnResult {
    /// Under whom it was.
    #[prost(string, tag = "1")]
    pub parent_id: String,
    /// Which child.
    #[prost(string, tag = "2")]
    pub child_id: String,
    /// Whether it completed.
    #[prost(bool, tag = "3")]
    pub success: bool,
    /// What it has to show, and nothing of how it got there.
    #[prost(string, tag = "4")]
    pub result: String,
    /// Why it did not complete.
    #[prost(string, tag = "5")]
    pub error: String,
}

/// Why a request from outside cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// It is too long.
    #[error("a request of {bytes} bytes, the limit is {BYTES_MAX}: shorten it")]
    TooLong {
        /// How long it is.
        bytes: usize,
    },
    /// It is no such message.
    #[error("not a spawn request: {reason}")]
    Unreadable {
        /// What is wrong.
        reason: String,
    },
}

/// Why there is no child, or no result of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Id(#[from] IdError),
    #[error("timeout_ms is {0}: give 0 or more")]
    Timeout(i64),
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Waited(#[from] Waited),
    #[error(transparent)]
    Journal(#[from] JournalFault),
}

impl SpawnRequest {
    /// Reads one.
    ///
    /// # Errors
    /// If it is too long, or none.
    pub fn read(bytes: &[u8]) -> Result<Self, WireError> {
        if bytes.len() > BYTES_MAX {
            return Err(WireError::TooLong { bytes: bytes.len() });
        }
        Self::decode(bytes).map_err(|error| WireError::Unreadable { reason: error.to_string() })
    }

    /// The same as a request of the tree.
    fn spawn(&self) -> Result<Spawn, Failed> {
        let timeout_ms = u64::try_from(self.timeout_ms).map_err(|_| Failed::Timeout(self.timeout_ms))?;
        let role = if self.role.is_empty() { &self.child_id } else { &self.role };
        let tools: Vec<ToolName> = self.tools.iter().map(|tool| tool.parse()).collect::<Result<_, _>>()?;
        Ok(Spawn {
            parent: self.parent_id.parse()?,
            role: role.parse::<RoleName>()?,
            goal: self.goal.clone(),
            goal_tokens: None,
            id: Some(self.child_id.parse()?),
            model: None,
            tools: Some(tools).filter(|tools| !tools.is_empty()),
            budget: BudgetSpec { timeout_ms: Some(timeout_ms).filter(|ms| *ms > 0), ..BudgetSpec::default() },
            collect: Collect::Detached,
            share: None,
            messages: Vec::new(),
            frame: Frame::default(),
        })
    }
}

impl Tree {
    /// Spawns a child for a process outside and waits for its end. Whatever goes wrong stands in the result.
    pub async fn serve(&self, request: &SpawnRequest) -> SpawnResult {
        let (parent_id, child_id) = (request.parent_id.clone(), request.child_id.clone());
        match self.spawn_outside(request).await {
            Ok((Exit::Completed, result)) => {
                SpawnResult { parent_id, child_id, success: true, result, error: String::new() }
            }
            Ok((exit, result)) => {
                let error = match &exit {
                    Exit::Failed { error } => format!("{}: {}", error.code, error.message),
                    Exit::Cancelled { reason } => format!("cancelled: {reason}"),
                    Exit::Exhausted { account, short } => format!("exhausted: {}", short.describe(account)),
                    Exit::Completed => String::new(),
                };
                SpawnResult { parent_id, child_id, success: false, result, error }
            }
            Err(failed) => {
                let error = failed.to_string();
                SpawnResult { parent_id, child_id, success: false, result: String::new(), error }
            }
        }
    }

    async fn spawn_outside(&self, request: &SpawnRequest) -> Result<(Exit, String), Failed> {
        let spawn = request.spawn()?;
        let (child, after): (AgentId, _) = (request.child_id.parse()?, self.status().seq);
        self.request(By::Agent(spawn.parent.clone()), Request::Spawn(spawn)).await?;
        let patience = Duration::from_millis(limit::TIMEOUT_MS_MAX);
        let topic = Topic::result();
        let ended = self.wait_for(topic, &Correlation::of_agent(&child), (after, patience)).await?;
        let Event::AgentEnded { exit, result, said, .. } = &ended.told.event else {
            return Err(Failed::Waited(Waited::Ended));
        };
        let shown = match (result, said) {
            (Some(body), _) => body.text.clone(),
            (None, Some(said)) => self.said(*said)?,
            (None, None) => String::new(),
        };
        Ok((exit.clone(), shown))
    }

    /// What a model said in an event.
    fn said(&self, seq: Seq) -> Result<String, JournalFault> {
        let page = self.journal().read(self.id(), Seq(seq.0.saturating_sub(1)), 1)?;
        let event = page.into_iter().flat_map(crate::tree::tell).find(|told| told.seq == seq);
        Ok(match event.map(|told| told.event) {
            Some(Event::CallEnded { outcome: Outcome::Done { body, .. }, .. }) => body.text,
            Some(_) | None => String::new(),
        })
    }
}
