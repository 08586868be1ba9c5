//! Steering a home that another process has open: a Unix socket in the home, one request per connection, one line of
//! JSON each way. What is no text comes as bytes behind the line that names it. `docs/decisions/0013-steering-a-running-home.md` says why.

mod address;
mod client;
mod server;

use serde::{Deserialize, Serialize};
use spinney_kernel::definition::Refusal;
use spinney_kernel::rules::Reply;
use spinney_kernel::rules::request::Request;
use spinney_kernel::words::{AgentId, CheckpointName, TreeId};

pub(crate) use client::{NoAnswer, Running, ask, ask_with, running};
pub(crate) use server::Listening;

/// Longest line: the longest text that a request may hold, however it is escaped, and room to spare.
const LINE_BYTES_MAX: usize = 256 * 1024;
/// Longest time that one connection may take.
const EXCHANGE_MS_MAX: u64 = 10_000;

/// What may be asked.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Ask {
    /// Which trees run there?
    Running,
    /// Do something that a person asks of a tree. Behind the line come the bytes of the request's parts, in order.
    Do {
        /// Which tree.
        tree: TreeId,
        /// What.
        request: Box<Request>,
    },
}

/// What is answered.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "told", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Answer {
    /// These trees run.
    Running {
        /// Which.
        trees: Vec<TreeId>,
    },
    /// It is done, and durable.
    Done {
        /// Whether the tree goes on by itself.
        goes_on: GoesOn,
        /// How many messages each agent was told that was to be told something, in the order in which they were named.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        messages: Vec<u32>,
        /// What the checkpoint is called, if one was made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checkpoint: Option<CheckpointName>,
        /// What became of an agent that was rolled back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        back: Option<Back>,
    },
    /// It may not be done.
    Refused {
        /// Why.
        message: String,
        /// The same for programs, if it is the tree that says no.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refusal: Option<Box<Refusal>>,
    },
    /// It could not be done.
    Failed {
        /// Why.
        message: String,
    },
}

/// What became of an agent that was rolled back.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Back {
    /// Who.
    pub(crate) agent: AgentId,
    /// How many messages its context has.
    pub(crate) messages: u64,
    /// The children that were cancelled.
    pub(crate) cancelled: Vec<AgentId>,
}

/// Whether a tree goes on by itself after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GoesOn {
    /// A process runs it.
    Now,
    /// It stands still until somebody resumes it.
    WhenResumed,
    /// When an agent is spawned that is not there yet.
    WhenSpawned,
}

impl Answer {
    /// What a tree's reply says; whether it goes on, if the reply does not say it, the asker knows.
    fn done(reply: Reply, otherwise: GoesOn) -> Self {
        let (goes_on, messages, checkpoint, back) = (otherwise, Vec::new(), None, None);
        match reply {
            Reply::Queued { .. } => Self::Done { goes_on: GoesOn::WhenSpawned, messages, checkpoint, back },
            Reply::Told { messages } => Self::Done { goes_on, messages, checkpoint, back },
            Reply::Checkpoint { name } => Self::Done { goes_on, messages, checkpoint: Some(name), back },
            Reply::RolledBack { agent, messages: left, cancelled, prior } => {
                let back = Some(Back { agent, messages: left, cancelled });
                Self::Done { goes_on, messages, checkpoint: Some(prior), back }
            }
            Reply::Done
            | Reply::Spawned { .. }
            | Reply::Started { .. }
            | Reply::Waiting { .. }
            | Reply::Refused { .. }
            | Reply::Stale => Self::Done { goes_on, messages, checkpoint, back },
        }
    }
}
