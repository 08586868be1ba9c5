//! Controls a home that another process has open: a Unix socket in the home, one request per connection, one line of
//! JSON each way, with the kernel's requests and replies and their version. Binary parts follow the line that names
//! them. On a connection that asks for streamed text, that follows, a line for each piece. `docs/decisions/0013-steering-a-running-home.md` says why.

mod apply;
mod client;
pub mod line;
mod resume_lease;
pub mod steering;
mod text;

use serde::{Deserialize, Serialize};
use spinney_kernel::budget::Ceilings;
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{AgentId, Seq, TreeId};
use spinney_kernel::record::ContinuedAs;
use spinney_kernel::rules::request::{Reply, Request, Verb};
use spinney_view::visibility::WatchRight;

pub use crate::system::socket_address::SocketAddress;
pub use apply::{apply, refused, refused_by_the_tree};
pub use client::{ReachedHome, RunningTrees, SteerError, ask_with, reach, running};
pub use resume_lease::{ResumeAnswer, ResumeLease};
pub use text::{StreamedText, StreamedTexts};

/// Longest line: the longest text of a request, however it is escaped, with room to spare.
pub const LINE_BYTES_MAX: usize = 256 * 1024;
/// How long an exchange may take.
pub const EXCHANGE_MS_MAX: u64 = 10_000;

/// A request on the socket.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ControlRequest {
    /// Which trees run here.
    Running,
    /// Apply a person's request to a tree. The bytes of its parts follow the line, in order.
    Apply {
        /// The tree.
        tree: TreeId,
        /// What to do.
        request: Box<Request>,
    },
    /// Run a tree for as long as this connection is open on both sides.
    Resume {
        /// The tree.
        tree: TreeId,
        /// Hosts that the user allows for it.
        hosts: Vec<String>,
    },
    /// Make a branch of a tree in its journal.
    Branch {
        /// The tree whose batches it shares.
        from: TreeId,
        /// The last shared event.
        at: Seq,
        /// The branch point is a checkpoint of this agent.
        agent: AgentId,
        /// Its ceilings.
        budget: Ceilings,
    },
    /// Make a tree that continues one which has ended, in its journal.
    Continue {
        /// The tree that has ended.
        from: TreeId,
        /// How its root behaves after its answers.
        continued_as: ContinuedAs,
    },
    /// Remove expired automatic checkpoints.
    Clean,
    /// Send the text that the models of a tree stream from now on, until one side goes.
    Text {
        /// The tree.
        tree: TreeId,
        /// What is sent is what a watcher with this right is shown. Whoever reaches the socket is the owner, and may ask for
        /// less.
        #[serde(default, skip_serializing_if = "WatchRight::is_owner")]
        right: WatchRight,
    },
}

impl ControlRequest {
    /// The tree that it is about.
    #[must_use]
    pub const fn tree(&self) -> Option<TreeId> {
        match self {
            Self::Running | Self::Clean => None,
            Self::Apply { tree, .. } | Self::Resume { tree, .. } | Self::Text { tree, .. } => Some(*tree),
            Self::Branch { from, .. } | Self::Continue { from, .. } => Some(*from),
        }
    }
}

/// The reply to a request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ControlReply {
    /// Those that run here.
    Running {
        /// Their ids.
        trees: Vec<TreeId>,
    },
    /// It is done and durable.
    Done {
        /// Whether the tree continues.
        continues: Continues,
        /// What the tree replied.
        reply: Reply,
    },
    /// The tree runs here, until the connection is closed on one side.
    Resumed {
        /// The last event before that.
        past: Seq,
    },
    /// The tree has ended, so it was not resumed.
    HasEnded,
    /// The branch or continuation is made and durable.
    Branched {
        /// Its id.
        tree: TreeId,
    },
    /// Expired checkpoints are removed.
    Cleaned {
        /// The number of them.
        removed: usize,
        /// Remaining automatic ones.
        left: usize,
        /// Trees whose expired checkpoints could not be removed, and why.
        failed: Vec<UncleanedTree>,
    },
    /// Each further line is a [`StreamedText`].
    TextFollows,
    /// It was not done.
    Refused {
        /// The reason.
        message: String,
        /// For programs, if the tree refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refusal: Option<Box<Refusal>>,
    },
    /// It could not be done.
    Failed {
        /// The reason.
        message: String,
    },
}

/// A tree whose expired checkpoints could not be removed.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UncleanedTree {
    /// The tree.
    pub tree: TreeId,
    /// The reason.
    pub message: String,
}

/// The result of a request, with the reply to its verb.
#[derive(Debug)]
pub enum SteerReply<R> {
    /// It is done and durable.
    Done {
        /// Whether the tree continues.
        continues: Continues,
        /// The reply to the verb.
        reply: R,
    },
    /// It was not done.
    Refused {
        /// The reason.
        message: String,
        /// For programs, if the tree refused.
        refusal: Option<Box<Refusal>>,
    },
    /// It could not be done.
    Failed {
        /// The reason.
        message: String,
    },
}

/// Whether a tree continues after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Continues {
    /// It continues at once.
    Now,
    /// It does not continue until it is resumed.
    WhenResumed,
}

impl ControlReply {
    /// Whether the other process does not know the request.
    fn is_unknown_ask(&self) -> bool {
        matches!(self, Self::Refused { message, .. } if message.starts_with(line::UNKNOWN_LINE))
    }

    /// The answer to a verb; `None` if it belongs to another.
    fn to<V: Verb>(self) -> Option<SteerReply<V::Reply>> {
        Some(match self {
            Self::Done { continues, reply } => SteerReply::Done { continues, reply: reply.try_into().ok()? },
            Self::Refused { message, refusal } => SteerReply::Refused { message, refusal },
            Self::Failed { message } => SteerReply::Failed { message },
            Self::Running { .. }
            | Self::Resumed { .. }
            | Self::HasEnded
            | Self::Branched { .. }
            | Self::Cleaned { .. }
            | Self::TextFollows => return None,
        })
    }
}
